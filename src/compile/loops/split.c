/* Conditions around what only a few of a row's threads do.
     if (x < w && y < h) {
       tile[ty][tx] = in[i];
       if (threadIdx.x == 0) tile[ty][0] = in[i - 1];
     }
   is read as
     if (x < w && y < h) { tile[ty][tx] = in[i]; }
     if (x < w && y < h && threadIdx.x == 0) { tile[ty][0] = in[i - 1]; }
   so that what one thread does is a region of its own (few.c), and no condition
   within the loop over all of them; and `if (a) ... else ...` likewise.
   Invariant: a condition that is asked more than once has one value: it is made
   of numbers that nothing in the statement changes. */
#include <string.h>

#include "compile/loops/write_private.h"

enum { MOST_PIECES = 16 };

/* A statement as it is taken apart. */
typedef struct split {
  writer *w;
  const statement *whole;
  statement *pieces[MOST_PIECES];
  size_t n;
  bool few; /* a piece is of a few threads */
} split;


static bool is_elsewhere(row all, row cond, size_t i) {
  for (size_t k = 0; k < all.n; k++)
    if (&all.at[k] != &cond.at[i] && cgl_tree_is_name(all, k) &&
        cgl_token_same(&all.at[k], &cond.at[i]))
      return true;
  return false;
}


/* May the condition be asked again within the statement, at any time? */
static bool is_lasting(const split *s, row cond) {
  static const char *const signs[] = {
      "<", ">", "<=", ">=", "==", "!=", "+", "-",
      "/", "%", "&&", "!",  "(",  ")",  NULL};
  tree *t = s->w->t;
  for (size_t i = 0; i < cond.n; i++) {
    const cgl_token *x = &cond.at[i];
    const bool value =
        i && (x[-1].kind == CGL_TOKEN_NAME || x[-1].kind == CGL_TOKEN_NUMBER ||
              cgl_token_is(x - 1, ")"));
    const variable *v = x->kind == CGL_TOKEN_NAME ? cgl_tree_find(t, x) : NULL;
    if (x->kind == CGL_TOKEN_NUMBER)
      continue;
    if (x->kind != CGL_TOKEN_NAME) {
      if ((value && cgl_token_is(x, "(")) ||
          (!cgl_token_is_of(x, signs) && !(value && cgl_token_is(x, "*"))))
        return false;
      continue;
    }
    if (i + 2 < cond.n && cgl_token_is(&x[1], ".") && !v &&
        cgl_token_is_any(x, "threadIdx", "blockIdx", "blockDim", "gridDim")) {
      i += 2;
      continue;
    }
    if (v ? v->shared || v->reference || v->addressed || v->dims.n ||
                v->lambda || v->alias ||
                cgl_values_is_assigned(t, s->whole->all, v)
          : !cgl_values_is_constant(t, x) ||
                is_elsewhere(s->whole->all, cond, i))
      return false;
  }
  return cond.n > 0;
}


/* Does the statement begin with a declaration, or may it? */
static bool may_declare(row r) {
  static const char *const control[] = {"if", "for",    "while", "do",
                                        "{",  "switch", ";",     NULL};
  static const char *const words[] = {
      "auto",          "decltype",   "alignas",       "__align__",
      "__attribute__", "__typeof__", "typeof",        "asm",
      "static_assert", "__asm__",    "__extension__", NULL};
  if (cgl_token_is_of(r.at, control) ||
      cgl_token_is_any(r.at, "*", "(", "++", "--"))
    return false;
  return r.n < 2 || r.at[0].kind != CGL_TOKEN_NAME ||
         cgl_token_is_of(r.at, words) ||
         !(cgl_token_is_assignment(&r.at[1]) || cgl_tree_is_step(&r.at[1]) ||
           cgl_token_is_any(&r.at[1], "[", ".", "->") ||
           (cgl_token_is(&r.at[1], "(") && r.n > 2 &&
            !cgl_token_is_any(&r.at[2], "*", "&", "&&")));
}


/* `int i = y * w + x;` and the like, in front of all else: every piece may have
   its own. */
static bool is_number(const split *s, row declared, row rest) {
  tree *t = s->w->t;
  size_t i = 0;
  while (i < declared.n && cgl_token_is_any(&declared.at[i], "const", "int",
                                            "unsigned", "long", "size_t"))
    i++;
  if (!i || i + 3 > declared.n || !cgl_token_is(&declared.at[i + 1], "=") ||
      !is_lasting(s, cgl_row_slice(declared, i + 2, declared.n - 1)))
    return false;
  const variable own = {.name = declared.at[i],
                        .type = cgl_row_slice(declared, 0, i)};
  return !cgl_tree_find(t, &own.name) &&
         !cgl_values_is_assigned(t, rest, &own) &&
         !cgl_values_is_addressed(t, rest, &own.name);
}


/* ---- pieces ---- */

static void add(row *all, row more) {
  if (more.n)
    memcpy(&all->at[all->n], more.at, more.n * sizeof *all->at);
  all->n += more.n;
}


