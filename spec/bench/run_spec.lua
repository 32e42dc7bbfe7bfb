-- bench/run and bench/pool, short, on the device: every row is measured, to the
-- last one.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")

local sanitized = (os.getenv "CGRAPHLUA_SANITIZER" or "no") ~= "no"

describe("benchmarks", function()
  local own = program.own_folder(before_each, after_each)

  -- Results are saved beside the scripts: they run in a copy.
  local function run(name)
    if sanitized then pending "a sanitizer's build is not measured" end
    local top = program.quote(here .. "/../..")
    return program.shell(("cp -r %s/bench %s/scripts %s && cd %s && chmod -R u+w . && " ..
      "CGRAPHLUA=%s bench/%s --quick --no-peers --device %s"):format(top, top, program.quote(own()),
      program.quote(own()), program.quote(program.path), name,
      os.getenv "CGRAPHLUA_DEVICE" or "host"))
  end

  it("run to the last row of bench/run", function()
    local _, out, err = run "run"
    assert.equal("", err)
    for _, row in ipairs { "g:replay%(%), the call alone",
      "one kernel of 1 block +[%d.]+ +[%d.]+", "1 block, unroll = false +[%d.]+ +[%d.]+",
      -- differences of medians, below 0 where noise is larger
      "a branch that is skipped, [^\n]* %-?[%d.]+ +%-?[%d.]+",
      "a branch that is taken, [^\n]* %-?[%d.]+",
      "a loop around 8 kernels +[%d.]+ +[%d.]+",
      "64 x 64, %d+ iterations in one replay +%- +[%d.]+",
      "the host looks every 16, [^\n]+ [%d.]+", "32 images: %d+ a second +%- +[%d.]+",
      "two steps of heat, 64 x 64, programmatic = false +[%d.]+ +[%d.]+", "GB/s read and written",
      "heat, %d+ x %d+", "lbm, %d+ x %d+ [^\n]*sites/s" } do
      assert.matches(row, out)
    end
    assert.matches("saved as [^\n]*%-quick.txt\n$", out)
  end)

  it("run to the last row of bench/pool", function()
    local _, out, err = run "pool"
    assert.equal("", err)
    assert.matches("saved in [^\n]*.txt\n$", out)
  end)
end)
