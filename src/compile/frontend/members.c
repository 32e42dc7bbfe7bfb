/* What cooperative groups are asked for, as intrinsics and sums of indices:
   members, operations of a tile's lanes, and calls that are given a group. */
#include <stdio.h>
#include <string.h>

#include "compile/frontend/groups_private.h"

#define CGL_RANK "(threadIdx.x+blockDim.x*(threadIdx.y+blockDim.y*threadIdx.z))"
/* %s: a tile's size */
#define CGL_FIRST "(" CGL_RANK "&31&~((unsigned)(%s)-1))"
/* %s: the lanes that are active */
#define CGL_BELOW "(unsigned)__popc(%s&((1u<<(" CGL_RANK "&31))-1))"
#define CGL_THREADS "(blockDim.x*blockDim.y*blockDim.z)"
#define CGL_BLOCK                              \
  "(blockIdx.x+(unsigned long long)gridDim.x*" \
  "(blockIdx.y+(unsigned long long)gridDim.y*blockIdx.z))"
#define CGL_BLOCKS "((unsigned long long)gridDim.x*gridDim.y*gridDim.z)"


/* The lanes of a tile. */
static void tile_mask(const group *g, char *text, size_t room) {
  if (!strcmp(g->size, "32"))
    snprintf(text, room, "0xffffffffu");
  else
    snprintf(text, room, "((unsigned)((1ull<<(%s))-1)<<" CGL_FIRST ")", g->size,
             g->size);
}


/* A member without arguments, of which `text` is the value. */
typedef struct member {
  group_kind kind;
  const char *name, *text; /* %s: the size */
} member;

static const member members[] = {
    {BLOCK, "sync", "__syncthreads()"},
    {BLOCK, "thread_rank", CGL_RANK},
    {BLOCK, "size", CGL_THREADS},
    {BLOCK, "num_threads", CGL_THREADS},
    {BLOCK, "group_index", "blockIdx"},
    {BLOCK, "thread_index", "threadIdx"},
    {BLOCK, "dim_threads", "blockDim"},
    {BLOCK, "group_dim", "blockDim"},
    {GRID, "num_blocks", CGL_BLOCKS},
    {GRID, "block_rank", CGL_BLOCK},
    {GRID, "block_index", "blockIdx"},
    {GRID, "dim_blocks", "gridDim"},
    {GRID, "group_dim", "gridDim"},
    {GRID, "num_threads", "(" CGL_BLOCKS "*" CGL_THREADS ")"},
    {GRID, "size", "(" CGL_BLOCKS "*" CGL_THREADS ")"},
    {GRID, "thread_rank", "(" CGL_BLOCK "*" CGL_THREADS "+" CGL_RANK ")"},
    {ACTIVE, "sync", "__syncwarp(%s)"},
    {ACTIVE, "thread_rank", CGL_BELOW},
    {ACTIVE, "size", "(unsigned)__popc(%s)"},
    {ACTIVE, "num_threads", "(unsigned)__popc(%s)"},
    {TILE, "thread_rank", "(" CGL_RANK "%%%s)"},
    {TILE, "size", "%s"},
    {TILE, "num_threads", "%s"},
};

/* Of tiles of the block. */
static const member parts[] = {
    {TILE, "meta_group_rank", "(" CGL_RANK "/%s)"},
    {TILE, "meta_group_size", "((" CGL_THREADS "+%s-1)/%s)"},
};

/* Operations of a tile's lanes: the intrinsic, and whether it has a width. */
static const struct {
  const char *name, *intrinsic;
  bool width;
} operations[] = {{"shfl", "__shfl_sync", true},
                  {"shfl_up", "__shfl_up_sync", true},
                  {"shfl_down", "__shfl_down_sync", true},
                  {"shfl_xor", "__shfl_xor_sync", true},
                  {"any", "__any_sync", false},
                  {"all", "__all_sync", false}};


/* The tile's operation `name`, whose arguments are at `open`; false when it is
   none. */
