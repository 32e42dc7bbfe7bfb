/* The arrays of a recording, and what is asked of them. */
#include "core/record/recording_private.h"

#include <stdlib.h>
#include <string.h>

enum {
  SPARE = 4 << 20,   /* most bytes of the spare arrays */
  LITTLE = 16 << 10, /* bytes that a graph may always hold */
  SLACK = 4          /* a graph holds at most so many times what it needs */
};

const char *const cgl_record_words[] = {
#define X(constant, word, type) word,
    CGL_OPS(X)
#undef X
};


/* ---- arrays ---- */

static bool record_grow(void **array, size_t *size, size_t wanted,
                        size_t element) {
  if (wanted <= *size)
    return true;
  size_t bigger = *size ? 2 * *size : 16;
  if (bigger < wanted)
    bigger = wanted;
  void *grown = realloc(*array, bigger * element);
  if (!grown)
    return false;
  *array = grown;
  *size = bigger;
  return true;
}

#define GROW(array, extra)                                          \
  record_grow((void **)&recording->array, &recording->array##_size, \
              recording->n##array + (extra), sizeof *recording->array)


cgl_status cgl_issue_reserve(cgl_recording *recording, const cgl_room *room,
                             const char *operation) {
  if (GROW(ops, 1) && GROW(ranges, room->ranges) &&
      GROW(values, room->values) && GROW(kept, room->kept) &&
      GROW(allocations, room->kept) && GROW(bodies, room->bodies) &&
      GROW(uses, room->uses) && GROW(inputs, room->kept))
    return CGL_OK;
  return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                  "no host memory to note the operation");
}


static size_t record_bytes(const cgl_recording *recording) {
  size_t bytes = 0;
#define X(array) bytes += recording->array##_size * sizeof *recording->array;
  CGL_RECORD_ARRAYS(X)
#undef X
  return bytes;
}


static void record_free_arrays(cgl_recording *recording) {
#define X(array) free(recording->array);
  CGL_RECORD_ARRAYS(X)
#undef X
}


static void record_swap_arrays(cgl_recording *a, cgl_recording *b) {
#define X(array)                          \
  {                                       \
    void *array_ = a->array;              \
    const size_t size_ = a->array##_size; \
    a->array = b->array;                  \
    a->array##_size = b->array##_size;    \
    b->array = array_;                    \
    b->array##_size = size_;              \
  }
  CGL_RECORD_ARRAYS(X)
#undef X
}


/* ---- the spare ---- */

typedef struct record_part {
  cgl_part part;
  cgl_recording spare; /* under the context's lock: only its arrays */
} record_part;


static void record_part_end(cgl_context *context, cgl_part *part) {
  (void)context;
  record_free_arrays(&((record_part *)part)->spare);
  free(part);
}


/* Makes the arrays the spare if they are larger, and frees the lesser ones. */
static void record_pass_on_arrays(cgl_recording *recording) {
  const size_t bytes = record_bytes(recording);
  cgl_context *context = recording->context;
  record_part *part = (record_part *)cgl_context_part(context, CGL_PART_RECORD);
  pthread_mutex_lock(&context->lock);
  if (part && bytes <= SPARE && bytes > record_bytes(&part->spare))
    record_swap_arrays(recording, &part->spare);
  pthread_mutex_unlock(&context->lock);
  record_free_arrays(recording);
}


cgl_recording *cgl_record_new(cgl_context *context) {
  record_part *part = (record_part *)cgl_context_make_part(
      context, CGL_PART_RECORD, sizeof *part,
      (cgl_part){.end = record_part_end}, "graph:capture_begin");
  cgl_recording *recording = part ? calloc(1, sizeof *recording) : NULL;
  if (!recording)
    return NULL;
  atomic_init(&recording->references, 1);
  recording->context = context;
  pthread_mutex_lock(&context->lock);
  record_swap_arrays(recording, &part->spare);
  pthread_mutex_unlock(&context->lock);
  if (GROW(kept, 1))
    return recording;
  cgl_record_release(recording);
  return NULL;
}


