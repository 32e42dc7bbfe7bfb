/* Cells: allocations that are used across captures, and whether what they
   hold is there.  All under the sharing's lock. */
#ifndef CGL_SHARING_CELL_PRIVATE_H
#define CGL_SHARING_CELL_PRIVATE_H

#include "core/sharing/sharing.h"

/* What replays and eager writes have made of a cell. */
typedef struct cgl_content {
  uint64_t filled;         /* number of the latest write; 0: none */
  uint64_t overwritten;    /* number of the latest overwriting; 0: none */
  cgl_site overwritten_by; /* of the overwriting graph's capture, or of the
                              script's line */
  bool by_script;          /* it is the script's line */
} cgl_content;

struct cgl_cell {
  cgl_allocation memory;
  cgl_cell **holder;   /* the field of the live buffer that points here */
  uint64_t block;      /* number of its block */
  int inputs;          /* of shares that read it */
  cgl_content content; /* by eager writes and by shares that are gone */
  struct cgl_writer {
    cgl_share *share; /* borrowed: it parts at its end */
    bool fills;       /* a producer; else an overwriter */
  } * writers;
  size_t nwriters, size;
  cgl_cell *next; /* in its pool */
};

/* The cell of an allocation; NULL without memory. */
cgl_cell *cgl_share_cell_get(cgl_sharing *sharing,
                             const cgl_allocation *allocation);
/* Frees a cell without a buffer and inputs. */
void cgl_share_cell_drop(cgl_sharing *sharing, cgl_cell *cell);
bool cgl_share_overlaps(const cgl_allocation *a, const cgl_allocation *b);
cgl_content cgl_share_cell_content(const cgl_cell *cell);

#endif
