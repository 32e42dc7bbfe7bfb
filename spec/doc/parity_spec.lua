-- doc/parity.md names specs for every row, and every one of them is there.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "*a"
  if file then file:close() end
  return text
end

local page = read(here .. "/../../doc/parity.md")

-- The page names tests without their folders: path["graph_spec.lua"].
local path = {}
local listing = assert(io.popen("find '" .. here:gsub("'", "'\\''") .. "/..' -type f"))
for line in listing:lines() do
  path[line:match "[^/]*$"] = line
end
listing:close()

-- Of the rows: the first cell, the last cell, and the file and text of each
-- spec named there.
local function rows()
  local list = {}
  local section
  for line in page:gmatch "\n([|#][^\n]*)" do
    section = line:match "^## (.*)" or section
    local cells = {}
    for cell in line:gmatch "|%s*([^|]-)%s*%f[|]" do cells[#cells + 1] = cell end
    if cells[1] and cells[1] ~= "torch" and not cells[1]:match "^%-+$" then
      local row = { section = section, name = cells[1], cells = cells, specs = {} }
      local file
      for name, text in ((cells[3] or "") .. ";"):gmatch '(`?[^`"]*`?[^`"]*)"([^"]*)"' do
        file = name:match "`([%w_.]+)`" or file
        row.specs[#row.specs + 1] = { file = file, text = text }
      end
      list[#list + 1] = row
    end
  end
  return list
end

-- The texts after `it` in a spec; the strings of a C test, joined as C does.
local known = {}
local function texts(file)
  if known[file] then return known[file] end
  local source = path[file] and read(path[file])
  if not source then return nil end
  local set = {}
  if file:match "%.c$" then
    for text in source:gsub('"%s*\n%s*"', ""):gmatch '"([^"\n]*)"' do set[text] = true end
  else
    for text in source:gmatch '%f[%w]it%(%s*"([^"\n]*)"' do set[text] = true end
  end
  known[file] = set
  return set
end

describe("the page on parity", function()
  if not page then
    it("is beside the specs", function()
      pending "doc/parity.md is not in this folder of tests"
    end)
    return
  end

  it("has its tables and rows", function()
    local count = {}
    for _, row in ipairs(rows()) do count[row.section] = (count[row.section] or 0) + 1 end
    for title, least in pairs { ["torch.cuda.CUDAGraph"] = 24, ["Memory"] = 11,
                                ["torch.cuda.graph and torch.accelerator.Graph"] = 8,
                                ["Random numbers"] = 4 } do
      assert((count[title] or 0) >= least, title .. ": " .. tostring(count[title]) .. " rows")
    end
    for _, row in ipairs(rows()) do
      assert.equal(3, #row.cells, row.name)
      assert.is_true(#row.cells[2] > 0, row.name)
    end
  end)

  for _, row in ipairs(rows()) do
    it("names specs that exist: " .. row.name, function()
      assert.is_true(#row.specs > 0, "no spec is named")
      for _, spec in ipairs(row.specs) do
        assert(spec.file, "no file is named before: " .. spec.text)
        local set = texts(spec.file)
        if set then
          assert(set[spec.text], spec.file .. " does not have: " .. spec.text)
        else -- a folder of tests goes without the sources in C
          assert(spec.file:match "%.c$" and not path["core_test.c"],
            "there is no " .. spec.file)
        end
      end
    end)
  end

  it("leaves out no file between two specs of a cell", function()
    for _, row in ipairs(rows()) do
      local _, quotes = row.cells[3]:gsub('"', "")
      assert.equal(2 * #row.specs, quotes, row.name)
    end
  end)
end)
