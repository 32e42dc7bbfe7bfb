-- String patterns in Lua: they find what the string library finds.
local patterns = require "cgraphlua.patterns"

local function pick(list)
  return list[math.random(#list)]
end

-- A pattern of a few parts, some of them without sense.
local function random_pattern()
  local singles = { "a", "b", ".", "%a", "%d", "%s", "[ab]", "[^a]", "[a-c%d]", "%.", "x", "]", "-",
    "[]a]", "[%]b]", "$", "^", "1" }
  local parts = { math.random() < 0.3 and "^" or "" }
  for _ = 1, math.random(5) do
    local kind = math.random(14)
    if kind == 1 then parts[#parts + 1] = "()"
    elseif kind == 2 then parts[#parts + 1] = "%b()"
    elseif kind == 3 then parts[#parts + 1] = "%f[%a]"
    elseif kind == 4 then parts[#parts + 1] = "%1"
    elseif kind == 5 then parts[#parts + 1] = "("
    elseif kind == 6 then parts[#parts + 1] = ")"
    elseif kind <= 8 then
      parts[#parts + 1] = "(" .. pick(singles) .. pick { "*", "+", "-", "?", "" } .. ")"
    else
      parts[#parts + 1] = pick(singles) .. pick { "*", "+", "-", "?", "", "" }
    end
  end
  return table.concat(parts) .. (math.random() < 0.3 and "$" or "")
end

local function random_text()
  local text = {}
  for i = 1, math.random(0, 12) do
    text[i] = pick { "a", "b", "a", "c", "(", ")", "1", ".", " ", "]", "-", "^", "$", "\0", "\255" }
  end
  return table.concat(text)
end

local function all_of(gmatch, text, pattern)
  local found = {}
  for a, b, c in gmatch(text, pattern) do
    found[#found + 1] = { a, b, c }
    if #found > 30 then break end
  end
  return found
end

local calls = {
  function(lib, text, pattern) return lib.find(text, pattern) end,
  function(lib, text, pattern) return lib.find(text, pattern, math.floor(#text / 2)) end,
  function(lib, text, pattern) return lib.find(text, pattern, -3) end,
  function(lib, text, pattern) return lib.find(text, pattern, 100) end,
  function(lib, text, pattern) return lib.match(text, pattern) end,
  function(lib, text, pattern) return lib.match(text, pattern, 3) end,
  function(lib, text, pattern) return all_of(lib.gmatch, text, pattern) end,
  function(lib, text, pattern) return lib.gsub(text, pattern, "<%0%%>") end,
  function(lib, text, pattern) return lib.gsub(text, pattern, "<%1>", 2) end,
  function(lib, text, pattern) return lib.gsub(text, pattern, { a = "A", b = 2, [3] = "3" }) end,
  function(lib, text, pattern)
    return lib.gsub(text, pattern, function(x) return x ~= "b" and "{" .. x .. "}" end)
  end,
}

describe("patterns in Lua", function()
  local soon = patterns.soon
  after_each(function() patterns.soon = soon end)

  it("find what the string library finds, for random patterns", function()
    patterns.soon = -1
    math.randomseed(tonumber(os.getenv "CGRAPHLUA_SEED") or 7)
    local compared = 0
    for _ = 1, tonumber(os.getenv "CGRAPHLUA_PATTERNS") or 3000 do
      local text, pattern = random_text(), random_pattern()
      for k, call in ipairs(calls) do
        local wanted = { pcall(call, string, text, pattern) }
        local got = { pcall(call, patterns, text, pattern) }
        -- The library sees a pattern's mistakes only when it comes to them.
        if wanted[1] and got[1] then
          compared = compared + 1
          assert.same(wanted, got, ("call %d, %q in %q"):format(k, pattern, text))
        elseif got[1] then
          error(("call %d, %q in %q: %s"):format(k, pattern, text, tostring(wanted[2])))
        end
      end
    end
    assert.is_true(compared > 10000)
  end)

  it("leave to the string library what ends soon", function()
    local text = ("key = value\n"):rep(100)
    assert.equal(200, select(2, patterns.gsub(text, "%w+", "")))
    assert.equal("key", (patterns.match(text, "^(%w+)%s*=%s*(%w+)")))
    assert.has_error(function() patterns.find({}, "a") end)
    assert.has_error(function() patterns.gsub("a", "a") end)
  end)

  it("see mistakes in patterns of which the search takes long", function()
    local text = ("a"):rep(200)
    for pattern, message in pairs {
      ["%"] = "ends with '%'", ["["] = "missing ']'", ["%b"] = "unbalanced pattern",
      ["%f"] = "missing '['", [")"] = "invalid pattern capture", ["%3"] = "invalid capture index",
    } do
      local ok, why = pcall(patterns.find, text, ("a-"):rep(5) .. pattern)
      assert.is_false(ok)
      assert.is_truthy(why:find(message, 1, true), pattern .. ": " .. why)
    end
    assert.is_false((pcall(patterns.match, text, ("a-"):rep(5) .. "(a$")))
  end)
end)
