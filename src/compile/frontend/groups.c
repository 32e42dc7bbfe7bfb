/* Cooperative groups as what they are made of: `tile.shfl_down(v, 4)` is read
   as a call of __shfl_down_sync, so that all that understands one understands
   the other.  The variables themselves, of which nothing is left, go; where one
   is an argument a fresh one of an empty type takes its place.
   A row of tokens is read once; groups are known by their names from their
   declarations to the end of the scope.  What is not understood stays, and the
   kernels that reach it run as fibers (reach.c). */
#include <stdio.h>
#include <string.h>

#include "compile/frontend/program.h"

enum { MOST_GROUPS = 64, MOST_NAMES = 8, MOST_TEXT = 400 };

typedef enum group_kind { NO_GROUP, BLOCK, TILE, GRID } group_kind;

typedef struct group {
  const cgl_token *name;
  group_kind kind;
  char size[64]; /* of a tile */
  bool of_block; /* a tile of the block */
  size_t depth;  /* of the braces around what it is declared in */
} group;

typedef struct reading {
  const cgl_token *at;
  size_t count, i;
  size_t depth, parens;
  bool open;                          /* using namespace cooperative_groups */
  const cgl_token *names[MOST_NAMES]; /* of the namespace */
  size_t nnames;
  group groups[MOST_GROUPS];
  size_t n;
  bool full; /* a group is not known: nothing is understood */
  cgl_arena *arena;
  cgl_tokens *out;
} reading;

#define CGL_RANK "(threadIdx.x+blockDim.x*(threadIdx.y+blockDim.y*threadIdx.z))"
#define CGL_THREADS "(blockDim.x*blockDim.y*blockDim.z)"
#define CGL_BLOCK                              \
  "(blockIdx.x+(unsigned long long)gridDim.x*" \
  "(blockIdx.y+(unsigned long long)gridDim.y*blockIdx.z))"
#define CGL_BLOCKS "((unsigned long long)gridDim.x*gridDim.y*gridDim.z)"


static bool is(const reading *r, size_t i, const char *word) {
  return i < r->count && cgl_token_is(&r->at[i], word);
}


static void emit(reading *r, const char *text, const cgl_token *like) {
  const char *copy = cgl_arena_copy(r->arena, text, strlen(text));
  const size_t first = r->out->count;
  if (copy)
    cgl_lex(copy, strlen(copy), like->line, r->out);
  r->out->failed |= !copy;
  for (size_t i = first; i < r->out->count; i++) {
    r->out->at[i].line = like->line;
    r->out->at[i].first = false;
    r->out->at[i].space = true;
  }
}


/* The token behind the namespace's name at i: i itself where names of it may
   stand alone, or where nothing but a call's arguments may tell. */
static size_t behind_namespace(const reading *r, size_t i) {
  if (!is(r, i + 1, "::"))
    return i;
  if (is(r, i, "cooperative_groups"))
    return i + 2;
  for (size_t k = 0; k < r->nnames; k++)
    if (cgl_token_same(r->names[k], &r->at[i]))
      return i + 2;
  return i;
}


static bool stands_alone(const reading *r, size_t i) {
  return !i || !cgl_token_is_any(&r->at[i - 1], ".", "->", "::");
}


static const group *find_group(const reading *r, const cgl_token *name) {
  for (size_t k = r->n; k-- > 0;)
    if (cgl_token_same(r->groups[k].name, name))
      return r->groups[k].kind == NO_GROUP ? NULL : &r->groups[k];
  return NULL;
}


static void declare(reading *r, const group *g, const cgl_token *name) {
  if (r->n == MOST_GROUPS) {
    r->full = true;
    return;
  }
  r->groups[r->n] = *g;
  r->groups[r->n].name = name;
  r->groups[r->n++].depth = r->depth + (r->parens > 0);
}


static void leave_scope(reading *r) {
  while (r->n && r->groups[r->n - 1].depth > r->depth)
    r->n--;
}


