/* The lives of a variable.
     int k = threadIdx.x, i;                 int k = threadIdx.x;
     a[k] = b[k];                            a[k] = b[k];
     for (k = 0; k < n; k++) ...;     is     for (int k2 = 0; k2 < n; k2++) ...;
     i = a[0];                               int i2 = a[0];
   A new value ends what a variable was: what it is from there on is a variable
   of its own, declared where it begins.  So a counter that once was a thread's
   index may be the same for all threads, and what no thread asks for behind a
   barrier has no array.
   The text is followed from assignment to assignment, through branches and
   loops; assignments that the same use may see are of one life.
   Invariant: the new text does in C++ what the old one does.  A variable whose
   uses are not all understood keeps its one life: one that is known by its
   address, that a lambda or assembly names, that an inner declaration hides. */
#include <stdlib.h>
#include <string.h>

#include "compile/loops/loops_private.h"

enum {
  MOST_ASSIGNMENTS = 64, /* of a variable: bits of a `lived` */
  MOST_VISITS = 20000    /* of statements, for a variable */
};

#define STARS "*", "&", "&&", "const", "__restrict__", "__restrict", "volatile"

/* The assignments that may have given the variable its value; 0: the place is
   not reached. */
typedef unsigned long long lived;

/* Where the name stands. */
typedef struct mention {
  size_t at;
  size_t same; /* a mention of the same life, or itself */
  int bit;     /* of the assignment that this is, or -1 */
  bool seen;   /* or of another variable, which hides this one */
} mention;

/* What is put in front of a token. */
typedef struct insertion {
  size_t at;
  row type;
  cgl_token name; /* and a `;`; without text: neither */
} insertion;

typedef struct lives {
  tree *t;
  row r; /* the body of a function */
  const variable *v;
  mention *mentions;
  size_t n;
  mention *assignments[MOST_ASSIGNMENTS];
  int nassignments;
  lived broken, continued; /* at breaks and continues of the innermost loop */
  bool unclear;
  int visits;
  int names; /* that were made */
  insertion *insertions;
  size_t ninsertions, room;
} lives;


/* ---- mentions ---- */

static size_t root(const lives *l, size_t k) {
  while (l->mentions[k].same != k)
    k = l->mentions[k].same;
  return k;
}


/* The first of a life is its root: that of the declaration is 0. */
static void join(lives *l, size_t a, size_t b) {
  a = root(l, a);
  b = root(l, b);
  l->mentions[a > b ? a : b].same = a > b ? b : a;
}


/* The first mention at the place or behind it, but for the declaration; or n.
 */
