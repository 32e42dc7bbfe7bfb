/* What a kernel may reach: features of its own tokens and of every
   declaration it can name.  Two things are called without being named,
   operators and what an unread include declares; both count as reached. */
#include <string.h>

#include "program.h"

static const char *const barrier_words[] = {
    "__syncthreads",     "__syncthreads_count",  "__syncthreads_and",
    "__syncthreads_or",  "__syncwarp",           "__shfl_sync",
    "__shfl_up_sync",    "__shfl_down_sync",     "__shfl_xor_sync",
    "__any_sync",        "__all_sync",           "__ballot_sync",
    "__match_any_sync",  "__match_all_sync",     "__activemask",
    "__reduce_add_sync", "__reduce_min_sync",    "__reduce_max_sync",
    "__reduce_and_sync", "__reduce_or_sync",     "__reduce_xor_sync",
    "__barrier_sync",    "__barrier_sync_count", "__uni_sync",
    "__nanosleep",
};


static int is_barrier(const cgl_token *t) {
  if (t->length < 8 || t->text[0] != '_' || t->text[1] != '_')
    return 0;
  for (size_t i = 0; i < sizeof barrier_words / sizeof *barrier_words; i++)
    if (cgl_token_is(t, barrier_words[i]))
      return 1;
  return 0;
}


/* Does `blockIdx.x` or its like start at i? */
static int is_axis(const cgl_token *at, size_t count, size_t i,
                   const char *object) {
  return i + 2 < count && cgl_token_is(&at[i], object) &&
         cgl_token_is(&at[i + 1], ".") && cgl_token_is(&at[i + 2], "x");
}


/* The tokens of blockIdx.x * blockDim.x or the other way round at i. */
static size_t block_offset(const cgl_token *at, size_t count, size_t i) {
  int first = is_axis(at, count, i, "blockIdx");
  if (!first && !is_axis(at, count, i, "blockDim"))
    return 0;
  if (i + 3 < count && cgl_token_is(&at[i + 3], "*") &&
      is_axis(at, count, i + 4, first ? "blockDim" : "blockIdx"))
    return 7;
  return 0;
}


/* The tokens of the whole idiom at i, or 0:
   B * D + T, T + B * D, and both with a cast or parentheses around a part,
   as in (size_t)blockIdx.x * blockDim.x + threadIdx.x. */
static size_t idiom(const cgl_token *at, size_t count, size_t i) {
  size_t n = block_offset(at, count, i), k = i + n;
  if (n) {
    while (k < count && cgl_token_is(&at[k], ")"))
      k++;
    if (k < count && cgl_token_is(&at[k], "+")) {
      k++;
      while (k < count && (cgl_token_is(&at[k], "(")))
        k++;
      if (is_axis(at, count, k, "threadIdx"))
        return k + 3 - i;
    }
    return 0;
  }
  if (!is_axis(at, count, i, "threadIdx"))
    return 0;
  k = i + 3;
  if (k >= count || !cgl_token_is(&at[k], "+"))
    return 0;
  k++;
  while (k < count && cgl_token_is(&at[k], "("))
    k++;
  n = block_offset(at, count, k);
  return n ? k + n - i : 0;
}


/* A local array: a name, then [, after a name or a `,` in a function. */
static int is_local_array(const cgl_token *at, size_t i) {
  if (i < 2 || !cgl_token_is(&at[i], "[") || at[i - 1].kind != CGL_TOKEN_NAME)
    return 0;
  const cgl_token *before = &at[i - 2];
  if (cgl_token_is(before, "return") || cgl_token_is(before, "else") ||
      cgl_token_is(before, "do"))
    return 0;
  return before->kind == CGL_TOKEN_NAME || cgl_token_is(before, ">");
}


static unsigned own_features(const cgl_token *at, size_t count) {
  unsigned features = 0;
  for (size_t i = 0; i < count; i++) {
    const cgl_token *t = &at[i];
    size_t n;
    if (is_local_array(at, i))
      features |= CGL_USES_LOCALS;
    if (t->kind != CGL_TOKEN_NAME)
      continue;
    if (cgl_token_is(t, "__shared__")) {
      features |= CGL_USES_SHARED;
      if (i && cgl_token_is(&at[i - 1], "extern"))
        features |= CGL_USES_DYNAMIC;
    } else if (is_barrier(t))
      features |= CGL_USES_BARRIER;
    else if (cgl_token_is(t, "asm") || cgl_token_is(t, "__asm__"))
      features |= CGL_NEEDS_THREADS;
    else if ((n = idiom(at, count, i)))
      i += n - 1;
    else if (cgl_token_is(t, "threadIdx") || cgl_token_is(t, "blockIdx")) {
      int other =
          i + 2 < count && cgl_token_is(&at[i + 1], ".") &&
          (cgl_token_is(&at[i + 2], "y") || cgl_token_is(&at[i + 2], "z"));
      if (!other)
        features |= CGL_NEEDS_THREADS;
    }
  }
  return features;
}


void cgl_reach_mark(cgl_program *p) {
  for (size_t i = 0; i < p->nchunks; i++) {
    cgl_chunk *chunk = &p->chunks[i];
    chunk->features = own_features(chunk->at, chunk->count);
  }
}


/* Can a declaration be named by `name`? */
static int declares(const cgl_chunk *chunk, const cgl_token *name) {
  for (size_t i = 0; i < chunk->count; i++) {
    const cgl_token *t = &chunk->at[i];
    if (!chunk->record && cgl_token_is(t, "{"))
      return 0;
    if (t->kind == CGL_TOKEN_NAME && cgl_token_same(t, name))
      return 1;
  }
  return 0;
}


/* Adds what the chunk reaches; each chunk is visited once per walk, and the
   work is bounded by chunks x names. */
static void walk(cgl_program *p, size_t which, int mark, unsigned *features) {
  cgl_chunk *chunk = &p->chunks[which];
  chunk->visited = mark;
  *features |= chunk->features;
}


unsigned cgl_reach_features(cgl_program *p, size_t which) {
  unsigned features = 0;
  if (p->pp.partial)
    return CGL_USES_BARRIER | CGL_USES_SHARED | CGL_USES_DYNAMIC |
           CGL_NEEDS_THREADS | CGL_USES_LOCALS;
  if (which >= p->nchunks)
    return features;
  for (size_t i = 0; i < p->nchunks; i++)
    p->chunks[i].visited = 0;
  walk(p, which, 1, &features);
  for (size_t i = 0; i < p->nchunks; i++)
    if (p->chunks[i].operators)
      walk(p, i, 1, &features);
  for (int again = 1; again;) {
    again = 0;
    for (size_t i = 0; i < p->nchunks; i++) {
      cgl_chunk *chunk = &p->chunks[i];
      if (chunk->visited != 1)
        continue;
      chunk->visited = 2;
      again = 1;
      for (size_t k = 0; k < p->nchunks; k++) {
        if (p->chunks[k].visited)
          continue;
        for (size_t j = 0; j < chunk->count; j++)
          if (chunk->at[j].kind == CGL_TOKEN_NAME &&
              declares(&p->chunks[k], &chunk->at[j])) {
            walk(p, k, 1, &features);
            break;
          }
      }
    }
  }
  return features;
}
