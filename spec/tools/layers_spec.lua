-- tools/check-layers on small trees, compiled as a build would.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")
local tool = here .. "/../../tools/check-layers"

local function is_there(command)
  return program.shell("command -v " .. command) == 0
end

-- A bundle is without the tool, and where it runs there may be no compiler.
local able = program.shell("test -x " .. program.quote(tool)) == 0 and is_there "cc" and
  is_there "nm"

describe("tools/check-layers", function()
  local at = program.own_folder(before_each, after_each)

  local function write(files)
    for path, text in pairs(files) do
      assert(os.execute("mkdir -p " .. program.quote(at(path:match "^(.*)/"))) == 0)
      program.write(at(path), text)
    end
  end

  -- A clean tree of two rooms: low, and high that calls it.
  local function write_clean_tree()
    write {
      ["tools/rooms"] = "# From the ground up.\n" ..
        "src/core/low: cgl_low cgl_low_high_noon\n\nsrc/core/high: cgl_high cgl_high_\n",
      ["src/core/low/low.h"] = "int cgl_low_count(void);\n",
      ["src/core/low/low_private.h"] = "enum { LOW = 1 };\n",
      ["src/core/low/low.c"] = '#include "core/low/low.h"\n#include "low_private.h"\n' ..
        "#include <stdlib.h>\nint cgl_low_count(void) { return abs(LOW); }\n",
      ["src/core/high/high.h"] = "int cgl_high_count(void);\n",
      ["src/core/high/high.c"] = '#include "high.h"\n#include "../low/low.h"\n' ..
        "static int more(void) { return 1; }\n" ..
        "int cgl_high_count(void) { return cgl_low_count() + more(); }\n",
      ["src/core/high/kernels.cu"] = "",
      ["src/lua/high.c"] = '#include "core/high/high.h"\n' ..
        "int any_name(void);\nint any_name(void) { return cgl_high_count(); }\n",
      ["src/driver/table.c"] = "int cgl_table;\n",
    }
  end

  -- Compiles every source as libtool would name it, or the one given.
  local function compile(only)
    local status, _, err = program.shell(string.format([[
      cd %s && for source in %s; do
        object=build/${source%%/*}/libcgl_la-$(basename "$source" .c).o
        mkdir -p "${object%%/*}" && cc -Isrc -c "$source" -o "$object" || exit 1
      done]], program.quote(at()), only or "$(find src -name '*.c')"))
    assert.are.equal("", err)
    assert.are.equal(0, status)
  end

  local function check(build)
    local status, out, err = program.shell(string.format("%s --tree %s %s", program.quote(tool),
      program.quote(at()), build and program.quote(at(build)) or ""))
    assert.are.equal("", err)
    return status, out
  end

  -- Wants these faults, in any order, and no other.
  local function assert_faults(faults, build)
    local status, out = check(build)
    local seen = {}
    for line in out:gmatch "[^\n]+" do
      if not line:find "^check%-layers: " then
        seen[#seen + 1] = line
      end
    end
    table.sort(seen)
    table.sort(faults)
    assert.are.same(faults, seen)
    assert.are.equal(#faults > 0 and 1 or 0, status)
    return out:match "check%-layers: .*"
  end

  local function test(name, body)
    it(name, function()
      if not able then
        return pending "needs the tool and a compiler"
      end
      write_clean_tree()
      body()
    end)
  end

  test("passes a clean tree", function()
    compile()
    local summary = assert_faults({}, "build")
    assert.is_truthy(summary:find("8 files, 2 rooms, 7 arrows", 1, true), summary)
  end)

  test("reads the includes alone where nothing is built, and says so", function()
    write { ["src/core/low/odd.c"] = "int no_prefix(void) { return 0; }\n" }
    assert.is_truthy(assert_faults {}:find("includes alone", 1, true))
  end)

  test("finds an include that runs up", function()
    write { ["src/core/low/more.c"] = '#include "core/high/high.h"\n' }
    assert_faults {
      "src/core/low/more.c -> src/core/high/high.h: includes a higher room",
      "circle of 2 rooms: src/core/high src/core/low",
    }
  end)

  test("finds an include that runs up between folders without rooms", function()
    write {
      ["src/compile/compile.h"] = "",
      ["src/lua/binding.h"] = "",
      ["src/cli/main.c"] = '#include "lua/binding.h"\n',
      ["src/driver/host/host.c"] = '#  include "../../compile/compile.h"\n',
      ["src/compile/compile.c"] = "#include <core/low/low.h>\n",
      ["src/core/high/more.c"] = '#include "lua/binding.h"\n',
    }
    assert_faults {
      "src/driver/host/host.c -> src/compile/compile.h: includes a higher room",
      "src/compile/compile.c -> src/core/low/low.h: includes a higher room",
      "src/core/high/more.c -> src/lua/binding.h: includes a higher room",
      "circle of 2 rooms: src/core/high src/lua",
    }
  end)

  test("finds a call that runs up without an include", function()
    write { ["src/core/low/more.c"] =
      "int cgl_high_count(void);\nint cgl_low_more(void) { return cgl_high_count(); }\n" }
    compile()
    assert_faults({
      "src/core/low/more.c -> src/core/high/high.c: needs cgl_high_count of a higher room",
      "circle of 2 rooms: src/core/high src/core/low",
    }, "build")
  end)

  test("finds data of a higher room that is used", function()
    write {
      ["src/core/low/more.c"] =
        "extern int cgl_high_sum;\nint cgl_low_more(void) { return cgl_high_sum; }\n",
      ["src/core/high/more.c"] = "int cgl_high_sum = 3;\n",
    }
    compile()
    assert_faults({
      "src/core/low/more.c -> src/core/high/more.c: needs cgl_high_sum of a higher room",
      "circle of 2 rooms: src/core/high src/core/low",
    }, "build")
  end)

  test("finds a circle of files across rooms", function()
    write {
      ["src/core/low/low.h"] = '#include "core/high/high.h"\nint cgl_low_count(void);\n',
      ["src/core/high/high.h"] = '#include "core/low/low.h"\nint cgl_high_count(void);\n',
    }
    assert_faults {
      "src/core/low/low.h -> src/core/high/high.h: includes a higher room",
      "circle of 2 rooms: src/core/high src/core/low",
      "circle of 2 files: src/core/high/high src/core/low/low",
    }
  end)

  test("lets files of one room call each other in a circle", function()
    write {
      ["src/core/low/one.c"] =
        "int cgl_low_two(void);\nint cgl_low_one(void) { return cgl_low_two(); }\n",
      ["src/core/low/two.c"] =
        "int cgl_low_one(void);\nint cgl_low_two(void) { return cgl_low_one(); }\n",
    }
    compile()
    assert_faults({}, "build")
  end)

  test("finds functions without a prefix of their room", function()
    write { ["src/core/low/more.c"] = "int cgl_lower(void) { return 0; }\n" ..
      "int plain(void) { return 0; }\nint cgl_low(void) { return 0; }\n" ..
      '__attribute__((visibility("hidden"))) int hidden(void) { return 0; }\n' }
    compile()
    assert_faults({
      "src/core/low/more.c: cgl_lower has no prefix of src/core/low",
      "src/core/low/more.c: hidden has no prefix of src/core/low",
      "src/core/low/more.c: plain has no prefix of src/core/low",
    }, "build")
  end)

  test("gives a name to the room with the longest prefix", function()
    write {
      ["src/core/low/more.c"] = "int cgl_high_x(void) { return 0; }\n",
      ["src/core/high/more.c"] =
        "int cgl_low_high_noon_x(void) { return 0; }\nint cgl_high_y(void) { return 0; }\n",
    }
    compile()
    assert_faults({
      "src/core/low/more.c: cgl_high_x has a prefix of src/core/high",
      "src/core/high/more.c: cgl_low_high_noon_x has a prefix of src/core/low",
    }, "build")
  end)

  test("refuses one prefix for two rooms", function()
    write { ["tools/rooms"] = "src/core/low: cgl_low cgl_x\nsrc/core/high: cgl_high cgl_x\n" }
    assert_faults { "tools/rooms: cgl_x is a prefix of src/core/low and of src/core/high" }
  end)

  test("keeps a private header in its room", function()
    write { ["src/core/high/more.c"] = '#include "core/low/low_private.h"\n' }
    assert_faults { "src/core/high/more.c -> src/core/low/low_private.h: " ..
      "includes what is private to src/core/low" }
  end)

  test("finds a file outside every room of a folder that has rooms", function()
    write { ["src/core/lost.c"] = "", ["src/core/lower/lost.h"] = "",
      ["src/compile/fine.c"] = "" }
    assert_faults {
      "src/core/lost.c: in no room of tools/rooms",
      "src/core/lower/lost.h: in no room of tools/rooms",
    }
  end)

  test("takes the longest path, and single files, as rooms", function()
    write {
      ["tools/rooms"] = "src/core/high/base: cgl_base\nsrc/core/low:\n" ..
        "src/core/high/tool.c: cgl_tool\nsrc/core/high:\n",
      ["src/core/high/base.h"] = "",
      ["src/core/high/base.c"] = '#include "base.h"\nint cgl_base_x(void) { return 0; }\n',
      ["src/core/high/tool.c"] = '#include "base.h"\n#include "high.h"\n' ..
        "int cgl_other(void) { return 0; }\n",
      ["src/core/low/more.c"] = '#include "core/high/base.h"\n',
    }
    compile()
    assert_faults({
      "src/core/high/tool.c -> src/core/high/high.h: includes a higher room",
      "src/core/high/tool.c: cgl_other has no prefix of src/core/high/tool.c",
    }, "build")
  end)

  test("ignores libtool's second objects and those of sources that went", function()
    write { ["src/core/low/gone.c"] = "int gone(void) { return 0; }\n" }
    compile()
    os.remove(at "src/core/low/gone.c")
    assert(os.execute(string.format("cd %s && mkdir build/src/core/low/.libs && " ..
      "cp build/src/core/low/libcgl_la-gone.o build/src/core/low/.libs/libcgl_la-low.o",
      program.quote(at()))) == 0)
    assert_faults({}, "build")
  end)

  test("reads the objects of a whole-program optimization", function()
    write { ["src/core/low/more.c"] =
      "int cgl_high_count(void);\nint cgl_lower(void) { return cgl_high_count(); }\n" }
    compile()
    local status = program.shell(string.format("cd %s && " ..
      "cc -flto -ffat-lto-objects -c src/core/low/more.c -o build/src/core/low/libcgl_la-more.o",
      program.quote(at())))
    if status ~= 0 then
      return pending "the compiler does not optimize whole programs"
    end
    assert_faults({
      "src/core/low/more.c -> src/core/high/high.c: needs cgl_high_count of a higher room",
      "src/core/low/more.c: cgl_lower has no prefix of src/core/low",
      "circle of 2 rooms: src/core/high src/core/low",
    }, "build")
  end)

  test("wants a named build to be whole, and takes what a found one has", function()
    compile "src/core/low/low.c"
    local summary = assert_faults {}
    assert.is_truthy(summary:find("calls of 1 of 4 sources", 1, true), summary)
    assert_faults({
      "src/core/high/high.c: no object in the build is as new",
      "src/driver/table.c: no object in the build is as new",
      "src/lua/high.c: no object in the build is as new",
    }, "build")
  end)
end)
