/* Live handles: one open-addressing hash set for all kinds. */
#include "driver/host/base/base.h"

#include <stdlib.h>

typedef struct slot {
  uintptr_t key; /* 0: free, 1: removed */
  host_handle_kind kind;
} slot;

static slot *slots;
static size_t size, used; /* used counts removed ones too */
static int64_t counts[HOST_HANDLE_KINDS];


static size_t slot_hash(uintptr_t key) {
  return (size_t)((key >> 4) * 0x9e3779b97f4a7c15u >> 20);
}


static slot *slot_find(uintptr_t key) {
  if (!size || key < 2)
    return NULL;
  for (size_t i = slot_hash(key) & (size - 1); slots[i].key;
       i = (i + 1) & (size - 1))
    if (slots[i].key == key)
      return &slots[i];
  return NULL;
}


static void slot_put(uintptr_t key, host_handle_kind kind) {
  size_t i = slot_hash(key) & (size - 1);
  while (slots[i].key)
    i = (i + 1) & (size - 1);
  slots[i] = (slot){key, kind};
  used++;
}


/* Makes room for one more, leaving the removed ones behind. */
static bool slots_grow(void) {
  if (size && used + 1 <= size / 2)
    return true;
  int64_t live = 0;
  for (int i = 0; i < HOST_HANDLE_KINDS; i++)
    live += counts[i];
  size_t wanted = 64;
  while (wanted < (size_t)(live + 1) * 4)
    wanted *= 2;
  slot *old = slots;
  size_t old_size = size;
  slot *fresh = calloc(wanted, sizeof *fresh);
  if (!fresh)
    return false;
  slots = fresh;
  size = wanted;
  used = 0;
  for (size_t i = 0; i < old_size; i++)
    if (old[i].key > 1)
      slot_put(old[i].key, old[i].kind);
  free(old);
  return true;
}


bool host_handle_add(host_handle_kind kind, const void *handle) {
  if (!slots_grow())
    return false;
  slot_put((uintptr_t)handle, kind);
  counts[kind]++;
  return true;
}


bool host_handle_remove(host_handle_kind kind, const void *handle) {
  slot *s = slot_find((uintptr_t)handle);
  if (!s || s->kind != kind)
    return false;
  s->key = 1;
  counts[kind]--;
  return true;
}


bool host_handle_live(host_handle_kind kind, const void *handle) {
  const slot *s = slot_find((uintptr_t)handle);
  return s && s->kind == kind;
}


int64_t host_handle_count(host_handle_kind kind) {
  return counts[kind];
}


void host_handle_each(host_handle_kind kind, void (*visit)(void *handle)) {
  for (size_t i = 0; i < size; i++)
    if (slots[i].key > 1 && slots[i].kind == kind)
      visit((void *)slots[i].key);
}
