/* A function that returns in several places, as one that returns at its end.
     if (c) { A return x; } B return y;
   is
     T cgl_back; if (c) { A cgl_back = x; } else { B cgl_back = y; }
     return cgl_back;
   Such a function can be put in place of its call (inline.c).
   Invariant: what stands behind a branch is written once, so of an `if` that
   returns one side returns for certain, and the other not at all. */
#include <string.h>

#include "compile/loops/loops_private.h"

typedef struct returns {
  cgl_tokens out;
  int line;     /* of what was put */
  bool value;   /* the function has one */
  bool unclear; /* in a loop, or on one way through a branch only */
} returns;


static const row none = {NULL, 0};

static void put(returns *s, const char *text, row r) {
  s->line = r.n ? r.at->line : s->line;
  cgl_lex(text, strlen(text), s->line, &s->out);
  for (size_t i = 0; i < r.n; i++)
    cgl_tokens_add(&s->out, r.at[i]);
}


/* The statement without the braces around it. */
static row unwrap(row s) {
  const bool block = s.n > 1 && cgl_token_is(s.at, "{") &&
                     cgl_tokens_close(s.at, s.n, 0) == s.n;
  return block ? cgl_row_slice(s, 1, s.n - 1) : s;
}


/* `if (cond) body else otherwise`; of the last nothing, when there is none. */
typedef struct branch {
  row head, body, otherwise;
} branch;

static bool read_branch(row s, branch *b) {
  if (!s.n || !cgl_token_is(s.at, "if"))
    return false;
  const size_t open = 1 + cgl_token_is(&s.at[1], "constexpr");
  const size_t close = cgl_tokens_close(s.at, s.n, open);
  const size_t stop = cgl_tree_end(s, close);
  b->head = cgl_row_slice(s, 0, close);
  b->body = unwrap(cgl_row_slice(s, close, stop));
  b->otherwise = unwrap(cgl_row_slice(s, stop + 1, s.n));
  return true;
}


/* Returns the list for certain? */
static bool ends(row list) {
  for (size_t i = 0, end; i < list.n; i = end) {
    branch b;
    end = cgl_tree_end(list, i);
    const row s = cgl_row_slice(list, i, end);
    if (cgl_token_is(s.at, "return") ||
        (cgl_token_is(s.at, "{") && ends(unwrap(s))) ||
        (read_branch(s, &b) && ends(b.body) && ends(b.otherwise)))
      return true;
  }
  return false;
}


static void put_list(returns *s, row list);
static void put_branch(returns *s, const branch *b, row rest);

/* One side of a branch, and what stands behind it. */
static void put_side(returns *s, row side, row rest) {
  branch b;
  if (ends(side))
    put_list(s, side);
  else if (!cgl_tree_returns(side)) {
    put(s, "{", side);
    put(s, "}", none);
    put_list(s, rest);
  } else if (read_branch(side, &b) && cgl_tree_end(side, 0) == side.n)
    put_branch(s, &b, rest);
  else
    s->unclear = true;
}


static void put_branch(returns *s, const branch *b, row rest) {
  s->unclear |= !ends(b->body) && !ends(b->otherwise);
  if (s->unclear)
    return;
  put(s, "", b->head);
  put(s, "{", none);
  put_side(s, b->body, rest);
  put(s, "} else {", none);
  put_side(s, b->otherwise, rest);
  put(s, "}", none);
}


static void put_list(returns *s, row list) {
  for (size_t i = 0, end; i < list.n && !s->unclear; i = end) {
    branch b;
    end = cgl_tree_end(list, i);
    const row one = cgl_row_slice(list, i, end);
    if (!cgl_tree_returns(one)) {
      put(s, "", one);
      continue;
    }
    if (cgl_token_is(one.at, "return")) {
      const bool list_value = one.n > 1 && cgl_token_is(&one.at[1], "{");
      const bool bare = !s->value || list_value;
      put(s,
          !s->value ? ""
          : bare    ? "cgl_back ="
                    : "cgl_back = (",
          cgl_row_slice(one, 1, one.n - 1));
      put(s, bare ? ";" : ") ;", none);
    } else if (cgl_token_is(one.at, "{") && ends(unwrap(one))) {
      put(s, "{", none);
      put_list(s, unwrap(one));
      put(s, "}", none);
    } else if (read_branch(one, &b))
      put_branch(s, &b, cgl_row_slice(list, end, list.n));
    else
      s->unclear = true;
    return;
  }
}


row cgl_returns_rewrite(tree *t, row body, row type) {
  const bool empty = type.n == 1 && cgl_token_is(type.at, "void");
  const size_t n = cgl_tree_returns(body);
  size_t last = 0;
  for (size_t i = 0; i < body.n; i = cgl_tree_end(body, i))
    last = i;
  const bool at_end = n == 1 && cgl_token_is(&body.at[last], "return");
  const bool known = type.n && !cgl_row_has(type, "auto") &&
                     !cgl_row_has(type, "const") && !cgl_row_has(type, "&");
  if (!n || at_end || !known || (!empty && !ends(body)))
    return body;
  returns s = {.line = body.at->line, .value = !empty};
  if (!empty) {
    put(&s, "", type);
    put(&s, "cgl_back ;", none);
  }
  put_list(&s, body);
  if (!empty)
    put(&s, "return cgl_back ;", none);
  t->failed |= s.out.failed;
  row made = body;
  if (!t->failed && !s.unclear)
    made = cgl_tree_copy(t, s.out.at, s.out.count);
  cgl_tokens_free(&s.out);
  return made;
}
