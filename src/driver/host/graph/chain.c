/* Chains: a graph's steps put in an order in which a worker can run straight
   ahead.  Edges that other edges imply are dropped first, so that an order
   which is a line in effect becomes a line in fact. */
#include "driver/host/graph/exec.h"

#include <stdlib.h>
#include <string.h>

/* Above this many steps the quadratic search for implied edges is left out. */
enum { REDUCE_LIMIT = 4096 };

#define NONE UINT32_MAX

/* A graph of n vertices; the targets of v are to[start[v]..start[v + 1]). */
typedef struct dag {
  uint32_t n, m;
  uint32_t *start, *to;
  uint32_t *nin;
} dag;


static void dag_free(dag *w) {
  free(w->start);
  free(w->to);
  free(w->nin);
}


static bool dag_make(dag *w, uint32_t n, const host_link *edges, size_t m) {
  *w = (dag){.n = n, .m = (uint32_t)m};
  w->start = calloc((size_t)n + 2, sizeof *w->start);
  w->to = malloc((m + 1) * sizeof *w->to);
  w->nin = calloc((size_t)n + 1, sizeof *w->nin);
  if (!w->start || !w->to || !w->nin) {
    dag_free(w);
    return false;
  }
  for (size_t i = 0; i < m; i++) {
    w->start[edges[i].from + 2]++;
    w->nin[edges[i].to]++;
  }
  for (uint32_t v = 1; v <= n; v++)
    w->start[v + 1] += w->start[v];
  /* start[v + 1] is the place of v's first target; filling moves it up to be
     that of the next vertex's. */
  for (size_t i = 0; i < m; i++)
    w->to[w->start[edges[i].from + 1]++] = edges[i].to;
  return true;
}


/* For tests: with a number in CGRAPHLUA_HOST_ORDER, each program is one line,
   in an order that the edges allow and nothing else decides. */
static uint64_t order_seed(void) {
  static _Atomic uint64_t programs;
  const char *seed = getenv("CGRAPHLUA_HOST_ORDER");
  return seed && *seed
             ? strtoull(seed, NULL, 10) * 2654435761u + (programs++ << 32 | 1)
             : 0;
}


/* Knuth's MMIX generator; below `n`. */
static uint32_t order_draw(uint64_t *state, uint32_t n) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((*state >> 33) % n);
}


/* Topological order by Kahn, at random where `seed` is not 0; returns how many
   vertices it reached. */
static uint32_t dag_sort(const dag *w, uint32_t *order, uint32_t *waiting,
                         uint64_t seed) {
  memcpy(waiting, w->nin, (w->n + (size_t)1) * sizeof *waiting);
  uint32_t count = 0;
  for (uint32_t v = 0; v < w->n; v++)
    if (waiting[v] == 0)
      order[count++] = v;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t chosen = seed ? i + order_draw(&seed, count - i) : i;
    const uint32_t v = order[chosen];
    order[chosen] = order[i];
    order[i] = v;
    for (uint32_t e = w->start[v]; e < w->start[v + 1]; e++)
      if (--waiting[w->to[e]] == 0)
        order[count++] = w->to[e];
  }
  return count;
}


/* v's targets, the nearest in the order first. */
static void sort_targets(dag *w, uint32_t v, const uint32_t *place) {
  for (uint32_t a = w->start[v] + 1; a < w->start[v + 1]; a++)
    for (uint32_t b = a;
         b > w->start[v] && place[w->to[b - 1]] > place[w->to[b]]; b--) {
      uint32_t swap = w->to[b];
      w->to[b] = w->to[b - 1];
      w->to[b - 1] = swap;
    }
}


/* Marks the edges from v that are not needed as NONE, and notes in its row of
   `reach` what it reaches.  The rows of its targets are complete. */
static void mark_implied(dag *w, uint32_t v, uint64_t *reach, size_t words) {
  uint64_t *mine = reach + words * v;
  for (uint32_t e = w->start[v]; e < w->start[v + 1]; e++) {
    uint32_t t = w->to[e];
    if (mine[t / 64] >> (t % 64) & 1) {
      w->nin[t]--;
      w->to[e] = NONE;
      continue;
    }
    const uint64_t *theirs = reach + words * t;
    for (size_t k = 0; k < words; k++)
      mine[k] |= theirs[k];
    mine[t / 64] |= UINT64_C(1) << (t % 64);
  }
}


static void drop_marked(dag *w) {
  uint32_t kept = 0, from = 0;
  for (uint32_t v = 0; v < w->n; v++) {
    uint32_t end = w->start[v + 1];
    w->start[v] = kept;
    for (; from < end; from++)
      if (w->to[from] != NONE)
        w->to[kept++] = w->to[from];
  }
  w->start[w->n] = kept;
  w->m = kept;
}