static void add_sign(row *all, const cgl_token *like, const char *text) {
  cgl_token x = *like;
  x.text = text;
  x.length = (uint32_t)strlen(text);
  all->at[all->n++] = x;
}


static row make_room(split *s, size_t n) {
  row all = {cgl_arena_alloc(s->w->t->arena, n * sizeof *all.at), 0};
  s->w->t->failed |= !all.at;
  return all;
}


/* Adds `if (cond) { front { body } }`: what the body declares may have a name
   of the front. */
static bool put_piece(split *s, row cond, row front, row body) {
  if (!body.n)
    return true;
  row all = make_room(s, cond.n + front.n + body.n + 7);
  if (s->n == MOST_PIECES || !all.at)
    return false;
  const cgl_token *open = &s->whole->all.at[1]; /* behind its `if` */
  add(&all, cgl_row_slice(s->whole->all, 0, 2));
  add(&all, cond);
  add_sign(&all, open, ")");
  add_sign(&all, open, "{");
  add(&all, front);
  if (front.n)
    add_sign(&all, open, "{");
  add(&all, body);
  if (front.n)
    add_sign(&all, open, "}");
  add_sign(&all, open, "}");
  statement *piece = cgl_tree_new(s->w->t, STATEMENT_PLAIN);
  piece->all = all;
  s->pieces[s->n++] = piece;
  s->few |= cgl_few_one(s->w, piece).n || cgl_guard_is_of_rows(s->w, piece);
  return true;
}


/* `outer && inner`, or `outer && !(inner)`. */
static row join(split *s, row outer, row inner, bool negated) {
  row all = make_room(s, outer.n + inner.n + 4);
  const cgl_token *open = &s->whole->all.at[1];
  if (!all.at)
    return all;
  add(&all, outer);
  if (outer.n)
    add_sign(&all, open, "&&");
  if (negated) {
    add_sign(&all, open, "!");
    add_sign(&all, open, "(");
  }
  add(&all, inner);
  if (negated)
    add_sign(&all, open, ")");
  return all;
}


static bool take_if(split *s, row outer, row front, row r);


/* The statements behind a condition, or the one. */
static bool take_body(split *s, row cond, row front, row r) {
  const bool block = r.n && cgl_token_is(r.at, "{");
  const row list = block ? cgl_row_slice(r, 1, r.n - 1) : r;
  const bool given = front.n > 0;
  size_t rest = 0, end = 0;
  for (size_t i = 0; i < list.n; i = end) {
    end = cgl_tree_end(list, i);
    const row one = cgl_row_slice(list, i, end);
    if (may_declare(one)) {
      if (given || front.n != i ||
          !is_number(s, one, cgl_row_slice(list, end, list.n)))
        break;
      front = cgl_row_slice(list, 0, rest = end);
      continue;
    }
    if (!cgl_token_is(one.at, "if") || end - i < 6 ||
        !cgl_token_is(&one.at[1], "("))
      continue;
    const size_t n = s->n;
    const bool few = s->few;
    s->few = false;
    if (put_piece(s, cond, front, cgl_row_slice(list, rest, i)) &&
        take_if(s, cond, front, one) && s->few)
      rest = end;
    else
      s->n = n;
    s->few |= few;
  }
  return put_piece(s, cond, front, cgl_row_slice(list, rest, list.n));
}


/* `if (...) ... else ...` behind a condition. */
static bool take_if(split *s, row outer, row front, row r) {
  const size_t close = cgl_tokens_close(r.at, r.n, 1);
  const row cond = cgl_row_slice(r, 2, close - 1);
  const size_t end = cgl_tree_end(r, close);
  if (!is_lasting(s, cond) || !take_body(s, join(s, outer, cond, false), front,
                                         cgl_row_slice(r, close, end)))
    return false;
  return end == r.n || take_body(s, join(s, outer, cond, true), front,
                                 cgl_row_slice(r, end + 1, r.n));
}


static bool is_taken(const writer *w, const statement *one) {
  const row all = one->all;
  if (w->run || w->t->strips || one->kind != STATEMENT_PLAIN || all.n < 7 ||
      !cgl_token_is(all.at, "if") || !cgl_token_is(&all.at[1], "("))
    return false;
  for (size_t i = 2; i < all.n; i++)
    if (cgl_token_is_any(&all.at[i], "return", "break", "continue", "goto"))
      return false;
  return true;
}


size_t cgl_split_few(writer *w, statement *const *list, size_t n,
                     statement **out) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    split s = {.w = w, .whole = list[i]};
    if (!is_taken(w, list[i]) || count + MOST_PIECES + n - i > MAX_PENDING ||
        !take_if(&s, (row){list[i]->all.at, 0}, (row){list[i]->all.at, 0},
                 list[i]->all) ||
        !s.few || s.n < 2)
      out[count++] = list[i];
    else {
      memcpy(&out[count], s.pieces, s.n * sizeof *out);
      count += s.n;
    }
  }
  return count;
}
