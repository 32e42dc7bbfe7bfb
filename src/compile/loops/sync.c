/* What synchronizes: the words that do, functions of the source that name them,
   and what is called without a name.
   A name counts as what it may call where it stands: a member's only where it
   is called, and of a class the functions of that name; the name of a class
   itself calls nothing.  What classes do unnamed is asked once, of all that the
   kernel reaches. */
#include <string.h>

#include "compile/loops/loops_private.h"

static const char *const block_words[] = {
    "__syncthreads", "__syncthreads_count", "__syncthreads_and",
    "__syncthreads_or", NULL};
static const char *const warp_words[] = {"__syncwarp",
                                         "__shfl_sync",
                                         "__shfl_up_sync",
                                         "__shfl_down_sync",
                                         "__shfl_xor_sync",
                                         "__any_sync",
                                         "__all_sync",
                                         "__ballot_sync",
                                         "__reduce_add_sync",
                                         "__reduce_min_sync",
                                         "__reduce_max_sync",
                                         "__reduce_and_sync",
                                         "__reduce_or_sync",
                                         "__reduce_xor_sync",
                                         "__match_any_sync",
                                         "__activemask",
                                         NULL};
/* What tiles make of their values, as groups.c spells it. */
static const char *const group_words[] = {"__cgl_reduce_sync",
                                          "__cgl_inclusive_scan_sync",
                                          "__cgl_exclusive_scan_sync", NULL};

/* A function's body that is known. */
struct known_body {
  const cgl_token *at;
  unsigned sync; /* SYNC_*; 0 while it is looked into */
  struct known_body *next;
};

enum { KNOWN = 128 }; /* of a chunk, beside SYNC_* */


bool cgl_tree_is_group(const cgl_token *op) {
  return cgl_token_is_of(op, group_words);
}


bool cgl_sync_is_class(const cgl_chunk *c, const cgl_token *name) {
  size_t i = 0;
  if (!c->record)
    return false;
  if (cgl_token_is(c->at, "template"))
    i = cgl_tokens_close_angle(c->at, c->count, 1);
  for (; i < c->count && !cgl_token_is(&c->at[i], "{"); i++)
    if (cgl_token_same(&c->at[i], name))
      return true;
    else if (i + 1 < c->count && cgl_token_is_any(&c->at[i + 1], ":", "<"))
      return false; /* what it is made of comes behind */
  return false;
}


static unsigned body_sync(tree *t, const cgl_token *at, size_t n) {
  known_body *k = t->known_bodies;
  while (k && k->at != at)
    k = k->next;
  if (k)
    return k->sync;
  k = cgl_arena_alloc(t->arena, sizeof *k);
  if (!k)
    return t->failed = true, 0;
  *k = (known_body){.at = at, .next = t->known_bodies};
  t->known_bodies = k;
  return k->sync = cgl_tree_sync(t, at, n);
}


/* What the function does of which the parameters open at i, up to its end *end;
   nothing when it is only declared, or called. */
static unsigned function_sync(tree *t, const cgl_chunk *c, size_t i,
                              size_t *end) {
  size_t k = cgl_tokens_close(c->at, c->count, i);
  *end = k;
  if (k < c->count && cgl_token_is(&c->at[k], ":")) /* a(1), b{2} {...} */
    for (k++; k + 1 < c->count && c->at[k].kind == CGL_TOKEN_NAME;) {
      while (k < c->count && !cgl_token_is_any(&c->at[k], "(", "{"))
        k++;
      k = cgl_tokens_close(c->at, c->count, k);
      k += k < c->count && cgl_token_is(&c->at[k], ",");
    }
  while (k < c->count && !cgl_token_is_any(&c->at[k], "{", ";", ")", ",", "="))
    k++;
  if (k >= c->count || !cgl_token_is(&c->at[k], "{"))
    return 0;
  const size_t close = cgl_tokens_close(c->at, c->count, k);
  const unsigned sync = body_sync(t, &c->at[*end], close - *end);
  *end = close;
  return sync;
}


