/* Copies and fills: the moving of bytes, over several workers when that pays.
 */
#include "driver/host/run/run.h"

#include <string.h>

enum { SPAN_BYTES = 256 << 10 };


/* One parallel loop over rows, or over the spans of a single row. */
typedef struct mover {
  void (*move)(const struct mover *m, uint64_t first, uint64_t last);
  const CUDA_MEMCPY3D *copy;
  const CUDA_MEMSET_NODE_PARAMS_v2 *set;
  const char *from;
  char *to;
  host_isolation *isolation;
  atomic_int taken;
  host_fault fault;
} mover;

typedef struct stretch {
  const mover *mover;
  uint64_t first, last;
} stretch;


static void run_stretch(void *argument) {
  const stretch *s = argument;
  s->mover->move(s->mover, s->first, s->last);
}


static void run_guarded(void *context, uint64_t first, uint64_t last) {
  mover *m = context;
  stretch s = {m, first, last};
  host_fault fault;
  if (!host_guard_run(run_stretch, &s, NULL, &fault) &&
      !atomic_exchange(&m->taken, 1))
    m->fault = fault;
}


static CUresult run_mover(mover *m, uint64_t count, uint64_t chunk,
                          host_cost *cost, const char *name) {
  host_parallel_for(count, chunk, run_guarded, m, cost);
  return atomic_load(&m->taken) ? host_fail_fault(name, &m->fault, m->isolation)
                                : CUDA_SUCCESS;
}


static void move_bytes(const mover *m, uint64_t first, uint64_t last) {
  memmove(m->to + first, m->from + first, last - first);
}


static void move_rows(const mover *m, uint64_t first, uint64_t last) {
  const CUDA_MEMCPY3D *c = m->copy;
  for (uint64_t i = first; i < last; i++) {
    size_t z = i / c->Height, y = i % c->Height;
    memmove(m->to + (z * c->dstHeight + y) * c->dstPitch,
            m->from + (z * c->srcHeight + y) * c->srcPitch, c->WidthInBytes);
  }
}


CUresult host_move_copy(const CUDA_MEMCPY3D *c, host_isolation *isolation) {
  static host_cost byte_cost;
  const char *from = c->srcMemoryType == CU_MEMORYTYPE_HOST
                         ? c->srcHost
                         : host_pointer(c->srcDevice);
  char *to = c->dstMemoryType == CU_MEMORYTYPE_HOST
                 ? c->dstHost
                 : host_pointer(c->dstDevice);
  mover m = {.copy = c, .isolation = isolation};
  m.from =
      from + (c->srcZ * c->srcHeight + c->srcY) * c->srcPitch + c->srcXInBytes;
  m.to = to + (c->dstZ * c->dstHeight + c->dstY) * c->dstPitch + c->dstXInBytes;
  uint64_t rows = (uint64_t)c->Height * c->Depth;
  if (rows == 1) {
    m.move = move_bytes;
    return run_mover(&m, c->WidthInBytes, SPAN_BYTES, &byte_cost, "copy");
  }
  host_cost unknown = 0; /* rows are of any length */
  m.move = move_rows;
  return run_mover(&m, rows, 1 + SPAN_BYTES / c->WidthInBytes, &unknown,
                   "copy");
}


static void fill_row(char *to, unsigned value, unsigned size, size_t width) {
  if (size == 1) {
    memset(to, (int)(value & 0xff), width);
  } else if (size == 2) {
    uint16_t v = (uint16_t)value, *p = (uint16_t *)(void *)to;
    for (size_t i = 0; i < width; i++)
      p[i] = v;
  } else {
    uint32_t v = value, *p = (uint32_t *)(void *)to;
    for (size_t i = 0; i < width; i++)
      p[i] = v;
  }
}


static void fill_elements(const mover *m, uint64_t first, uint64_t last) {
  unsigned size = m->set->elementSize;
  fill_row(m->to + first * size, m->set->value, size, last - first);
}


static void fill_rows(const mover *m, uint64_t first, uint64_t last) {
  for (uint64_t y = first; y < last; y++)
    fill_row(m->to + y * m->set->pitch, m->set->value, m->set->elementSize,
             m->set->width);
}


CUresult host_move_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *set,
                        host_isolation *isolation) {
  static host_cost costs[3]; /* of an element, by its size */
  mover m = {.set = set, .to = host_pointer(set->dst), .isolation = isolation};
  if (set->height <= 1) {
    m.move = fill_elements;
    return run_mover(&m, set->width, SPAN_BYTES / set->elementSize,
                     &costs[set->elementSize / 2], "memset");
  }
  host_cost unknown = 0; /* rows are of any length */
  m.move = fill_rows;
  return run_mover(&m, set->height,
                   1 + SPAN_BYTES / (set->width * set->elementSize), &unknown,
                   "memset");
}
