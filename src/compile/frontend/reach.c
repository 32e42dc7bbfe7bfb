/* What a kernel may reach: features of its own tokens and of every
   declaration it can name.  Two things are called without being named,
   operators and what an unread include declares; both count as reached. */
#include <stdlib.h>
#include <string.h>

#include "compile/frontend/program.h"

static const char *const barrier_words[] = {
    "__syncthreads",
    "__syncthreads_count",
    "__syncthreads_and",
    "__syncthreads_or",
    "__syncwarp",
    "__shfl_sync",
    "__shfl_up_sync",
    "__shfl_down_sync",
    "__shfl_xor_sync",
    "__any_sync",
    "__all_sync",
    "__ballot_sync",
    "__match_any_sync",
    "__match_all_sync",
    "__activemask",
    "__reduce_add_sync",
    "__reduce_min_sync",
    "__reduce_max_sync",
    "__reduce_and_sync",
    "__reduce_or_sync",
    "__reduce_xor_sync",
    "__barrier_sync",
    "__barrier_sync_count",
    "__uni_sync",
    "__nanosleep",
    "__cgl_reduce_sync",
    "__cgl_inclusive_scan_sync",
    "__cgl_exclusive_scan_sync",
};


static bool is_barrier(const cgl_token *t) {
  if (t->length < 8 || t->text[0] != '_' || t->text[1] != '_')
    return false;
  for (size_t i = 0; i < sizeof barrier_words / sizeof *barrier_words; i++)
    if (cgl_token_is(t, barrier_words[i]))
      return true;
  return false;
}


/* A local array: a name, then [, after a name or a `,` in a function. */
static bool is_local_array(const cgl_token *at, size_t i) {
  if (i < 2 || !cgl_token_is(&at[i], "[") || at[i - 1].kind != CGL_TOKEN_NAME)
    return false;
  const cgl_token *before = &at[i - 2];
  if (cgl_token_is_any(before, "return", "else", "do"))
    return false;
  return before->kind == CGL_TOKEN_NAME || cgl_token_is(before, ">");
}


static unsigned own_features(const cgl_token *at, size_t count) {
  unsigned features = 0;
  bool body = false; /* past the first brace: what is declared there is local */
  for (size_t i = 0; i < count; i++) {
    const cgl_token *t = &at[i];
    size_t n;
    body |= cgl_token_is(t, "{");
    if (!body && cgl_token_is_any(t, "&", "&&"))
      features |= CGL_TAKES_REFERENCE;
    if (body && is_local_array(at, i))
      features |= CGL_USES_LOCALS;
    cgl_place place;
    n = cgl_token_place(at, count, i, &place);
    if (n || cgl_token_is_position(t) || cgl_token_is_draw(t))
      features |= CGL_USES_INDEX;
    if (n) {
      i += n - 1;
      continue;
    }
    if (t->kind != CGL_TOKEN_NAME)
      continue;
    if (cgl_token_is(t, "__shared__")) {
      features |= CGL_USES_SHARED;
      if (i && cgl_token_is(&at[i - 1], "extern"))
        features |= CGL_USES_DYNAMIC;
    } else if (is_barrier(t))
      features |= CGL_USES_BARRIER;
    else if (cgl_token_is_any(t, "asm", "__asm__"))
      features |= CGL_NEEDS_THREADS;
    else if (cgl_token_is_any(t, "threadIdx", "blockIdx")) {
      bool other = i + 2 < count && cgl_token_is(&at[i + 1], ".") &&
                   cgl_token_is_any(&at[i + 2], "y", "z");
      if (!other)
        features |= CGL_NEEDS_THREADS;
    }
  }
  return features;
}


/* Names at i, followed by what can only follow a declared name: that of a type
   made with arguments has another behind them. */
static bool is_declared(const cgl_token *at, size_t count, size_t i) {
  if (at[i].kind != CGL_TOKEN_NAME || i + 1 >= count ||
      cgl_token_is_type_word(&at[i]))
    return false;
  size_t after = i + 1;
  if (cgl_token_is(&at[after], "<"))
    after = cgl_tokens_close_angle(at, count, after);
  return after < count &&
         cgl_token_is_any(&at[after], "(", "[", "=", ";", ",", "{", "<");
}


