/* Cells: which graphs filled them, which overwrote them, and when. */
#include "core/sharing/cell_private.h"

#include <stdlib.h>
#include <string.h>


void cgl_share_cell_free(cgl_cell *cell) {
  if (cell)
    free(cell->writers);
  free(cell);
}


bool cgl_share_cell_reserve(cgl_cell *cell, size_t more) {
  if (cell->nwriters + more <= cell->size)
    return true;
  const size_t size = 2 * (cell->nwriters + more);
  struct cgl_writer *writers = realloc(cell->writers, size * sizeof *writers);
  if (!writers)
    return false;
  cell->writers = writers;
  cell->size = size;
  return true;
}


bool cgl_share_overlaps(const cgl_allocation *a, const cgl_allocation *b) {
  return a->address < b->address + b->bytes &&
         b->address < a->address + a->bytes;
}


/* What is in the memory after the replays so far of a share. */
static void content_add(cgl_content *content, const struct cgl_writer *writer) {
  const cgl_share *share = writer->share;
  if (writer->fills && share->filled > content->filled)
    content->filled = share->filled;
  if (!writer->fills && share->replay > content->overwritten) {
    content->overwritten = share->replay;
    content->overwritten_by = share->begun;
    content->by_script = false;
  }
}


void cgl_share_cell_remove(cgl_cell *cell, const cgl_share *share) {
  for (size_t i = 0; i < cell->nwriters; i++)
    if (cell->writers[i].share == share) {
      content_add(&cell->content, &cell->writers[i]);
      cell->writers[i] = cell->writers[--cell->nwriters];
      return;
    }
}


cgl_content cgl_share_cell_content(const cgl_cell *cell) {
  cgl_content content = cell->content;
  for (size_t i = 0; i < cell->nwriters; i++)
    content_add(&content, &cell->writers[i]);
  return content;
}
