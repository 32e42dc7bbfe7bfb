/* Conditional handles and their values.  A handle is a slot number and the
   slot's generation: kernels set values from any worker without a lock, and a
   handle that outlived its graph sets nothing.  Slots are never returned to
   the system, so a late kernel may always look. */
#include "driver/host/run/run.h"

#include <stdlib.h>

enum { CHUNK = 256, CHUNKS = 4096 };

typedef struct slot {
  _Atomic uint32_t generation; /* odd: in use */
  _Atomic uint32_t value;
  uint32_t refs;        /* the graph, and executables */
  uint32_t first;       /* value at launch, when `assign` */
  bool assign, claimed; /* claimed: a node uses it */
  uint32_t next_free;   /* index + 1 */
} slot;

static _Atomic(slot *) chunks[CHUNKS];
static uint32_t nslots, first_free; /* under host_lock */


static slot *slot_at(uint32_t index) {
  slot *chunk =
      index / CHUNK < CHUNKS
          ? atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire)
          : NULL;
  return chunk ? &chunk[index % CHUNK] : NULL;
}


/* The live slot of a handle, or NULL. */
static slot *slot_of(uint64_t handle) {
  slot *s = slot_at((uint32_t)handle - 1);
  if (!s || atomic_load_explicit(&s->generation, memory_order_relaxed) !=
                (uint32_t)(handle >> 32))
    return NULL;
  return s;
}


static slot *slot_new(uint32_t *index) {
  if (first_free != 0) {
    *index = first_free - 1;
    slot *s = slot_at(*index);
    first_free = s->next_free;
    return s;
  }
  if (nslots == CHUNK * CHUNKS)
    return NULL;
  if (nslots % CHUNK == 0) {
    slot *chunk = calloc(CHUNK, sizeof *chunk);
    if (!chunk)
      return NULL;
    atomic_store_explicit(&chunks[nslots / CHUNK], chunk, memory_order_release);
  }
  *index = nslots++;
  return slot_at(*index);
}


CUresult host_conditional_handle_new(uint64_t *out, unsigned value,
                                     bool assign) {
  uint32_t index;
  slot *s = slot_new(&index);
  if (!s)
    return CUDA_ERROR_OUT_OF_MEMORY;
  uint32_t generation = atomic_load(&s->generation) + 1;
  atomic_store(&s->value, value);
  s->refs = 1;
  s->first = value;
  s->assign = assign;
  s->claimed = false;
  atomic_store(&s->generation, generation);
  *out = (uint64_t)generation << 32 | (index + 1);
  return CUDA_SUCCESS;
}


void host_conditional_handle_retain(uint64_t handle) {
  slot *s = slot_of(handle);
  if (s)
    s->refs++;
}


void host_conditional_handle_release(uint64_t handle) {
  slot *s = slot_of(handle);
  if (!s || --s->refs > 0)
    return;
  atomic_fetch_add(&s->generation, 1);
  s->next_free = first_free;
  first_free = (uint32_t)handle;
}


uint32_t host_conditional_get(uint64_t handle) {
  slot *s = slot_of(handle);
  return s ? atomic_load_explicit(&s->value, memory_order_acquire) : 0;
}


void host_conditional_set(uint64_t handle, uint32_t value) {
  slot *s = slot_of(handle);
  if (s)
    atomic_store_explicit(&s->value, value, memory_order_release);
}


void host_conditional_reset(uint64_t handle) {
  slot *s = slot_of(handle);
  if (s && s->assign)
    atomic_store_explicit(&s->value, s->first, memory_order_release);
}


bool host_conditional_claim(uint64_t handle, bool claim) {
  slot *s = slot_of(handle);
  if (!s || s->claimed == claim)
    return false;
  s->claimed = claim;
  return true;
}


bool host_conditional_claimed(uint64_t handle) {
  slot *s = slot_of(handle);
  return s && s->claimed;
}
