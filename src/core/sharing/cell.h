/* Cells: allocations that are used across captures, and whether what they
   hold is there.  All under the pool's `turns`. */
#ifndef CGL_CORE_SHARE_CELL_H
#define CGL_CORE_SHARE_CELL_H

#include "core/sharing/sharing.h"

struct cgl_cell {
  uint64_t number;
  CUdeviceptr address;
  size_t bytes;
  cgl_site made;
  cgl_buffer *buffer; /* while it lives; borrowed, points back */
  int inputs;         /* of shares that read it */
  /* Turns of eager writes and of shares that are gone. */
  uint64_t filled, spoiled;
  cgl_site spoiled_by;
  bool by_script; /* not a graph: it wrote to another buffer there */
  cgl_share **producers, **spoilers; /* borrowed: they part when they die */
  size_t nproducers, nspoilers, size;
  cgl_cell *next; /* in its pool */
};

/* What the turns so far have made of a cell. */
typedef struct cgl_content {
  uint64_t filled, spoiled; /* the latest turn of each; 0: never */
  cgl_site spoiled_by;      /* capture of the graph that did, */
  bool by_script;           /* or the script's line */
} cgl_content;

/* The cell of a use's allocation; NULL without memory. */
cgl_cell *cgl_cell_get(cgl_sharing *sharing, const cgl_use *use);
/* Drops it when nobody needs it any more. */
void cgl_cell_drop(cgl_sharing *sharing, cgl_cell *cell);
void cgl_cell_free(cgl_cell *cell); /* NULL is fine */
/* Room for so many more shares; false without memory. */
bool cgl_cell_reserve(cgl_cell *cell, size_t more);
bool cgl_cell_overlaps(const cgl_cell *cell, CUdeviceptr address, size_t bytes);
bool cgl_cell_spoiled_by(const cgl_cell *cell, const cgl_share *share);
/* The share dies; what its replays did stays. */
void cgl_cell_part(cgl_cell *cell, const cgl_share *share);
cgl_content cgl_cell_content(const cgl_cell *cell);

#endif