/* The size between the angles at i; its end, or 0. */
static size_t read_size(const reading *r, size_t i, group *g) {
  size_t n = 0;
  if (!is(r, i, "<"))
    return 0;
  const size_t end = cgl_tokens_close_angle(r->at, r->count, i);
  for (size_t k = i + 1; k + 1 < end && !is(r, k, ","); k++) {
    if (n + r->at[k].length + 2 > sizeof g->size ||
        cgl_token_is_any(&r->at[k], "<", ">", "(", "["))
      return 0;
    memcpy(g->size + n, r->at[k].text, r->at[k].length);
    n += r->at[k].length;
  }
  g->size[n] = '\0';
  return n ? end : 0;
}


/* The group's type at i: its end, or 0. */
static size_t read_type(const reading *r, size_t i, group *g) {
  const size_t word = behind_namespace(r, i);
  *g = (group){0};
  if (word == i && !(r->open && stands_alone(r, i)))
    return 0;
  if (is(r, word, "thread_block") && !is(r, word + 1, "::"))
    return g->kind = BLOCK, word + 1;
  if (is(r, word, "grid_group"))
    return g->kind = GRID, word + 1;
  if (is(r, word, "thread_block_tile"))
    return g->kind = TILE, read_size(r, word + 1, g);
  return 0;
}


static size_t read_group(const reading *r, size_t i, group *g);


/* What makes a group at i: its end, or 0. */
static size_t read_maker(const reading *r, size_t i, group *g) {
  const size_t word = behind_namespace(r, i);
  *g = (group){0};
  if (word == i && !(r->open && stands_alone(r, i)))
    return 0;
  if (is(r, word, "this_thread_block") && is(r, word + 1, "(") &&
      is(r, word + 2, ")"))
    return g->kind = BLOCK, word + 3;
  if (is(r, word, "this_grid") && is(r, word + 1, "(") && is(r, word + 2, ")"))
    return g->kind = GRID, word + 3;
  if (!is(r, word, "tiled_partition"))
    return 0;
  const size_t open = read_size(r, word + 1, g);
  group parent;
  const size_t end =
      open && is(r, open, "(") ? read_group(r, open + 1, &parent) : 0;
  if (!end || !is(r, end, ")"))
    return 0;
  g->kind = TILE;
  g->of_block = parent.kind == BLOCK;
  return end + 1;
}


/* A group at i, by its name or as it is made: its end, or 0. */
static size_t read_group(const reading *r, size_t i, group *g) {
  if (i >= r->count || r->at[i].kind != CGL_TOKEN_NAME)
    return 0;
  const size_t end = read_maker(r, i, g);
  if (end)
    return end;
  const group *known = stands_alone(r, i) ? find_group(r, &r->at[i]) : NULL;
  if (!known)
    return 0;
  *g = *known;
  return i + 1;
}


static void emit_value(reading *r, const group *g, const cgl_token *like) {
  char text[MOST_TEXT];
  if (g->kind == TILE)
    snprintf(text, sizeof text, "cgl_group_tile<%s>()", g->size);
  else
    snprintf(text, sizeof text, "cgl_group_%s()",
             g->kind == BLOCK ? "block" : "grid");
  emit(r, text, like);
}


static void emit_type(reading *r, const group *g, const cgl_token *like) {
  emit_value(r, g, like);
  r->out->count -= r->out->failed ? 0 : 2;
}


/* The lanes of a tile. */
static void tile_mask(const group *g, char *text, size_t room) {
  if (!strcmp(g->size, "32"))
    snprintf(text, room, "0xffffffffu");
  else
    snprintf(text, room,
             "((unsigned)((1ull<<(%s))-1)<<(" CGL_RANK
             "&31&~((unsigned)(%s)-1)))",
             g->size, g->size);
}


/* ---- members ---- */

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
    {TILE, "thread_rank", "(" CGL_RANK "&((unsigned)(%s)-1))"},
    {TILE, "size", "(unsigned)(%s)"},
    {TILE, "num_threads", "(unsigned)(%s)"},
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


static void read_on(reading *r, size_t end);


/* The tile's operation `name`, whose arguments are at `open`; false when it is
   none. */
