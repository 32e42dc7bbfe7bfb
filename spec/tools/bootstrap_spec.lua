-- bootstrap in a tree of stand-ins: an autoreconf that writes a configure, which
-- writes a Makefile, which makes a program that says where it was made.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")
local quote = program.quote

local source = (os.getenv "CGRAPHLUA_SOURCE" or here .. "/../..") .. "/bootstrap"

local autoreconf = [=[
cat >configure <<'END'
echo "configured with: $*"
cat >Makefile <<END2
all:
	printf '#!/bin/sh\necho made in %s from %s\n' "'$PWD'" "'$(dirname "$0")'" >cgraphlua
	chmod +x cgraphlua
clean:
END2
: >config.status
END
chmod +x configure
sed -i '1i #!/bin/sh' configure
: >Makefile.in
]=]

if program.shell("test -x " .. quote(source)) ~= 0 then
  describe("bootstrap", function()
    it("is beside the specs", function() pending "bootstrap is not in this folder of tests" end)
  end)
  return
end

describe("bootstrap", function()
  local at = program.own_folder(before_each, after_each)

  local function stand_in(name, text)
    program.write(at("bin/" .. name), "#!/bin/sh\n" .. text)
    os.execute("chmod +x " .. quote(at("bin/" .. name)))
  end

  local function plant(name)
    local tree = at(name)
    os.execute("mkdir -p " .. quote(tree) .. " " .. quote(at "bin"))
    assert.equal(0, (program.shell(string.format(
      "cp %s %s/bootstrap && cd %s && mkdir m4 include src tools lua"
      .. " && touch configure.ac Makefile.am m4/cgl-x.m4 cgraphlua.pc.in", quote(source),
      quote(tree), quote(tree)))))
    for _, tool in ipairs { "cc", "c++", "automake", "libtoolize", "pkg-config" } do
      stand_in(tool, "")
    end
    stand_in("autoreconf", autoreconf)
    return tree
  end

  local function boot(tree, words, environment)
    return program.shell(string.format("cd / && PATH=%s:$PATH CONFIGURE_FLAGS= %s %s/bootstrap %s",
      quote(at "bin"), environment or "", quote(tree), words or "run"))
  end

  local function makes(tree, entry)
    local status, out, err = boot(entry or tree)
    assert.equal(0, status, err)
    assert.equal("made in " .. tree .. "/build from ..\n", out)
    return err
  end

  -- It fails with one line that has the pattern.
  local function refuses(pattern, tree, words, environment)
    local status, out, err = boot(tree, words, environment)
    assert.equal(1, status)
    assert.equal("", out)
    assert.matches(pattern, err:match "([^\n]*)\n$")
    return err
  end

  it("builds in a folder with spaces and an umlaut, once", function()
    local tree = plant "with space \195\188"
    assert.matches("autoreconf.*configure.*make", makes(tree))
    assert.equal("", makes(tree))
  end)

  it("is found through links", function()
    local tree = plant "tree"
    os.execute(string.format("cd %s && mkdir links && ln -s ../tree/bootstrap links/one"
      .. " && ln -s one links/bootstrap && ln -s tree other", quote(at())))
    makes(tree, at "links")
    makes(tree, at "other")
    assert.equal("", (select(2, program.shell("ls -A links/build 2>/dev/null"))))
  end)

  it("builds a tree that was copied or moved there, and leaves the original", function()
    local tree = plant "first"
    makes(tree)
    os.execute(string.format("cd %s && cp -r first second", quote(at())))
    assert.matches("configure.*make", makes(at "second"))
    assert.equal("", makes(tree))
    os.execute(string.format("cd %s && mv first third", quote(at())))
    assert.matches("configure.*make", makes(at "third"))
  end)

  it("leaves a build folder alone that holds other files", function()
    local tree = plant "tree"
    os.execute("mkdir " .. quote(tree .. "/build"))
    program.write(tree .. "/build/CMakeCache.txt", "")
    assert.equal(1, select(2, refuses("/build holds files that are not this build's", tree)
      :gsub("\n", "")))
    os.remove(tree .. "/build/CMakeCache.txt")
    makes(tree)
  end)

  it("says in one line that it cannot write", function()
    local tree = plant "tree"
    if program.shell("test $(id -u) = 0") == 0 then
      -- Nothing is closed to root; a file in the folder's place is.
      program.write(tree .. "/build", "")
      assert.equal(1, select(2, refuses("cannot write to .*/build", tree):gsub("\n", "")))
      return
    end
    os.execute("chmod a-w " .. quote(tree))
    assert.equal(1, select(2, refuses("cannot write to .*/tree", tree):gsub("\n", "")))
    os.execute("chmod u+w " .. quote(tree))
  end)

  it("says in one line that there is no network", function()
    local tree = plant "tree"
    stand_in("pkg-config", "case $2 in libpng) exit 1 ;; esac")
    stand_in("id", "echo 0")
    stand_in("apt-get", "for i in 1 2 3 4 5 6 7 8 9; do"
      .. " echo \"W: Failed to fetch x  Temporary failure resolving 'deb.debian.org'\"; done\n"
      .. "echo 'E: Unable to locate package libpng-dev'; exit 100")
    local err = refuses("no network to install: libpng%-dev$", tree)
    assert.equal(2, select(2, err:gsub("\n", "")), err)
    stand_in("apt-get", "echo 'E: Unable to locate package libpng-dev'; exit 100")
    refuses("cannot install: libpng%-dev %(E: Unable to locate package libpng%-dev%)$", tree)
  end)
end)
