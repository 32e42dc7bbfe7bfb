-- Graphs in files: saved, loaded, damaged, and what is refused.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local cg = require "cgraphlua"
local device = dofile(here .. "/../../support/device.lua")
local program = device.program

local source = device.source .. [[
extern "C" __global__ void noise(float *x, cgl_philox random, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = cgl_uniform(random);
}
extern "C" __global__ void down(int *x) { *x -= 1; }
extern "C" __global__ void through(float **table) { table[0][0] += 1; }
extern "C" __global__ void number(float *x, unsigned long long a) { x[0] += a != 0; }
extern "C" __global__ void indices(const unsigned long long *at, float *x) { x[at[0] % 2] += 1; }
struct pair { float *x; int n; };
extern "C" __global__ void record(struct pair p) { p.x[0] += p.n; }
]]

local folder = program.own_folder(before_each, after_each)

local module
local function kernel(name)
  module = module or cg.module(source)
  return module:kernel(name)
end

local function add(x, a) kernel "add":launch(1, 32, x, a, #x) end

-- A graph that has all that a file can have, its input and its output.
local function everything(form)
  local x, y, turns = cg.zeros("float", { 4, 8 }), cg.zeros("float", 32), cg.full("int32", 1, 3)
  local gen = cg.generator(7)
  local child = cg.capture(function() add(y, 0.5) end)
  local g = cg.capture(function()
    local t = cg.zeros("float", 32)
    add(x, 2)
    y:copy(x:view(1, 32))
    t:uniform(0, 1, gen)
    x:view(1, 16):copy(t:view(17, 16))
    child:replay()
    turns:fill(3)
    cg.loop(turns, function()
      kernel "down":launch(1, 1, turns)
      add(y, 100)
    end, { max = 10, form = form })
    cg.when(turns, function() add(y, 1000) end, function() add(y, 2000) end, { form = form })
    cg.switch(turns, { function() y:view(1, 1):fill(9) end, function() add(y, 1) end },
      { form = form })
    cg.times(turns, function() add(y, 1) end, { max = 2 })
  end)
  return g, x, y
end

local function saved(g, opts)
  local path = folder "graph.cgl"
  g:save(path, opts)
  return path, program.read(path)
end

describe("graph:save and cg.load", function()
  for _, form in ipairs { "node", "predicated" } do
    it("keep all that a graph does, bodies as " .. form, function()
      local g, x, y = everything(form)
      g:replay()
      local path = saved(g, { inputs = { x = x }, outputs = { y = y } })
      local a, b = cg.load(path), cg.load(path)
      assert.are.same({ 4, 8 }, a.inputs.x.shape)
      assert.is_nil(a.inputs.y)
      g:replay(2)
      a:replay(2)
      assert.are.equal(device.bits(y), device.bits(a.outputs.y))
      assert.are.equal(device.bits(x), device.bits(a.inputs.x))
      b:replay()
      a:release()
      b:replay()
      assert.are.equal(device.bits(y), device.bits(b.outputs.y))
      assert.are.equal(#g:nodes(), #b:nodes())
      assert.are.equal(g:nodes()[1].line, b:nodes()[1].line)
      assert.are.equal(g:nodes()[1].file, b:nodes()[1].file)
    end)
  end

  it("keep memory, or begin with zeros", function()
    local g, x = device.adder()
    x:fill(5)
    local loaded = cg.load((saved(g, { outputs = { x = x } })))
    loaded:replay()
    assert.are.equal(6, device.value(loaded.outputs.x))
    loaded = cg.load((saved(g, { outputs = { x = x }, keep = "zero" })))
    loaded:replay()
    assert.are.equal(1, device.value(loaded.outputs.x))
    assert.are.equal(5, device.value(x))
  end)

  it("give graphs that change, and are replayed in captures", function()
    local g, x = device.adder()
    local loaded = cg.load((saved(g, { inputs = { x = x } })))
    local inner, other = loaded.inputs.x, cg.zeros("float", 4)
    loaded:set_params(1, { [2] = 10 })
    loaded:replay(100)
    assert.are.equal(1000, device.value(inner))
    local outer = cg.capture(function() loaded:replay() loaded:replay() end)
    outer:replay()
    assert.are.equal(1020, device.value(inner))
    loaded:release()
    outer:replay()
    assert.are.equal(1040, device.value(inner))
    loaded = cg.load(folder "graph.cgl")
    loaded:set_params(1, { [1] = other })
    loaded:replay()
    assert.are.equal(1, device.value(other))
    loaded:set_enabled(1, false)
    loaded:replay()
    assert.are.equal(1, device.value(other))
    local text = select(2, saved(loaded))
    assert.is_true(#text > 0)
  end)

  it("keep what is off and what was changed", function()
    local x = cg.zeros("float", 4)
    local g = cg.capture(function() add(x, 1) add(x, 10) end)
    g:set_params(2, { [2] = 20 })
    g:set_enabled(1, false)
    local loaded = cg.load((saved(g, { inputs = { x = x } })))
    loaded:replay()
    assert.are.equal(20, device.value(loaded.inputs.x))
    loaded:set_enabled(1, true)
    loaded:replay()
    assert.are.equal(41, device.value(loaded.inputs.x))
  end)

  it("keep parameters with their names and values, apart from those that were saved", function()
    local x, a = cg.zeros("float", 4), cg.param("float", 1, "a")
    local g = cg.capture(function() add(x, a) end)
    g:replay()
    a:set(5)
    local loaded = cg.load((saved(g, { inputs = { x = x } })))
    a:set(7)
    loaded:replay()
    assert.are.equal(6, device.value(loaded.inputs.x))
    loaded:set { a = -6 }
    loaded:replay()
    assert.are.equal(0, device.value(loaded.inputs.x))
    assert.are.equal(7, a:get())
    loaded:set_params(1, { [2] = 3 })
    assert.are.same({}, loaded:params())
    loaded:save(folder "again.cgl", { sources = false })
    loaded = cg.load(folder "again.cgl")
    loaded:replay()
    assert.are.same({}, loaded:params())
  end)

  -- Parameters in launches, fills, bodies of both forms and child graphs, and
  -- some of two graphs: loaded, they do what those that were saved do.
  it("keep parameters of every type", function()
    local large = { "float3", "float4", "double2", "double3", "int4", "longlong2" }
    local text, y = {}, cg.zeros("float", 1)
    for i, type in ipairs(large) do
      text[i] = ([[extern "C" __global__ void %s_(float *y, %s a) { y[0] += a.x; }]])
        :format(type, type)
    end
    local others = cg.module(table.concat(text, "\n"))
    local function keeps(type, use)
      local p = cg.param(type, type == "bool" and true or cg.zeros(type, 1):download()[1], "p")
      local params = cg.load((saved(cg.capture(function() use(p) end)))):params()
      assert.equal(1, #params)
      assert.same({ type, "p", p:get() }, { params[1].type, params[1].name, params[1].value })
    end
    for _, type in ipairs(large) do
      keeps(type, function(p) others:kernel(type .. "_"):launch(1, 1, y, p) end)
    end
    for _, type in ipairs { "float", "double", "int8", "uint8", "int16", "uint16", "int32",
                            "uint32", "int64", "uint64", "half", "bfloat16", "bool", "complex64",
                            "float2", "char3", "uchar4", "short2", "ushort4", "int2" } do
      local x = cg.zeros(type, 3)
      keeps(type, function(p) x:fill(p) end)
    end
  end)

  it("follow parameters wherever these stand, as the graph that was saved does", function()
    local random = math.random
    for round = 1, 12 do
      local x, y, flag = cg.zeros("float", 8), cg.zeros("float", 8), cg.full("int32", 1, 2)
      local a, b, n = cg.param("float", 1, "a"), cg.param("float", 2), cg.param("int32", 5, "n")
      local d, one = cg.param("double", 0.5, "d"), cg.zeros("int32", 1)
      local wide = cg.zeros("double", 3)
      local steps = {
        function() add(x, a) end,
        function() add(y, b) end,
        function() kernel "add":launch(1, 32, y, a, n) end,
        function() x:view(1, 3):fill(a) end,
        function() one:fill(n) end,
        function() wide:fill(d) end,
      }
      local child = cg.capture(function() steps[random(6)]() steps[random(6)]() end)
      steps[7] = function() child:replay() end
      local function some(most)
        for _ = 1, random(3) do steps[random(most)]() end
      end
      local form = round % 2 == 0 and "node" or "predicated"
      local function graph()
        return cg.capture(function()
          for i = 1, 6 do steps[i]() end
          some(7)
          cg.when(flag, function() some(6) end, function() some(6) end, { form = form })
          cg.times(flag, function() some(6) end, { max = 3, form = form })
          some(7)
        end)
      end
      local buffers = { x = x, y = y, one = one, wide = wide }
      local first, second = graph(), graph()
      first:replay()
      a:set(random(9))
      cg.save(folder "two.cgl", { first = { graph = first, outputs = buffers }, second = second })
      local two = cg.load(folder "two.cgl")
      for _ = 1, 6 do
        for _, of in ipairs { { first, two.first }, { second, two.second } } do
          local values = of[1]:params()
          for i, param in ipairs(of[2]:params()) do
            assert.are.equal(values[i].name, param.name)
            assert.are.equal(values[i].type, param.type)
            assert.are.same(values[i].uses, param.uses)
            if random(3) == 1 then
              values[i].param:set(random(8))
              param.param:set(values[i].param:get())
            end
          end
          local count = random(3)
          of[1]:replay(count)
          of[2]:replay(count)
        end
        for name, buffer in pairs(buffers) do
          assert.are.equal(device.bits(buffer), device.bits(two.first.outputs[name]))
        end
      end
    end
  end)

  it("keep fills with elements of every size", function()
    for type, value in pairs {
      uint8 = 3, half = 2, float = 0.5, double = 0.1, complex64 = { 1, 2 }, float3 = { 1, 2, 3 },
      complex128 = { 1.5, 2 }, double3 = { 1, 2, 3 }, double4 = { 1, 2, 3, 4 },
    } do
      local x = cg.buffer(type, 7)
      local g = cg.capture(function() x:fill(value) end)
      g:replay()
      local expected = x:download()
      local loaded = cg.load((saved(g, { outputs = { x = x } })))
      loaded:replay()
      assert.same(expected, loaded.outputs.x:download())
    end
  end)

  it("go on with a generator where it was", function()
    local x, gen = cg.zeros("float", 33), cg.generator(11)
    local g = cg.capture(function() kernel "noise":launch(2, 32, x, gen, #x) end)
    g:replay(3)
    local loaded = cg.load((saved(g, { outputs = { x = x } })))
    g:replay()
    loaded:replay()
    assert.are.equal(device.bits(x), device.bits(loaded.outputs.x))
  end)

  it("keep graphs in data order with temporaries", function()
    local x, y = cg.full("float", 1001, 1), cg.zeros("float", 1001)
    local g = cg.capture(function()
      for i = 1, 5 do
        local t = cg.buffer("float", #x)
        t:copy(x)
        kernel "add":launch(32, 32, t, i, #x)
        kernel "scale":launch(32, 32, t, i % 2 == 0 and x or y, 2, #x)
        t:release()
      end
    end, { order = "data" })
    local loaded = cg.load((saved(g, { inputs = { x = x }, outputs = { y = y } })))
    g:replay(3)
    loaded:replay(3)
    assert.are.equal(device.bits(y), device.bits(loaded.outputs.y))
    assert.are.equal(device.bits(x), device.bits(loaded.inputs.x))
  end)

  it("keep an empty graph", function()
    local loaded = cg.load((saved(cg.capture(function() end))))
    loaded:replay(2)
    assert.are.equal(0, #loaded:nodes())
    assert.are.same({}, loaded.inputs)
  end)

  it("save again what was loaded", function()
    local g = everything "node"
    local _, first = saved(g, { sources = false })
    local loaded = cg.load(folder "graph.cgl")
    loaded:save(folder "again.cgl", { sources = false })
    assert.is_true(first == program.read(folder "again.cgl"))
    local e = device.fails(loaded.save, loaded, folder "again.cgl", { devices = { "host" } })
    assert.is_truthy(e.message:find "loaded from a file")
  end)

  it("take graphs of other devices' files by their images", function()
    local g, x = device.adder()
    local path = saved(g, { inputs = { x = x }, devices = { "host" } })
    local loaded = cg.load(path)
    loaded:replay()
    assert.are.equal(1, device.value(loaded.inputs.x))
    local e = device.fails(g.save, g, path, { devices = { "sm_1" } })
    assert.is_truthy(e.message:find "no architecture")
    -- A library in NVRTC's place that is none.
    assert.are.equal(0, (program.shell(([[mkdir -p %s &&
      ln -s "$(ldd %s | awk '/libm[.]so/ {print $3}')" %s]]):format(
      program.quote(folder "cuda/lib64"), program.quote(program.path),
      program.quote(folder "cuda/lib64/libnvrtc.so.13")))))
    local status, out, err = program.run({ "--device", "host", "-e", ([=[
      local cg = require "cgraphlua"
      local k = cg.kernel 'extern "C" __global__ void set(int *x) { *x = 1; }'
      local x = cg.zeros("int32", 1)
      local g = cg.capture(function() k:launch(1, 1, x) end)
      local ok, e = pcall(g.save, g, %q, { devices = { "sm_90" } })
      print(ok, e.name, e.message, e.hint)
    ]=]):format(path) }, { env = "CUDA_HOME=" .. program.quote(folder "cuda") })
    assert.are.equal(0, status, err)
    assert.is_truthy(out:find("^false\tCGL_ERROR_NO_COMPILER\t.*NVRTC.*\tinstall "), out)
  end)
end)

describe("cg.save", function()
  it("writes many graphs that share memory and images", function()
    local x, graphs = cg.zeros("float", 4), {}
    for i = 1, 256 do
      graphs["by " .. i] = { graph = cg.capture(function() add(x, i) end), outputs = { x = x } }
    end
    local path = folder "many.cgl"
    cg.save(path, graphs, { sources = false })
    local _, one = saved(graphs["by 1"].graph, { sources = false })
    assert.is_true(#program.read(path) < #one + 256 * 1024)
    local loaded = cg.load(path)
    loaded["by 7"]:replay()
    loaded["by 256"]:replay(2)
    assert.are.equal(7 + 512, device.value(loaded["by 1"].outputs.x))
    loaded["by 7"]:release()
    loaded["by 1"]:replay()
    assert.are.equal(520, device.value(loaded["by 2"].outputs.x))
  end)

  it("refuses what is no table of graphs", function()
    local g = device.adder()
    for _, wrong in ipairs {
      {}, { [1] = g }, { x = 1 }, { x = {} }, { x = { graph = g, y = 1 } },
    } do
      local _, text = device.fails(function() cg.save(folder "x.cgl", wrong) end)
      assert.is_truthy(text:find "file_spec", text)
    end
  end)
end)

describe("graph:save refuses", function()
  local function refused(fn, what)
    local g = cg.capture(fn)
    local e = device.fails(g.save, g, folder "no.cgl")
    assert.are.equal("CGL_ERROR_INVALID_ARGUMENT", e.name)
    assert.is_truthy(e.message:find(what, 1, true), e.message)
    assert.is_truthy(e.message:find("file_spec.lua:%d+"), e.message)
    assert.is_nil(io.open(folder "no.cgl"))
  end

  it("raw addresses, and addresses in numbers, structs and buffers", function()
    local x = cg.zeros("float", 4)
    local address = x:address()
    local pointer = require("ffi").cast("float *", address)
    refused(function() kernel "add":launch(1, 32, pointer, 1, 4) end, "raw address")
    refused(function() kernel "number":launch(1, 1, x, address) end, "address of a buffer")
    local table_of = cg.from({ address }, "uint64")
    refused(function() kernel "through":launch(1, 1, table_of) end, "may hold addresses")
    refused(function() kernel "record":launch(1, 1, { x = pointer, n = 1 }) end, "struct")
    local at = cg.from({ address }, "uint64")
    local g = cg.capture(function() kernel "indices":launch(1, 1, at, x) end)
    local e = device.fails(g.save, g, folder "no.cgl")
    assert.is_truthy(e.message:find "holds the address")
    at:upload { 1 }
    g:save(folder "yes.cgl")
  end)

  it("pinned memory, external events and modules with variables", function()
    local x, p = cg.zeros("float", 4), cg.pinned("float", 4)
    refused(function() p:copy(x) end, "pinned memory")
    local event = cg.event()
    refused(function() cg.current_stream():record(event, { external = true }) end, "external event")
    local own = cg.module [[
      __device__ int counter;
      extern "C" __global__ void count(int *x) { *x = ++counter; }
    ]]
    local n = cg.zeros("int32", 1)
    refused(function() own:kernel "count":launch(1, 1, n) end, "variables")
  end)

  it("names of buffers that the graph does not use", function()
    local g = device.adder()
    local other = cg.zeros("float", 1)
    local e = device.fails(g.save, g, folder "no.cgl", { inputs = { other = other } })
    assert.is_truthy(e.message:find 'input "other"', e.message)
    for _, opts in ipairs { { input = {} }, { inputs = { 1 } }, { inputs = 1 }, { keep = "all" },
                            { devices = "host" }, { devices = { 1 } },
                            { devices = { all = "host" } }, { outputs = { x = 1 } } } do
      device.fails(g.save, g, folder "no.cgl", opts)
    end
  end)

  it("names that a file would cut, and blames the argument that has them", function()
    local x = cg.zeros("float", 4)
    local g = cg.capture(function() x:fill(1) end)
    local path = folder "no.cgl"
    for _, name in ipairs { "", "a\0b", 1 } do
      device.slips(function() g:save(path, { inputs = { [name] = x } }) end,
        "bad argument #2 to 'graph:save' %(inputs: the key .* is no name")
      device.slips(function() cg.save(path, { [name] = g }) end, "bad argument #2 to 'save'")
      device.slips(function() cg.save(path, { a = { graph = g, outputs = { [name] = x } } }) end,
        "bad argument #2 to 'save' %(outputs: the key .* is no name")
    end
    device.slips(function() cg.save(path, { a = { graph = g, output = {} } }) end,
      "bad argument #2 to 'save' %(unknown option")
    x:release()
    local e = device.fails(g.save, g, path, { inputs = { x = x } })
    assert.truthy(e.message:find "argument 2 has a buffer that was released")
  end)

  it("graphs without a capture, and to save in a capture", function()
    local g = device.adder()
    assert.are.equal("CGL_ERROR_NOT_CAPTURED",
      device.fails(function() cg.graph():save(folder "no.cgl") end).name)
    local e = device.fails(function() cg.capture(function() g:save(folder "no.cgl") end) end)
    assert.is_truthy(e.name:find "CAPTURE", e.name)
    saved(g)
    e = device.fails(function() cg.capture(function() cg.load(folder "graph.cgl") end) end)
    assert.is_truthy(e.name:find "CAPTURE", e.name)
  end)

  it("places that are no files", function()
    local g = device.adder()
    for path, why in pairs { [folder "none/x"] = "No such file", [folder()] = "not a regular file",
                             ["/dev/full"] = "No space left" } do
      local e = device.fails(g.save, g, path)
      assert.is_truthy(e.message:find(why, 1, true), e.message)
      e = device.fails(cg.load, path)
      assert.is_truthy(e.message:find "No such file" or e.message:find "not a regular file")
    end
    os.execute("mkfifo " .. folder "fifo")
    assert.is_truthy(device.fails(g.save, g, folder "fifo").message:find "not a regular file")
    assert.is_truthy(device.fails(cg.load, folder "fifo").message:find "not a regular file")
    local names = io.popen("ls " .. folder()):read "*a"
    assert.are.equal("fifo\n", names)
  end)
end)

describe("cg.load refuses", function()
  local function refused(bytes, why)
    program.write(folder "bad.cgl", bytes)
    local e = device.fails(cg.load, folder "bad.cgl")
    assert.is_truthy(e.message:find(why, 1, true), e.message)
  end

  it("damage, other formats and other byte orders, each with its message", function()
    local _, text = saved((device.adder()))
    refused("", "no file of graphs")
    refused("not a graph at all, but longer than the header is", "no file of graphs")
    refused(text:sub(1, 8) .. text:sub(9, 12):reverse() .. text:sub(13), "byte order")
    refused(text:sub(1, 12) .. "\99\0\0\0" .. text:sub(17), "format 99")
    refused(text:sub(1, -2), "its header says")
    refused(text .. "x", "its header says")
    for _, at in ipairs { 50, math.floor(#text / 2), #text } do
      refused(text:sub(1, at - 1) .. string.char(255 - text:byte(at)) .. text:sub(at + 1),
        "is damaged")
    end
    refused(text:sub(1, 8) .. "\7\7\7\7" .. text:sub(13), "is damaged")
  end)
end)

describe("faults while graphs are saved and loaded", function()
  it("raise, and leave nothing behind", function()
    device.sweep(1, ([[
      local path = %q
      local source = %q
      sweep(function()
        local module, gen = cg.module(source), cg.generator(3)
        local x, flag = cg.zeros("float", 8), cg.full("bool", 1, true)
        local g = cg.capture(function()
          module:kernel "add":launch(1, 8, x, 1, 8)
          module:kernel "noise":launch(1, 8, x, gen, 8)
          cg.when(flag, function() module:kernel "add":launch(1, 8, x, 1, 8) end, { form = "node" })
        end)
        g:save(path, { outputs = { x = x } })
        g:release()
        local loaded = cg.load(path)
        loaded:replay()
        local out = loaded.outputs.x:download()[1]
        return out >= 1 and out < 2 and "right" or tostring(out)
      end, {
        right = function(answer) return answer == "right", answer end,
        calls = 30,
        raised = 20,
        names = { "cuModuleLoadData", "cuGraphInstantiateWithParams", "cuMemcpyDtoHAsync",
                  "cuGraphAddNode" },
      })
    ]]):format(folder "swept.cgl", source))
  end)
end)