static bool put_operation(reading *r, const group *g, const cgl_token *name,
                          size_t open) {
  char mask[MOST_TEXT], text[2 * MOST_TEXT];
  const size_t end = cgl_tokens_close(r->at, r->count, open);
  tile_mask(g, mask, sizeof mask);
  if (cgl_token_is(name, "sync") && end == open + 2) {
    snprintf(text, sizeof text, "__syncwarp(%s)", mask);
    cgl_groups_emit(r, text, name);
    return r->i = end, true;
  }
  /* Lanes by their place in the warp, as seen from the tile. */
  const bool lanes = cgl_token_is_any(name, "ballot", "match_any");
  *text = '\0';
  if (lanes)
    snprintf(text, sizeof text, "((__%.*s_sync(%s,", (int)name->length,
             name->text, mask);
  bool width = false;
  for (size_t k = 0; k < sizeof operations / sizeof *operations; k++)
    if (cgl_token_is(name, operations[k].name)) {
      snprintf(text, sizeof text, "%s(%s,", operations[k].intrinsic, mask);
      width = operations[k].width;
    }
  if (!*text || end < open + 3)
    return false;
  cgl_groups_emit(r, text, name);
  r->i = open + 1;
  cgl_groups_read_on(r, end - 1);
  snprintf(text, sizeof text,
           lanes   ? ")>>" CGL_FIRST ")&(unsigned)((1ull<<(%s))-1))"
           : width ? ",(int)(%s))"
                   : ")",
           g->size, g->size);
  cgl_groups_emit(r, text, name);
  return r->i = end, true;
}


size_t cgl_groups_argument_end(const reading *r, size_t i, size_t end) {
  while (i < end && !cgl_groups_is(r, i, ","))
    i = cgl_tokens_past(r->at, r->count, i);
  return i;
}


/* The same of lanes that are active together. */
static bool put_active(reading *r, const group *g, const cgl_token *name,
                       size_t open) {
  static const struct {
    const char *name, *before, *between, *after; /* %s: the lanes */
  } calls[] = {
      {"any", "__any_sync(%s,", "", ")"},
      {"all", "__all_sync(%s,", "", ")"},
      {"ballot", "cgl_group_packed(%s,__ballot_sync(%s,", "", "))"},
      {"shfl", "__shfl_sync(%s,", ",cgl_group_lane(%s,", "))"},
      {"shfl_up", "__shfl_sync(%s,", ",cgl_group_up(%s," CGL_BELOW ",", "))"},
      {"shfl_down", "__shfl_sync(%s,", ",cgl_group_down(%s," CGL_BELOW ",",
       "))"}};
  const size_t end = cgl_tokens_close(r->at, r->count, open);
  const size_t first = cgl_groups_argument_end(r, open + 1, end - 1);
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
    char text[MOST_TEXT];
    if (!cgl_token_is(name, calls[k].name) || first == open + 1 ||
        (first + 1 < end) != (*calls[k].between != '\0'))
      continue;
    snprintf(text, sizeof text, calls[k].before, g->size, g->size);
    cgl_groups_emit(r, text, name);
    r->i = open + 1;
    cgl_groups_read_on(r, first);
    snprintf(text, sizeof text, calls[k].between, g->size, g->size);
    cgl_groups_emit(r, text, name);
    r->i = first + (first + 1 < end);
    cgl_groups_read_on(r, end - 1);
    cgl_groups_emit(r, calls[k].after, name);
    return r->i = end, true;
  }
  return false;
}


static const member *find_member(const group *g, const cgl_token *name) {
  for (size_t k = 0; k < sizeof members / sizeof *members; k++)
    if (members[k].kind == g->kind && cgl_token_is(name, members[k].name))
      return &members[k];
  for (size_t k = 0; g->of_block && k < sizeof parts / sizeof *parts; k++)
    if (parts[k].kind == g->kind && cgl_token_is(name, parts[k].name))
      return &parts[k];
  return NULL;
}


