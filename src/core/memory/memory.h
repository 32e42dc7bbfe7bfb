/* Buffers of device memory, and pinned host memory.
   A buffer that owns a block gives it back to the block's pool in stream order
   (pool/), so it may be released while work that uses it is queued.
   Glossary.  root: the buffer itself, or the buffer that a view looks at.
   planned: memory that captures allocated of the graph's own pool: it is the
   graph's for as long as it holds the pool, and is not kept. */
#ifndef CGL_MEMORY_MEMORY_H
#define CGL_MEMORY_MEMORY_H

#include <string.h>

#include "core/pool/pool.h"
#include "core/record/issue.h"

/* Where memory was made and given up by hand. */
typedef struct cgl_memory_life {
  cgl_site made, ended;
  atomic_bool over;
} cgl_memory_life;

struct cgl_buffer {
  cgl_object object;
  cgl_block *block;   /* owned; NULL: a view, a global, borrowed, or empty */
  cgl_buffer *base;   /* retained: what a view looks at */
  cgl_object *keeper; /* retained: what owns the memory, a module; or NULL */
  CUdeviceptr address;
  cgl_type type;
  size_t count;
  int ndims;
  uint64_t born;    /* serial of the capture that allocated it, or 0 */
  uint64_t number;  /* of that allocation: unique in the process, growing */
  uint32_t slot;    /* where the recording that used it last has it */
  cgl_cell *cell;   /* what graphs that share its pool do to it */
  atomic_bool wide; /* streams other than the block's may still use it */
  _Atomic(cgl_clock *) last_user; /* watched: the stream other than the block's
                                     that used it last and comes after all
                                     others; NULL: none did */
  atomic_uint_fast64_t last_tick; /* tick of that use */
  atomic_int views;               /* views that live */
  cgl_memory_life life;
  atomic_bool taken; /* its pool was restored to before it was made */
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

/* CGL_ERROR_RELEASED when the memory was taken back by a restored pool. */
cgl_status cgl_buffer_fail_taken(const cgl_buffer *buffer,
                                 const char *operation);
static inline cgl_status cgl_buffer_check(const cgl_buffer *buffer,
                                          const char *operation) {
  const cgl_buffer *root = cgl_buffer_root(buffer);
  return atomic_load_explicit(&root->taken, memory_order_relaxed)
             ? cgl_buffer_fail_taken(root, operation)
             : CGL_OK;
}
/* Whether captures allocated the root of the pool. */
static inline bool cgl_buffer_is_planned(const cgl_buffer *root,
                                         const cgl_pool *pool) {
  return root->block && root->block->captured &&
         root->block->segment->pool == pool;
}
/* Notes that work on `stream`, issued just now or waited for before anything
   else is, uses the buffer's memory. */
void cgl_buffer_touch(cgl_buffer *buffer, const cgl_stream *stream);
/* A buffer of memory that `keeper` owns. */
cgl_status cgl_buffer_of_keeper(cgl_object *keeper, CUdeviceptr address,
                                cgl_type type, size_t count,
                                cgl_buffer **buffer);
/* CGL_ERROR_INVALID_ARGUMENT for an unknown element type, or more elements than
   any memory has. */
cgl_status cgl_memory_check_elements(cgl_type type, size_t count,
                                     const char *operation);

/* ---- use.c: operations that use memory ---- */

/* Before eager work reads the buffer, when graphs share pools: refuses what a
   replay has overwritten. */
cgl_status cgl_buffer_check_read(cgl_buffer *buffer, const cgl_stream *stream,
                                 const char *operation);
/* The script wrote to the buffer. */
void cgl_buffer_wrote(cgl_buffer *buffer);
/* cgl_issue_use for the memory of a buffer or of pinned memory, which argument
   `argument` of a kernel reads, or also writes. */
void cgl_buffer_use(cgl_buffer *buffer, cgl_issue *issue, bool write,
                    size_t argument);
void cgl_pinned_use(cgl_pinned *pinned, cgl_issue *issue, bool write,
                    size_t argument);
/* When a buffer or pinned memory was given up by hand, moves a number: graphs
   look through what they keep only when it has moved. */
extern atomic_uint_fast64_t cgl_memory_generation;
/* Whether a kept object was given up by hand, and no view of it is left. */
bool cgl_memory_is_over(const cgl_object *object);
/* "a buffer of 100 float, created at a:1, ...": of a buffer or pinned memory
   that was given up; `used`: where the capture used it. */
void cgl_memory_describe(const cgl_object *object, cgl_site used, char *text,
                         size_t size);

/* ---- copy.c ---- */

/* What a recording keeps of a fill, and of a copy the type alone.  A fill of
   eight-byte elements is one of words, when both halves are the same, or two of
   a half each. */
typedef struct cgl_element {
  uint32_t word;      /* the value, or the half of it */
  uint8_t type, half; /* cgl_type; 0: the whole, 1: the first, 2: the second */
  uint8_t pinned;     /* range of a copy that is pinned memory, from 1; or 0 */
} cgl_element;

/* Where the words of the half begin in an element. */
static inline size_t cgl_memory_half_at(const cgl_element *element) {
  return element->half == 2 ? 4 : 0;
}
/* Bytes of what the driver's fill writes at once. */
static inline size_t cgl_memory_fill_bytes(const cgl_element *element) {
  size_t bytes = cgl_type_bytes((cgl_type)element->type);
  return bytes < 4 ? bytes : 4;
}
/* Takes the word of the element at `value`. */
static inline void cgl_memory_set_word(cgl_element *element,
                                       const void *value) {
  element->word = 0;
  memcpy(&element->word, (const char *)value + cgl_memory_half_at(element),
         cgl_memory_fill_bytes(element));
}

/* ---- pinned.c, peer.c: what a context has of memory ---- */

typedef struct cgl_memory_part {
  cgl_part part;
  cgl_pool *_Atomic pinned; /* the pool of page-locked memory; lazily */
  CUstream link; /* waits for copies that other devices run; lazily, under the
                    context's lock */
} cgl_memory_part;

/* Made at first use; NULL without memory, with the failure noted. */
cgl_memory_part *cgl_memory_part_of(cgl_context *context,
                                    const char *operation);

/* The copy of cgl_buffer_copy when the buffers are on two devices. */
cgl_status cgl_buffer_copy_across(cgl_buffer *to, cgl_buffer *from,
                                  cgl_stream *stream, const char *operation);

#endif
