/* Every driver call that a pool makes fails once, with two codes: growing,
   moving pages, mapping them once more, waiting, captures, trimming, restoring,
   pinned memory.  After the failure the pool is valid and serves the same job
   again. */
#include "cgraphlua.h"
#include "core/memory/memory.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, COUNT = 6, MOST = 2000 };

/* Does everything until something fails. */
#define TRY(call)              \
  do {                         \
    cgl_status status_ = call; \
    if (status_)               \
      return status_;          \
  } while (0)

typedef struct tools {
  cgl_context *context;
  cgl_stream *s, *t;
  cgl_pool *pool, *whole, *stitched;
  cgl_graph *graph;
  cgl_buffer *held[2 * COUNT], *scratch;
  cgl_pinned *pinned;
  cgl_checkpoint *checkpoint;
} tools;


static cgl_status open_tools(tools *k) {
  cgl_pool_desc whole = {.no_split = true};
  memset(k, 0, sizeof *k);
  TRY(cgl_context_open(NULL, &k->context));
  TRY(cgl_stream_create(k->context, 0, &k->s));
  TRY(cgl_stream_create(k->context, 0, &k->t));
  TRY(cgl_pool_create(k->context, NULL, &k->pool));
  TRY(cgl_pool_create(k->context, &whole, &k->whole));
  TRY(cgl_pool_create(k->context, NULL, &k->stitched));
  cgl_graph_desc desc = {.pool = k->pool};
  return cgl_graph_create(k->context, &desc, &k->graph);
}


static void drop(tools *k) {
  for (int i = 0; i < 2 * COUNT; i++) {
    cgl_buffer_release(k->held[i]);
    k->held[i] = NULL;
  }
}


static void clean(tools *k) {
  cgl_graph_capture_abandon(k->graph);
  drop(k);
  cgl_buffer_release(k->scratch);
  cgl_pinned_release(k->pinned);
  cgl_checkpoint_release(k->checkpoint);
  k->scratch = NULL;
  k->pinned = NULL;
  k->checkpoint = NULL;
}


static void close_tools(tools *k) {
  cgl_graph_release(k->graph);
  cgl_pool_release(k->stitched);
  cgl_pool_release(k->whole);
  cgl_pool_release(k->pool);
  cgl_stream_release(k->t);
  cgl_stream_release(k->s);
  cgl_context_release(k->context);
}


static cgl_status make(tools *k, cgl_pool *pool, int i, size_t mib) {
  return cgl_buffer_create(i % 2 ? k->s : k->t, pool, CGL_TYPE_uint8, mib * MIB,
                           &k->held[i]);
}


static cgl_status capture(tools *k) {
  unsigned char five = 5;
  TRY(cgl_graph_capture_begin(k->graph, k->s));
  for (int i = 0; i < 3; i++) {
    TRY(cgl_buffer_create(k->s, NULL, CGL_TYPE_uint8, 3 * MIB, &k->scratch));
    TRY(cgl_buffer_fill(k->scratch, k->s, &five));
    cgl_buffer_release(k->scratch);
    k->scratch = NULL;
  }
  TRY(cgl_graph_capture_end(k->graph));
  TRY(cgl_graph_replay(k->graph, k->s, 1));
  return cgl_graph_reset(k->graph);
}


/* A block out of the ends of others' pages, which are theirs again when it is
   gone. */
static cgl_status stitch(tools *k) {
  for (int i = 0; i < 2 * COUNT; i += 2)
    TRY(make(k, k->stitched, i, 3));
  for (int i = 2; i < 2 * COUNT; i += 6) {
    cgl_buffer_release(k->held[i]);
    k->held[i] = NULL;
  }
  TRY(cgl_context_synchronize(k->context));
  TRY(make(k, k->stitched, 2, 6));
  for (int i = 0; i < 4; i += 2) {
    cgl_buffer_release(k->held[i]);
    k->held[i] = NULL;
  }
  TRY(cgl_context_synchronize(k->context));
  return make(k, k->stitched, 2, 7);
}


static cgl_status job(tools *k) {
  for (int i = 0; i < COUNT; i++)
    TRY(make(k, i % 3 ? k->pool : k->whole, i, 4));
  for (int i = 0; i < COUNT; i += 2) {
    cgl_buffer_release(k->held[i]);
    k->held[i] = NULL;
  }
  TRY(make(k, k->pool, COUNT, 9));
  TRY(make(k, k->whole, COUNT + 1, 7));
  TRY(cgl_pool_checkpoint(k->pool, &k->checkpoint));
  TRY(make(k, k->pool, COUNT + 2, 1));
  TRY(cgl_pool_restore(k->pool, k->checkpoint));
  TRY(capture(k));
  TRY(cgl_pinned_create(k->context, CGL_TYPE_float, 1000, &k->pinned));
  TRY(cgl_pool_trim(k->pool, NULL));
  TRY(cgl_pool_trim(k->whole, NULL));
  drop(k);
  TRY(stitch(k));
  return cgl_pool_trim(k->stitched, NULL);
}


static bool are_valid(const tools *k) {
  return cgl_pool_is_valid(k->pool) && cgl_pool_is_valid(k->whole) &&
         cgl_pool_is_valid(k->stitched);
}


/* One failure: of call number `at`; false when there are not so many. */
static bool fail(unsigned at, int code, bool *right) {
  tools k;
  const char *hit = NULL;
  cgl_fault(at, code);
  cgl_status status = open_tools(&k);
  bool opened = !status;
  if (opened)
    status = job(&k);
  cgl_fault_count(&hit);
  cgl_fault(0, 0);
  if (opened) {
    *right = *right && are_valid(&k);
    if (!*right)
      fprintf(stderr, "call %u (%s) left a pool that is not valid\n", at,
              hit ? hit : "none");
    clean(&k);
    cgl_graph_reset(k.graph);
    status = job(&k);
    if (status)
      fprintf(stderr, "after call %u (%s) failed: %s\n", at, hit ? hit : "none",
              cgl_last_error()->message);
    *right = *right && !status && are_valid(&k);
    clean(&k);
  }
  close_tools(&k);
  if (cgl_live("all"))
    fprintf(stderr, "after call %u (%s) %d objects are alive\n", at,
            hit ? hit : "none", (int)cgl_live("all"));
  *right = *right && !cgl_live("all");
  return hit;
}


int main(void) {
  static const int codes[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN};
  setenv("CGRAPHLUA_FAULT", "1", 1);
  for (int i = 0; i < 2; i++) {
    bool right = true;
    unsigned at = 1;
    while (at < MOST && right && fail(at, codes[i], &right))
      at++;
    tap_ok(right && at > 50 && at < MOST,
           "a pool bears the failure %d of each of %u calls", codes[i], at - 1);
  }
  return tap_done();
}
