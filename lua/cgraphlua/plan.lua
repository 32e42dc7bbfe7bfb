-- The plan of a graph, for people: what --plan prints on standard error.

local core = require "cgraphlua.core"

core.hide() -- errors name the script's line

local function where(at)
  return at.file ~= "" and ("%s:%d"):format(at.file, at.line) or "an unknown line"
end

-- The lines that made buffers, with how many and how large.
local function buffers(memory)
  local lines, order = {}, {}
  for _, m in ipairs(memory) do
    local key = where(m)
    if not lines[key] then
      lines[key] = { count = 0, bytes = 0, kept = 0 }
      order[#order + 1] = key
    end
    local line = lines[key]
    line.count, line.bytes = line.count + 1, line.bytes + m.bytes
    line.kept = line.kept + (m.temporary and 0 or 1)
  end
  return lines, order
end

--- The plan as text, which ends with a line's end.
local function plan_text(graph)
  local plan, nodes = graph:plan(), graph:nodes()
  local text = {
    ("plan of the graph captured at %s\n"):format(nodes[1] and where(nodes[1]) or "no line"),
    ("  %s order: %d nodes, %d edges, %d beside each other, longest path %d\n"):format(plan.order,
      plan.nodes, plan.edges, plan.width, plan.longest),
  }
  if plan.bytes_asked > 0 then
    text[#text + 1] = ("  memory: %d bytes asked, %d taken, %d the least\n"):format(
      plan.bytes_asked, plan.bytes, plan.bytes_least)
    local lines, order = buffers(plan.memory)
    for _, key in ipairs(order) do
      local line = lines[key]
      text[#text + 1] = ("    %s: %d of %d bytes%s\n"):format(key, line.count, line.bytes,
        line.kept > 0 and (", %d in places of their own"):format(line.kept) or "")
    end
  end
  for _, barrier in ipairs(plan.barriers) do
    text[#text + 1] = ("  barrier: %s, node %d, %s: %s\n"):format(barrier.name, barrier.node,
      where(barrier), barrier.reason)
  end
  return table.concat(text)
end

return function(graph)
  io.stderr:write(plan_text(graph))
end
