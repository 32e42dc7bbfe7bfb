/* Temporary memory. */
#include "core/graph/temporary.h"
#include "core/graph/build.h"

#include <stdlib.h>
#include <string.h>

/* Beyond all memory of a device. */
#define APART ((CUdeviceptr)1 << 62)


size_t cgl_temporaries_bytes(const cgl_allocation *allocation) {
  return (allocation->bytes + CGL_POOL_UNIT - 1) / CGL_POOL_UNIT *
         CGL_POOL_UNIT;
}


/* ---- what may be moved ---- */

/* What bodies use stays: there, one node stands for many uses. */
static void body_fix(const cgl_recording *body) {
  cgl_allocation *allocation;
  const cgl_recording *inner;
  for (size_t i = 0; (allocation = cgl_record_allocation(body, i)); i++)
    atomic_store(&allocation->fixed, true);
  for (size_t i = 0; (inner = cgl_record_body(body, i)); i++)
    body_fix(inner);
}


static size_t record_count_ranges(const cgl_recording *recording) {
  size_t most = 0;
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (op->ranges + op->nranges > most)
      most = op->ranges + op->nranges;
  }
  return most;
}


/* Notes where the addresses are, and fixes allocations with others. */
static void record_find_values(const cgl_recording *recording, size_t *values) {
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_range *ranges = cgl_record_ranges(recording, op);
    for (uint32_t r = 0; r < op->nranges; r++) {
      if (!ranges[r].allocation)
        continue;
      const size_t at = op->predication || op->handle
                            ? SIZE_MAX
                            : cgl_build_find_address(recording, op, &ranges[r]);
      if (at != SIZE_MAX)
        values[op->ranges + r] = op->values + at;
      else
        atomic_store(
            &cgl_record_allocation(recording, ranges[r].allocation - 1)->fixed,
            true);
    }
  }
}


void cgl_temporaries_mark(cgl_recording *recording, uint64_t born) {
  const cgl_recording *body;
  cgl_allocation *a;
  for (size_t i = 0; (body = cgl_record_body(recording, i)); i++)
    body_fix(body);
  for (size_t i = 0; (a = cgl_record_allocation(recording, i)); i++)
    if (a->born == born)
      a->temporary = false;
  /* A recording may have one twice, when another capture used it between. */
  for (size_t i = 0; (a = cgl_record_allocation(recording, i)); i++)
    if (a->born == born && a->temporary)
      atomic_store(&a->fixed, true);
    else if (a->born == born)
      a->temporary = true;
  for (size_t i = 0; (a = cgl_record_allocation(recording, i)); i++)
    if (a->born == born)
      a->temporary = atomic_load(&a->over) && !atomic_load(&a->fixed);
}


bool cgl_temporaries_list(cgl_temporaries *t, cgl_recording *recording,
                          uint64_t born) {
  CUdeviceptr apart = APART;
  size_t n = 0;
  while (cgl_record_allocation(recording, n))
    n++;
  *t = (cgl_temporaries){
      .recording = recording, .born = born, .nallocations = n};
  t->number = calloc(n + 1, sizeof *t->number);
  t->slots = calloc(n + 1, sizeof *t->slots);
  t->apart = calloc(n + 1, sizeof *t->apart);
  if (!t->number || !t->slots || !t->apart)
    return false;
  for (size_t i = 0; i < n; i++) {
    const cgl_allocation *a = cgl_record_allocation(recording, i);
    if (!a->temporary || a->born != born)
      continue;
    t->slots[t->count] = i;
    t->apart[t->count] = apart;
    t->number[i] = (uint32_t)++t->count;
    apart += cgl_temporaries_bytes(a);
  }
  return true;
}


bool cgl_temporaries_find(cgl_temporaries *t, cgl_recording *recording,
                          uint64_t born) {
  size_t *at = calloc(record_count_ranges(recording) + 1, sizeof *at);
  *t = (cgl_temporaries){0};
  if (!at)
    return false;
  record_find_values(recording, at);
  cgl_temporaries_mark(recording, born);
  const bool room = cgl_temporaries_list(t, recording, born);
  t->at = at;
  return room;
}


void cgl_temporaries_free(cgl_temporaries *t) {
  free(t->number);
  free(t->slots);
  free(t->apart);
  free(t->at);
  cgl_places_free(&t->places);
}


