/* Copies and fills on a stream.
   Idea: a copy is a copy and a fill a fill, whatever does the work: the
   driver, or, where the driver would be slow, a kernel of the library's own
   (copies.cu).  Then the operation has the kernel as its `function`, and a
   kernel node in the graph.
   Invariant: the kernel's parameters are the first three fields of the
   operation's element, so that whoever changes the element changes the node. */
#ifndef CGL_COPY_COPY_H
#define CGL_COPY_COPY_H

#include "core/memory/memory.h"

/* What a recording has of a copy or a fill. */
typedef struct cgl_element {
  uint64_t to;    /* where it writes */
  uint64_t what;  /* of a copy: where it reads; of a fill: the value */
  uint64_t count; /* bytes */
  uint8_t type;   /* cgl_type */
  uint8_t pinned; /* number of the range in pinned memory, from 1; 0: none */
} cgl_element;

/* Bytes of what the driver's fill writes at once. */
static inline size_t cgl_copy_word_bytes(const cgl_element *element) {
  size_t bytes = cgl_type_bytes((cgl_type)element->type);
  return bytes < 4 ? bytes : 4;
}
/* Whether a fill writes one word again and again, which is what the driver's
   fills can. */
static inline bool cgl_copy_is_word(const cgl_element *element) {
  return cgl_type_bytes((cgl_type)element->type) < 8 ||
         (uint32_t)element->what == element->what >> 32;
}
/* The kernels of copies and fills. */
extern const struct cgl_own cgl_copy_own;
/* The launch of the kernel that writes so many bytes; a fill's takes a value of
   eight bytes. */
cgl_launch cgl_copy_launch(size_t bytes);
/* The second form (driver/predicate.h) of the kernel of a copy or a fill; NULL,
   and a static text in *why, when there is none. */
cgl_status cgl_copy_predicated(cgl_context *context, cgl_op_kind kind,
                               const char *operation, CUfunction *kernel,
                               const char **why);

#endif
