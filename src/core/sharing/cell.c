/* Cells: who filled them, who spoiled them, when. */
#include "core/sharing/cell.h"

#include <stdlib.h>
#include <string.h>


void cgl_cell_free(cgl_cell *cell) {
  if (!cell)
    return;
  free(cell->producers);
  free(cell->spoilers);
  free(cell);
}


bool cgl_cell_reserve(cgl_cell *cell, size_t more) {
  size_t most =
      cell->nproducers > cell->nspoilers ? cell->nproducers : cell->nspoilers;
  if (most + more <= cell->size)
    return true;
  size_t size = 2 * (most + more);
  cgl_share **producers =
      realloc(cell->producers, size * sizeof *cell->producers);
  if (producers)
    cell->producers = producers;
  cgl_share **spoilers = realloc(cell->spoilers, size * sizeof *spoilers);
  if (spoilers)
    cell->spoilers = spoilers;
  if (!producers || !spoilers)
    return false;
  cell->size = size;
  return true;
}


bool cgl_cell_overlaps(const cgl_cell *cell, CUdeviceptr address,
                       size_t bytes) {
  return address < cell->address + cell->bytes &&
         cell->address < address + bytes;
}


static size_t find(cgl_share *const *shares, size_t n, const cgl_share *share) {
  size_t i = 0;
  while (i < n && shares[i] != share)
    i++;
  return i;
}


bool cgl_cell_spoiled_by(const cgl_cell *cell, const cgl_share *share) {
  return find(cell->spoilers, cell->nspoilers, share) < cell->nspoilers;
}


void cgl_cell_part(cgl_cell *cell, const cgl_share *share) {
  size_t i = find(cell->producers, cell->nproducers, share);
  if (i < cell->nproducers) {
    cell->producers[i] = cell->producers[--cell->nproducers];
    if (share->filled > cell->filled)
      cell->filled = share->filled;
  }
  i = find(cell->spoilers, cell->nspoilers, share);
  if (i < cell->nspoilers) {
    cell->spoilers[i] = cell->spoilers[--cell->nspoilers];
    if (share->turn > cell->spoiled) {
      cell->spoiled = share->turn;
      cell->spoiled_by = share->begun;
      cell->by_script = false;
    }
  }
}


cgl_content cgl_cell_content(const cgl_cell *cell) {
  cgl_content content = {cell->filled, cell->spoiled, cell->spoiled_by,
                         cell->by_script};
  for (size_t i = 0; i < cell->nproducers; i++)
    if (cell->producers[i]->filled > content.filled)
      content.filled = cell->producers[i]->filled;
  for (size_t i = 0; i < cell->nspoilers; i++)
    if (cell->spoilers[i]->turn > content.spoiled) {
      content.spoiled = cell->spoilers[i]->turn;
      content.spoiled_by = cell->spoilers[i]->begun;
      content.by_script = false;
    }
  return content;
}
