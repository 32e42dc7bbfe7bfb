/* Buffers of device memory, and pinned host memory.
   A buffer that owns a block gives it back to the block's pool in stream order
   (core/pool.h), so it may be released while work that uses it is queued. */
#ifndef CGL_CORE_MEMORY_H
#define CGL_CORE_MEMORY_H

#include "core/record/record.h"
#include "core/pool/pool.h"

#include <string.h>

/* Who gave memory up by hand, and where; see liveness.c. */
typedef struct cgl_life {
  cgl_site made, ended;
  atomic_bool over;
} cgl_life;

struct cgl_buffer {
  cgl_object object;
  cgl_block *block;   /* owned; NULL: a view, a global, borrowed, or empty */
  cgl_buffer *base;   /* retained: what a view looks at */
  cgl_module *module; /* retained: whose global it is */
  CUdeviceptr address;
  cgl_type type;
  size_t count;
  int ndims;
  /* Of one that a capture allocated; all zero of any other. */
  uint64_t born;         /* serial of the capture */
  uint64_t number;       /* of the allocation: unique in the process, growing */
  uint32_t use;          /* where the capture that used it last notes it */
  struct cgl_cell *cell; /* what graphs that share its pool do to it */
  atomic_bool wide; /* used by streams other than these: its block's owner */
  _Atomic(cgl_clock *) guest; /* and one more, watched, which all others come
                                 before, */
  atomic_uint_fast64_t guest_tick; /* the last time then */
  atomic_int views;                /* that look at it */
  cgl_life life;
  atomic_bool taken; /* its pool was restored to before it was made */
  /* From here on nothing is there at first. */
  cgl_site taken_at;
  size_t shape[CGL_MAX_DIMS];
};

/* CGL_ERROR_RELEASED when the memory was taken back by a restored pool. */
cgl_status cgl_buffer_taken(const cgl_buffer *buffer, const char *operation);
static inline cgl_status cgl_buffer_check(const cgl_buffer *buffer,
                                          const char *operation) {
  const cgl_buffer *root = buffer->base ? buffer->base : buffer;
  return atomic_load_explicit(&root->taken, memory_order_relaxed)
             ? cgl_buffer_taken(root, operation)
             : CGL_OK;
}
/* Whether captures allocated the buffer itself (not what a view looks at) of
   the graph's pool. */
static inline bool cgl_buffer_is_planned(const cgl_buffer *buffer,
                                         const cgl_graph *graph) {
  return buffer->block && buffer->block->captured &&
         buffer->block->segment->pool == graph->pool;
}
/* Notes that work on `stream`, just issued or waited for before anything else
   is, uses the buffer's memory. */
void cgl_buffer_touch(cgl_buffer *buffer, const cgl_stream *stream);
/* A view of memory that `module` owns. */
cgl_status cgl_buffer_of_module(cgl_module *module, CUdeviceptr address,
                                cgl_type type, size_t count,
                                cgl_buffer **buffer);

/* What a recording keeps of a fill, and of a copy the type alone.  A fill of
   eight-byte elements is one of words, when both halves are the same, or two of
   a half each. */
typedef struct cgl_element {
  uint32_t word;      /* the value, or the half of it */
  uint8_t type, half; /* cgl_type; 0: the whole, 1: the first, 2: the second */
  uint8_t pinned;     /* range of a copy that is pinned memory, from 1; or 0 */
} cgl_element;

/* Where the words of the half begin in an element. */
static inline size_t cgl_element_at(const cgl_element *element) {
  return element->half == 2 ? 4 : 0;
}
/* Takes the word of the element at `value`. */
static inline void cgl_element_set(cgl_element *element, const void *value) {
  size_t bytes = cgl_type_bytes((cgl_type)element->type);
  element->word = 0;
  memcpy(&element->word, (const char *)value + cgl_element_at(element),
         bytes < 4 ? bytes : 4);
}

/* peer.c: the copy of cgl_buffer_copy when the buffers are on two devices. */
cgl_status cgl_copy_across(cgl_buffer *to, cgl_buffer *from, cgl_stream *stream,
                           const char *operation);

struct cgl_pinned {
  cgl_object object;
  cgl_block *block; /* of the context's pinned pool */
  void *data;
  cgl_type type;
  size_t count;
  cgl_life life;
};

/* CGL_ERROR_INVALID_ARGUMENT for a type that is none, or more elements than any
   memory has. */
cgl_status cgl_check_elements(cgl_type type, size_t count,
                              const char *operation);

/* liveness.c: a view of `root` is gone. */
void cgl_buffer_unview(cgl_buffer *root);

#endif
