/* Buffers of device memory, and pinned host memory.
   A buffer that owns a block gives it back to the block's pool in stream order
   (pool/), so it may be released while work that uses it is queued.
   Glossary.  root: of a view: the buffer whose memory it shows; of any other
   buffer: itself.  planned: allocated by a capture from its own pool; such
   memory is not kept, because the graph keeps the pool. */
#ifndef CGL_MEMORY_MEMORY_H
#define CGL_MEMORY_MEMORY_H

#include <string.h>

#include "core/pool/pool.h"
#include "core/record/issue.h"

/* The creation of memory, and its release by the script. */
typedef struct cgl_memory_life {
  cgl_site made;
  cgl_site ended;   /* of the release */
  atomic_bool over; /* released */
} cgl_memory_life;

struct cgl_buffer {
  cgl_object object;
  cgl_block *block;   /* owned; NULL: a view, a global, borrowed, or empty */
  cgl_buffer *base;   /* retained: a view's root; else NULL */
  cgl_object *keeper; /* retained: the owner of the memory, a module; or NULL */
  CUdeviceptr address;
  cgl_type type;
  size_t count;
  int ndims;
  cgl_content *content; /* retained: a capture allocated it; else NULL */
  char *input;          /* owned: its name as an input; NULL: it is none */
  atomic_bool wide;     /* streams other than the block's may still use it */
  _Atomic(cgl_clock *) last_user; /* watched: the stream other than the block's
                                     that used it last and comes after all
                                     others; NULL: none did */
  atomic_uint_fast64_t last_tick; /* tick of that use */
  atomic_int views;               /* views that live */
  cgl_memory_life life;
  atomic_bool taken; /* a restore of its pool took the memory back; of a view:
                        its memory holds something else now */
  /* Uninitialized from here on. */
  cgl_site taken_at;
  size_t shape[CGL_MAX_DIMS];
};

struct cgl_pinned {
  cgl_object object;
  cgl_block *block; /* of the context's pinned pool */
  void *data;
  cgl_type type;
  size_t count;
  cgl_memory_life life;
};

extern const cgl_object_kind cgl_buffer_kind, cgl_pinned_kind;

static inline cgl_buffer *cgl_buffer_root(const cgl_buffer *buffer) {
  return buffer->base ? buffer->base : (cgl_buffer *)buffer;
}

/* CGL_ERROR_RELEASED when the memory was taken back by a restored pool;
   CGL_ERROR_ORDER when the view has expired. */
cgl_status cgl_buffer_fail_taken(const cgl_buffer *buffer,
                                 const char *operation);
static inline cgl_status cgl_buffer_check(const cgl_buffer *buffer,
                                          const char *operation) {
  const cgl_buffer *root = cgl_buffer_root(buffer);
  return atomic_load_explicit(&buffer->taken, memory_order_relaxed) ||
                 atomic_load_explicit(&root->taken, memory_order_relaxed)
             ? cgl_buffer_fail_taken(buffer, operation)
             : CGL_OK;
}
/* The address, for work of ours that a recording cannot look into, of a buffer
   that was checked: no plan moves its memory. */
static inline void *cgl_buffer_fixed(const cgl_buffer *buffer) {
  cgl_content *content = cgl_buffer_root(buffer)->content;
  if (content)
    atomic_store_explicit(&content->allocation.fixed, true,
                          memory_order_relaxed);
  return (void *)(uintptr_t)buffer->address;
}
/* Whether a capture allocated the root from `pool`. */
static inline bool cgl_buffer_is_planned(const cgl_buffer *root,
                                         const cgl_pool *pool) {
  return root->block && root->block->captured &&
         root->block->segment->pool == pool;
}
/* Notes that work on `stream`, issued just now or about to be waited for, uses
   the buffer's memory. */
void cgl_buffer_touch(cgl_buffer *buffer, const cgl_stream *stream);
/* A buffer of memory that `keeper` owns, which the buffer retains. */
cgl_status cgl_buffer_of_keeper(cgl_object *keeper, CUdeviceptr address,
                                cgl_type type, size_t count,
                                cgl_buffer **buffer);
/* CGL_ERROR_INVALID_ARGUMENT for an unknown element type, or more elements than
   any device holds. */
cgl_status cgl_memory_check_elements(cgl_type type, size_t count,
                                     const char *operation);

/* ---- use.c: operations that use memory ---- */

/* Before work on the stream uses the buffer: cgl_buffer_check, and, outside
   captures, cgl_content_check. */
cgl_status cgl_buffer_check_use(cgl_buffer *buffer, cgl_use use,
                                cgl_stream *stream, const char *operation);
/* Work outside captures that uses the buffer was issued. */
static inline void cgl_buffer_note(cgl_buffer *buffer, bool write,
                                   const cgl_stream *stream) {
  cgl_content *content = cgl_buffer_root(buffer)->content;
  if (content)
    cgl_content_note(content, buffer->address, cgl_buffer_bytes(buffer), write,
                     stream);
}
/* cgl_issue_use for the memory of a buffer or of pinned memory; `argument`: the
   index of a kernel's argument. */
void cgl_buffer_use(cgl_buffer *buffer, cgl_issue *issue, bool write,
                    size_t argument);
void cgl_pinned_use(cgl_pinned *pinned, cgl_issue *issue, bool write,
                    size_t argument);
/* Incremented when the script releases memory that a capture keeps: graphs
   check their inputs only when it has changed. */
extern atomic_uint_fast64_t cgl_memory_generation;
/* Whether the script released a kept object, and no view of it lives. */
bool cgl_memory_is_over(const cgl_object *object);
/* "a buffer of 100 float, created at a:1, ...": of a released buffer or pinned
   memory; `used`: where the capture used it. */
void cgl_memory_describe(const cgl_object *object, cgl_site used, char *text,
                         size_t size);

/* ---- follow.c ---- */

/* Before work on the stream reads a parameter from the buffer that it follows:
   cgl_buffer_check_use, and the buffer's device.  CGL_ERROR_RELEASED when the
   script released it. */
cgl_status cgl_buffer_check_followed(cgl_buffer *buffer, const cgl_param *param,
                                     cgl_stream *stream, const char *operation);

/* ---- pinned.c, peer.c: the part of a context ---- */

typedef struct cgl_memory_part {
  cgl_part part;
  cgl_pool *_Atomic pinned; /* the pool of pinned memory; made at first use */
  CUstream link; /* waits for copies that other devices run; made at first use,
                    under the context's lock */
  _Atomic CUdeviceptr spare; /* a word; made at first use */
} cgl_memory_part;

/* Made at first use; NULL without memory, with the failure noted. */
cgl_memory_part *cgl_memory_part_of(cgl_context *context,
                                    const char *operation);

/* A word of device memory that is written to and never read; 0 without memory,
   with the failure noted.  cuMemAlloc */
CUdeviceptr cgl_memory_spare(cgl_context *context, const char *operation);

/* The copy of cgl_buffer_copy when the buffers are on two devices. */
cgl_status cgl_buffer_copy_across(cgl_buffer *to, cgl_buffer *from,
                                  cgl_stream *stream, const char *operation);

#endif