/* ---- moving ---- */

/* The bytes of what was allocated and released and stays, in bodies and graphs
   inside the graph too, which may have the same pool: a begin and an end each.
   Without `bounds` counts what may be released meanwhile, too. */
static size_t record_find_fixed(const cgl_recording *recording, uint64_t born,
                                CUdeviceptr *bounds) {
  const cgl_recording *body;
  const cgl_allocation *a;
  size_t n = 0;
  for (size_t i = 0; (a = cgl_record_allocation(recording, i)); i++) {
    if ((a->temporary && a->born == born) || (bounds && !atomic_load(&a->over)))
      continue;
    if (bounds) {
      bounds[2 * n] = a->address;
      bounds[2 * n + 1] = a->address + a->bytes;
    }
    n++;
  }
  for (size_t i = 0; (body = cgl_record_body(recording, i)); i++)
    n += record_find_fixed(body, born, bounds ? bounds + 2 * n : NULL);
  return n;
}


static const char no_place[] = "no memory to place the graph's memory";

cgl_status cgl_temporaries_reserve(const cgl_temporaries *t, cgl_pool *pool,
                                   cgl_stream *stream, size_t bytes,
                                   const char *operation, CUdeviceptr *base) {
  const size_t nbounds = record_find_fixed(t->recording, t->born, NULL);
  CUdeviceptr *bounds = calloc(2 * nbounds + 1, sizeof *bounds);
  cgl_status status = CGL_OK;
  *base = 0;
  if (!bounds)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, no_place);
  record_find_fixed(t->recording, t->born, bounds);
  if (bytes)
    status =
        cgl_pool_place(pool, stream, bytes, bounds, nbounds, operation, base);
  free(bounds);
  return status;
}


cgl_status cgl_temporaries_move(cgl_temporaries *t, CUdeviceptr base,
                                const char *operation) {
  CUdeviceptr *to = calloc(t->nallocations + 1, sizeof *to);
  if (!to)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, no_place);
  for (size_t i = 0; i < t->count; i++)
    to[t->slots[i]] = base + t->places.list[i].at;
  cgl_record_relocate(t->recording, to, t->at);
  free(to);
  return CGL_OK;
}


/* ---- sums ---- */

static int allocation_compare(const void *a, const void *b) {
  const cgl_allocation *x = *(cgl_allocation *const *)a;
  const cgl_allocation *y = *(cgl_allocation *const *)b;
  if (x->address != y->address)
    return x->address < y->address ? -1 : 1;
  return x < y ? -1 : x > y;
}


/* Adds the allocations of a recording and its bodies to `list`, unless it is
   NULL; how many there are. */
static size_t record_list(const cgl_recording *recording, uint64_t born,
                          bool all, const cgl_allocation **list) {
  const cgl_recording *body;
  const cgl_allocation *a;
  size_t n = 0;
  for (size_t i = 0; (a = cgl_record_allocation(recording, i)); i++) {
    if (a->born != born || (a->temporary && !all))
      continue;
    if (list)
      list[n] = a;
    n++;
  }
  for (size_t i = 0; (body = cgl_record_body(recording, i)); i++)
    n += record_list(body, born, all, list ? list + n : NULL);
  return n;
}


cgl_status cgl_temporaries_sum(const cgl_recording *recording, uint64_t born,
                               bool all, size_t *asked, size_t *taken) {
  const size_t n = record_list(recording, born, all, NULL);
  const cgl_allocation **list = malloc((n + 1) * sizeof *list);
  CUdeviceptr end = 0;
  *asked = *taken = 0;
  if (!list)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "graph:plan", "no memory for a plan");
  record_list(recording, born, all, list);
  qsort(list, n, sizeof *list, allocation_compare);
  for (size_t i = 0; i < n; i++) {
    const CUdeviceptr from = list[i]->address;
    const CUdeviceptr to = from + cgl_temporaries_bytes(list[i]);
    const CUdeviceptr begin = from > end ? from : end;
    if (i && list[i] == list[i - 1])
      continue;
    *asked += to - from;
    if (to > begin)
      *taken += to - begin;
    end = to > end ? to : end;
  }
  free(list);
  return CGL_OK;
}
