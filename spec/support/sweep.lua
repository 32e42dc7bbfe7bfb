-- Fails each driver call of a job once, in a process of its own.  The spec's
-- chunk is given `sweep`, calls it with a job and returns:
--   sweep(job, { right = fn(result), calls = 30, raised = 20, names = { ... } })
-- right() says whether what the job returned is right (and if not, why).  Each
-- time the job gives the right result or raises an error that says what failed
-- and where, it leaves nothing behind, and the next job is right.  At least
-- `calls` calls are made, `raised` of the failures raise, and the calls of
-- `names` are among those that failed.  after(at, ok) looks at what was left
-- before the garbage is collected, gone(at) when it has been.

local function left_over(cg)
  local list = {}
  for _, noun in ipairs { "stream", "event", "buffer", "pinned", "module", "compilation",
                          "kernel", "pool", "graph", "generator", "loop", "param", "context" } do
    if cg.live(noun) ~= 0 then list[#list + 1] = noun .. "=" .. cg.live(noun) end
  end
  return table.concat(list, " ")
end

local function clear(e)
  return type(e) == "table" and e.name and #e.message > 0 and e.where ~= ""
end

return function(cg, code)
  return function(job, opts)
    local function nothing_alive(at)
      collectgarbage() -- what was begun by hand ends with its graph
      collectgarbage()
      cg.synchronize() -- refused while anything captures
      if opts.gone then opts.gone(at) end
      cg.debug.forget()
      assert(cg.live() == 0, at .. "left alive: " .. left_over(cg))
    end

    -- Without a fault.
    local function succeeds(at)
      local ok, result = pcall(job)
      assert(ok, at .. tostring(result))
      local right, why = opts.right(result)
      assert(right, at .. "wrong, " .. tostring(why))
      result = nil -- luacheck: ignore 311 (it may hold what was made)
      if opts.after then opts.after(at, true) end
      nothing_alive(at)
    end

    succeeds "before any fault: "
    local k, raised, names = 0, 0, {}
    repeat
      k = k + 1
      local current = tostring(cg.current_stream())
      cg.debug.fault(k, code)
      local ok, result = pcall(job)
      local _, hit = cg.debug.fault_count()
      cg.debug.fault(0)
      local at = "call " .. k .. " (" .. tostring(hit) .. "): "
      if ok then
        local right, why = opts.right(result)
        assert(right, at .. "failed silently, " .. tostring(why))
      else
        assert(hit, "failed without a fault: " .. tostring(result))
        assert(clear(result), at .. "no clear error: " .. tostring(result))
        raised = raised + 1
      end
      result = nil -- luacheck: ignore 311
      if hit then names[hit] = true end
      assert(tostring(cg.current_stream()) == current, at .. "another stream is current")
      assert(not cg.is_current_stream_capturing(), at .. "the current stream captures")
      if opts.after then opts.after(at, ok) end
      nothing_alive(at)
      succeeds("after " .. at)
    until not hit
    assert(k > opts.calls, k .. " calls")
    assert(raised > opts.raised, raised .. " errors")
    for _, name in ipairs(opts.names or {}) do
      assert(names[name], name .. " never failed")
    end
  end
end
