/* The address map: a treap of disjoint ranges by start address. */
#include "driver/host/base/base.h"

#include <stdlib.h>

static host_range *root;
static uint64_t last_id;


static uint32_t random_heap(void) {
  static uint32_t state = 0x9e3779b9u;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}


/* Splits into what starts before `at` and the rest. */
static void treap_split(host_range *tree, uintptr_t at, host_range **low,
                        host_range **high) {
  while (tree) {
    if (tree->start < at) {
      *low = tree;
      low = &tree->right;
      tree = tree->right;
    } else {
      *high = tree;
      high = &tree->left;
      tree = tree->left;
    }
  }
  *low = *high = NULL;
}


/* Joins two trees, all of `low` before all of `high`. */
static host_range *treap_join(host_range *low, host_range *high) {
  host_range *tree, **link = &tree;
  while (low && high) {
    if (low->heap < high->heap) {
      *link = low;
      link = &low->right;
      low = low->right;
    } else {
      *link = high;
      link = &high->left;
      high = high->left;
    }
  }
  *link = low ? low : high;
  return tree;
}


host_range *host_range_below(uintptr_t address) {
  host_range *best = NULL;
  for (host_range *r = root; r;) {
    if (r->start <= address) {
      best = r;
      r = r->right;
    } else {
      r = r->left;
    }
  }
  return best;
}


host_range *host_range_above(uintptr_t address) {
  host_range *best = NULL;
  for (host_range *r = root; r;) {
    if (r->start > address) {
      best = r;
      r = r->left;
    } else {
      r = r->right;
    }
  }
  return best;
}


host_range *host_range_find(uintptr_t address) {
  host_range *r = host_range_below(address);
  return r && address - r->start < r->bytes ? r : NULL;
}


bool host_range_overlaps(uintptr_t start, size_t bytes) {
  const host_range *above = host_range_above(start);
  return host_range_find(start) || (above && above->start - start < bytes);
}


host_range *host_range_add(uintptr_t start, size_t bytes,
                           host_range_kind kind) {
  host_range *r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->start = start;
  r->bytes = bytes;
  r->kind = kind;
  r->id = ++last_id;
  r->heap = random_heap();
  host_range **link = &root;
  while (*link && (*link)->heap <= r->heap)
    link = r->start < (*link)->start ? &(*link)->left : &(*link)->right;
  treap_split(*link, r->start, &r->left, &r->right);
  *link = r;
  return r;
}


void host_range_remove(host_range *range) {
  host_range **link = &root;
  while (*link != range)
    link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
  *link = treap_join(range->left, range->right);
  free(range);
}


host_range *host_range_next(const host_range *range) {
  return host_range_above(range ? range->start : 0);
}
