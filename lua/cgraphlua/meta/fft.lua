---@meta cgraphlua.fft

-- Fourier transforms by the machine's own library: require "cgraphlua.fft".  All
-- run on the current stream, outside captures and in them.

---@class cgraphlua.fft
local fft = {}

---@alias cgraphlua.norm
---| "backward" results of ifft and irfft are divided by the number of points
---| "ortho" all results are, by its root
---| "forward" those of fft and rfft

--- `dims`: over how many of the last extents (1, at most 3).
---@class cgraphlua.fft_options
---@field dims? integer
---@field norm? cgraphlua.norm
---@field out? cgraphlua.buffer

--- Transforms complex64 or complex128.
---@param x cgraphlua.buffer
---@param opts? cgraphlua.fft_options `out` may be `x`
---@return cgraphlua.buffer out a new buffer unless the option names one
function fft.fft(x, opts) end

--- The inverse of fft.fft.
---@param x cgraphlua.buffer
---@param opts? cgraphlua.fft_options `out` may be `x`
---@return cgraphlua.buffer out a new buffer unless the option names one
function fft.ifft(x, opts) end

--- Transforms float or double; the last extent n becomes n / 2 + 1.
---@param x cgraphlua.buffer
---@param opts? cgraphlua.fft_options
---@return cgraphlua.buffer out a new buffer unless the option names one
function fft.rfft(x, opts) end

--- The inverse of fft.rfft.  The option `n` is the last extent of the result:
--- twice that of `x` less 2, or one more.
---@param x cgraphlua.buffer
---@param opts? {dims?: integer, n?: integer, norm?: cgraphlua.norm, out?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer unless the option names one
function fft.irfft(x, opts) end

--- Forgets all plans of the device.  Graphs keep those that they use.
function fft.clear() end

--- The number of plans that are held, at most 32.
---@return integer
function fft.plans() end

--- The library's name and version.
---@return string
function fft.describe() end

return fft