/* ---- references ---- */

cgl_recording *cgl_record_retain(cgl_recording *recording) {
  atomic_fetch_add_explicit(&recording->references, 1, memory_order_relaxed);
  return recording;
}


void cgl_record_release(cgl_recording *recording) {
  if (!recording || atomic_fetch_sub_explicit(&recording->references, 1,
                                              memory_order_acq_rel) != 1)
    return;
  if (recording->summary) /* it borrows from the others */
    cgl_object_release(recording->summary);
  for (size_t i = 0; i < recording->nkept; i++)
    cgl_object_release(recording->kept[i]);
  for (size_t i = 0; i < recording->nallocations; i++)
    cgl_object_release(&recording->allocations[i]->object);
  for (size_t i = 0; i < recording->nbodies; i++)
    cgl_record_release(recording->bodies[i]);
  for (size_t i = 0; i < recording->ninputs; i++) {
    cgl_object_release(recording->inputs[i].input);
    if (recording->inputs[i].bound)
      cgl_object_release(recording->inputs[i].bound);
  }
  if (recording->scopes)
    cgl_object_release(&recording->scopes->object);
  free(recording->marks);
  free(recording->edges);
  free(recording->first);
  free(recording->footprint);
  record_pass_on_arrays(recording);
  free(recording);
}


/* A copy of the first bytes of an array; NULL for none of them, too. */
static void *record_copy(const void *array, size_t bytes) {
  void *copy = bytes && array ? malloc(bytes) : NULL;
  return copy ? memcpy(copy, array, bytes) : NULL;
}


/* Replaces the arrays of `to`, which are borrowed, by copies of just the size;
   false without memory. */
