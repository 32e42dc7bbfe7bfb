-- The manual names what is there and nothing else, and what it shows is true:
-- its Lua blocks and the README's print what they say, its C compiles.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local program = device.program
local quote = program.quote

local root = here .. "/../.."

local function read(path)
  local file = io.open(root .. "/" .. path, "rb")
  local text = file and file:read "*a"
  if file then file:close() end
  return text
end

local manual, header = read "doc/manual.md", read "include/cgraphlua.h"
header = header and (header .. '#include "cgraphlua/lua.h"')
  :gsub('#include "(cgraphlua/[^"]+)"', function(part) return assert(read("include/" .. part)) end)

if not (manual and header) then
  describe("manual", function()
    it("is beside the specs", function()
      pending "the manual and the header are not in this folder of tests"
    end)
  end)
  return
end

-- Lua and C names of the headings: set["graph:replay"], set.cgl_graph_replay.
local function headings()
  local set = {}
  for line in manual:gmatch "\n### ([^\n]+)" do
    for code in line:gmatch "`([^`]+)`" do
      set[code:match "^#?([%w_.:]+)"] = true
    end
  end
  return set
end

local heading = headings()

-- Both sets have the same names.
local function same(expected, found)
  local wrong = {}
  for name in pairs(expected) do
    if not found[name] then wrong[#wrong + 1] = "not in the manual: " .. name end
  end
  for name in pairs(found) do
    if not expected[name] then wrong[#wrong + 1] = "only in the manual: " .. name end
  end
  table.sort(wrong)
  assert(#wrong == 0, table.concat(wrong, "\n"))
end

-- The headings that a pattern captures something of.
local function those(pattern)
  local set = {}
  for name in pairs(heading) do
    if name:match(pattern) then set[name] = true end
  end
  return set
end

-- Exported functions of the C API.
local function exports()
  local set = {}
  for declaration in header:gmatch "CGL_API ([^;]+);" do
    local name = declaration:match "(cgl_[%w_]+)%("
    if name then set[name] = true end
  end
  for noun in header:match "#define CGL_OBJECTS%(X%)(.-)\n#define":gmatch "X%(([%w_]+)%)" do
    set["cgl_" .. noun .. "_retain"], set["cgl_" .. noun .. "_release"] = true, true
  end
  return set
end

-- The blocks of one language below each heading of the second level, each on
-- the line on which it stands in the text.
local function sections(text, language)
  local list, inside, number = {}, false, 0
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    number = number + 1
    if not inside and (line:match "^## " or number == 1) then
      list[#list + 1] = { title = line:match "^#+ (.*)" or "the beginning" }
    end
    local fence = line:match "^```(.*)$"
    if fence and not inside then
      inside = fence
    elseif fence then
      inside = false
    elseif inside == language then
      list[#list][number] = line
      list[#list].last = number
    end
  end
  return list
end

local function source_of(section)
  local lines = {}
  for number = 1, section.last do lines[number] = section[number] or "" end
  return table.concat(lines, "\n") .. "\n"
end

-- What the text says that it prints.
local function promised(source)
  local list = {}
  for words in source:gmatch "%-%-> ([^\n]*)" do list[#list + 1] = words .. "\n" end
  return table.concat(list)
end

-- Runs a script (under another one) in a folder of its own.
local function run(source, before)
  local folder = program.folder()
  program.write(folder .. "/block.lua", source)
  local status, out, err = program.shell(string.format(
    "cd %s && CGRAPHLUA_DEVICE=%s %s %s block.lua", quote(folder),
    quote(os.getenv "CGRAPHLUA_DEVICE" or "host"), quote(program.path), before or ""))
  program.remove(folder)
  return status, out, err
end

describe("manual", function()
  teardown(device.nothing_alive)

  it("has text below every heading, and kernels that may hold x[i[j]]", function()
    local last
    for line in (manual:gsub("```.-```", "text") .. "\n# end\n"):gmatch "([^\n]*)\n" do
      local title = line:match "^#+ (.*)"
      if title then
        assert(not last, "nothing stands below: " .. tostring(last))
        last = title
      elseif line:find "%S" then
        last = nil
      end
    end
    assert.is_nil(manual:find("cg.kernel ?%(?%[%["))
    assert.is_nil(read "README.md":find("cg.kernel ?%(?%[%["))
  end)

  it("has every method of every object in a heading, and no other", function()
    local live, found = {}, {}
    for kind, make in pairs(device.objects) do
      for name in pairs(debug.getmetatable(make()).methods) do live[kind .. ":" .. name] = true end
      for name in pairs(those("^" .. kind .. ":")) do found[name] = true end
    end
    same(live, found)
  end)

  it("has the fields of buffers in a heading, and names those of pinned memory", function()
    local live = { buffer = true } -- #buffer
    for name in pairs(debug.getmetatable(device.objects.buffer()).fields) do
      live["buffer." .. name] = true
    end
    same(live, those "^buffer%f[^%w:]")
    for name in pairs(debug.getmetatable(device.objects.pinned()).fields) do
      assert.is_truthy(manual:find("`pinned." .. name .. "`", 1, true), name)
    end
  end)

  it("has every function of the module in a heading, and no other", function()
    local live = {}
    for name, value in pairs(cg) do
      if type(value) == "function" then live["cg." .. name] = true end
      assert.is_truthy(manual:find("`cg." .. name, 1, true), name)
    end
    for name in pairs(cg.debug) do live["cg.debug." .. name] = true end
    same(live, those "^cg%.")
  end)

  it("has the functions of the other modules in headings, and no other", function()
    for _, name in ipairs { "image", "progress", "options", "algo", "blas", "fft" } do
      local live, module = {}, require("cgraphlua." .. name)
      for field, value in pairs(module) do
        local dot = rawget(module, "__index") == module and field ~= "new" and ":" or "."
        if type(value) == "function" then live[name .. dot .. field] = true end
      end
      same(live, those("^" .. name .. "[.:]"))
    end
  end)

  it("names every function of the header, and no other", function()
    local known, exported, named = {}, exports(), {}
    for name in header:gmatch "cgl_[%w_]+" do known[name] = true end
    for name in pairs(exported) do known[name] = true end
    for name in manual:gmatch "%f[%w_]cgl_[%w_]+" do
      assert(known[name], "not in the header: " .. name)
      if exported[name] then named[name] = true end
    end
    same(exported, named)
  end)

  it("lists every error of ours with its code", function()
    local live, found = {}, {}
    for name, code in header:gmatch "X%((CGL_ERROR_[%u_]+), (%-%d+)," do
      live[name .. code] = true
    end
    for name, code in manual:gmatch "\n| `(CGL_ERROR_[%u_]+)` | (%-%d+) |" do
      found[name .. code] = true
    end
    assert.is_truthy(next(live))
    same(live, found)
    for name in manual:gmatch "CGL_ERROR_[%u_]+%u" do
      assert.is_truthy(header:find("X(" .. name .. ",", 1, true), name)
    end
  end)

  it("names entry points that the driver table has", function()
    local rows = read "src/driver/rows.h"
    if not rows then
      pending "the driver table's rows are not in this folder of tests"
      return
    end
    for name in manual:gmatch "`(cu%u[%w_]+)`" do
      assert.is_truthy(rows:find("%f[%w]" .. name .. "%f[^%w_]"), name)
    end
  end)

  it("points to headings that are there", function()
    local anchors = {}
    for title in manual:gmatch "\n##+ ([^\n]+)" do
      anchors[title:lower():gsub("[^%w -]", ""):gsub(" ", "-")] = true
    end
    for anchor in manual:gmatch "%]%(#([^)]+)%)" do assert(anchors[anchor], anchor) end
  end)

  for _, section in ipairs(sections(manual, "lua")) do
    if section.last then
      it("shows what runs and prints what it says: " .. section.title, function()
        if section.title == "Pools" and device.never_reuses then
          return pending "memory is not reused here"
        end
        local libraries = { Matrices = "cgraphlua.blas", Transforms = "cgraphlua.fft" }
        local library = libraries[section.title]
        if library then
          local there, why = pcall(require(library).describe)
          if not there then return pending(tostring(why)) end
        end
        local source = source_of(section)
        local status, out, err = run(source)
        assert.equal(0, status, err)
        assert.equal(promised(source), out)
      end)
    end
  end

  for _, section in ipairs(sections(manual, "lua busted")) do
    if section.last then
      it("shows a spec that passes: " .. section.title, function()
        local busted = os.getenv "BUSTED" or _G.arg[0]
        local status, out, err = run(source_of(section), quote(busted) .. " -o TAP")
        assert.equal(0, status, out .. err)
        assert.matches("ok 1", out)
      end)
    end
  end

  it("leaves no Lua block untried", function()
    for info in manual:gmatch "\n```(lua[^\n]*)" do
      assert(info == "lua" or info == "lua busted", info)
    end
  end)
end)

describe("README", function()
  local text = read "README.md"

  for _, section in ipairs(sections(text or "", "lua")) do
    if section.last then
      it("shows what runs: " .. section.title, function()
        local status, out, err = run(source_of(section))
        assert.equal(0, status, err)
        assert.matches("^[%d.e+-]+\n$", out)
      end)
    end
  end
end)

describe("C example", function()
  -- The library that belongs to the program under test, or nil.
  local function library()
    local folder = program.path:match "^(.*)/[^/]*$" or "."
    for _, path in ipairs { folder .. "/.libs", folder .. "/../lib" } do
      local file = io.open(path .. "/libcgraphlua.so")
      if file then
        file:close()
        return path
      end
    end
  end

  local sanitizers = {
    address = "-fsanitize=address,undefined", thread = "-fsanitize=thread",
  }

  -- Compiles and runs doc/examples/<name>.c; returns its output, or nil and
  -- why it cannot be done here.
  local function output(name, packages)
    local cc = os.getenv "CC" or "cc"
    local path = library()
    if not path then return nil, "no shared library beside the program" end
    if program.shell("command -v " .. cc) ~= 0 then return nil, "no C compiler" end
    local flags = ""
    if packages then
      local status, out = program.shell("pkg-config --cflags --libs " .. packages)
      if status ~= 0 then return nil, "pkg-config knows no " .. packages end
      flags = out:gsub("%s+$", "")
    end
    local folder = program.folder()
    local status, _, err = program.shell(table.concat({
      cc, "-std=gnu11 -Wall -Wextra -Werror", sanitizers[os.getenv "CGRAPHLUA_SANITIZER"] or "",
      "-I" .. quote(root .. "/include"), quote(root .. "/doc/examples/" .. name .. ".c"),
      "-o", quote(folder .. "/example"), "-L" .. quote(path), "-Wl,-rpath-link," .. quote(path),
      packages and "-lcgraphlua-lua" or "", "-lcgraphlua", flags,
    }, " "))
    assert.equal(0, status, err)
    local out
    status, out, err = program.shell(string.format(
      "LD_LIBRARY_PATH=%s LUA_PATH=%s CGRAPHLUA_DEVICE=%s %s", quote(path),
      quote(root .. "/lua/?.lua;" .. root .. "/lua/?/init.lua;;"),
      quote(os.getenv "CGRAPHLUA_DEVICE" or "host"), quote(folder .. "/example")))
    program.remove(folder)
    assert.equal(0, status, out .. err)
    return out
  end

  for name, packages in pairs { replay = false, embed = "luajit" } do
    it(name .. " compiles and prints what the manual says", function()
      local out, why = output(name, packages)
      if not out then
        pending(why)
        return
      end
      assert.is_truthy(manual:find("\n    " .. out, 1, true), out)
    end)
  end

  it("is quoted word for word", function()
    local examples = read "doc/examples/replay.c" .. read "doc/examples/embed.c"
    local count = 0
    for block in manual:gmatch "\n```c\n(.-)```" do
      count = count + 1
      assert.is_truthy(examples:find(block, 1, true), block)
    end
    assert.equal(2, count)
  end)
end)
