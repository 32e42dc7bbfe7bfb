/* Memory with typed elements: buffers of the device, and pinned memory. */
#ifndef CGRAPHLUA_BUFFER_H
#define CGRAPHLUA_BUFFER_H

#include "base.h"

/* Vectors as CUDA has them, of two, three or four numbers; those of three have
   no padding. */
#define CGL_VECTOR_TYPES(X, name, bytes, number) \
  X(name##2, 2 * bytes, number, 2)               \
  X(name##3, 3 * bytes, number, 3)               \
  X(name##4, 4 * bytes, number, 4)

/* Element types: name, bytes, type of the numbers, how many of them.  A complex
   number has its real part first. */
#define CGL_TYPES(X)                      \
  X(float, 4, float, 1)                   \
  X(double, 8, double, 1)                 \
  X(int8, 1, int8, 1)                     \
  X(uint8, 1, uint8, 1)                   \
  X(int16, 2, int16, 1)                   \
  X(uint16, 2, uint16, 1)                 \
  X(int32, 4, int32, 1)                   \
  X(uint32, 4, uint32, 1)                 \
  X(int64, 8, int64, 1)                   \
  X(uint64, 8, uint64, 1)                 \
  X(half, 2, half, 1)                     \
  X(bfloat16, 2, bfloat16, 1)             \
  X(bool, 1, bool, 1)                     \
  X(complex64, 8, float, 2)               \
  X(complex128, 16, double, 2)            \
  CGL_VECTOR_TYPES(X, float, 4, float)    \
  CGL_VECTOR_TYPES(X, double, 8, double)  \
  CGL_VECTOR_TYPES(X, char, 1, int8)      \
  CGL_VECTOR_TYPES(X, uchar, 1, uint8)    \
  CGL_VECTOR_TYPES(X, short, 2, int16)    \
  CGL_VECTOR_TYPES(X, ushort, 2, uint16)  \
  CGL_VECTOR_TYPES(X, int, 4, int32)      \
  CGL_VECTOR_TYPES(X, uint, 4, uint32)    \
  CGL_VECTOR_TYPES(X, longlong, 8, int64) \
  CGL_VECTOR_TYPES(X, ulonglong, 8, uint64)

enum { CGL_MAX_ELEMENT_BYTES = 32 };

typedef enum cgl_type {
#define X(name, bytes, number, lanes) CGL_TYPE_##name,
  CGL_TYPES(X)
#undef X
      CGL_TYPE_COUNT
} cgl_type;

/* The name of a type, "float"; "unknown" for CGL_TYPE_COUNT and
   beyond. */
CGL_API const char *cgl_type_name(cgl_type type);
/* The bytes of an element; 0 for CGL_TYPE_COUNT and beyond. */
CGL_API size_t cgl_type_bytes(cgl_type type);
/* The type of an element's numbers, float for float4 and complex64, and how
   many it has: 4, 2, or 1; CGL_TYPE_COUNT and 0 for CGL_TYPE_COUNT and beyond.
 */
CGL_API cgl_type cgl_type_number(cgl_type type);
CGL_API int cgl_type_lanes(cgl_type type);
/* The type of a name, exactly as in CGL_TYPES; CGL_TYPE_COUNT for an unknown
   name. */
CGL_API cgl_type cgl_type_from_name(const char *name);

#define CGL_MAX_DIMS 8

/* Allocates `count` elements, uninitialized, for work on `stream`, from `pool`.
   A NULL pool is the graph's pool when the stream captures, else the device's
   own pool.  The caller owns the reference.  cuMemCreate, cuMemMap, when the
   pool has to grow */
CGL_API cgl_status cgl_buffer_create(cgl_stream *stream, cgl_pool *pool,
                                     cgl_type type, size_t count,
                                     cgl_buffer **buffer);
/* A buffer over the elements [first, first + count) of `base`, from 0.  The
   view keeps `base` alive. */
CGL_API cgl_status cgl_buffer_view(cgl_buffer *base, size_t first, size_t count,
                                   cgl_buffer **view);
/* The memory of a view holds something else from here on: the script's line of
   this call.  Later uses of this view raise CGL_ERROR_ORDER; its buffer and
   other views are as before.  CGL_ERROR_INVALID_ARGUMENT unless it is a view.
 */
CGL_API cgl_status cgl_buffer_expire(cgl_buffer *view);
/* Borrows device memory of the caller, which must outlive the object. */
CGL_API cgl_status cgl_buffer_from_address(cgl_context *context,
                                           uint64_t address, cgl_type type,
                                           size_t count, cgl_buffer **buffer);
/* Says that the caller is done with the memory, at the site of cgl_set_site.
   From then on, replays of graphs that use the memory and check their inputs
   (check_input_liveness) are refused.  A buffer counts as retired only when no
   view of it is left; retiring a view does nothing.  The caller keeps its
   reference. */
CGL_API void cgl_buffer_retire(cgl_buffer *buffer);
CGL_API void cgl_pinned_retire(cgl_pinned *pinned);
/* Whether a capture has used the buffer's memory. */
CGL_API bool cgl_buffer_is_kept(const cgl_buffer *buffer);
/* The element type, elements, bytes, address on the device, and context
   (borrowed).  The address is 0, with CGL_ERROR_RELEASED as the last failure,
   when a restore of the pool took the memory back. */
CGL_API cgl_type cgl_buffer_type(const cgl_buffer *buffer);
CGL_API size_t cgl_buffer_count(const cgl_buffer *buffer);
CGL_API size_t cgl_buffer_bytes(const cgl_buffer *buffer);
CGL_API uint64_t cgl_buffer_address(const cgl_buffer *buffer);
CGL_API cgl_context *cgl_buffer_context(const cgl_buffer *buffer);
/* Whether two buffers have bytes in common; *same, unless NULL: whether they
   begin at the same byte.  Unlike an address, the answer says nothing of where
   the memory of a capture in data order will lie. */
CGL_API bool cgl_buffer_overlap(const cgl_buffer *a, const cgl_buffer *b,
                                bool *same);
/* Names the buffer: graphs captured from now on that use it, or views of it,
   have it as an input of that name (copied), which cgl_graph_bind exchanges.
   CGL_ERROR_INVALID_ARGUMENT for a view, an input, and memory that a capture
   allocated. */
CGL_API cgl_status cgl_buffer_set_input(cgl_buffer *buffer, const char *name);
/* Sets the shape: `ndims` extents (1 to CGL_MAX_DIMS), the slowest first, whose
   product is the count.  Initially a buffer has one dimension. */
CGL_API cgl_status cgl_buffer_set_shape(cgl_buffer *buffer,
                                        const size_t *extents, int ndims);
/* Writes the extents, and returns their number. */
CGL_API int cgl_buffer_shape(const cgl_buffer *buffer,
                             size_t extents[CGL_MAX_DIMS]);
/* Copy `bytes` bytes at `offset` (bytes) from and to ordinary host memory, in
   the order of `stream`, and wait.  Refused with
   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED while the stream captures.
   cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuStreamSynchronize */
CGL_API cgl_status cgl_buffer_upload(cgl_buffer *buffer, cgl_stream *stream,
                                     size_t offset, const void *data,
                                     size_t bytes);
CGL_API cgl_status cgl_buffer_download(cgl_buffer *buffer, cgl_stream *stream,
                                       size_t offset, void *data, size_t bytes);
/* Copy all elements, asynchronously on `stream`.  Counts and types must agree.
   Between two GPUs: on a stream of one of them, outside captures.  In a
   capture, a large copy for which the driver's node is slow is a kernel of the
   library's. cuMemcpyDtoDAsync, cuMemcpyAsync, cuMemcpyHtoDAsync,
   cuLaunchKernel */
CGL_API cgl_status cgl_buffer_copy(cgl_buffer *to, cgl_buffer *from,
                                   cgl_stream *stream);
CGL_API cgl_status cgl_buffer_copy_pinned(cgl_buffer *to, cgl_pinned *from,
                                          cgl_stream *stream);
/* Sets every element to the element at `value`, asynchronously on `stream`.  A
   kernel of the library's writes elements that are no repeated word of one, two
   or four bytes; in a capture CGL_ERROR_NO_COMPILER where nothing compiles it.
   cuMemsetD8Async, cuMemsetD16Async, cuMemsetD32Async, cuMemsetD2D8Async,
   cuMemsetD2D32Async, cuLaunchKernel */
CGL_API cgl_status cgl_buffer_fill(cgl_buffer *buffer, cgl_stream *stream,
                                   const void *value);
/* Sets every element to what a parameter of the buffer's type, and of one
   element, is at the call, and in a graph at each replay.  The node of an
   eight-byte element is a kernel of the library's.  cgl_buffer_fill */
CGL_API cgl_status cgl_buffer_fill_param(cgl_buffer *buffer, cgl_stream *stream,
                                         cgl_param *param);

/* Allocates page-locked host memory, initialized to zero.  The caller owns the
   reference.  cuMemHostAlloc */
CGL_API cgl_status cgl_pinned_create(cgl_context *context, cgl_type type,
                                     size_t count, cgl_pinned **pinned);
/* The elements (borrowed), their type and their number. */
CGL_API void *cgl_pinned_data(const cgl_pinned *pinned);
CGL_API cgl_type cgl_pinned_type(const cgl_pinned *pinned);
CGL_API size_t cgl_pinned_count(const cgl_pinned *pinned);
/* Copies all of a buffer of the same type and count, asynchronously on
   `stream`.  cuMemcpyDtoHAsync */
CGL_API cgl_status cgl_pinned_copy(cgl_pinned *to, cgl_buffer *from,
                                   cgl_stream *stream);

#endif