static bool put_operation(reading *r, const group *g, const cgl_token *name,
                          size_t open) {
  char mask[MOST_TEXT], text[2 * MOST_TEXT];
  const size_t end = cgl_tokens_close(r->at, r->count, open);
  tile_mask(g, mask, sizeof mask);
  if (cgl_token_is(name, "sync") && end == open + 2) {
    snprintf(text, sizeof text, "__syncwarp(%s)", mask);
    emit(r, text, name);
    return r->i = end, true;
  }
  if (cgl_token_is(name, "ballot") && !strcmp(g->size, "32"))
    snprintf(text, sizeof text, "__ballot_sync(%s,", mask);
  else
    *text = '\0';
  bool width = false;
  for (size_t k = 0; k < sizeof operations / sizeof *operations; k++)
    if (cgl_token_is(name, operations[k].name)) {
      snprintf(text, sizeof text, "%s(%s,", operations[k].intrinsic, mask);
      width = operations[k].width;
    }
  if (!*text || end < open + 3)
    return false;
  emit(r, text, name);
  r->i = open + 1;
  read_on(r, end - 1);
  snprintf(text, sizeof text, width ? ",(int)(%s))" : ")", g->size);
  emit(r, text, name);
  return r->i = end, true;
}


/* What the group does at i, `. name (`; false when that is not known. */
static bool put_member(reading *r, const group *g, size_t i) {
  char text[MOST_TEXT];
  if (!is(r, i, ".") || !is(r, i + 2, "("))
    return false;
  const cgl_token *name = &r->at[i + 1];
  if (is(r, i + 3, ")"))
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
      if (members[k].kind == g->kind && cgl_token_is(name, members[k].name)) {
        snprintf(text, sizeof text, members[k].text, g->size);
        emit(r, text, name);
        return r->i = i + 4, true;
      }
  if (g->kind == TILE && g->of_block && is(r, i + 3, ")") &&
      cgl_token_is_any(name, "meta_group_rank", "meta_group_size")) {
    if (cgl_token_is(name, "meta_group_rank"))
      snprintf(text, sizeof text, "(" CGL_RANK "/(unsigned)(%s))", g->size);
    else
      snprintf(text, sizeof text,
               "((" CGL_THREADS "+(unsigned)(%s)-1)/(unsigned)(%s))", g->size,
               g->size);
    emit(r, text, name);
    return r->i = i + 4, true;
  }
  return g->kind == TILE && put_operation(r, g, name, i + 2);
}


/* Is the name at i behind a type, as that of what is declared? */
static bool is_behind_type(const reading *r, size_t i) {
  const cgl_token *before = i ? &r->at[i - 1] : NULL;
  return before && (before->kind == CGL_TOKEN_NAME
                        ? !cgl_token_is_any(before, "return", "else", "do")
                        : cgl_token_is_any(before, "*", "&", "&&", ">"));
}


static bool is_declared(const reading *r, const cgl_token *name) {
  for (size_t i = 0; i < r->count; i++)
    if (cgl_token_same(&r->at[i], name) && is_behind_type(r, i))
      return true;
  return false;
}


/* sync(group), thread_rank(group) */
static bool put_call(reading *r) {
  group g;
  const size_t word = behind_namespace(r, r->i);
  if (!stands_alone(r, r->i) || !is(r, word + 1, "(") ||
      !cgl_token_is_any(&r->at[word], "sync", "thread_rank", "group_size") ||
      (word == r->i && is_declared(r, &r->at[word])))
    return false;
  const size_t end = read_group(r, word + 2, &g);
  const cgl_token call[] = {
      {.text = ".", .length = 1, .kind = CGL_TOKEN_PUNCT},
      r->at[word],
      {.text = "(", .length = 1, .kind = CGL_TOKEN_PUNCT},
      {.text = ")", .length = 1, .kind = CGL_TOKEN_PUNCT}};
  if (!end || !is(r, end, ")"))
    return false;
  reading own = *r;
  own.at = call;
  own.count = sizeof call / sizeof *call;
  const bool done = put_member(&own, &g, 0);
  if (done)
    r->i = end + 1;
  return done;
}


/* ---- declarations ---- */

