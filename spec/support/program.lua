-- Runs the program under test, as a child and on a terminal of its own.
-- Load with dofile: specs run from any folder.

local ffi = require "ffi"

local M = {}

pcall(ffi.cdef, [[
int posix_openpt(int flags);
int grantpt(int fd);
int unlockpt(int fd);
char *ptsname(int fd);
int close(int fd);
int open(const char *path, int flags, ...);
long read(int fd, void *buffer, size_t n);
long write(int fd, const void *buffer, size_t n);
struct spec_pollfd { int fd; short events, revents; };
int poll(struct spec_pollfd *fds, unsigned long n, int timeout);
]])

local function first_of(arg)
  local i = 0
  while arg[i - 1] do
    i = i - 1
  end
  return arg[i]
end

--- The program's path: what the build says, or what runs this spec.
M.path = os.getenv "CGRAPHLUA_PROGRAM" or first_of(_G.arg)
if M.path:find "/" and not M.path:find "^/" then
  M.path = os.getenv "PWD" .. "/" .. M.path
end

function M.quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function slurp(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "*a"
  f:close()
  return text
end

--- A new empty folder; the caller removes it with M.remove.
function M.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir " .. M.quote(path)) == 0)
  return path
end

function M.remove(path)
  os.execute("rm -rf " .. M.quote(path))
end

--- Gives each test of a describe a folder of its own; returns a function that
-- makes a file's path there, or without a name is the folder's.
function M.own_folder(before_each, after_each)
  local folder
  before_each(function() folder = M.folder() end)
  after_each(function() M.remove(folder) end)
  return function(name)
    return name and folder .. "/" .. name or folder
  end
end

function M.write(path, text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end

M.read = slurp

--- Runs a shell command line; returns its exit status, standard output and
-- standard error.
function M.shell(line)
  local out, err = os.tmpname(), os.tmpname()
  local raw = os.execute(string.format("{ %s\n} >%s 2>%s", line, out, err))
  local text, errors = slurp(out), slurp(err)
  os.remove(out)
  os.remove(err)
  return math.floor(raw / 256), text, errors
end

--- Runs the program with the arguments; opts.input is its standard input,
-- opts.env goes before the command ("A=1 B=2").
function M.run(args, opts)
  opts = opts or {}
  local words = { opts.env or "", M.quote(M.path) }
  for _, arg in ipairs(args) do
    words[#words + 1] = M.quote(arg)
  end
  local input = os.tmpname()
  M.write(input, opts.input or "")
  words[#words + 1] = "<" .. input
  local status, out, err = M.shell(table.concat(words, " "))
  os.remove(input)
  return status, out, err
end

local terminal = {}
terminal.__index = terminal

--- Why a spec of terminals cannot run on this machine, or nil.
function M.lacks_terminals()
  local master = ffi.C.posix_openpt(2)
  local name = master >= 0 and ffi.C.unlockpt(master) == 0 and ffi.C.ptsname(master)
  local slave = name and name ~= nil and ffi.C.open(name, 2 + 256) or -1
  if slave >= 0 then ffi.C.close(slave) end
  if master >= 0 then ffi.C.close(master) end
  return slave < 0 and "this machine has no pseudo-terminals (/dev/pts)" or nil
end

--- Why a spec that looks into other processes cannot run on this machine, or nil.
function M.lacks_proc()
  local file = io.open "/proc/self/status"
  if file then file:close() end
  return not file and "this machine has no /proc" or nil
end

--- Starts a shell command on a terminal of its own.
function M.terminal(line)
  -- Close-on-exec: a child that held the terminal would outlive its closing.
  local O_RDWR, O_NOCTTY, O_CLOEXEC = 2, 256, 524288
  local master = ffi.C.posix_openpt(O_RDWR + O_NOCTTY + O_CLOEXEC)
  assert(master >= 0 and ffi.C.grantpt(master) == 0 and ffi.C.unlockpt(master) == 0)
  local slave = ffi.string(ffi.C.ptsname(master))
  -- Held open: a terminal that nobody has open yet reads as closed.
  local held = ffi.C.open(slave, O_RDWR + O_NOCTTY + O_CLOEXEC)
  assert(held >= 0)
  -- The first terminal that the leader of a session opens becomes its own.  Checks that
  -- a shell runs in the background ignore Ctrl-C; what is on the terminal does not.
  local command = "setsid --fork env --default-signal=INT sh -c " .. M.quote(string.format(
    "exec <%s >%s 2>&1; trap : INT; stty cols 100 rows 24; %s; echo EXIT=$?", slave, slave, line))
  assert(os.execute(command) == 0)
  return setmetatable({ fd = master, held = held, seen = "", from = 1 }, terminal)
end

--- Types a text.
function terminal:send(text)
  assert(ffi.C.write(self.fd, text, #text) == #text)
end

--- Reads until the plain text appears after what was expected before, or
-- fails after `seconds` (20); returns all that was seen so far.
function terminal:expect(text, seconds)
  local deadline = os.time() + (seconds or 20)
  local buffer = ffi.new "char[4096]"
  local fds = ffi.new "struct spec_pollfd[1]"
  while true do
    local _, last = self.seen:find(text, self.from, true)
    if last then
      self.from = last + 1
      return self.seen
    end
    fds[0].fd, fds[0].events = self.fd, 1
    if ffi.C.poll(fds, 1, 500) > 0 then
      local n = tonumber(ffi.C.read(self.fd, buffer, 4096))
      if n <= 0 then
        error(string.format("the terminal closed before %q; seen: %q", text, self.seen), 2)
      end
      self.seen = self.seen .. ffi.string(buffer, n)
    elseif os.time() > deadline then
      error(string.format("no %q within the time; seen: %q", text, self.seen), 2)
    end
  end
end

function terminal:close()
  ffi.C.close(self.held)
  ffi.C.close(self.fd)
end

return M
