/* Cells: which graphs filled them, which overwrote them, and when. */
#include "core/sharing/cell_private.h"

#include <stdlib.h>
#include <string.h>


void cgl_share_cell_free(cgl_cell *cell) {
  if (!cell)
    return;
  free(cell->producers);
  free(cell->overwriters);
  free(cell);
}


bool cgl_share_cell_reserve(cgl_cell *cell, size_t more) {
  size_t most = cell->nproducers > cell->noverwriters ? cell->nproducers
                                                      : cell->noverwriters;
  if (most + more <= cell->size)
    return true;
  size_t size = 2 * (most + more);
  cgl_share **producers =
      realloc(cell->producers, size * sizeof *cell->producers);
  if (producers)
    cell->producers = producers;
  cgl_share **overwriters =
      realloc(cell->overwriters, size * sizeof *overwriters);
  if (overwriters)
    cell->overwriters = overwriters;
  if (!producers || !overwriters)
    return false;
  cell->size = size;
  return true;
}


bool cgl_share_cell_overlaps(const cgl_cell *cell, CUdeviceptr address,
                             size_t bytes) {
  return address < cell->address + cell->bytes &&
         cell->address < address + bytes;
}


static size_t share_index(cgl_share *const *shares, size_t n,
                          const cgl_share *share) {
  size_t i = 0;
  while (i < n && shares[i] != share)
    i++;
  return i;
}


bool cgl_share_cell_overwritten_by(const cgl_cell *cell,
                                   const cgl_share *share) {
  return share_index(cell->overwriters, cell->noverwriters, share) <
         cell->noverwriters;
}


void cgl_share_cell_remove(cgl_cell *cell, const cgl_share *share) {
  size_t i = share_index(cell->producers, cell->nproducers, share);
  if (i < cell->nproducers) {
    cell->producers[i] = cell->producers[--cell->nproducers];
    if (share->filled > cell->filled)
      cell->filled = share->filled;
  }
  i = share_index(cell->overwriters, cell->noverwriters, share);
  if (i < cell->noverwriters) {
    cell->overwriters[i] = cell->overwriters[--cell->noverwriters];
    if (share->replay > cell->overwritten) {
      cell->overwritten = share->replay;
      cell->overwritten_by = share->begun;
      cell->by_script = false;
    }
  }
}


cgl_content cgl_share_cell_content(const cgl_cell *cell) {
  cgl_content content = {cell->filled, cell->overwritten, cell->overwritten_by,
                         cell->by_script};
  for (size_t i = 0; i < cell->nproducers; i++)
    if (cell->producers[i]->filled > content.filled)
      content.filled = cell->producers[i]->filled;
  for (size_t i = 0; i < cell->noverwriters; i++)
    if (cell->overwriters[i]->replay > content.overwritten) {
      content.overwritten = cell->overwriters[i]->replay;
      content.overwritten_by = cell->overwriters[i]->begun;
      content.by_script = false;
    }
  return content;
}