/* A word of declarations that names nothing, as __device__ does. */
static bool is_specifier(const cgl_token *t) {
  static const char *const words[] = {
      "public", "private",  "protected", "template",  "typename", "using",
      "static", "explicit", "virtual",   "constexpr", "operator", "friend",
      "return", "typedef",  "final",     "override",  NULL};
  return cgl_token_is_of(t, words) ||
         (t->length > 4 && t->text[0] == '_' && t->text[1] == '_' &&
          t->text[t->length - 1] == '_');
}


static void add_name(cgl_program *p, const cgl_token *name, size_t chunk) {
  cgl_name *names =
      cgl_program_grow(p, p->names, p->nnames, &p->name_room, sizeof *names);
  if (!names)
    return;
  p->names = names;
  names[p->nnames++] = (cgl_name){.name = name, .chunk = chunk};
}


/* Every name by which the chunk can be reached: all that stand in a record
   or alias, but for what its functions take and do; what a function or variable
   declares otherwise.  A kernel is not called: who has its name is another. */
static void add_names(cgl_program *p, size_t which) {
  const cgl_chunk *chunk = &p->chunks[which];
  bool inside = false, called = false; /* (...) since a member began */
  size_t i = 0;
  while (i < chunk->count) {
    const cgl_token *t = &chunk->at[i];
    if (chunk->record) {
      if (t->kind == CGL_TOKEN_NAME && !cgl_token_is_type_word(t) &&
          !is_specifier(t))
        add_name(p, t, which);
      inside |= cgl_token_is(t, "{");
      if (cgl_token_is(t, "(") || (called && cgl_token_is(t, "{"))) {
        called = inside && cgl_token_is(t, "(");
        i = cgl_tokens_close(chunk->at, chunk->count, i);
        continue;
      }
      called &= !cgl_token_is_any(t, ";", "{", "}");
    } else if (is_declared(chunk->at, chunk->count, i))
      add_name(p, t, which);
    else if (cgl_token_is_any(t, "{", "__global__"))
      return;
    else if (cgl_token_is(t, "(")) {
      i = cgl_tokens_close(chunk->at, chunk->count, i);
      continue;
    }
    i++;
  }
}


static int compare_tokens(const cgl_token *a, const cgl_token *b) {
  if (a->length != b->length)
    return a->length < b->length ? -1 : 1;
  return memcmp(a->text, b->text, a->length);
}


static int compare_names(const void *a, const void *b) {
  return compare_tokens(((const cgl_name *)a)->name,
                        ((const cgl_name *)b)->name);
}


