/* Places: where in one piece of memory the temporary memory of a graph lies.
   Idea: two temporaries may share bytes when every use of one precedes every
   use of the other.  What precedes an operation is one number a lane (plan.h),
   so that is a comparison for each end of one and each begin of the other:
   nearly always one of each.
   Glossary.  temporary: memory that the graph's capture allocated and released,
   and whose address nobody else knows.  begin: a use of a temporary that no
   other use of it precedes.  end: one that precedes no other.
   Invariants: temporaries that share a byte are ordered, in the order of their
   first uses; a temporary has at most one begin and one end in each lane. */
#ifndef CGL_GRAPH_PLACE_H
#define CGL_GRAPH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cgl_temporary {
  size_t bytes;          /* not 0 */
  size_t at;             /* found: bytes from the begin */
  uint32_t first, last;  /* operations that use it, from 1; 0: none does */
  uint32_t begins, ends; /* lists in `uses`, from 1 */
} cgl_temporary;

typedef struct cgl_places {
  cgl_temporary *list;
  size_t count;
  size_t *order; /* by first use, then the larger first; those that are used */
  size_t nused;
  struct cgl_place_use {
    uint32_t op, next;
  } * uses;
  size_t nuses, uses_size;
  const uint32_t *lanes; /* by operation, the plan's */
  const uint32_t *rows;  /* by operation, what precedes it; the plan's */
  size_t stride;         /* of rows */
} cgl_places;

/* Room for so many temporaries; false without memory.  The caller keeps `lanes`
   and `rows` meanwhile, and frees in either case. */
bool cgl_places_reserve(cgl_places *places, size_t count, const uint32_t *lanes,
                        const uint32_t *rows, size_t stride);
void cgl_places_free(cgl_places *places);
/* Operation `op` uses temporary i, whose bytes are known; the operations in
   their order.  False without memory. */
bool cgl_places_use(cgl_places *places, size_t i, uint32_t op);
/* Finds a place for each; the bytes that they take together, SIZE_MAX without
   memory. */
size_t cgl_places_find(cgl_places *places);
/* The least that any choice of places could take: the most bytes of temporaries
   no two of which are ordered.  Of more than 512 temporaries, those that are
   in use at one time in the order of issue, which may be less.  SIZE_MAX
   without memory. */
size_t cgl_places_bound(const cgl_places *places);

#endif
