/* Cooperative groups as what they are made of: `tile.shfl_down(v, 4)` is read
   as a call of __shfl_down_sync, so that all that understands one understands
   the other.  The variables themselves, of which nothing is left, go; where one
   is an argument a fresh one takes its place.
   Groups are known by their names from their declarations to the end of the
   scope.  A parameter that may be any group, `G g` or `thread_group g`, is the
   one that every call passes: what calls pass is noted as the row is read, and
   it is read again as long as more becomes known.  What is not understood
   stays, and the kernels that reach it run as fibers (reach.c). */
#include <stdio.h>
#include <string.h>

#include "compile/frontend/groups_private.h"


bool cgl_groups_is(const reading *r, size_t i, const char *word) {
  return i < r->count && cgl_token_is(&r->at[i], word);
}


void cgl_groups_emit(reading *r, const char *text, const cgl_token *like) {
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


/* Is the `::` at i in front of a name of no scope but the outermost? */
static bool is_outermost(const reading *r, size_t i) {
  return cgl_groups_is(r, i, "::") &&
         (!i || (r->at[i - 1].kind != CGL_TOKEN_NAME &&
                 !cgl_groups_is(r, i - 1, ">")));
}


size_t cgl_groups_behind(const reading *r, size_t i) {
  const size_t from = i;
  i += is_outermost(r, i);
  if (!cgl_groups_is(r, i + 1, "::"))
    return from;
  if (cgl_groups_is(r, i, "cooperative_groups"))
    return i + 2;
  for (size_t k = 0; k < r->nnames; k++)
    if (cgl_token_same(r->names[k], &r->at[i]))
      return i + 2;
  return from;
}


bool cgl_groups_stands_alone(const reading *r, size_t i) {
  return !i || is_outermost(r, i - 1) ||
         !cgl_token_is_any(&r->at[i - 1], ".", "->", "::");
}


/* May the name at i be one of the namespace? */
static bool is_open(const reading *r, size_t i) {
  bool open = r->open;
  for (size_t k = 0; k < r->nused; k++)
    open |= cgl_token_same(r->used[k], &r->at[i]);
  return open && cgl_groups_stands_alone(r, i);
}


static const group *find_group(const reading *r, const cgl_token *name,
                               bool type) {
  for (size_t k = r->n; k-- > 0;)
    if (cgl_token_same(r->groups[k].name, name))
      return r->groups[k].kind == NO_GROUP || r->groups[k].type != type
                 ? NULL
                 : &r->groups[k];
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
  if (!cgl_groups_is(r, i, "<"))
    return 0;
  const size_t end = cgl_tokens_close_angle(r->at, r->count, i);
  const bool wrapped = cgl_groups_is(r, i + 1, "(") &&
                       cgl_tokens_close(r->at, r->count, i + 1) + 1 == end;
  for (size_t k = i + 1 + wrapped;
       k + 1 + wrapped < end && !cgl_groups_is(r, k, ","); k++) {
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
  const size_t word = cgl_groups_behind(r, i);
  const group *named =
      cgl_groups_stands_alone(r, i) ? find_group(r, &r->at[i], true) : NULL;
  *g = named ? *named : (group){0};
  g->type = false;
  if (named || (word == i && !is_open(r, i)))
    return named ? i + 1 : 0;
  if (cgl_groups_is(r, word, "thread_block") &&
      !cgl_groups_is(r, word + 1, "::"))
    return g->kind = BLOCK, word + 1;
  if (cgl_groups_is(r, word, "grid_group"))
    return g->kind = GRID, word + 1;
  if (cgl_groups_is(r, word, "coalesced_group"))
    return g->kind = ACTIVE, word + 1;
  if (cgl_groups_is(r, word, "thread_group"))
    return g->kind = ANY, g->wide = true, word + 1;
  if (cgl_groups_is(r, word, "thread_block_tile"))
    return g->kind = TILE, read_size(r, word + 1, g);
  return 0;
}


/* The size of tiled_partition(group, 8), whose comma is at i; its end, or 0. */
static size_t read_late_size(const reading *r, size_t i, group *g) {
  static const char *const sizes[] = {"1", "2", "4", "8", "16", "32", NULL};
  if (!cgl_groups_is(r, i, ",") || i + 2 >= r->count ||
      !cgl_token_is_of(&r->at[i + 1], sizes))
    return 0;
  memcpy(g->size, r->at[i + 1].text, r->at[i + 1].length);
  return i + 2;
}


/* What makes a group at i: its end, or 0. */
static size_t read_maker(const reading *r, size_t i, group *g) {
  const size_t word = cgl_groups_behind(r, i);
  *g = (group){0};
  if (word == i && !is_open(r, i))
    return 0;
  if (cgl_groups_is(r, word, "this_thread_block") &&
      cgl_groups_is(r, word + 1, "(") && cgl_groups_is(r, word + 2, ")"))
    return g->kind = BLOCK, word + 3;
  if (cgl_groups_is(r, word, "this_grid") && cgl_groups_is(r, word + 1, "(") &&
      cgl_groups_is(r, word + 2, ")"))
    return g->kind = GRID, word + 3;
  if (cgl_groups_is(r, word, "coalesced_threads") &&
      cgl_groups_is(r, word + 1, "(") && cgl_groups_is(r, word + 2, ")"))
    return g->kind = ACTIVE, word + 3;
  if (!cgl_groups_is(r, word, "tiled_partition"))
    return 0;
  const bool late = cgl_groups_is(r, word + 1, "(");
  const size_t open = late ? word + 1 : read_size(r, word + 1, g);
  group parent = {0};
  size_t end = open && cgl_groups_is(r, open, "(")
                   ? cgl_groups_read(r, open + 1, &parent)
                   : 0;
  if (end && late)
    end = read_late_size(r, end, g);
  r->seen->nested |= parent.kind != BLOCK;
  if (!end || !cgl_groups_is(r, end, ")") || parent.kind == ACTIVE)
    return 0;
  g->kind = TILE;
  g->of_block = parent.kind == BLOCK;
  g->wide = late;
  return end + 1;
}


size_t cgl_groups_read(const reading *r, size_t i, group *g) {
  if (i >= r->count || (r->at[i].kind != CGL_TOKEN_NAME && !is_outermost(r, i)))
    return 0;
  const size_t end = read_maker(r, i, g);
  if (end)
    return end;
  const group *known =
      cgl_groups_stands_alone(r, i) ? find_group(r, &r->at[i], false) : NULL;
  if (!known)
    return 0;
  *g = *known;
  return i + 1;
}


static void emit_value(reading *r, const group *g, const cgl_token *like) {
  char text[MOST_TEXT];
  if (g->kind == TILE)
    snprintf(text, sizeof text, "cgl_group_%stile<%s>()",
             g->of_block ? "block_" : "", g->size);
  else
    snprintf(text, sizeof text, "cgl_group_%s()",
             g->kind == BLOCK ? "block" : "grid");
  cgl_groups_emit(r, text, like);
}


/* ---- declarations ---- */

/* The function of which the token at i is within the brackets of the
   parameters, or arguments, and in which of them; its index, or that of i. */
static size_t find_function(const reading *r, size_t i, size_t *which) {
  size_t depth = 0;
  *which = 0;
  for (size_t k = i; k-- > 0 && !cgl_token_is_any(&r->at[k], ";", "{", "}");) {
    if (cgl_token_is_any(&r->at[k], ")", "]"))
      depth++;
    else if (depth)
      depth -= cgl_token_is_any(&r->at[k], "(", "[");
    else if (cgl_groups_is(r, k, ","))
      ++*which;
    else if (cgl_groups_is(r, k, "("))
      return k && r->at[k - 1].kind == CGL_TOKEN_NAME ? k - 1 : i;
  }
  return i;
}


/* The group that is argument `which` of the call at i, as far as is known. */
static const group *find_passed(const reading *r, size_t i, size_t which) {
  size_t open = i + 1;
  if (cgl_groups_is(r, open, "<"))
    open = cgl_tokens_close_angle(r->at, r->count, open);
  if (!cgl_groups_is(r, open, "("))
    return NULL;
  const size_t last = cgl_tokens_close(r->at, r->count, open) - 1;
  size_t from = open + 1, end = cgl_groups_argument_end(r, from, last);
  for (; which && end < last; which--)
    from = end + 1, end = cgl_groups_argument_end(r, from, last);
  for (size_t k = 0; k < r->known->n && !which; k++)
    if (r->known->passed[k].first == from && r->known->passed[k].end == end)
      return &r->known->passed[k].group;
  return NULL;
}


/* The group that every call of the function passes for the parameter at i. */
static bool read_parameter(const reading *r, size_t i, group *g) {
  size_t which;
  const size_t function = find_function(r, i, &which);
  const group *found = NULL;
  bool several = false; /* tiles of more than one size */
  if (function == i || !cgl_groups_is_behind_type(r, function) ||
      r->known->full)
    return false;
  for (size_t k = 0; k < r->count; k++) {
    if (!cgl_token_same(&r->at[k], &r->at[function]) ||
        cgl_groups_is_behind_type(r, k))
      continue;
    const group *now = find_passed(r, k, which);
    if (!now || (found && (now->of_block != found->of_block ||
                           now->kind != found->kind)))
      return false;
    several |= found && strcmp(now->size, found->size) != 0;
    found = now;
  }
  if (!found || (found->kind == TILE && !found->of_block) ||
      (found->wide && !g->wide))
    return false;
  /* What is no number need not be a name here. */
  const bool number =
      !several && !found->size[strspn(found->size, "0123456789")];
  if (!number && (g->wide || r->at[i].length + 30 > sizeof g->size))
    return false;
  g->of_block = found->of_block;
  g->kind = found->kind;
  if (number)
    memcpy(g->size, found->size, sizeof g->size);
  else
    snprintf(g->size, sizeof g->size, "cgl_group_threads<%.*s>()",
             (int)r->at[i].length, r->at[i].text);
  return true;
}


/* Is nothing done with the group but what put_active and members know, up to
   the end of its scope? */
static bool is_understood(const reading *r, size_t name) {
  static const char *const known[] = {
      "any",  "all",         "ballot", "shfl",        "shfl_up", "shfl_down",
      "sync", "thread_rank", "size",   "num_threads", NULL};
  size_t depth = 0;
  for (size_t i = name + 1; i + 3 < r->count; i++) {
    depth += cgl_groups_is(r, i, "{");
    if (cgl_groups_is(r, i, "}") && !depth--)
      return true;
    if (cgl_token_same(&r->at[i], &r->at[name]) &&
        cgl_groups_stands_alone(r, i) &&
        !(cgl_groups_is(r, i + 1, ".") &&
          cgl_token_is_of(&r->at[i + 2], known) &&
          cgl_groups_is(r, i + 3, "(")))
      return false;
  }
  return true;
}


/* coalesced_group g = coalesced_threads(); is a number of what it has. */
static bool put_lanes(reading *r, group *g, size_t name, size_t end) {
  char text[MOST_TEXT];
  const cgl_token *t = &r->at[name];
  const int n = snprintf(g->size, sizeof g->size, "cgl_active_%.*s",
                         (int)t->length, t->text);
  if (r->parens || n >= (int)sizeof g->size || !end ||
      !cgl_groups_is(r, end, ";") || !is_understood(r, name))
    return false;
  snprintf(text, sizeof text, "const unsigned %s=__activemask()", g->size);
  while (r->out->count &&
         cgl_token_is_any(&r->out->at[r->out->count - 1], "const", "static"))
    r->out->count--;
  cgl_groups_emit(r, text, t);
  return true;
}


/* auto tile = tiled_partition<32>(block);  thread_block b;  and parameters. */
static bool put_declaration(reading *r) {
  group g = {0}, made;
  const cgl_token *like = &r->at[r->i];
  const bool any = cgl_token_is(like, "auto");
  size_t name = any ? r->i + 1 : read_type(r, r->i, &g);
  /* `G g`, of a template */
  if (!name && r->parens && !cgl_token_is_type_word(like)) {
    g.kind = ANY;
    name = r->i + 1;
  }
  if (!name || (!any && !cgl_groups_stands_alone(r, r->i)) ||
      (r->i && cgl_token_is(like - 1, "typedef")))
    return false;
  while (cgl_groups_is(r, name, "&") || cgl_groups_is(r, name, "const"))
    name++;
  const bool named = name + 1 < r->count &&
                     r->at[name].kind == CGL_TOKEN_NAME &&
                     cgl_token_is_any(&r->at[name + 1], "=", ",", ")", ";");
  const size_t end = named && cgl_groups_is(r, name + 1, "=")
                         ? read_maker(r, name + 2, &made)
                         : 0;
  if (any && (!end || !cgl_groups_is(r, end, ";")))
    return false;
  if (any)
    g = made;
  else if ((g.kind == ACTIVE) != (end && made.kind == ACTIVE))
    return false;
  else if (end && g.kind == ANY) {
    g = made;
    g.wide = true;
  } else if (end && made.kind == g.kind)
    g.of_block = made.of_block;
  if (!named || (g.kind == ANY && !(r->parens && read_parameter(r, r->i, &g))))
    return false;
  const bool given = g.of_block; /* by what calls pass: of their very type */
  if (g.kind == TILE && r->parens && !end) {
    group called = {0};
    g.of_block |= !r->known->nested ||
                  (read_parameter(r, r->i, &called) && called.of_block);
  }
  if (g.kind == ACTIVE && !put_lanes(r, &g, name, end))
    return false;
  declare(r, &g, &r->at[name]);
  if (!r->parens &&
      (cgl_groups_is(r, end, ";") || cgl_groups_is(r, name + 1, ";"))) {
    while (r->out->count &&
           cgl_token_is_any(&r->out->at[r->out->count - 1], "const", "static"))
      r->out->count--;
    return r->i = end ? end : name + 1, true; /* the `;` alone stays */
  }
  g.of_block = given;
  if (strchr(g.size, '<')) /* of its own type */
    cgl_tokens_add(r->out, *like);
  else {
    emit_value(r, &g, like);
    r->out->count -= r->out->failed ? 0 : 2; /* the type alone */
  }
  cgl_tokens_add(r->out, r->at[name]);
  return r->i = name + 1, true;
}


/* using tile = cg::thread_block_tile<32>;  typedef of one;
   using cg::this_thread_block; */
static bool take_using(reading *r) {
  group g;
  const bool alias =
      cgl_groups_is(r, r->i, "using") && cgl_groups_is(r, r->i + 2, "=");
  const size_t type = r->i + (alias ? 3 : 1);
  size_t end =
      cgl_groups_is(r, r->i, "typedef") || alias ? read_type(r, type, &g) : 0;
  if (end && g.kind != ANY) {
    const size_t name = alias ? r->i + 1 : end;
    end += !alias;
    if (!cgl_groups_is(r, end, ";") || r->at[name].kind != CGL_TOKEN_NAME)
      return false;
    g.type = true;
    declare(r, &g, &r->at[name]);
  } else {
    const size_t word = cgl_groups_behind(r, type);
    end = word + 1;
    if (!cgl_groups_is(r, r->i, "using") || word == type ||
        !cgl_groups_is(r, end, ";") || r->nused == MOST_NAMES)
      return false;
    r->used[r->nused++] = &r->at[word];
  }
  /* outside of functions for what is not understood */
  while (!r->depth && r->i < end)
    cgl_tokens_add(r->out, r->at[r->i++]);
  return r->i = end + (r->depth > 0), true;
}


/* namespace cg = cooperative_groups;  using namespace cooperative_groups;
   In a function they go, as its text may be written in parts. */
static bool take_namespace(reading *r) {
  const bool alias = cgl_groups_is(r, r->i, "namespace") &&
                     cgl_groups_is(r, r->i + 2, "=") &&
                     cgl_groups_is(r, r->i + 3, "cooperative_groups") &&
                     r->nnames < MOST_NAMES;
  const bool open = cgl_groups_is(r, r->i, "using") &&
                    cgl_groups_is(r, r->i + 1, "namespace") &&
                    cgl_groups_is(r, r->i + 2, "cooperative_groups");
  const size_t end = r->i + (alias ? 4 : 3);
  if (alias)
    r->names[r->nnames++] = &r->at[r->i + 1];
  r->open |= open;
  if (!(alias || open) || !r->depth || !cgl_groups_is(r, end, ";"))
    return false;
  return r->i = end + 1, true;
}


/* What is left of the namespace, an operator, by its whole name. */
static bool put_name(reading *r) {
  static const char *const operators[] = {
      "plus", "less", "greater", "bit_and", "bit_xor", "bit_or", NULL};
  const cgl_token *t = &r->at[r->i];
  const size_t word = cgl_groups_behind(r, r->i);
  const bool named = word > r->i && cgl_groups_stands_alone(r, r->i);
  if (!named &&
      !(is_open(r, r->i) && cgl_groups_is(r, r->i + 1, "<") &&
        cgl_token_is_of(t, operators) && !cgl_groups_is_declared(r, t)))
    return false;
  cgl_groups_emit(r, "cooperative_groups::", t);
  return r->i = word, named;
}


/* Has the text the name in it? */
static bool names(const char *text, const cgl_token *name) {
  const char *const letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  while (*(text += strcspn(text, letters))) {
    const size_t n = strspn(text, letters);
    if (n == name->length && !memcmp(text, name->text, n))
      return true;
    text += n;
  }
  return false;
}


/* Another variable of a group's name hides it, and one of a name that a tile's
   size has hides the tile. */
static void hide_groups(reading *r, const cgl_token *t) {
  for (size_t k = r->n; k-- > 0;) {
    const group *g = &r->groups[k];
    if (g->kind == NO_GROUP)
      continue;
    if (cgl_token_same(g->name, t) || (g->kind == TILE && names(g->size, t)))
      declare(r, &(group){0}, g->name);
  }
}


static void note_passed(reading *r, const group *g, size_t first, size_t end) {
  facts *seen = r->seen;
  if (seen->n < MOST_PASSED)
    seen->passed[seen->n++] = (passed){first, end, *g};
  else
    seen->full = true;
}


static void read_token(reading *r) {
  const cgl_token *t = &r->at[r->i];
  group g;
  size_t end;
  if (t->kind == CGL_TOKEN_NAME) {
    if (take_namespace(r) || take_using(r) || put_declaration(r) ||
        cgl_groups_put_call(r))
      return;
    const bool first =
        cgl_groups_is_behind_type(r, r->i) && r->i + 1 < r->count &&
        cgl_token_is_any(t + 1, "=", ";", ",", ")", "[", "{", "(", ":");
    const bool other = r->i && cgl_token_is_any(t - 1, ",", "{") &&
                       cgl_groups_is(r, r->i + 1, "=");
    if (first || other)
      hide_groups(r, t);
    end = cgl_groups_read(r, r->i, &g);
    if (end && (g.kind != ACTIVE || *g.size)) {
      if (cgl_groups_put_member(r, &g, end))
        return;
      if (!cgl_groups_is(r, end, ".")) {
        r->full |= cgl_groups_is(r, end, "=") ||
                   (r->i > 1 && cgl_groups_is(r, r->i - 1, "(") &&
                    cgl_token_is_any(t - 2, "decltype", "sizeof"));
        note_passed(r, &g, r->i, end);
        emit_value(r, &g, t);
        r->i = end;
        return;
      }
    }
  }
  if (t->kind == CGL_TOKEN_NAME && put_name(r))
    return;
  if (is_outermost(r, r->i) && cgl_groups_behind(r, r->i + 1) > r->i + 1) {
    r->i++;
    return;
  }
  r->seen->nested |= cgl_token_is(t, "tiled_partition");
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


void cgl_groups_read_on(reading *r, size_t end) {
  while (r->i < end && !r->out->failed)
    read_token(r);
}


int cgl_program_lower_groups(const cgl_tokens *from, cgl_arena *arena,
                             cgl_tokens *out) {
  /* At first no parameter is known, and no tile's parent. */
  facts known = {.nested = true}, seen;
  const size_t first = out->count;
  for (int k = 0; k < MOST_READINGS; k++) {
    seen = (facts){0};
    reading r = {.at = from->at,
                 .count = from->count,
                 .arena = arena,
                 .known = &known,
                 .seen = &seen,
                 .out = out};
    out->count = first;
    cgl_groups_read_on(&r, r.count);
    if (r.full)
      out->count = first;
    for (size_t i = 0; r.full && i < r.count; i++)
      cgl_tokens_add(out, r.at[i]);
    if (r.full || (seen.n == known.n && seen.nested == known.nested))
      break;
    known = seen;
  }
  return out->failed ? -1 : 0;
}