/* What the class's functions of that name do. */
static unsigned member_sync(tree *t, const cgl_chunk *c,
                            const cgl_token *name) {
  unsigned sync = 0;
  for (size_t i = 0, end; i + 1 < c->count; i++)
    if (cgl_token_same(&c->at[i], name) && cgl_token_is(&c->at[i + 1], "("))
      sync |= function_sync(t, c, i + 1, &end);
  return sync;
}


/* What its operators, conversions, constructors and its destructor do. */
static unsigned unnamed_sync(tree *t, const cgl_chunk *c) {
  unsigned sync = 0;
  for (size_t i = 0, end; i + 2 < c->count; i++) {
    size_t open = i + 1;
    if (cgl_token_is(&c->at[i], "operator")) {
      open += cgl_token_is(&c->at[open], "(");
      while (open < c->count && !cgl_token_is_any(&c->at[open], "(", ";", "{"))
        open++;
    } else if (!cgl_sync_is_class(c, &c->at[i]))
      continue;
    if (open < c->count && cgl_token_is(&c->at[open], "("))
      sync |= function_sync(t, c, open, &end);
  }
  return sync;
}


static unsigned chunk_sync(tree *t, size_t which) {
  const cgl_chunk *chunk = &t->program->chunks[which];
  if ((t->strips && !t->turns) || which == t->kernel->chunk)
    return 0;
  if (t->known[which] & KNOWN)
    return t->known[which] & (KNOWN - 1);
  t->known[which] = KNOWN;
  const unsigned sync =
      cgl_tree_sync(t, chunk->at - chunk->header, chunk->header + chunk->count);
  t->known[which] = (unsigned char)(KNOWN | sync);
  return sync;
}


unsigned cgl_tree_sync_at(tree *t, row r, size_t i) {
  const cgl_token *x = &r.at[i];
  unsigned sync = 0;
  size_t which;
  if (x->kind != CGL_TOKEN_NAME)
    return 0;
  if (cgl_token_is_of(x, block_words))
    return SYNC_BLOCK;
  if (cgl_token_is_of(x, warp_words) || cgl_tree_is_group(x) ||
      cgl_strip_is_loop(t, r, i))
    return SYNC_WARP;
  const bool member = i && cgl_token_is_any(x - 1, ".", "->");
  if (member && !(i + 1 < r.n && cgl_token_is_any(x + 1, "(", "<")))
    return 0;
  for (size_t k = 0; cgl_reach_chunk(t->program, x, k, &which); k++) {
    const cgl_chunk *c = &t->program->chunks[which];
    if (!c->record)
      sync |= member ? 0 : chunk_sync(t, which);
    else if (!t->strips) {
      t->reached[which] = true;
      sync |= cgl_sync_is_class(c, x) ? 0 : member_sync(t, c, x);
    }
  }
  return sync;
}


unsigned cgl_tree_sync(tree *t, const cgl_token *at, size_t n) {
  unsigned sync = 0;
  for (size_t i = 0; i < n; i++)
    sync |= cgl_tree_sync_at(t, (row){(cgl_token *)at, n}, i);
  return sync;
}


void cgl_tree_refuse_unnamed(tree *t) {
  const cgl_chunk *chunks = t->program->chunks;
  const cgl_chunk *kernel = &chunks[t->kernel->chunk];
  cgl_tree_sync(t, kernel->at - kernel->header, kernel->header + kernel->count);
  for (size_t i = 0; i < t->program->nchunks && !t->strips; i++)
    if (i != t->kernel->chunk &&
        (chunks[i].record ? t->reached[i] : chunks[i].operators) &&
        unnamed_sync(t, &chunks[i]))
      cgl_tree_refuse(t, &t->kernel->name,
                      "an operator or a constructor that synchronizes");
}
