/* Copies and fills on a stream.
   Idea: a copy is a copy and a fill a fill, whatever does the work: the
   driver, or, where the driver would be slow, a kernel of the library's own
   (copies.cu).  Then the operation has the kernel as its `function`, and a
   kernel node in the graph.
   Invariant: the kernel's parameters are the first three fields of the
   operation's element, so that whoever changes the element changes the node. */
#ifndef CGL_COPY_COPY_H
#define CGL_COPY_COPY_H

#include <string.h>

#include "core/memory/memory.h"

/* What a recording has of a copy or a fill. */
typedef struct cgl_element {
  uint64_t to; /* where it writes */
  union {
    uint64_t what;                     /* of a copy: where it reads */
    char value[CGL_MAX_ELEMENT_BYTES]; /* of a fill: the element, then 0 */
  };
  uint64_t count;  /* bytes */
  uint8_t type;    /* cgl_type */
  uint8_t pinned;  /* number of the range in pinned memory, from 1; 0: none */
  uint8_t follows; /* not 0: a fill whose element is read at `what` */
} cgl_element;

/* Bytes of what the driver's fill writes at once: the largest of 1, 2 and 4
   that an element is a multiple of. */
static inline size_t cgl_copy_word_bytes(const cgl_element *element) {
  const size_t bytes = cgl_type_bytes((cgl_type)element->type);
  return bytes % 4 ? bytes % 2 ? 1 : 2 : 4;
}
/* That word. */
static inline uint32_t cgl_copy_word(const cgl_element *element) {
  uint32_t word = 0;
  memcpy(&word, element->value, cgl_copy_word_bytes(element));
  return word;
}
/* Whether a fill writes one word again and again, which is what the driver's
   fills can. */
static inline bool cgl_copy_is_word(const cgl_element *element) {
  const size_t word = cgl_copy_word_bytes(element);
  return !memcmp(element->value, element->value + word,
                 cgl_type_bytes((cgl_type)element->type) - word);
}
/* The kernels of copies and fills. */
extern const struct cgl_own cgl_copy_own;
/* Which of them fills with elements of the type; 0: none does.  `follows`: it
   reads the element from memory. */
size_t cgl_copy_fill_kernel(cgl_type type, bool follows);
/* Whether kernel `index` reads the memory at its second parameter. */
bool cgl_copy_kernel_reads(size_t index);
/* The launch of the kernel that writes so many bytes; a fill's takes a value of
   eight bytes. */
cgl_launch cgl_copy_launch(size_t bytes);
/* The second form (driver/predicate.h) of the kernel of a copy or a fill; NULL,
   and a static text in *why, when there is none. */
cgl_status cgl_copy_predicated(cgl_context *context, cgl_op_kind kind,
                               const char *operation, CUfunction *kernel,
                               const char **why);

#endif
