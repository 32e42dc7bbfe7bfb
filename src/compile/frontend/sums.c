/* Sums that no thread reads: `atomicAdd(&bins[i], 1);` where a kernel does
   nothing else with its parameter `bins`.  Nobody can tell when such an
   addition is made, as long as it is made before the kernel is over: the host
   device gathers them (see device_sums.h).
   Invariant: a kernel has no such sums when its source has anything that orders
   memory, or the kernel itself another atomic operation.  What it reaches by
   other names is taken to be other memory. */
#include <stdlib.h>
#include <string.h>

#include "compile/frontend/program.h"


/* Does the call at i stand where a statement begins? */
static bool begins_statement(const cgl_token *at, size_t i) {
  if (!cgl_token_is(&at[i - 1], ")"))
    return cgl_token_is_any(&at[i - 1], ";", "{", "}", "else", "do");
  size_t open = i - 1;
  for (size_t depth = 1; open && depth;) {
    open--;
    depth += cgl_token_is(&at[open], ")");
    depth -= cgl_token_is(&at[open], "(");
  }
  return open && cgl_token_is_any(&at[open - 1], "if", "for", "while");
}


/* The name in whose memory the atomicAdd at i adds, whose result is dropped; or
   NULL. */
static const cgl_token *summed_name(const cgl_token *at, size_t count,
                                    size_t i) {
  if (!i || i + 4 >= count || !cgl_token_is(&at[i], "atomicAdd") ||
      !cgl_token_is(&at[i + 1], "(") || !begins_statement(at, i))
    return NULL;
  const size_t close = cgl_tokens_close(at, count, i + 1);
  const bool place = cgl_token_is(&at[i + 2], "&");
  const cgl_token *name = &at[i + 2 + place];
  const bool found = place ? cgl_token_is(&name[1], "[")
                           : cgl_token_is_any(&name[1], "+", ",");
  return found && name->kind == CGL_TOKEN_NAME && close < count &&
                 cgl_token_is(&at[close], ";")
             ? name
             : NULL;
}


/* Is the name a pointer among the parameters? */
static bool is_pointer(const cgl_declared *kernel, const cgl_token *name) {
  const cgl_token *at = kernel->parameters;
  for (size_t i = 1; i < kernel->nparameters; i++) {
    size_t k = i - 1;
    while (k && cgl_token_is_any(&at[k], "const", "__restrict__", "__restrict"))
      k--;
    if (cgl_token_same(&at[i], name))
      return cgl_token_is(&at[k], "*") &&
             (i + 1 == kernel->nparameters || cgl_token_is(&at[i + 1], ","));
  }
  return false;
}


/* Is the name nothing but a place for sums in the kernel's body? */
static bool is_only_summed(const cgl_token *at, size_t count, size_t body,
                           const cgl_token *name) {
  size_t named = 0, summed = 0;
  for (size_t i = body; i < count; i++) {
    named += at[i].kind == CGL_TOKEN_NAME && cgl_token_same(&at[i], name);
    const cgl_token *other = summed_name(at, count, i);
    summed += other && cgl_token_same(other, name);
  }
  return named == summed;
}


/* Does the body have other atomic operations? */
static bool has_others(const cgl_token *at, size_t count, size_t body) {
  for (size_t i = body; i < count; i++)
    if (at[i].kind == CGL_TOKEN_NAME && at[i].length > 6 &&
        memcmp(at[i].text, "atomic", 6) == 0 && !summed_name(at, count, i))
      return true;
  return false;
}


static void add_sum(cgl_program *p, const cgl_token *t) {
  const char **sums =
      cgl_program_grow(p, p->sums, p->nsums, &p->sum_room, sizeof *sums);
  if (!sums)
    return;
  p->sums = sums;
  sums[p->nsums++] = t->text;
}


static void find_in_kernel(cgl_program *p, const cgl_declared *kernel) {
  const cgl_chunk *c = &p->chunks[kernel->chunk];
  if (!kernel->nparameters)
    return;
  size_t body = (size_t)(kernel->parameters - c->at) + kernel->nparameters;
  while (body < c->count && !cgl_token_is(&c->at[body], "{"))
    body++;
  if (has_others(c->at, c->count, body))
    return;
  for (size_t i = body; i < c->count; i++) {
    const cgl_token *name = summed_name(c->at, c->count, i);
    /* What a macro says stands elsewhere. */
    if (name && c->at[body].text < c->at[i].text &&
        c->at[i].text < c->at[c->count - 1].text && is_pointer(kernel, name) &&
        is_only_summed(c->at, c->count, body, name))
      add_sum(p, &c->at[i]);
  }
}


static int compare_texts(const void *a, const void *b) {
  const char *const *x = a, *const *y = b;
  return (*x > *y) - (*x < *y);
}


void cgl_reach_find_sums(cgl_program *p) {
  static const char *const orders[] = {"fence", "volatile", "asm", "atomic_",
                                       "cooperative_groups"};
  static const char add[] = "atomicAdd";
  const cgl_token word = {
      .kind = CGL_TOKEN_NAME, .text = add, .length = sizeof add - 1};
  bool ordered = p->pp.partial || cgl_reach_declares(p, &word);
  for (size_t i = 0; i < sizeof orders / sizeof *orders && !ordered; i++)
    ordered = cgl_program_contains(p, orders[i]);
  for (size_t i = 0; i < p->nkernels && !ordered; i++)
    if (p->kernels[i].defined)
      find_in_kernel(p, &p->kernels[i]);
  if (p->nsums)
    qsort(p->sums, p->nsums, sizeof *p->sums, compare_texts);
}


bool cgl_program_is_sum(const cgl_program *p, const cgl_token *t) {
  return p->nsums &&
         bsearch(&t->text, p->sums, p->nsums, sizeof *p->sums, compare_texts);
}
