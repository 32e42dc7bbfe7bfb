local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

describe("errors", function()
  teardown(device.nothing_alive)

  local function failure()
    local b = cg.zeros("float", 1)
    b:release()
    local ok, e = pcall(function() b:fill(0) end)
    assert.is_false(ok)
    return e
  end

  it("have a name, a code, an operation, a place, a message and a hint", function()
    local e = failure()
    assert.equal("CGL_ERROR_RELEASED", e.name)
    assert.equal(-2, e.code)
    assert.equal("buffer:fill", e.operation)
    assert.matches("errors_spec.lua:%d+$", e.where)
    assert.equal("this buffer was released", e.message)
    assert.is_true(#e.hint > 0)
    assert.equal("", e.also)
  end)

  it("read as a sentence", function()
    local e = failure()
    assert.equal(e.where .. ": buffer:fill: this buffer was released [CGL_ERROR_RELEASED -2]\n" ..
      "  hint: " .. e.hint, tostring(e))
    e.also = "more"
    assert.matches("\n  then: more$", tostring(e))
  end)

  it("have no other fields", function()
    local e = failure()
    local function unknown(name)
      local ok, text = pcall(function() return e[name] end)
      assert.is_false(ok)
      return text:match "^%S+errors_spec.lua:%d+: (.*)$"
    end
    assert.equal("an error object has no field 'mesage'; did you mean 'message'?",
      unknown "mesage")
    assert.equal("an error object has no field 'nothing'", unknown "nothing")
    assert.equal("an error object cannot be indexed with a number", unknown(1))
    assert.is_nil(rawget(e, "nothing"))
    e.hint, e.also = nil, nil -- of a program that shortens what it prints
    assert.matches("RELEASED %-2%]$", tostring(e))
  end)

  it("join with strings", function()
    local e = failure()
    assert.equal("it: " .. tostring(e), "it: " .. e)
    assert.equal(tostring(e) .. "!", e .. "!")
  end)

  it("carry the driver's own names and codes", function()
    local e = raises("CUDA_ERROR_OUT_OF_MEMORY", function() cg.buffer("float", 2 ^ 45) end)
    assert.equal(2, e.code)
    e = raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function() cg.graph():capture_begin() end)
    assert.equal(900, e.code)
  end)

  it("keep their metatable to themselves", function()
    assert.equal("cgraphlua.error", getmetatable(failure()))
    assert.has_error(function() setmetatable(failure(), nil) end)
    for _, object in ipairs {
      cg.stream(), cg.event(), cg.zeros("float", 1), cg.pool(), cg.graph(),
    } do
      assert.matches("^cgraphlua%.%a+$", getmetatable(object))
    end
  end)

  describe("name the script's line", function()
    it("in a tail call, a coroutine and a loaded chunk", function()
      local function tail() return cg.buffer("float", 2 ^ 45) end
      local _, e = pcall(coroutine.wrap(function()
        return (tail())
      end))
      assert.matches("errors_spec.lua:%d+$", e.where)
      _, e = pcall(loadstring("local cg = ...\n\ncg.buffer('float', 2 ^ 45)", "=made"), cg)
      assert.equal("made:3", e.where)
      _, e = pcall(loadstring("local cg = ... cg.buffer('float', 2 ^ 45)"), cg)
      assert.matches('^%[string "local cg', e.where)
    end)

    it("of the caller when a C function called", function()
      local _, e = pcall(cg.buffer, "float", 2 ^ 45)
      assert.equal(device.line(-1), e.where)
      _, e = pcall(cg.buffer, "flaot", 1)
      assert.is_truthy(e:find(device.line(-1) .. ": bad argument #1 to 'buffer'", 1, true), e)
    end)

    it("and not one of the Lua half", function()
      local half = loadstring([[
        local core, cg = ...
        core.hide()
        return function() return cg.buffer("float", 2 ^ 45), "no tail call" end,
          function() return cg.buffer("flaot", 1), "no tail call" end
      ]], "=half")
      local fails, slip = half(require "cgraphlua.core", cg)
      local _, e = pcall(function() fails() end)
      assert.equal(device.line(-1), e.where)
      _, e = pcall(function() slip() end)
      assert.is_truthy(e:find(device.line(-1), 1, true), e)
    end)

    it("and are empty-handed when no script called", function()
      local status, out = device.child [[
        local co = coroutine.create(cg.buffer)
        local _, e = coroutine.resume(co, "float", 2 ^ 45)
        print(e.where == "", tostring(e):match "^buffer: ")
      ]]
      assert.equal(0, status)
      assert.equal("true\tbuffer: \n", out)
    end)
  end)

  it("of a slip are plain strings like Lua's own", function()
    slips(function() cg.buffer() end, "bad argument #1 to 'buffer' %(")
    slips(function() cg.zeros("float", 1):view("x") end, "bad argument #1 to 'buffer:view'")
    slips(function() cg.zeros("float", 1).fill() end, "calling 'buffer:fill' on bad self")
    slips(function() cg.live "dog" end, "'dog'")
    slips(function() cg.set_device(5) end, "the device must be a string, got 5")
    slips(function() cg.device "host" end, "set_device chooses")
  end)

  describe("as strings", function()
    before_each(function() assert.equal("object", cg.errors "string") end)
    after_each(function() assert.equal("string", cg.errors "object") end)

    it("are the text of the last object", function()
      local e = failure()
      assert.equal("string", type(e))
      assert.matches("^[^\n]*errors_spec.lua:%d+: buffer:fill: this buffer was released " ..
        "%[CGL_ERROR_RELEASED %-2%]\n  hint: ", e)
      local object = cg.last_error()
      assert.equal("CGL_ERROR_RELEASED", object.name)
      assert.equal(e, tostring(object))
    end)

    it("come out of captures with what failed afterwards", function()
      local s, x = cg.stream(), cg.zeros("float", 1)
      local same = cg.stream_from(s:handle())
      local function fails_twice(kind)
        cg.errors(kind)
        local _, e = pcall(cg.capture, function()
          x:fill(1)
          pcall(same.synchronize, same) -- breaks the capture
          x:fill(2)
        end, { stream = s, capture_error_mode = "relaxed" })
        cg.errors "string"
        return e
      end
      local object = fails_twice "object"
      assert.matches("^graph:capture_abandon: ", object.also)
      local text = fails_twice "string"
      assert.equal(tostring(object), text)
      assert.equal(text, tostring(cg.last_error()))
    end)

    it("leave alone what the script raises itself", function()
      local mine = {}
      failure()
      local _, e = pcall(cg.capture, function() error(mine) end)
      assert.equal(mine, e)
    end)
  end)

  describe("last_error", function()
    it("is the object that was raised", function()
      assert.equal(failure(), cg.last_error())
    end)

    it("has a slip as well, which stays a string", function()
      failure()
      local _, text = pcall(function() cg.buffer "flaot" end)
      local e = cg.last_error()
      assert.equal("CGL_ERROR_INVALID_ARGUMENT", e.name)
      assert.equal("buffer", e.operation)
      assert.equal(text, e.where .. ": " .. e.message)
    end)

    it("is nil in a state without a failure", function()
      assert.same({ 0, "nil\n", "" }, { device.child "print(cg.last_error())" })
    end)
  end)

  describe("kinds", function()
    local show = "print(cg.errors(), type(select(2, pcall(cg.buffer, 'float', 2 ^ 45))))"

    it("begin as the environment says", function()
      local _, out = device.child(show, "CGRAPHLUA_ERRORS=string")
      assert.equal("string\tstring\n", out)
      _, out = device.child(show, "CGRAPHLUA_ERRORS=object")
      assert.equal("object\ttable\n", out)
      _, out = device.child(show, "CGRAPHLUA_ERRORS=")
      assert.equal("object\ttable\n", out)
    end)

    it("are two", function()
      slips(function() cg.errors "text" end, "one of object, string, got \"text\"")
      slips(function() cg.errors(1) end, "one of object, string, got 1")
      assert.equal("object", cg.errors())
      local status, _, err = device.child("", "CGRAPHLUA_ERRORS=text")
      assert.equal(1, status)
      assert.matches("CGRAPHLUA_ERRORS must be 'object' or 'string', not 'text'", err)
    end)
  end)

  it("of work that failed name the launches since the last wait, latest first", function()
    local status, out, err = device.child([[
      cg.on_log(nil)
      local m = cg.module [=[
        extern "C" __global__ void early(float *x) { x[0] = 1.f; }
        extern "C" __global__ void late(float *x) { x[0] = 2.f; }
        extern "C" __global__ void inner(float *x) { x[0] = 3.f; }]=]
      local x, s = cg.zeros("float", 1), cg.stream()
      local early, late, inner = m:kernel "early", m:kernel "late", m:kernel "inner"
      local g = cg.capture(function() inner:launch(1, 1, x) end)
      local function line() return debug.getinfo(2, "l").currentline end
      local function failure(wait)
        cg.debug.fault(1, 719)
        local e = select(2, pcall(wait))
        cg.debug.fault(0)
        return (e.message:match "of the last launches: .*" or "none"):gsub("[^ (]*/[^ /:]*:", "")
      end
      for _, wait in ipairs { function() cg.synchronize() end, function() s:synchronize() end } do
        early:launch(1, 1, x)
        wait()
        for _ = 1, 2 do late:launch(1, 1, x) end local at = line()
        g:replay()
        print((failure(wait):gsub(at .. "$", "there"):gsub("%(%d+%)", "(in it)")))
        wait()
        print(failure(wait))
      end]], "CGRAPHLUA_FAULT=1")
    assert.equal("", err)
    assert.equal(0, status)
    assert.equal(("of the last launches: graph of inner (in it), late launched at there\n" ..
      "none\t0\n"):rep(2), out)
  end)

  it("of a device that is not there name those that are", function()
    raises("CGL_ERROR_NO_DEVICE", function() cg.set_device "gpu" end,
      '"gpu" is not a device', "host")
    for _, name in ipairs {
      "cuda:", "cuda:x", "cuda:+1", "cuda: 1", "cuda:1x", "cuda:0000", "hosts",
    } do
      raises("CGL_ERROR_NO_DEVICE", function() cg.set_device(name) end, "is not a device")
    end
    local before = cg.device().device
    cg.set_device "cuda:63" -- nobody has asked whether it is there
    raises("CGL_ERROR_NO_DEVICE", function() cg.current_stream() end, "cuda:63",
      "errors_spec.lua:%d+")
    cg.set_device(before)
    raises("CGL_ERROR_NO_DEVICE", function() cg.synchronize "cuda:63" end)
    cg.synchronize(cg.device().device)
  end)

  it("of the environment's device come at the first use", function()
    local status, out = device.child([[
      local ok, e = pcall(cg.zeros, "float", 1)
      print(ok, e.name, e.message:match "toaster")
      print(cg.set_device("host"))
      print(cg.device().device)
      print(#cg.zeros("float", 3))
    ]], "CGRAPHLUA_DEVICE=toaster")
    assert.equal(0, status)
    assert.equal("false\tCGL_ERROR_NO_DEVICE\ttoaster\n\nhost\n3\n", out)
  end)

  it("end a program with the message, the hint and a traceback", function()
    local status, out, err = device.child [[
      local b = cg.zeros("float", 1)
      b:release()
      b:fill(1)
    ]]
    assert.is_true(status ~= 0)
    assert.equal("", out)
    assert.matches("buffer:fill: this buffer was released %[CGL_ERROR_RELEASED %-2%]", err)
  end)

  describe("in the log function", function()
    after_each(function() cg.on_log(nil) end)

    it("do not reach the call that logged", function()
      local status, out, err = device.child [[
        cg.on_log(function() error "no pen" end)
        cg.capture(function() end)
        print "went on"
      ]]
      assert.equal(0, status)
      assert.equal("went on\n", out)
      assert.matches("on_log: .*no pen", err)
    end)

    it("may come from cgraphlua itself", function()
      local seen
      cg.on_log(function(message) seen = message .. #cg.zeros("float", 2):download() end)
      cg.capture(function() end)
      assert.matches("2$", seen)
    end)

    it("are not there for what is no function", function()
      slips(function() cg.on_log(5) end, "function expected, got 5")
    end)
  end)

  it("of a lost context come from every later call, by name", function()
    local status, out, err = device.child([[
      local k = cg.kernel 'extern "C" __global__ void stray(float *x) { x[1 << 10] = 1.f; }'
      local x = cg.zeros("float", 16)
      local g = cg.capture(function() k:launch(1, 1, x) end)
      g:replay()
      print(select(2, pcall(cg.synchronize)).name)
      print(select(2, pcall(x.download, x)).name)
      print(select(2, pcall(g.replay, g)).name)
      print(select(2, pcall(cg.capture, function() x:fill(1) end)).name)
    ]], "CGRAPHLUA_DEVICE=host CGRAPHLUA_HOST_GUARD=1")
    assert.equal("", err)
    assert.equal(("CUDA_ERROR_ILLEGAL_ADDRESS\n"):rep(4), out)
    assert.equal(0, status)
  end)
end)
