/* Cells: allocations that are used across captures, and whether their content
   was overwritten.  All under the sharing's lock. */
#ifndef CGL_SHARING_CELL_PRIVATE_H
#define CGL_SHARING_CELL_PRIVATE_H

#include "core/sharing/sharing.h"

struct cgl_cell {
  uint64_t number; /* of the allocation */
  CUdeviceptr address;
  size_t bytes;
  cgl_site made;
  cgl_cell **holder;    /* the live buffer's field that points here, or NULL */
  uint64_t block;       /* number of that buffer's block */
  int inputs;           /* count of inputs of shares that refer to it */
  uint64_t filled;      /* latest write of the script or of an ended share */
  uint64_t overwritten; /* latest overwriting of these */
  cgl_site overwritten_by;
  bool by_script;          /* `overwritten_by` is the script's */
  cgl_share **producers;   /* borrowed: removed when they end */
  cgl_share **overwriters; /* borrowed: removed when they end */
  size_t nproducers, noverwriters, size;
  cgl_cell *next; /* in its pool */
};

/* The content of a cell, by all replays and eager writes so far. */
typedef struct cgl_content {
  uint64_t filled;         /* number of the latest write; 0: none */
  uint64_t overwritten;    /* number of the latest overwriting; 0: none */
  cgl_site overwritten_by; /* of the overwriting graph's capture, or of the
                              script's line */
  bool by_script;          /* it is the script's line */
} cgl_content;

/* The cell of an allocation; NULL without memory. */
cgl_cell *cgl_share_cell_get(cgl_sharing *sharing,
                             const cgl_allocation *allocation);
/* Frees a cell without a buffer and inputs. */
void cgl_share_cell_drop(cgl_sharing *sharing, cgl_cell *cell);
void cgl_share_cell_free(cgl_cell *cell); /* NULL is fine */
/* Makes room for `more` producers and overwriters; false without memory. */
bool cgl_share_cell_reserve(cgl_cell *cell, size_t more);
bool cgl_share_cell_overlaps(const cgl_cell *cell, CUdeviceptr address,
                             size_t bytes);
bool cgl_share_cell_overwritten_by(const cgl_cell *cell,
                                   const cgl_share *share);
/* Removes a share that ends; its writes stay noted. */
void cgl_share_cell_remove(cgl_cell *cell, const cgl_share *share);
cgl_content cgl_share_cell_content(const cgl_cell *cell);

#endif
