/* Memory that has elements: buffers of the device, and pinned memory. */
#ifndef CGRAPHLUA_BUFFER_H
#define CGRAPHLUA_BUFFER_H

#include "base.h"

/* Element types: name, bytes. */
#define CGL_TYPES(X) \
  X(float, 4)        \
  X(double, 8)       \
  X(int8, 1)         \
  X(uint8, 1)        \
  X(int16, 2)        \
  X(uint16, 2)       \
  X(int32, 4)        \
  X(uint32, 4) X(int64, 8) X(uint64, 8) X(half, 2) X(bfloat16, 2) X(bool, 1)

typedef enum cgl_type {
#define X(name, bytes) CGL_TYPE_##name,
  CGL_TYPES(X)
#undef X
      CGL_TYPE_COUNT
} cgl_type;

CGL_API const char *cgl_type_name(cgl_type type);
CGL_API size_t cgl_type_bytes(cgl_type type);
/* Also "int", "uint" and "char"-free aliases are not taken: CGL_TYPE_COUNT for
   an unknown name. */
CGL_API cgl_type cgl_type_from_name(const char *name);

#define CGL_MAX_DIMS 8

/* `count` elements, uninitialized, from the pool that serves `stream`: the
   graph's when the stream is capturing, else the default one; `pool` overrides
   when not NULL. */
CGL_API cgl_status cgl_buffer_create(cgl_stream *stream, cgl_pool *pool,
                                     cgl_type type, size_t count,
                                     cgl_buffer **buffer);
/* Elements [first, first + count) of `base`, which it keeps alive. */
CGL_API cgl_status cgl_buffer_view(cgl_buffer *base, size_t first, size_t count,
                                   cgl_buffer **view);
/* Device memory of somebody else (an engine's), which must outlive it. */
CGL_API cgl_status cgl_buffer_from_address(cgl_context *context,
                                           uint64_t address, cgl_type type,
                                           size_t count, cgl_buffer **buffer);
/* Says that the caller is done with the memory, at the place of cgl_set_site:
   a borrowed address may be gone, for one.  Replays of graphs that check their
   inputs and that use it are refused from then on (once no view of it is left,
   of a buffer; a view retires nothing).  The reference stays the caller's. */
CGL_API void cgl_buffer_retire(cgl_buffer *buffer);
CGL_API void cgl_pinned_retire(cgl_pinned *pinned);
/* Whether a capture has used the buffer's memory. */
CGL_API bool cgl_buffer_is_kept(const cgl_buffer *buffer);
CGL_API cgl_type cgl_buffer_type(const cgl_buffer *buffer);
CGL_API size_t cgl_buffer_count(const cgl_buffer *buffer);
CGL_API size_t cgl_buffer_bytes(const cgl_buffer *buffer);
CGL_API uint64_t cgl_buffer_address(const cgl_buffer *buffer);
CGL_API cgl_context *cgl_buffer_context(const cgl_buffer *buffer);
/* Shape: ndims (at most CGL_MAX_DIMS) extents whose product is the count;
   one dimension until set. */
CGL_API cgl_status cgl_buffer_set_shape(cgl_buffer *buffer,
                                        const size_t *extents, int ndims);
CGL_API int cgl_buffer_shape(const cgl_buffer *buffer,
                             size_t extents[CGL_MAX_DIMS]);
/* Synchronous copies of `bytes` from and to ordinary host memory, in the order
   of `stream`; offset in bytes.  Refused while the stream captures. */
CGL_API cgl_status cgl_buffer_upload(cgl_buffer *buffer, cgl_stream *stream,
                                     size_t offset, const void *data,
                                     size_t bytes);
CGL_API cgl_status cgl_buffer_download(cgl_buffer *buffer, cgl_stream *stream,
                                       size_t offset, void *data, size_t bytes);
/* Asynchronous copies of the whole; counts and types must agree.  Between two
   GPUs: on a stream of one of them, outside captures.  cuMemcpyDtoDAsync,
   cuMemcpyAsync */
CGL_API cgl_status cgl_buffer_copy(cgl_buffer *to, cgl_buffer *from,
                                   cgl_stream *stream);
CGL_API cgl_status cgl_buffer_copy_pinned(cgl_buffer *to, cgl_pinned *from,
                                          cgl_stream *stream);
/* Asynchronously sets every element to the element at `value` (its type's
   bytes). */
CGL_API cgl_status cgl_buffer_fill(cgl_buffer *buffer, cgl_stream *stream,
                                   const void *value);

/* Page-locked host memory, zero-initialized.  cuMemHostAlloc */
CGL_API cgl_status cgl_pinned_create(cgl_context *context, cgl_type type,
                                     size_t count, cgl_pinned **pinned);
CGL_API void *cgl_pinned_data(const cgl_pinned *pinned);
CGL_API cgl_type cgl_pinned_type(const cgl_pinned *pinned);
CGL_API size_t cgl_pinned_count(const cgl_pinned *pinned);
CGL_API cgl_status cgl_pinned_copy(cgl_pinned *to, cgl_buffer *from,
                                   cgl_stream *stream);

#endif