bool cgl_groups_put_member(reading *r, const group *g, size_t i) {
  char text[MOST_TEXT], count[80];
  if (!cgl_groups_is(r, i, ".") || !cgl_groups_is(r, i + 2, "("))
    return false;
  const cgl_token *name = &r->at[i + 1];
  const member *m = cgl_groups_is(r, i + 3, ")") ? find_member(g, name) : NULL;
  if (!m)
    return g->kind == TILE     ? put_operation(r, g, name, i + 2)
           : g->kind == ACTIVE ? put_active(r, g, name, i + 2)
                               : false;
  const bool number = !g->size[strspn(g->size, "0123456789")];
  snprintf(count, sizeof count,
           g->kind == ACTIVE ? "%s"
           : number          ? "%su"
                             : "(unsigned)(%s)",
           g->size);
  if (g->wide && cgl_token_is_any(name, "size", "num_threads", "thread_rank"))
    cgl_groups_emit(r, "(unsigned long long)", name);
  snprintf(text, sizeof text, m->text, count, count);
  cgl_groups_emit(r, text, name);
  return r->i = i + 4, true;
}


bool cgl_groups_is_behind_type(const reading *r, size_t i) {
  const cgl_token *before = i ? &r->at[i - 1] : NULL;
  return before && (before->kind == CGL_TOKEN_NAME
                        ? !cgl_token_is_any(before, "return", "else", "do")
                        : cgl_token_is_any(before, "*", "&", "&&", ">"));
}


bool cgl_groups_is_declared(const reading *r, const cgl_token *name) {
  for (size_t i = 0; i < r->count; i++)
    if (cgl_token_same(&r->at[i], name) && cgl_groups_is_behind_type(r, i))
      return true;
  return false;
}


/* What the tile makes of its values, `word(tile, value, operator)`: the
   arguments behind the tile are at i. */
static bool put_collective(reading *r, const group *g, size_t word, size_t i) {
  char text[2 * MOST_TEXT], mask[MOST_TEXT];
  const size_t end = cgl_tokens_close(r->at, r->count, word + 1) - 1;
  const size_t value = cgl_groups_argument_end(r, i, end);
  const bool given = value < end;
  if (g->kind != TILE || value == i ||
      (given ? cgl_groups_argument_end(r, value + 1, end) != end ||
                   value + 1 == end
             : cgl_token_is(&r->at[word], "reduce")))
    return false;
  const cgl_token *name = &r->at[word];
  tile_mask(g, mask, sizeof mask);
  snprintf(text, sizeof text, "__cgl_%.*s_sync(%s,", (int)name->length,
           name->text, mask);
  cgl_groups_emit(r, text, name);
  r->i = i;
  cgl_groups_read_on(r, value);
  cgl_groups_emit(r, given ? "," : ",cgl_group_plus()", name);
  if (given) {
    r->i = value + 1;
    cgl_groups_read_on(r, end);
  }
  snprintf(text, sizeof text, ",(unsigned)(%s))", g->size);
  cgl_groups_emit(r, text, name);
  return r->i = end + 1, true;
}


bool cgl_groups_put_call(reading *r) {
  group g;
  const size_t word = cgl_groups_behind(r, r->i);
  const bool collective = cgl_token_is_any(&r->at[word], "reduce",
                                           "inclusive_scan", "exclusive_scan");
  if (!cgl_groups_stands_alone(r, r->i) || !cgl_groups_is(r, word + 1, "(") ||
      !(collective ||
        cgl_token_is_any(&r->at[word], "sync", "thread_rank", "group_size")) ||
      (word == r->i && cgl_groups_is_declared(r, &r->at[word])))
    return false;
  const size_t end = cgl_groups_read(r, word + 2, &g);
  if (collective)
    return end && cgl_groups_is(r, end, ",") &&
           put_collective(r, &g, word, end + 1);
  const cgl_token call[] = {
      {.text = ".", .length = 1, .kind = CGL_TOKEN_PUNCT},
      r->at[word],
      {.text = "(", .length = 1, .kind = CGL_TOKEN_PUNCT},
      {.text = ")", .length = 1, .kind = CGL_TOKEN_PUNCT}};
  if (!end || !cgl_groups_is(r, end, ")") || (g.kind == ACTIVE && !*g.size))
    return false;
  reading own = *r;
  own.at = call;
  own.count = sizeof call / sizeof *call;
  const bool done = cgl_groups_put_member(&own, &g, 0);
  if (done)
    r->i = end + 1;
  return done;
}
