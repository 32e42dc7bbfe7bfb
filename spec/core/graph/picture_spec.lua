-- debug_dump: a graph's picture, as Graphviz reads it and as it draws it.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local program = device.program
local raises = device.raises

local has_graphviz = program.shell "command -v dot" == 0

describe("a graph's picture", function()
  local folder, x

  before_each(function()
    folder = program.folder()
    x = cg.zeros("float", 1024)
  end)

  after_each(function()
    program.remove(folder)
    x = nil
  end)

  teardown(device.nothing_alive)

  -- The text of the .dot file of what fn issues.
  local function dot(fn, opts)
    local g = cg.capture(fn, opts or { annotations = true })
    g:debug_dump(folder .. "/g.dot")
    return program.read(folder .. "/g.dot"), g
  end

  -- What Graphviz makes of the last file: width and height in inches, and the
  -- number of nodes and edges.
  local function layout()
    local status, text, err = program.shell("dot -Tplain " .. program.quote(folder .. "/g.dot"))
    assert.equal("", err)
    assert.equal(0, status)
    local width, height = text:match "^graph [%d.]+ ([%d.]+) ([%d.]+)"
    local _, nodes = text:gsub("\nnode ", "")
    local _, edges = text:gsub("\nedge ", "")
    return { width = tonumber(width), height = tonumber(height), nodes = nodes, edges = edges }
  end

  it("shows names, sizes, script lines and where it was captured", function()
    local add, p = device.kernel "add", cg.pinned("float", 1024)
    local line
    local text = dot(function()
      x:fill(1)
      add:launch({ 4, 2 }, { 32, 4, 2 }, x, 1, 4) line = debug.getinfo(1, "l").currentline
      add:launch(1, 1, x, 1, 1)
      p:copy(x)
      cg.event():record(nil, { external = true })
    end)
    assert.matches("^digraph cgraphlua {", text)
    assert.matches("}\n$", text)
    for _, part in ipairs {
      "5 nodes, captured at [^\n]*picture_spec.lua:%d+",
      'label="add\\n4x2 blocks of 32x4x2\\npicture_spec.lua:' .. line .. '"',
      "\\n1 block of 1\\n", "buffer:fill\\nmemset of 4.0 KiB\\n",
      "pinned:copy\\nmemcpy of 4.0 KiB\\n",
      "event:record\\nevent_record\\n",
    } do
      part = part:find "%%" and part or part:gsub("%p", "%%%0")
      assert.matches(part, text)
    end
    local _, edges = text:gsub("%->", "")
    assert.equal(4, edges)
  end)

  it("puts what has annotations into boxes, one within the other", function()
    local text = dot(function()
      x:fill(1)
      cg.mark_kernels({ label = "outer", layer = 2 }, function()
        x:fill(2)
        cg.mark_kernels({ label = "inner", done = true }, function() x:fill(3) end)
        x:fill(4)
      end)
    end)
    local _, boxes = text:gsub("subgraph cluster%d+ {", "")
    assert.equal(2, boxes)
    assert.matches('label="outer, layer=2"', text)
    assert.matches('label="inner, done=true"', text)
    local from_outer = text:match 'label="outer.*'
    local inner = from_outer:match 'label="inner[^\n]*\n(.-)  }\n'
    assert.matches("n2 %[", inner)
    assert.is_nil(inner:find "n1 %[")
    local before = text:match "^(.-)subgraph"
    assert.matches("n0 %[", before)
  end)

  it("draws captures on several streams", function()
    local side, y = cg.stream(), cg.zeros("float", 4)
    local text = dot(function()
      x:fill(1)
      side:wait(cg.current_stream())
      side:use(function() y:fill(2) end)
      x:fill(3)
      cg.current_stream():wait(side)
      x:fill(4)
    end)
    for _, edge in ipairs { "n0 %-> n1", "n0 %-> n2", "n1 %-> n3", "n2 %-> n3" } do
      assert.matches(edge, text)
    end
  end)

  it("is there for kept graphs, graphs in graphs and empty ones", function()
    local text, inner = dot(function() x:fill(1) end, { keep_graph = true })
    assert.matches("1 node, captured", text)
    assert.matches("graph:replay\\n", (dot(function() inner:replay() end)))
    assert.matches("0 nodes", (dot(function() end)))
  end)

  it("draws the nodes of a graph in a graph, once, however deep", function()
    local inner = cg.capture(function() x:fill(1) x:fill(2) end)
    local empty = cg.capture(function() end)
    local middle = cg.capture(function() inner:replay() empty:replay() end)
    local text = dot(function() middle:replay(2) inner:replay() x:fill(3) end)
    local _, boxes = text:gsub("subgraph clusterb%d+ {", "")
    assert.equal(3, boxes)
    for _, part in ipairs {
      "n0 %-> n1;", "n2 %-> n3;",
      "\n  n0 %-> b1n0 %[lhead=clusterb1", "\n  n1 %-> b1n0 %[lhead=clusterb1",
      "\n  n2 %-> b2n0 %[lhead=clusterb2", "\n  b1n0 %-> b2n0 %[lhead=clusterb2",
      "\n  b1n1 %-> b3n0 %[lhead=clusterb3", "b1n0 %-> b1n1;", "b2n0 %-> b2n1;",
      'clusterb2 {\n  label="2 nodes"', 'clusterb3 {\n  label="0 nodes"',
    } do
      assert.matches(part, text)
    end
    if has_graphviz then
      -- 4 and 2 and 2 and what stands for none; 3 + 1 + 1 in them, 5 to bodies
      local drawn = layout()
      assert.equal(9, drawn.nodes)
      assert.equal(10, drawn.edges)
    end
  end)

  it("shows the memory that the capture made, and what shares bytes", function()
    local function copies(n, size)
      for _ = 1, n do
        local t = cg.buffer("float", size)
        t:copy(x:view(1, size))
        x:view(1, size):copy(t)
        t:release()
      end
    end
    local line
    local text = dot(function()
      copies(3, 512) -- all of them one after the other: x orders them
      local kept = cg.buffer("float", 256) line = debug.getinfo(1, "l").currentline
      kept:fill(1)
    end, { order = "data" })
    local note = text:match 'memory %[[^\n]*label="memory of the capture(.-)"%]'
    assert.matches("\\l2.0 KiB: picture_spec.lua:%d+ %(3 buffers%)\\l", note)
    assert.matches("\\l1.0 KiB: picture_spec.lua:" .. line .. "\\l", note)
    assert.is_nil((dot(function() x:fill(1) end)):find("memory of the capture", 1, true))
    -- each beside the others
    text = dot(function()
      for i = 1, 30 do
        local t = cg.buffer("float", 8)
        t:fill(i)
        t:release()
      end
    end, { order = "data" })
    assert.matches("\\land 6 more\\l", text)
    if has_graphviz then assert.equal(31, layout().nodes) end
  end)

  it("cuts names between characters, and shows what is no UTF-8 as '?'", function()
    local function named(name)
      return dot(function() loadstring("local x = ... x:fill(1)", "@" .. name)(x) end)
    end
    local long = ("a"):rep(43) .. "\195\169\195\169"
    assert.matches('\\n' .. ("a"):rep(43) .. '%.%.%.:1"', named(long .. ".lua"))
    assert.matches(" at " .. long .. ":1", named(long))
    local wide = "b\195\169\226\130\172\240\159\152\128c"
    assert.matches(wide .. ":1", named(wide))
    assert.matches(" at b%?%?c%?:1", named "b\195\255c\226")
    if has_graphviz then
      assert.equal(1, layout().nodes)
    end
  end)

  it("survives names that Graphviz would read otherwise", function()
    local text = dot(function()
      cg.mark_kernels({ label = 'a "quoted" \\ back\nslash', other = "<b>{|}" }, function()
        x:fill(1)
      end)
    end)
    assert.matches('label="a \\"quoted\\" \\\\ back slash, other=<b>{|}"', text)
    if has_graphviz then assert.equal(1, layout().nodes) end
  end)

  it("says why there is none", function()
    local g = cg.capture(function() x:fill(1) end)
    local e = raises("CGL_ERROR_SYSTEM", function() g:debug_dump(folder .. "/no/g.dot") end,
      "cannot write .*/no/g.dot: No such file")
    assert.equal(device.line(-2), e.where)
    raises("CGL_ERROR_NOT_CAPTURED", function() cg.graph():debug_dump(folder .. "/g.dot") end)
    assert.not_equal(0, (program.shell("test -e " .. folder .. "/g.dot")))
    cg.capture(function()
      x:fill(1)
      g:debug_dump(folder .. "/g.dot")
    end)
    assert.matches("^digraph", program.read(folder .. "/g.dot"))
  end)

  it("as SVG needs Graphviz, and says so", function()
    local status, out, err = device.child(([[
      cg.on_log(nil)
      local x = cg.zeros("float", 4)
      local g = cg.capture(function() x:fill(1) end)
      local ok, e = pcall(g.debug_dump, g, %q)
      print(ok, e.name, e.message, e.hint)
    ]]):format(folder .. "/g.svg"), "PATH=/nowhere TMPDIR=" .. folder)
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("^false\tCGL_ERROR_SYSTEM\tGraphviz.* was not found\tinstall graphviz", out)
    assert.equal("", (select(2, program.shell("ls " .. folder))), "a file was left")
  end)

  if not has_graphviz then
    it("is drawn by Graphviz", function() pending "Graphviz is not installed" end)
    return
  end

  it("becomes an SVG file by its name", function()
    local add = device.kernel "add"
    local g = cg.capture(function()
      cg.mark_kernels("a label", function() add:launch(1, 32, x, 1, 4) end)
    end, { annotations = true })
    g:debug_dump(folder .. "/g.svg")
    local text = program.read(folder .. "/g.svg")
    assert.matches("<svg", text)
    for _, part in ipairs { ">add<", ">a label<", "picture_spec.lua:%d+<", "1 block of 32" } do
      assert.matches(part, text)
    end
    raises("CGL_ERROR_SYSTEM", function() g:debug_dump(folder .. "/no/g.svg") end, "dot failed: ")
  end)

  it("is drawn under any handling of ended children", function()
    local status, out, err = device.child(([[
      cg.on_log(nil)
      local ffi = require "ffi"
      ffi.cdef "void *signal(int, void *);"
      ffi.C.signal(17, ffi.cast("void *", 1)) -- SIGCHLD: SIG_IGN
      local x = cg.zeros("float", 4)
      local g = cg.capture(function() x:fill(1) end)
      g:debug_dump(%q)
    ]]):format(folder .. "/g.svg"))
    assert.same({ 0, "", "" }, { status, out, err })
    assert.matches("</svg>\n$", program.read(folder .. "/g.svg"))
  end)

  it("is whole or not there when Graphviz is stopped", function()
    program.write(folder .. "/g.svg", "the last one")
    -- A dot that has written half of its file when Ctrl-C comes.
    os.execute("mkdir " .. folder .. "/bin")
    program.write(folder .. "/bin/dot", "#!/bin/sh\necho '<svg' >\"$3\"\nkill -INT $$\n")
    os.execute("chmod +x " .. folder .. "/bin/dot")
    local status, out = device.child(([[
      local x = cg.zeros("float", 4)
      local g = cg.capture(function() x:fill(1) end)
      print(select(2, pcall(g.debug_dump, g, %q)).message)
    ]]):format(folder .. "/g.svg"), "PATH=" .. folder .. "/bin:$PATH")
    assert.equal(0, status)
    assert.matches("/bin/dot was ended by a signal %(Interrupt%); .*g.svg was not written", out)
    assert.equal("the last one", program.read(folder .. "/g.svg"))
    assert.equal("bin\ng.svg\n", (select(2, program.shell("ls " .. folder))))
  end)

  it("of a long chain is folded to what fits a page", function()
    local add = device.kernel "add"
    local text = dot(function()
      for _ = 1, 100 do
        add:launch({ 8, 4 }, { 32, 8 }, x, 1, 4)
        x:fill(1)
      end
    end)
    local page = layout()
    assert.equal(200, page.nodes)
    assert.equal(199, page.edges)
    local ratio = page.width / page.height
    assert.is_true(ratio > 0.3 and ratio < 3, ratio)
    assert.is_true(page.height < 30, page.height)
    assert.matches("constraint=false", text)
  end)

  it("of a short one is not", function()
    local text = dot(function()
      for i = 1, 20 do x:fill(i) end
    end)
    assert.is_nil(text:find("constraint=false", 1, true))
    assert.same({ 20, 19 }, { layout().nodes, layout().edges })
  end)

  it("of 200 nodes on eight streams is readable", function()
    local side, y = {}, cg.zeros("float", 8)
    for i = 1, 8 do side[i] = cg.stream() end
    dot(function()
      for step = 1, 5 do
        cg.mark_kernels("step " .. step, function()
          x:fill(step)
          for i = 1, 8 do side[i]:wait(cg.current_stream()) end
          for i = 1, 8 do
            side[i]:use(function()
              for _ = 1, 5 do y:view(i, 1):fill(step) end
            end)
          end
          for i = 1, 8 do cg.current_stream():wait(side[i]) end
        end)
      end
      x:fill(0)
    end)
    local page = layout()
    assert.equal(206, page.nodes)
    assert.is_true(page.width < 30 and page.height < 40, page.width .. " x " .. page.height)
  end)

  it("draws every edge that others do not imply", function()
    local side = { cg.stream(), cg.stream() }
    local text, g = dot(function()
      for i = 1, 40 do
        x:fill(i)
        for k = 1, 2 do side[k]:wait(cg.current_stream()) end
        for k = 1, 2 do side[k]:use(function() x:view(k, 1):fill(i) end) end
        for k = 1, 2 do cg.current_stream():wait(side[k]) end
      end
    end)
    local nodes, drawn, lost = g:nodes(), {}, 0
    for from, to in text:gmatch "n(%d+) %-> n(%d+)" do drawn[from .. ">" .. to] = true end
    local function comes_before(a, b, seen)
      for _, d in ipairs(nodes[b].dependencies) do
        if d == a then return true end
        if d > a and not seen[d] then
          seen[d] = true
          if comes_before(a, d, seen) then return true end
        end
      end
      return false
    end
    for i, node in ipairs(nodes) do
      for _, d in ipairs(node.dependencies) do
        if not drawn[(d - 1) .. ">" .. (i - 1)] then
          local implied = false
          for _, other in ipairs(node.dependencies) do
            implied = implied or (other ~= d and comes_before(d, other, {}))
          end
          if not implied then lost = lost + 1 end
        end
      end
    end
    assert.equal(0, lost)
  end)
end)