static size_t find_mention(const lives *l, size_t at) {
  size_t low = 1, high = l->n;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (l->mentions[middle].at < at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}


static bool is_mentioned(const lives *l, size_t from, size_t to) {
  const size_t k = find_mention(l, from);
  return k < l->n && l->mentions[k].at < to;
}


static lived assign(lives *l, size_t k) {
  mention *m = &l->mentions[k];
  m->seen = true;
  if (m->bit < 0) {
    if (l->nassignments == MOST_ASSIGNMENTS)
      return l->unclear = true, 1;
    m->bit = l->nassignments;
    l->assignments[l->nassignments++] = m;
  }
  return 1ull << m->bit;
}


/* ---- the walk ---- */

/* Tokens that ask for the variable or change it, in whatever order. */
static lived see(lives *l, size_t from, size_t to, lived in) {
  const row r = cgl_row_slice(l->r, from, to);
  const size_t first = find_mention(l, from);
  if (!is_mentioned(l, from, to))
    return in;
  for (size_t k = first; k < l->n && l->mentions[k].at < to; k++) {
    l->mentions[k].seen = true;
    if (!in)
      join(l, k, 0);
    for (int bit = 0; bit < l->nassignments; bit++)
      if (in >> bit & 1)
        join(l, k, (size_t)(l->assignments[bit] - l->mentions));
  }
  if (!cgl_values_is_assigned(l->t, r, l->v))
    return in;
  for (size_t k = first; k < l->n && l->mentions[k].at < to; k++)
    join(l, k, first);
  return in | assign(l, first);
}


/* Past the part at i: its comma, its `;`, or `to`. */
static size_t part_end(row r, size_t i, size_t to) {
  while (i < to && !cgl_token_is_any(&r.at[i], ",", ";"))
    i = cgl_tokens_past(r.at, to, i);
  return i < to ? i : to;
}


static bool gives_value(const lives *l, size_t i, size_t to) {
  return i + 2 < to && cgl_token_same(&l->r.at[i], &l->v->name) &&
         cgl_token_is(&l->r.at[i + 1], "=");
}


/* An expression, with commas; which of them divide it is not known beside
   template arguments and a `?`. */
static lived see_parts(lives *l, size_t from, size_t to, lived in) {
  const row all = cgl_row_slice(l->r, from, to);
  if (!is_mentioned(l, from, to))
    return in;
  if (part_end(l->r, from, to) + 1 < to &&
      (cgl_row_has(all, "<") || cgl_row_has(all, "?")))
    return see(l, from, to, in);
  while (from < to) {
    const size_t end = part_end(l->r, from, to);
    if (gives_value(l, from, end)) {
      in = see(l, from + 2, end, in);
      in = assign(l, find_mention(l, from));
    } else
      in = see(l, from, end, in);
    from = end + 1;
  }
  return in;
}


/* Declares the statement the variable's name once more? */
static bool hides(const lives *l, size_t from, size_t to) {
  const row r = cgl_row_slice(l->r, 0, to);
  variable v = {.region = 0};
  if (!is_mentioned(l, from, to))
    return false;
  const row type = {malloc((to - from) * sizeof *r.at), to - from};
  if (!type.at)
    return l->t->failed = true;
  size_t n, i = cgl_tree_specifiers(r, from, &v, type, &n);
  free(type.at);
  for (; i > from && i < to; i = part_end(r, i, to) + 1) {
    while (i < to && cgl_token_is_any(&r.at[i], STARS))
      i++;
    if (i + 1 >= to || r.at[i].kind != CGL_TOKEN_NAME)
      return false;
    if (cgl_token_same(&r.at[i], &l->v->name))
      return true;
  }
  return false;
}


static lived walk(lives *l, size_t from, size_t to, lived in);

/* What is not looked into: it may do all that its words say, in any order. */
static lived see_whole(lives *l, size_t from, size_t to, lived in) {
  const lived out = see(l, from, to, in);
  for (size_t i = from; i < to; i++) {
    if (cgl_token_is(&l->r.at[i], "break"))
      l->broken |= out;
    if (cgl_token_is(&l->r.at[i], "continue"))
      l->continued |= out;
  }
  return out;
}


/* A loop's header; parts that it lacks are empty. */
typedef struct header {
  size_t cond, cond_end, step, step_end, body, body_end;
  bool late; /* the condition is asked behind the body */
} header;


static lived walk_loop(lives *l, const header *h, lived in) {
  const lived broken = l->broken, continued = l->continued;
  lived top = in, last = 0, out = 0;
  l->broken = 0;
  while (top != last && !l->unclear) {
    last = top;
    lived now = top;
    if (!h->late)
      out = now = see_parts(l, h->cond, h->cond_end, now);
    l->continued = 0;
    now = walk(l, h->body, h->body_end, now) | l->continued;
    if (h->late)
      out = now = see_parts(l, h->cond, h->cond_end, now);
    top |= see_parts(l, h->step, h->step_end, now);
  }
  out |= l->broken;
  l->broken = broken;
  l->continued = continued;
  return out;
}


static size_t find_semicolon(row r, size_t i, size_t to) {
  while (i < to && !cgl_token_is(&r.at[i], ";"))
    i = part_end(r, i + cgl_token_is(&r.at[i], ","), to);
  return i;
}


static lived walk_for(lives *l, size_t i, size_t end, lived in) {
  const row r = cgl_row_slice(l->r, 0, end);
  const size_t close = cgl_tokens_close(r.at, end, i + 1);
  const size_t first = find_semicolon(r, i + 2, close - 1);
  const size_t second = find_semicolon(r, first + 1, close - 1);
  if (second >= close - 1) {
    l->unclear = true; /* over a range */
    return in;
  }
  if (hides(l, i + 2, first + 1)) {
    /* a name of the loop's own, which nothing in front of it asks for */
    const size_t at = l->mentions[find_mention(l, i + 2)].at;
    l->unclear |= r.at[at - 1].kind != CGL_TOKEN_NAME;
    return in;
  }
  in = see_parts(l, i + 2, first, in);
  const header h = {.cond = first + 1,
                    .cond_end = second,
                    .step = second + 1,
                    .step_end = close - 1,
                    .body = close,
                    .body_end = end};
  return walk_loop(l, &h, in);
}


static lived walk_if(lives *l, size_t i, size_t end, lived in) {
  const row r = cgl_row_slice(l->r, 0, end);
  i += cgl_token_is(&r.at[i + 1], "constexpr");
  const size_t close = cgl_tokens_close(r.at, end, i + 1);
  const size_t stop = cgl_tree_end(r, close);
  l->unclear |= hides(l, i + 2, close);
  in = see(l, i + 2, close - 1, in);
  const lived out = walk(l, close, stop, in);
  return out | (stop < end ? walk(l, stop + 1, end, in) : in);
}


/* One statement, r[i..end). */
static lived walk_statement(lives *l, size_t i, size_t end, lived in) {
  const row r = cgl_row_slice(l->r, 0, end);
  while (i + 1 < end && cgl_token_is(&r.at[i], "_Pragma"))
    i = cgl_tokens_close(r.at, end, i + 1);
  l->unclear |= ++l->visits > MOST_VISITS;
  if (i >= end)
    return in;
  const cgl_token *x = &r.at[i];
  if (cgl_token_is(x, "{"))
    return walk(l, i + 1, end - 1, in);
  if (cgl_token_is(x, "if"))
    return walk_if(l, i, end, in);
  if (cgl_token_is(x, "for"))
    return walk_for(l, i, end, in);
  if (cgl_token_is(x, "while")) {
    const size_t close = cgl_tokens_close(r.at, end, i + 1);
    l->unclear |= hides(l, i + 2, close);
    const header h = {
        .cond = i + 2, .cond_end = close - 1, .body = close, .body_end = end};
    return walk_loop(l, &h, in);
  }
  if (cgl_token_is(x, "do")) {
    const size_t stop = cgl_tree_end(r, i + 1);
    const size_t close = cgl_tokens_close(r.at, end, stop + 1);
    const header h = {.body = i + 1,
                      .body_end = stop,
                      .cond = stop + 2,
                      .cond_end = close - 1,
                      .late = true};
    return walk_loop(l, &h, in);
  }
  if (cgl_token_is(x, "break"))
    return l->broken |= in, 0;
  if (cgl_token_is(x, "continue"))
    return l->continued |= in, 0;
  if (cgl_token_is(x, "return"))
    return see(l, i + 1, end, in), 0;
  if (cgl_token_is_any(x, "switch", "["))
    return see_whole(l, i, end, in);
  if (is_mentioned(l, i, end) &&
      (hides(l, i, end) ||
       cgl_token_is_any(x, "struct", "class", "union", "enum", "typedef",
                        "using", "asm", "__asm__", "else")))
    return l->unclear = true, in;
  return see_parts(l, i, end, in);
}


static lived walk(lives *l, size_t from, size_t to, lived in) {
  const row r = cgl_row_slice(l->r, 0, to);
  for (size_t i = from; i < to && !l->unclear;) {
    const size_t end = cgl_tree_end(r, i);
    const row s = cgl_row_slice(r, i, end);
    if (is_mentioned(l, i, end) || cgl_row_has(s, "break") ||
        cgl_row_has(s, "continue") || cgl_row_has(s, "return"))
      in = walk_statement(l, i, end, in);
    i = end;
  }
  return in;
}


/* ---- the new variables ---- */

static void insert(lives *l, size_t at, row type, cgl_token name) {
  if (l->ninsertions == l->room) {
    const size_t room = 2 * l->room + 8;
    insertion *more = realloc(l->insertions, room * sizeof *more);
    if (!more) {
      l->t->failed = true;
      return;
    }
    l->insertions = more;
    l->room = room;
  }
  l->insertions[l->ninsertions++] = (insertion){at, type, name};
}


/* Opens the `{` at i a list of statements? */
static bool is_list(row r, size_t i) {
  return cgl_token_is(&r.at[i], "{") &&
         (!i || cgl_token_is_any(&r.at[i - 1], ")", "]", "else", "do", "{", "}",
                                 ";", "mutable"));
}


/* The statement of the innermost list with both places that has the first of
   them; *end: where it ends. */
static size_t find_statement(row r, size_t low, size_t high, size_t *end) {
  size_t from = 0, to = r.n, i = 0;
  for (;;) {
    for (i = from; (*end = cgl_tree_end(cgl_row_slice(r, 0, to), i)) <= low;)
      i = *end;
    if (*end <= high)
      return i;
    size_t k = i;
    while (k < *end && !(is_list(r, k) && k < low &&
                         cgl_tokens_close(r.at, *end, k) > high))
      k++;
    if (k == *end)
      return i;
    from = k + 1;
    to = cgl_tokens_close(r.at, *end, k) - 1;
  }
}


/* Declares the variable of the life whose first mention is k where it begins;
   `high`: where its last one stands. */
static void declare(lives *l, size_t k, size_t high, cgl_token name) {
  const row r = l->r, type = l->v->type;
  const size_t low = l->mentions[k].at, stop = part_end(r, low, r.n);
  const cgl_token none = {.text = NULL};
  size_t end;
  const size_t i = find_statement(r, low, high, &end);
  bool alone = cgl_token_is(&r.at[low + 1], "=") && stop < r.n &&
               cgl_token_is(&r.at[stop], ";");
  for (size_t j = k + 1; j < l->n && l->mentions[j].at < stop; j++)
    alone &= root(l, j) != k;
  for (size_t j = low + 2; j < stop; j++)
    alone &= !cgl_token_is_assignment(&r.at[j]);
  const bool counts = low > 1 && cgl_token_is(&r.at[low - 1], "(") &&
                      cgl_token_is(&r.at[low - 2], "for") &&
                      cgl_tree_end(r, low - 2) > high;
  if (alone && (counts || i == low))
    insert(l, low, type, none);
  else
    insert(l, i, type, name);
}


/* One that the source has not. */
static cgl_token new_name(lives *l, const cgl_token *where) {
  for (;;) {
    cgl_token name =
        cgl_tree_token(l->t, where, "%.*s__l%d", (int)l->v->name.length,
                       l->v->name.text, ++l->names);
    size_t i = 0;
    while (i < l->r.n && !cgl_token_same(&l->r.at[i], &name))
      i++;
    if (i == l->r.n)
      return name;
  }
}


static void rename_lives(lives *l) {
  for (size_t k = 1; k < l->n; k++) {
    const size_t first = root(l, k);
    const mention *m = &l->mentions[k];
    cgl_token *x = &l->r.at[m->at];
    if (first == k && m->seen) {
      const cgl_token name = new_name(l, x);
      size_t high = m->at;
      for (size_t j = k + 1; j < l->n; j++)
        if (root(l, j) == k)
          high = l->mentions[j].at;
      declare(l, k, high, name);
      x->text = name.text;
      x->length = name.length;
    } else if (first && first != k) {
      x->text = l->r.at[l->mentions[first].at].text;
      x->length = l->r.at[l->mentions[first].at].length;
    }
  }
}


static bool names(row r, size_t from, size_t to, const cgl_token *name) {
  for (size_t i = from; i < to; i++)
    if (cgl_token_same(&r.at[i], name))
      return true;
  return false;
}


/* May the `&` at i be of a reference to what is named up to the `;`? */
static bool may_refer(row r, size_t i, const cgl_token *name) {
  size_t end = i;
  if (!cgl_token_is_any(&r.at[i], "&", "&&") || i + 2 >= r.n ||
      !(cgl_token_is_any(&r.at[i + 1], ">", ")") ||
        (r.at[i + 1].kind == CGL_TOKEN_NAME &&
         cgl_token_is_any(&r.at[i + 2], "=", "(", "{", ")"))))
    return false;
  while (end < r.n && !cgl_token_is(&r.at[end], ";"))
    end++;
  return names(r, i + 1, end, name);
}


/* Stands the name at i where a type of any spelling declares it?  In the
   header of a loop that is known (hides). */
static bool may_declare(row r, size_t i) {
  if (!i)
    return false;
  const cgl_token *x = &r.at[i - 1];
  if (x->kind == CGL_TOKEN_NAME)
    return !cgl_token_is_any(x, "return", "else", "do", "case", "sizeof",
                             "throw") &&
           !(i > 2 && cgl_token_is(x - 1, "(") && cgl_token_is(x - 2, "for"));
  if (cgl_token_is(x, "*") && i > 2 && cgl_token_is(x - 1, "("))
    return i + 2 < r.n && x[-2].kind == CGL_TOKEN_NAME &&
           cgl_token_is(&r.at[i + 1], ")") && cgl_token_is(&r.at[i + 2], "(");
  const bool angle = cgl_token_is(x, ">");
  if (!angle && !cgl_token_is_any(x, ")", "]"))
    return false;
  size_t start = i; /* of the statement, or nearly */
  while (start && !cgl_token_is_any(&r.at[start - 1], ";", "{", "}"))
    start--;
  return angle ? cgl_token_is(&r.at[start + 1], "<") ||
                     cgl_token_is_any(&r.at[start], "const", "typename")
               : cgl_token_is_any(&r.at[start], "decltype", "__typeof__",
                                  "typeof", "alignas", "__align__",
                                  "__attribute__", "[");
}


/* Finds the lives of the variable that is known from `from` to `to`; its first
   mention is its declaration, or `from` for a parameter. */
static void find_lives(lives *l, const variable *v, size_t from, size_t to) {
  const row scope = cgl_row_slice(l->r, from, to);
  size_t n = 0, values = 0;
  if (v->shared || v->reference || v->dims.n || v->is_auto || v->constant ||
      cgl_row_has(v->type, "volatile"))
    return;
  for (size_t i = 0; i < scope.n; i++) {
    const bool named =
        cgl_tree_is_name(scope, i) && cgl_token_same(&scope.at[i], &v->name);
    n += named;
    if (may_refer(scope, i, &v->name) ||
        (named && (i || v->parameter) && may_declare(scope, i)))
      return;
    values += named && i && i + 1 < scope.n &&
              cgl_token_is(&scope.at[i + 1], "=") &&
              cgl_token_is_any(&scope.at[i - 1], ";", "{", "}", "(", ",", ")",
                               "else", "do");
    size_t end = cgl_tree_lambda(scope, i);
    if (i && cgl_token_is(&scope.at[i], "[") &&
        cgl_token_is_any(&scope.at[i - 1], "auto", "&", "&&"))
      end = cgl_tokens_close(scope.at, scope.n, i); /* auto [a, b] */
    for (size_t k = i; k < end; k++)
      if (cgl_token_same(&scope.at[k], &v->name))
        return;
  }
  if (!values || cgl_values_is_addressed(l->t, scope, &v->name) ||
      cgl_values_is_closed(l->t, v))
    return;
  mention *mentions = malloc((n + 1) * sizeof *mentions);
  if (!mentions) {
    l->t->failed = true;
    return;
  }
  l->mentions = mentions;
  l->n = v->parameter;
  mentions[0] = (mention){.at = from, .bit = -1, .seen = true};
  for (size_t i = from; i < to; i++)
    if (cgl_tree_is_name(l->r, i) && cgl_token_same(&l->r.at[i], &v->name)) {
      mentions[l->n] = (mention){.at = i, .same = l->n, .bit = -1};
      l->n++;
    }
  l->v = v;
  l->nassignments = 0;
  l->unclear = false;
  l->visits = 0;
  l->broken = l->continued = 0;
  const size_t start =
      v->parameter ? from : part_end(l->r, mentions[0].at, to) + 1;
  const lived in = assign(l, 0);
  lived now = in;
  size_t rest = start;
  /* what the declaration's other variables begin with */
  while (rest < to && rest > from && cgl_token_is(&l->r.at[rest - 1], ",")) {
    const size_t end = part_end(l->r, rest, to);
    now = see(l, rest, end, now);
    rest = end + 1;
  }
  walk(l, rest, to, now);
  if (!l->unclear && !l->t->failed)
    rename_lives(l);
  free(mentions);
  l->mentions = NULL;
}


/* The variables that the statement declares. */
static void find_declared(lives *l, size_t i, size_t end, size_t to) {
  const row r = cgl_row_slice(l->r, 0, end);
  variable base = {.region = -1};
  const row type = cgl_tree_copy(l->t, r.at + i, end - i);
  size_t n, k = cgl_tree_specifiers(r, i, &base, type, &n);
  if (k == i || cgl_row_has(cgl_row_slice(r, i, k), "static"))
    return;
  while (k < end && !l->t->failed) {
    variable v = base;
    const row own = cgl_tree_copy(l->t, type.at, end - i);
    v.type = cgl_row_slice(own, 0, n);
    while (k < end && cgl_token_is_any(&r.at[k], STARS)) {
      v.reference |= cgl_token_is_any(&r.at[k], "&", "&&");
      own.at[v.type.n++] = r.at[k++];
    }
    if (k + 1 >= end || r.at[k].kind != CGL_TOKEN_NAME ||
        !cgl_token_is_any(&r.at[k + 1], "=", ";", ","))
      return;
    v.name = r.at[k];
    const size_t next = part_end(r, k, end) + 1;
    if (v.type.n)
      find_lives(l, &v, k, to);
    k = next;
  }
}


static void find_parameters(lives *l, row parameters) {
  for (size_t i = 0, end; i < parameters.n; i = end + 1) {
    end = part_end(parameters, i, parameters.n);
    row one = cgl_row_slice(parameters, i, end);
    if (one.n < 2 || one.at[one.n - 1].kind != CGL_TOKEN_NAME ||
        cgl_row_has(one, "&") || cgl_row_has(one, "&&") ||
        cgl_row_has(one, "(") || cgl_row_has(one, "[") ||
        cgl_row_has(one, "=") || cgl_row_has(one, "..."))
      continue;
    const variable v = {.name = one.at[one.n - 1],
                        .type = cgl_row_slice(one, 0, one.n - 1),
                        .parameter = true};
    if (!cgl_token_is(&one.at[one.n - 2], "const"))
      find_lives(l, &v, 0, l->r.n);
  }
}


static int by_place(const void *a, const void *b) {
  const insertion *x = a, *y = b;
  if (x->at != y->at)
    return x->at < y->at ? -1 : 1;
  return !x->name.text - !y->name.text;
}


static void add(tree *t, cgl_tokens *out, const insertion *in,
                const cgl_token *where) {
  for (size_t k = 0; k < in->type.n; k++) {
    cgl_token x = in->type.at[k];
    x.line = where->line;
    x.space = true;
    cgl_tokens_add(out, x);
  }
  if (!in->name.text)
    return;
  cgl_token semicolon = cgl_tree_token(t, where, ";");
  semicolon.kind = CGL_TOKEN_PUNCT;
  cgl_token name = in->name;
  name.line = where->line;
  cgl_tokens_add(out, name);
  cgl_tokens_add(out, semicolon);
}


/* The text with what is put into it. */
static row write(lives *l) {
  cgl_tokens out = {0};
  row made = l->r;
  size_t k = 0;
  if (!l->ninsertions)
    return l->r;
  qsort(l->insertions, l->ninsertions, sizeof *l->insertions, by_place);
  for (size_t i = 0; i < l->r.n; i++) {
    for (; k < l->ninsertions && l->insertions[k].at == i; k++)
      add(l->t, &out, &l->insertions[k], &l->r.at[i]);
    cgl_token x = l->r.at[i];
    x.space |= k && l->insertions[k - 1].at == i;
    cgl_tokens_add(&out, x);
  }
  l->t->failed |= out.failed;
  if (!l->t->failed)
    made = cgl_tree_copy(l->t, out.at, out.count);
  cgl_tokens_free(&out);
  return made;
}


/* The variables of a list of statements. */
static void find_in_list(lives *l, size_t from, size_t to) {
  const row r = cgl_row_slice(l->r, 0, to);
  for (size_t i = from; i < to; i = cgl_tree_end(r, i))
    if (cgl_token_is_any(&r.at[i], "case", "default"))
      return; /* of a switch: a jump may pass by what is declared */
  for (size_t i = from, end; i < to && !l->t->failed; i = end) {
    end = cgl_tree_end(r, i);
    find_declared(l, i, end, to);
  }
}


row cgl_lives_rewrite(tree *t, row body, row parameters) {
  lives l = {.t = t, .r = cgl_tree_copy(t, body.at, body.n)};
  for (size_t i = 0; i < l.r.n && !t->failed; i++) {
    const cgl_token *x = &l.r.at[i];
    if (cgl_token_is_any(x, "goto", "try", "#", "using", "typedef") ||
        cgl_program_expands(t->program, l.r.at, l.r.n, i))
      return l.r;
  }
  if (t->failed)
    return body;
  find_parameters(&l, parameters);
  find_in_list(&l, 0, l.r.n);
  for (size_t i = 0; i < l.r.n && !t->failed; i++)
    if (is_list(l.r, i))
      find_in_list(&l, i + 1, cgl_tokens_close(l.r.at, l.r.n, i) - 1);
  const row made = t->failed ? body : write(&l);
  free(l.insertions);
  return made;
}
