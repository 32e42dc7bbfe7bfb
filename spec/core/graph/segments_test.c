/* Random accesses beside a model that compares each with all before it: what an
   operation wants are operations that it conflicts with, and with what precedes
   these, all of them.  With a tree and without, and with few lanes.
   $CGRAPHLUA_FUZZ_SEGMENTS sets how many programs (60). */
#include "core/graph/segments.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { OPS = 400, MOST = 3, BYTES = 1500 };

typedef struct program {
  cgl_access made[OPS][MOST]; /* addresses */
  size_t count[OPS];
  bool before[OPS + 1][OPS + 1]; /* op, what precedes it; from 1 */
  uint32_t lane[OPS], tails[OPS];
  uint32_t nlanes, width;
} program;

static uint64_t state;


static uint32_t draw(uint32_t below) {
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)(state >> 33) % below;
}


/* A narrow access, one of any size, or of nearly everything. */
static cgl_access draw_access(void) {
  const uint32_t kind = draw(5);
  const uint32_t from = kind == 4 ? draw(40) : draw(BYTES);
  const uint32_t most = BYTES - from;
  const uint32_t bytes = kind < 2   ? 1 + draw(most < 3 ? most : 3)
                         : kind < 4 ? 1 + draw(most)
                                    : most - draw(40);
  return (cgl_access){1000 + from, 1000 + from + bytes, draw(3) == 0};
}


static bool ops_conflict(const program *p, size_t a, size_t b) {
  for (size_t i = 0; i < p->count[a]; i++)
    for (size_t k = 0; k < p->count[b]; k++) {
      const cgl_access *x = &p->made[a][i], *y = &p->made[b][k];
      if ((x->write || y->write) && x->from < y->to && y->from < x->to)
        return true;
    }
  return false;
}


static void precede(program *p, uint32_t op, uint32_t before) {
  p->before[op][before] = true;
  for (uint32_t i = 1; i < before; i++)
    p->before[op][i] |= p->before[before][i];
}


/* A lane whose latest operation precedes this one, else a new one, else any,
   whose latest then precedes it. */
static uint32_t choose_lane(program *p, uint32_t op) {
  uint32_t lane = 0;
  while (lane < p->nlanes && !p->before[op][p->tails[lane]])
    lane++;
  if (lane == p->width)
    lane = draw(p->width);
  p->nlanes += lane == p->nlanes;
  if (p->tails[lane])
    precede(p, op, p->tails[lane]);
  p->tails[lane] = op;
  return lane;
}


/* Whether the wants of all operations are right. */
static bool program_is_right(program *p, cgl_segments *s, size_t nops) {
  uint32_t list[OPS], mark[OPS] = {0};
  const cgl_access *a = s->accesses;
  for (uint32_t op = 1; op <= nops; op++) {
    const cgl_access *end = a + p->count[op - 1];
    cgl_wants wants = {list, mark, 0};
    if (!cgl_segments_use(s, a, end, op, &wants))
      return false;
    for (size_t i = 0; i < wants.count; i++) {
      if (list[i] >= op || !ops_conflict(p, list[i] - 1, op - 1)) {
        printf("# %u wants %u\n", op, list[i]);
        return false;
      }
      precede(p, op, list[i]);
    }
    for (uint32_t i = 1; i < op; i++)
      if (!p->before[op][i] && ops_conflict(p, i - 1, op - 1)) {
        printf("# %u does not want %u\n", op, i);
        return false;
      }
    cgl_segments_put(s, a, end, op, choose_lane(p, op));
    a = end;
  }
  return true;
}


static bool run(uint64_t seed, size_t *trees) {
  program *p = calloc(1, sizeof *p);
  cgl_segments s = {0};
  state = seed * UINT64_C(0x9e3779b97f4a7c15);
  p->width = draw(3) ? OPS : 1 + draw(9);
  const size_t nops = draw(3) ? OPS : draw(OPS);
  bool right = true;
  for (size_t i = 0; i < nops; i++) {
    p->count[i] = draw(MOST + 1);
    for (size_t k = 0; k < p->count[i] && right; k++) {
      const cgl_access a = p->made[i][k] = draw_access();
      right = cgl_segments_add(&s, a.from, a.to - a.from, a.write);
    }
  }
  right = right && cgl_segments_add(&s, 1, 0, true) &&
          cgl_segments_make(&s, (OPS + CGL_SEGMENTS_CHUNK - 1) /
                                    CGL_SEGMENTS_CHUNK * CGL_SEGMENTS_CHUNK) &&
          program_is_right(p, &s, nops);
  *trees += s.leaves != 0;
  cgl_segments_free(&s);
  free(p);
  return right;
}


int main(void) {
  const char *text = getenv("CGRAPHLUA_FUZZ_SEGMENTS");
  const size_t n = text ? strtoul(text, NULL, 10) : 60;
  size_t trees = 0, right = 0;
  while (right < n && run(right + 1, &trees))
    right++;
  if (right < n)
    printf("# seed %zu\n", right + 1);
  tap_ok(right == n, "%zu programs want what they must, and no more", n);
  tap_ok(trees > n / 4 && trees < n, "%zu of them had trees", trees);
  return tap_done();
}