static bool record_copy_arrays(cgl_recording *to) {
  bool made = true;
#define X(array)                                                        \
  to->array##_size = to->n##array;                                      \
  to->array = record_copy(to->array, to->n##array * sizeof *to->array); \
  made = made && (to->array || !to->n##array);
  CGL_RECORD_ARRAYS(X)
#undef X
  if (!made)
    record_free_arrays(to);
  return made;
}


void cgl_record_tighten(cgl_recording *recording) {
  const size_t held = record_bytes(recording);
  size_t needed = 0;
#define X(array) needed += recording->n##array * sizeof *recording->array;
  CGL_RECORD_ARRAYS(X)
#undef X
  if (held <= LITTLE || held / SLACK <= needed)
    return;
  cgl_recording tight = *recording;
  if (!record_copy_arrays(&tight))
    return;
  record_swap_arrays(recording, &tight);
  record_pass_on_arrays(&tight);
}


bool cgl_record_own(cgl_recording **recording) {
  cgl_recording *shared = *recording;
  if (atomic_load(&shared->references) == 1)
    return true;
  cgl_recording *own = malloc(sizeof *own);
  if (!own)
    return false;
  *own = *shared;
  atomic_init(&own->references, 1);
  own->footprint = NULL;
  own->marks = NULL;
  own->nmarks = 0;
  const size_t n = own->nops;
  own->first = record_copy(own->first, (n + 1) * sizeof *own->first);
  own->edges = own->first
                   ? record_copy(own->edges, own->first[n] * sizeof *own->edges)
                   : NULL;
  const bool edges =
      !shared->first || (own->first && (own->edges || !own->first[n]));
  if (!edges || !record_copy_arrays(own)) {
    free(own->first);
    free(own->edges);
    free(own);
    return false;
  }
  if (own->scopes)
    cgl_object_retain(&own->scopes->object);
  for (size_t i = 0; i < own->nkept; i++)
    cgl_object_retain(own->kept[i]);
  for (size_t i = 0; i < own->nallocations; i++)
    cgl_object_retain(&own->allocations[i]->object);
  for (size_t i = 0; i < own->nbodies; i++)
    cgl_record_retain(own->bodies[i]);
  for (size_t i = 0; i < own->ninputs; i++) {
    cgl_object_retain(own->inputs[i].input);
    if (own->inputs[i].bound)
      cgl_object_retain(own->inputs[i].bound);
  }
  if (own->summary)
    cgl_object_retain(own->summary);
  *recording = own;
  cgl_record_release(shared);
  return true;
}


uint32_t cgl_record_add_allocation(cgl_recording *recording,
                                   cgl_allocation *allocation) {
  size_t slot = atomic_load_explicit(&allocation->slot, memory_order_relaxed);
  if (slot >= recording->nallocations ||
      recording->allocations[slot] != allocation) {
    slot = recording->nallocations++;
    cgl_object_retain(&allocation->object);
    recording->allocations[slot] = allocation;
    atomic_store_explicit(&allocation->slot, (unsigned)slot,
                          memory_order_relaxed);
  }
  return (uint32_t)slot + 1;
}


void cgl_record_keep(cgl_recording *recording, cgl_object *object,
                     uint64_t serial) {
  if (atomic_load_explicit(&object->retained_by, memory_order_relaxed) ==
      serial)
    return;
  atomic_store_explicit(&object->retained_by, serial, memory_order_relaxed);
  cgl_object_retain(object);
  recording->kept[recording->nkept++] = object;
}


/* ---- content ---- */

size_t cgl_record_count(const cgl_recording *recording) {
  return recording->nops;
}


const cgl_op *cgl_record_op(const cgl_recording *recording, size_t index) {
  return &recording->ops[index];
}


const cgl_range *cgl_record_ranges(const cgl_recording *recording,
                                   const cgl_op *op) {
  return recording->ranges + op->ranges;
}


const cgl_param_use *cgl_record_uses(const cgl_recording *recording,
                                     const cgl_op *op) {
  return &recording->uses[op->uses];
}


const unsigned char *cgl_record_values(const cgl_recording *recording,
                                       const cgl_op *op) {
  return recording->values + op->values;
}


cgl_object *cgl_record_kept(const cgl_recording *recording, size_t index) {
  if (index < recording->nkept)
    return recording->kept[index];
  index -= recording->nkept;
  for (size_t i = 0; i < recording->ninputs; i++)
    if (recording->inputs[i].bound && !index--)
      return recording->inputs[i].bound;
  return NULL;
}


const cgl_recording *cgl_record_body(const cgl_recording *recording,
                                     size_t index) {
  return index < recording->nbodies ? recording->bodies[index] : NULL;
}


const cgl_recording *const *cgl_record_bodies(const cgl_recording *recording,
                                              const cgl_op *op) {
  return op->body
             ? (const cgl_recording *const *)recording->bodies + op->body - 1
             : NULL;
}


CUgraphConditionalNodeType
cgl_record_conditional_type(const cgl_recording *recording, const cgl_op *op) {
  CUgraphConditionalNodeType type;
  memcpy(&type, cgl_record_values(recording, op), sizeof type);
  return type;
}


bool cgl_record_has(const cgl_recording *recording, cgl_op_kind kind) {
  for (size_t i = 0; i < recording->nops; i++)
    if (recording->ops[i].kind == kind)
      return true;
  for (size_t i = 0; i < recording->nbodies; i++)
    if (cgl_record_has(recording->bodies[i], kind))
      return true;
  return false;
}


cgl_allocation *cgl_record_allocation(const cgl_recording *recording,
                                      size_t index) {
  return index < recording->nallocations ? recording->allocations[index] : NULL;
}


size_t cgl_record_noff(const cgl_recording *recording) {
  return recording->noff;
}


bool cgl_record_is_outdated(const cgl_recording *recording) {
  return recording->outdated;
}


cgl_object *cgl_record_summary(const cgl_recording *recording) {
  return recording->summary;
}


void cgl_record_set_summary(cgl_recording *recording, cgl_object *summary) {
  if (recording->summary)
    cgl_object_release(recording->summary);
  recording->summary = summary;
  recording->outdated = false;
}


/* ---- memory ---- */

static int range_compare(const void *a, const void *b) {
  CUdeviceptr x = ((const cgl_range *)a)->address;
  CUdeviceptr y = ((const cgl_range *)b)->address;
  return x < y ? -1 : x > y;
}


/* Sorts the ranges and joins those that overlap or touch; how many are left. */
static size_t ranges_merge(cgl_range *ranges, size_t n) {
  size_t merged = 0;
  qsort(ranges, n, sizeof *ranges, range_compare);
  for (size_t i = 0; i < n; i++) {
    cgl_range *last = &ranges[merged ? merged - 1 : 0];
    CUdeviceptr end = ranges[i].address + ranges[i].bytes;
    if (!merged || ranges[i].address > last->address + last->bytes) {
      ranges[merged++] = ranges[i];
      continue;
    }
    if (end > last->address + last->bytes)
      last->bytes = end - last->address;
    last->write |= ranges[i].write;
  }
  return merged;
}


/* Most ranges that the footprint can have; 0: anything may be touched. */
static size_t footprint_bound(const cgl_recording *recording) {
  size_t count, most = recording->nranges + 1;
  for (size_t i = 0; i < recording->nops; i++)
    if (recording->ops[i].kind == CGL_OP_FOREIGN)
      return 0;
  for (size_t i = 0; i < recording->nbodies; i++) {
    if (!cgl_record_footprint(recording->bodies[i], &count))
      return 0;
    most += count;
  }
  return most;
}


const cgl_range *cgl_record_footprint(const cgl_recording *recording_,
                                      size_t *count) {
  cgl_recording *recording = (cgl_recording *)recording_;
  if (!recording->footprint) {
    const size_t most = footprint_bound(recording);
    size_t n = 0;
    cgl_range *ranges = malloc((most ? most : 1) * sizeof *ranges);
    if (!ranges)
      return NULL;
    if (!most)
      ranges[n++] = (cgl_range){.bytes = SIZE_MAX, .write = true};
    for (size_t i = 0; most && i < recording->nranges; i++)
      if (recording->ranges[i].bytes)
        ranges[n++] = recording->ranges[i];
    for (size_t i = 0; most && i < recording->nbodies; i++) {
      const cgl_range *body = cgl_record_footprint(recording->bodies[i], count);
      memcpy(ranges + n, body, *count * sizeof *ranges);
      n += *count;
    }
    recording->nfootprint = ranges_merge(ranges, n);
    recording->footprint = ranges;
  }
  *count = recording->nfootprint;
  return recording->footprint;
}


bool cgl_record_ranges_touch(const cgl_range *ranges, size_t n,
                             CUdeviceptr address, size_t bytes, bool write) {
  for (size_t i = 0; i < n; i++)
    if ((ranges[i].write || !write) && ranges[i].address < address + bytes &&
        address < ranges[i].address + ranges[i].bytes)
      return true;
  return false;
}


bool cgl_record_touches(const cgl_recording *recording, const cgl_op *op,
                        CUdeviceptr address, size_t bytes, bool write) {
  if (op->kind == CGL_OP_FOREIGN)
    return true;
  if (cgl_record_ranges_touch(recording->ranges + op->ranges, op->nranges,
                              address, bytes, write))
    return true;
  bool touched = false;
  for (uint32_t i = 0; i < op->nbodies && !touched; i++) {
    size_t count = 0;
    const cgl_range *ranges =
        cgl_record_footprint(recording->bodies[op->body - 1 + i], &count);
    touched = !ranges ||
              cgl_record_ranges_touch(ranges, count, address, bytes, write);
  }
  return touched;
}