/* The first of the sorted names that is not below `name`. */
static size_t first_name(const cgl_program *p, const cgl_token *name) {
  size_t low = 0, high = p->nnames;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (compare_tokens(p->names[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}


bool cgl_reach_chunk(const cgl_program *p, const cgl_token *name, size_t nth,
                     size_t *chunk) {
  size_t i = first_name(p, name) + nth;
  if (i >= p->nnames || compare_tokens(p->names[i].name, name))
    return false;
  *chunk = p->names[i].chunk;
  return true;
}


bool cgl_reach_specialises(const cgl_program *p, size_t which,
                           const cgl_declared *kernel) {
  const cgl_chunk *c = &p->chunks[which];
  bool global = false;
  if (!kernel->is_template || c->header != 3) /* template < > */
    return false;
  for (size_t i = 0; i + 1 < c->count && !cgl_token_is(&c->at[i], "{"); i++) {
    global |= cgl_token_is(&c->at[i], "__global__");
    if (global && cgl_token_same(&c->at[i], &kernel->name) &&
        cgl_token_is(&c->at[i + 1], "<"))
      return cgl_token_is(&c->at[c->count - 1], "}");
  }
  return false;
}


bool cgl_reach_declares(const cgl_program *p, const cgl_token *name) {
  size_t i = first_name(p, name);
  return i < p->nnames && !compare_tokens(p->names[i].name, name);
}


/* Is a group's doing left over at i, that may be a barrier or name a place?
   What is understood of groups is gone (groups.c). */
static bool is_group(const cgl_chunk *c, size_t i) {
  static const char *const words[] = {
      "this_thread_block", "this_grid",         "coalesced_threads",
      "thread_block",      "thread_block_tile", "tiled_partition",
      "thread_group",      "coalesced_group",   "grid_group",
      "binary_partition",  "labeled_partition", NULL};
  static const char *const members[] = {"sync",
                                        "thread_rank",
                                        "size",
                                        "num_threads",
                                        "group_index",
                                        "thread_index",
                                        "dim_threads",
                                        "group_dim",
                                        "num_blocks",
                                        "block_rank",
                                        "block_index",
                                        "dim_blocks",
                                        "meta_group_rank",
                                        "meta_group_size",
                                        "shfl",
                                        "shfl_up",
                                        "shfl_down",
                                        "shfl_xor",
                                        "any",
                                        "all",
                                        "ballot",
                                        "match_any",
                                        "match_all",
                                        "barrier_arrive",
                                        "barrier_wait",
                                        NULL};
  static const char *const functions[] = {"sync",           "thread_rank",
                                          "group_size",     "reduce",
                                          "inclusive_scan", "exclusive_scan",
                                          "memcpy_async",   "wait",
                                          "wait_prior",     NULL};
  const cgl_token *t = &c->at[i];
  if (t->kind != CGL_TOKEN_NAME || i + 1 >= c->count)
    return false;
  if (cgl_token_is_of(t, words))
    return true;
  const cgl_token *before = i ? t - 1 : NULL;
  const bool called = cgl_token_is_any(t + 1, "(", "<");
  if (before && called && cgl_token_is_of(t, members) &&
      cgl_token_is_any(before, "::", "template", ".", "->"))
    return true;
  /* A declaration of its own is no call. */
  return called && cgl_token_is_of(t, functions) &&
         !(before && before->kind == CGL_TOKEN_NAME &&
           !cgl_token_is_any(before, "return", "else", "do", "case", "throw"));
}


/* Whatever a group does may be done. */
static void mark_groups(cgl_program *p) {
  for (size_t i = 0; i < p->nchunks; i++)
    for (size_t k = 0; k < p->chunks[i].count; k++)
      if (is_group(&p->chunks[i], k))
        p->chunks[i].features |= CGL_USES_GROUPS | CGL_USES_BARRIER |
                                 CGL_NEEDS_THREADS | CGL_USES_INDEX;
}


void cgl_reach_mark(cgl_program *p) {
  for (size_t i = 0; i < p->nchunks; i++) {
    cgl_chunk *chunk = &p->chunks[i];
    chunk->features = own_features(chunk->at, chunk->count);
    add_names(p, i);
  }
  if (p->nnames)
    qsort(p->names, p->nnames, sizeof *p->names, compare_names);
  if (cgl_program_has_groups(p))
    mark_groups(p);
}


/* Puts every chunk that `name` may stand for on the list, once. */
static void follow_name(cgl_program *p, const cgl_token *name, size_t *list,
                        size_t *n) {
  size_t low = first_name(p, name);
  for (; low < p->nnames && !compare_tokens(p->names[low].name, name); low++) {
    cgl_chunk *chunk = &p->chunks[p->names[low].chunk];
    if (!chunk->visited) {
      chunk->visited = true;
      list[(*n)++] = p->names[low].chunk;
    }
  }
}


unsigned cgl_reach_features(cgl_program *p, size_t which, unsigned *others) {
  unsigned features = CGL_USES_BARRIER | CGL_USES_SHARED | CGL_USES_DYNAMIC |
                      CGL_NEEDS_THREADS | CGL_USES_LOCALS | CGL_USES_INDEX |
                      CGL_TAKES_REFERENCE |
                      (cgl_program_has_groups(p) ? CGL_USES_GROUPS : 0);
  size_t *list = malloc((p->nchunks + 1) * sizeof *list), n = 0;
  if (others)
    *others = features;
  if (p->pp.partial || which >= p->nchunks || !list) {
    free(list);
    return features;
  }
  features = 0;
  if (others)
    *others = 0;
  for (size_t i = 0; i < p->nchunks; i++) {
    p->chunks[i].visited = i == which || p->chunks[i].operators;
    if (p->chunks[i].visited)
      list[n++] = i;
  }
  for (size_t k = 0; k < n; k++) {
    const cgl_chunk *chunk = &p->chunks[list[k]];
    features |= chunk->features;
    if (others && list[k] != which)
      *others |= chunk->features;
    const cgl_token *const first = chunk->at - chunk->header;
    for (size_t i = 0; i < chunk->header + chunk->count; i++)
      if (first[i].kind == CGL_TOKEN_NAME)
        follow_name(p, &first[i], list, &n);
  }
  free(list);
  return features;
}
