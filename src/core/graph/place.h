/* Places: where in one piece of memory the temporary memory of a graph lies.
   Idea: two temporaries may share bytes when every use of one precedes every
   use of the other.  With operations dealt to lanes (plan.h) that is a
   comparison of two rows: the latest use in each lane, and what of each lane
   precedes all uses.
   Glossary.  temporary: memory that the graph's capture allocated and released,
   and whose address nobody else knows.
   Invariant: temporaries that share a byte are ordered, in the order of their
   first uses. */
#ifndef CGL_GRAPH_PLACE_H
#define CGL_GRAPH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cgl_temporary {
  size_t bytes;         /* not 0 */
  size_t at;            /* found: bytes from the begin */
  uint32_t first, last; /* operations that use it, from 1; 0: none does */
  uint32_t lane;        /* of the last */
} cgl_temporary;

typedef struct cgl_places {
  cgl_temporary *list;
  size_t count;
  uint32_t width; /* lanes */
  uint32_t *last; /* count rows: the latest use in each lane */
  uint32_t *past; /* count rows: the latest of each lane that precedes all */
} cgl_places;

/* Room for so many temporaries; false without memory.  The caller frees in
   either case. */
bool cgl_places_reserve(cgl_places *places, size_t count, uint32_t width);
void cgl_places_free(cgl_places *places);
/* Operation `op`, which is in `lane` and comes after `row`, uses temporary i;
   the operations in their order. */
void cgl_places_use(cgl_places *places, size_t i, uint32_t op, uint32_t lane,
                    const uint32_t *row);
/* Finds a place for each; the bytes that they take together, SIZE_MAX without
   memory. */
size_t cgl_places_find(cgl_places *places);
/* The least that any choice of places could take: the most bytes of temporaries
   no two of which are ordered.  Of more than 512 temporaries, those that are
   in use at one time in the order of issue, which may be less.  SIZE_MAX
   without memory. */
size_t cgl_places_bound(const cgl_places *places);

#endif
