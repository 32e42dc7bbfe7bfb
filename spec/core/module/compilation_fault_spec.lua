-- Driver calls that fail while a compilation is made, waited for and released.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

describe("compilation when a driver call fails", function()
  for _, code in ipairs { 2, 719 } do
    it("is waited for again, or raises, code " .. code, function()
      device.sweep(code, [==[
sweep(function()
  local c = cg.module_async(source)
  local ok, m = pcall(c.wait, c)
  if not ok then m = c:wait() end -- the compile is not lost with the load
  local x = cg.zeros("float", 4)
  m:kernel "add":launch(1, 32, x, 1, 4)
  return x:download()[1]
end, {
  right = function(x) return x == 1, x end,
  calls = 5,
  raised = 3,
  names = { "cuModuleLoadData", "cuModuleGetFunction" },
})]==])
    end)
  end
end)
