/* The temporary memory of a graph in data order: found, and moved to places
   that follow from the edges (place.h).
   Invariants: an allocation is moved only when every address of it is known,
   which is one argument of one operation each; what bodies of child graphs and
   conditional nodes use, what the script still holds, or has the address of, or
   used outside the capture, stays where it is. */
#ifndef CGL_GRAPH_TEMPORARY_H
#define CGL_GRAPH_TEMPORARY_H

#include "core/copy/copy.h"
#include "core/graph/graph.h"
#include "core/graph/place.h"

typedef struct cgl_temporaries {
  cgl_recording *recording;
  uint64_t born; /* of the allocations that may be moved */
  size_t nallocations, count;
  uint32_t *number;   /* by allocation: its temporary, from 1; 0: none */
  size_t *slots;      /* by temporary: its allocation */
  CUdeviceptr *apart; /* by temporary: an address that no other memory has */
  size_t *at;         /* by range: where its address lies in the values */
  cgl_places places;
} cgl_temporaries;

/* Of a capture that has ended: marks the allocations that are temporary. */
void cgl_temporaries_mark(cgl_recording *recording, uint64_t born);
/* Marks them, unless an address is not known, and finds the addresses.  False
   without memory; the caller frees in either case. */
bool cgl_temporaries_find(cgl_temporaries *t, cgl_recording *recording,
                          uint64_t born);
/* Those that are marked, without the addresses. */
bool cgl_temporaries_list(cgl_temporaries *t, cgl_recording *recording,
                          uint64_t born);
void cgl_temporaries_free(cgl_temporaries *t);
/* The temporary, from 1, that a range of the recording is in; 0: none. */
static inline uint32_t cgl_temporaries_of(const cgl_temporaries *t,
                                          const cgl_range *range) {
  return range->allocation && t->count ? t->number[range->allocation - 1] : 0;
}
/* Takes scratch of `bytes` of the pool for them, at *base; none with 0, which
   leaves 0.  The graph keeps it as what its capture released. */
cgl_status cgl_temporaries_reserve(const cgl_temporaries *t, cgl_pool *pool,
                                   cgl_stream *stream, size_t bytes,
                                   const char *operation, CUdeviceptr *base);
/* Moves all to their places from `base` on. */
cgl_status cgl_temporaries_move(cgl_temporaries *t, CUdeviceptr base,
                                const char *operation);
/* What an allocation takes of its pool. */
size_t cgl_temporaries_bytes(const cgl_allocation *allocation);
/* Bytes of the memory that the capture allocated, of bodies too; without `all`,
   of what is not temporary.  *asked: summed up; *taken: each byte once. */
cgl_status cgl_temporaries_sum(const cgl_recording *recording, uint64_t born,
                               bool all, size_t *asked, size_t *taken);

#endif
