-- NumPy as a second opinion.  Load with dofile.

local numpy = { missing = "needs python3 with NumPy" }

--- The command of a python3 that has NumPy, the user's before the system's; nil
-- where none has.
for _, command in ipairs { "python3", "/usr/bin/python3" } do
  if not numpy.python and os.execute(command .. " -c 'import numpy' 2> /dev/null") == 0 then
    numpy.python = command
  end
end

return numpy