/* auto tile = tiled_partition<32>(block);  thread_block b;  and parameters. */
static bool put_declaration(reading *r) {
  group g, made;
  const cgl_token *like = &r->at[r->i];
  const bool any = cgl_token_is(like, "auto");
  size_t name = any ? r->i + 1 : read_type(r, r->i, &g);
  if (!name || (!any && !stands_alone(r, r->i)) ||
      (r->i && cgl_token_is(like - 1, "typedef")))
    return false;
  while (is(r, name, "&") || is(r, name, "const"))
    name++;
  const bool named = name + 1 < r->count &&
                     r->at[name].kind == CGL_TOKEN_NAME &&
                     cgl_token_is_any(&r->at[name + 1], "=", ",", ")", ";");
  const size_t end =
      named && is(r, name + 1, "=") ? read_maker(r, name + 2, &made) : 0;
  if (any && (!end || !is(r, end, ";")))
    return false;
  if (any)
    g = made;
  else if (end && made.kind == g.kind)
    g.of_block = made.of_block;
  if (!named)
    return false;
  declare(r, &g, &r->at[name]);
  if (!r->parens && (is(r, end, ";") || is(r, name + 1, ";"))) {
    while (r->out->count &&
           cgl_token_is_any(&r->out->at[r->out->count - 1], "const", "static"))
      r->out->count--;
    return r->i = end ? end : name + 1, true; /* the `;` alone stays */
  }
  emit_type(r, &g, like);
  cgl_tokens_add(r->out, r->at[name]);
  return r->i = name + 1, true;
}


/* namespace cg = cooperative_groups;  using namespace cooperative_groups; */
static void note_namespace(reading *r) {
  if (is(r, r->i, "namespace") && is(r, r->i + 2, "=") &&
      is(r, r->i + 3, "cooperative_groups") && r->nnames < MOST_NAMES)
    r->names[r->nnames++] = &r->at[r->i + 1];
  r->open |= is(r, r->i, "using") && is(r, r->i + 1, "namespace") &&
             is(r, r->i + 2, "cooperative_groups");
}


/* Another variable of a group's name hides it, and one of the name that a
   tile's size has hides the tile. */
static void hide_groups(reading *r, const cgl_token *t) {
  for (size_t k = r->n; k-- > 0;) {
    const group *g = &r->groups[k];
    if (g->kind == NO_GROUP)
      continue;
    if (cgl_token_same(g->name, t) ||
        (g->kind == TILE && cgl_token_is(t, g->size)))
      declare(r, &(group){0}, g->name);
  }
}


static void read_token(reading *r) {
  const cgl_token *t = &r->at[r->i];
  group g;
  size_t end;
  if (t->kind == CGL_TOKEN_NAME) {
    note_namespace(r);
    if (put_declaration(r) || put_call(r))
      return;
    if (is_behind_type(r, r->i) && r->i + 1 < r->count &&
        cgl_token_is_any(t + 1, "=", ";", ",", ")", "[", "{", "(", ":"))
      hide_groups(r, t);
    if ((end = read_group(r, r->i, &g))) {
      if (put_member(r, &g, end))
        return;
      if (!is(r, end, ".")) {
        r->full |=
            is(r, end, "=") || (r->i > 1 && is(r, r->i - 1, "(") &&
                                cgl_token_is_any(t - 2, "decltype", "sizeof"));
        emit_value(r, &g, t);
        r->i = end;
        return;
      }
    }
  }
  r->depth += cgl_token_is(t, "{");
  r->parens += cgl_token_is(t, "(");
  r->parens -= r->parens && cgl_token_is(t, ")");
  if (cgl_token_is(t, "}") && r->depth) {
    r->depth--;
    leave_scope(r);
  } else if (cgl_token_is(t, ";") && !r->parens)
    leave_scope(r);
  cgl_tokens_add(r->out, *t);
  r->i++;
}


static void read_on(reading *r, size_t end) {
  while (r->i < end && !r->out->failed)
    read_token(r);
}


int cgl_program_lower_groups(const cgl_tokens *from, cgl_arena *arena,
                             cgl_tokens *out) {
  reading r = {
      .at = from->at, .count = from->count, .arena = arena, .out = out};
  read_on(&r, r.count);
  if (r.full)
    out->count = 0;
  for (size_t i = 0; r.full && i < r.count; i++)
    cgl_tokens_add(out, r.at[i]);
  return out->failed ? -1 : 0;
}