/* Drops each edge whose target is also reached by a longer way. */
static void dag_reduce(dag *w, const uint32_t *order) {
  bool joins = false;
  for (uint32_t v = 0; v < w->n && !joins; v++)
    joins = w->nin[v] > 1;
  if (!joins || w->n > REDUCE_LIMIT)
    return; /* a forest implies nothing; else do without */
  size_t words = (w->n + (size_t)63) / 64;
  uint64_t *reach = calloc(words * w->n, sizeof *reach);
  uint32_t *place = malloc(w->n * sizeof *place);
  if (reach && place) {
    for (uint32_t i = 0; i < w->n; i++)
      place[order[i]] = i;
    for (uint32_t i = w->n; i-- > 0;) {
      /* What the nearest reaches cannot be needed directly. */
      sort_targets(w, order[i], place);
      mark_implied(w, order[i], reach, words);
    }
    drop_marked(w);
  }
  free(place);
  free(reach);
}


/* Replaces all edges by those of a line in the order; false without memory. */
static bool dag_make_line(dag *w, const uint32_t *order) {
  host_link *links = malloc(w->n * sizeof *links);
  dag line;
  bool made = links;
  for (uint32_t i = 0; i + 1 < w->n && made; i++)
    links[i] = (host_link){order[i], order[i + 1]};
  made = made && dag_make(&line, w->n, links, w->n - 1);
  free(links);
  if (!made)
    return false;
  dag_free(w);
  *w = line;
  return true;
}


static uint32_t dag_degree(const dag *w, uint32_t v) {
  return w->start[v + 1] - w->start[v];
}


/* The one vertex that follows v and has no other predecessor, or NONE. */
static uint32_t only_next(const dag *w, uint32_t v) {
  if (dag_degree(w, v) != 1)
    return NONE;
  uint32_t t = w->to[w->start[v]];
  return w->nin[t] == 1 ? t : NONE;
}


typedef struct scratch {
  uint32_t *order;    /* topological */
  uint32_t *chain_of; /* step -> chain */
  uint32_t *waiting;
  uint32_t *last; /* chain -> its last step */
} scratch;


/* Walks the chains in topological order of their heads (roots come first)
   and gives each step its place. */
static void lay_out(const dag *w, scratch *s, uint32_t *place,
                    uint32_t *nchains, uint32_t *nroots) {
  uint32_t at = 0, chains = 0, roots = 0;
  memset(s->chain_of, 0xff, (w->n + (size_t)1) * sizeof *s->chain_of);
  for (uint32_t i = 0; i < w->n; i++) {
    uint32_t v = s->order[i];
    if (s->chain_of[v] != NONE)
      continue;
    if (w->nin[v] == 0)
      roots++;
    uint32_t chain = chains++;
    for (uint32_t t = v; t != NONE; t = only_next(w, t)) {
      s->chain_of[t] = chain;
      s->last[chain] = t;
      place[t] = at++;
    }
  }
  *nchains = chains;
  *nroots = roots;
}


static CUresult program_fill(host_program *program, const dag *w,
                             const scratch *s, const uint32_t *place,
                             uint32_t nchains) {
  program->chains = calloc(nchains + (size_t)1, sizeof *program->chains);
  program->links = malloc((w->m + (size_t)1) * sizeof *program->links);
  if (!program->chains || !program->links)
    return CUDA_ERROR_OUT_OF_MEMORY;
  program->nchains = nchains;
  uint32_t link = 0, first = 0;
  for (uint32_t i = 0; i < nchains; i++) {
    host_chain *chain = &program->chains[i];
    uint32_t last = s->last[i];
    chain->program = program;
    chain->first = chain->at = first;
    chain->end = first = place[last] + 1;
    chain->next = program->links + link;
    for (uint32_t e = w->start[last]; e < w->start[last + 1]; e++) {
      uint32_t next = s->chain_of[w->to[e]];
      program->links[link++] = next;
      program->chains[next].preceding++;
    }
    chain->nnext = (uint32_t)(program->links + link - chain->next);
  }
  for (uint32_t i = 0; i < nchains; i++)
    atomic_init(&program->chains[i].waiting, program->chains[i].preceding);
  return CUDA_SUCCESS;
}


CUresult host_chains_make(host_program *program, const host_link *edges,
                          size_t nedges, uint32_t *order, uint32_t *stuck) {
  uint32_t n = program->nsteps, nchains;
  dag w;
  if (nedges >= NONE || !dag_make(&w, n, edges, nedges))
    return CUDA_ERROR_OUT_OF_MEMORY;
  uint32_t *block = malloc(((size_t)n + 1) * 4 * sizeof *block);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (block) {
    scratch s = {block, block + n + 1, block + 2 * (n + (size_t)1),
                 block + 3 * (n + (size_t)1)};
    const uint64_t seed = n > 1 ? order_seed() : 0;
    if (dag_sort(&w, s.order, s.waiting, seed) < n) {
      for (uint32_t v = 0; v < n; v++)
        if (s.waiting[v] > 0) {
          *stuck = v;
          break;
        }
      result = CUDA_ERROR_INVALID_VALUE;
    } else if (!seed || dag_make_line(&w, s.order)) {
      dag_reduce(&w, s.order);
      lay_out(&w, &s, order, &nchains, &program->nroots);
      result = program_fill(program, &w, &s, order, nchains);
    }
  }
  free(block);
  dag_free(&w);
  return result;
}
