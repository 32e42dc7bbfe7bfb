local options = require "cgraphlua.options"

local spec = {
  usage = "demo.lua [picture] [options]",
  about = "A script.",
  arguments = { "picture", "mask" },
  { "size", "N", 64, "cells", min = 8, max = 128 },
  { "re", "X", nil, "Reynolds number", min = 0.5 },
  { "out", "OUT", "out.png", "the picture" },
  { "verify", nil, nil, "compare" },
}

local function wrong(...)
  local opt, why = options.parse(spec, { ... })
  assert.is_nil(opt)
  return why
end

describe("options.parse", function()
  it("gives the defaults", function()
    assert.are.same({ size = 64, out = "out.png" }, options.parse(spec, {}))
  end)

  it("takes values that follow or are joined", function()
    assert.are.same({ size = 32, re = 1.5, out = "a=b.png", verify = true },
      options.parse(spec, { "--size", "32", "--re=1.5", "--out=a=b.png", "--verify" }))
  end)

  it("takes arguments by place, between options and after --", function()
    assert.are.same({ size = 8, out = "out.png", picture = "a.png", mask = "--verify" },
      options.parse(spec, { "a.png", "--size", "8", "--", "--verify" }))
    assert.are.equal("-", options.parse(spec, { "-" }).picture)
    assert.are.equal("--", options.parse(spec, { "--", "--" }).picture)
  end)

  it("knows --device and --help everywhere", function()
    local opt = options.parse(spec, { "--device", "host", "--help" })
    assert.are.equal("host", opt.device)
    assert.is_true(opt.help)
  end)

  it("names what it does not know", function()
    assert.are.equal("unknown option --sise; did you mean '--size'?", wrong("--sise", "3"))
    assert.are.equal("unknown option --colours", wrong("--colours"))
    assert.are.equal("unknown option -s", wrong("-s"))
    assert.are.equal("'c' is one argument too many", wrong("a", "b", "c"))
  end)

  it("names a value that is missing, twice or too much", function()
    assert.are.equal("--size needs a value (N)", wrong("--size"))
    assert.are.equal("--size is given twice", wrong("--size=8", "--size=8"))
    assert.are.equal("--verify takes no value", wrong("--verify=yes"))
    assert.are.equal("--out needs a value (OUT), got an empty one", wrong("--out="))
  end)

  it("wants the folder of a file to write", function()
    assert.are.equal("--out: there is no folder '/none/such/' to write in",
      wrong("--out", "/none/such/out.png"))
    assert.are.equal("/tmp/out.png", options.parse(spec, { "--out", "/tmp/out.png" }).out)
    assert.are.equal("--out: '/tmp' is a folder", wrong("--out", "/tmp"))
    assert.are.equal("--out: '.' is a folder", wrong("--out", "."))
    assert.are.equal("--out: 'x.jpg' would be a PNG file: give it the ending .png",
      wrong("--out", "x.jpg"))
  end)

  it("says what a number must be", function()
    for _, text in ipairs { "7", "129", "8.5", "nan", "inf", "abc", "", "-8" } do
      assert.are.equal("--size needs a whole number from 8 to 128, got '" .. text .. "'",
        wrong("--size=" .. text))
    end
    for _, text in ipairs { "0.4", "nan", "-inf", "inf", "1e999", "x" } do
      assert.are.equal("--re needs a number of at least 0.5, got '" .. text .. "'",
        wrong("--re", text))
    end
  end)
end)

describe("options.read", function()
  local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
  local program = dofile(here .. "/../support/program.lua")

  it("ends with the usage, and the reason last", function()
    local status, out, err = program.run { "-e",
      "require('cgraphlua.options').read({ usage = 'demo.lua [options]' }, { '--no' })" }
    assert.are.same({ 1, "" }, { status, out })
    assert.matches("^usage: cgraphlua demo.lua.*\ndemo.lua: unknown option %-%-no\n$", err)
  end)
end)

describe("options", function()
  it("name the script's line when they are given wrongly", function()
    for _, case in ipairs {
      { options.read, nil, {} }, { options.read, {}, {} }, { options.parse, spec, "x" },
      { options.parse, { usage = "x", { "size" } }, {} }, { options.parse, spec, { 1 } },
      { options.usage, 1 }, { options.usage, { usage = "x", 2 } },
    } do
      local ok, why = pcall(function() local r = case[1](case[2], case[3]) return r end)
      assert.is_false(ok)
      assert.matches("^%S*options_spec.lua:%d+: options: ", why)
    end
  end)
end)

describe("options.usage", function()
  it("has a line for each option, with its default", function()
    local text = options.usage(spec)
    assert.truthy(text:find("usage: cgraphlua demo.lua [picture] [options]\nA script.\n", 1, true))
    assert.truthy(text:find("\n  %-%-size N +cells %(64%)\n"))
    assert.truthy(text:find("\n  %-%-verify +compare\n"))
    assert.truthy(text:find("\n  %-%-device DEVICE "))
  end)
end)
