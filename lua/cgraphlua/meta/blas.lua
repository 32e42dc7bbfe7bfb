---@meta cgraphlua.blas

-- Matrices, by cuBLAS or OpenBLAS: require "cgraphlua.blas".  All run on the
-- current stream, outside captures and in them.  Elements are float or double,
-- of gemm also complex64 or complex128, and on a GPU half or bfloat16.

---@class cgraphlua.blas
local blas = {}

--- A number, or a buffer of one element, which is read when the work runs.
---@alias cgraphlua.scalar number|cgraphlua.buffer

---@class cgraphlua.blas_scale
---@field alpha? cgraphlua.scalar default 1

---@class cgraphlua.blas_result: cgraphlua.blas_scale
---@field out? cgraphlua.buffer
---@field beta? cgraphlua.scalar default 0: the result is not read

---@class cgraphlua.blas_gemm: cgraphlua.blas_result
---@field columns_a? integer[] {first, count}, from 1: a is these columns of the rows
---@field columns_b? integer[]
---@field columns_out? integer[] of the option out; its other columns stay
---@field conjugate_a? boolean of the transposed, the conjugate
---@field conjugate_b? boolean
---@field precision? "ieee"|"tf32" default "ieee"; tf32: a GPU may multiply fewer bits
---@field transpose_a? boolean
---@field transpose_b? boolean

---@class cgraphlua.blas_gemv: cgraphlua.blas_result
---@field transpose? boolean

---@class cgraphlua.blas_syrk: cgraphlua.blas_gemv
---@field upper? boolean the upper triangle, not the lower one

---@class cgraphlua.blas_trsm: cgraphlua.blas_scale
---@field right? boolean solve x a = alpha b
---@field transpose? boolean
---@field unit? boolean the diagonal of a counts as 1
---@field upper? boolean the upper triangle of a, not the lower one

--- alpha a b + beta c: {m, k} and {k, n} give {m, n}, each perhaps with a batch
--- in front.
---@param a cgraphlua.buffer
---@param b cgraphlua.buffer
---@param opts? cgraphlua.blas_gemm
---@return cgraphlua.buffer out a new buffer unless the option names one
function blas.gemm(a, b, opts) end

--- alpha a x + beta y: {n, k} and {k} give {n}.
---@param a cgraphlua.buffer
---@param x cgraphlua.buffer
---@param opts? cgraphlua.blas_gemv
---@return cgraphlua.buffer out a new buffer unless the option names one
function blas.gemv(a, x, opts) end

--- Adds alpha times the column x times the row y to a.
---@param x cgraphlua.buffer
---@param y cgraphlua.buffer
---@param a cgraphlua.buffer
---@param opts? cgraphlua.blas_scale
---@return cgraphlua.buffer a
function blas.ger(x, y, a, opts) end

--- alpha a a' + beta c: one triangle, with its diagonal.
---@param a cgraphlua.buffer
---@param opts? cgraphlua.blas_syrk
---@return cgraphlua.buffer out a new buffer unless the option names one
function blas.syrk(a, opts) end

--- Solves a x = alpha b, or x a = alpha b on the right, with a triangle, and
--- writes x to b.
---@param a cgraphlua.buffer
---@param b cgraphlua.buffer
---@param opts? cgraphlua.blas_trsm
---@return cgraphlua.buffer b
function blas.trsm(a, b, opts) end

--- Adds alpha x to y.
---@param x cgraphlua.buffer
---@param y cgraphlua.buffer
---@param opts? cgraphlua.blas_scale
---@return cgraphlua.buffer y
function blas.axpy(x, y, opts) end

--- Multiplies x by alpha.
---@param x cgraphlua.buffer
---@param opts? cgraphlua.blas_scale
---@return cgraphlua.buffer x
function blas.scal(x, opts) end

--- The sum of the products of the elements, on the device.
---@param x cgraphlua.buffer
---@param y cgraphlua.buffer
---@param opts? {out?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer unless the option names one
function blas.dot(x, y, opts) end

--- The root of the sum of the squares of the elements, on the device.
---@param x cgraphlua.buffer
---@param opts? {out?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer unless the option names one
function blas.nrm2(x, opts) end

--- The library's name and version, and how it computes.
---@return string
function blas.describe() end

return blas
