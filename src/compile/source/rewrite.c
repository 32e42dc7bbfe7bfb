/* The few changes made to a kernel's text before a compiler sees it.  None
   moves a line. */
#include <string.h>

#include "compile/frontend/preprocess.h"
#include "compile/frontend/program.h"
#include "compile/source/source.h"

typedef struct edit {
  cgl_text *out;
  const char *done; /* the text up to here has been copied */
} edit;


static void copy_to(edit *e, const char *at) {
  cgl_text_add(e->out, e->done, (size_t)(at - e->done));
  e->done = at;
}


static const char *token_end(const cgl_token *t) {
  return t->text + t->length;
}


/* Leaves out the directive `at`..`at + count`, known include or not. */
static void drop_include(edit *e, const cgl_token *at, size_t count) {
  if (count < 3 || !cgl_token_is(&at[1], "include"))
    return;
  const char *name = at[2].text + 1, *end = token_end(&at[count - 1]);
  size_t n = at[2].kind == CGL_TOKEN_STRING
                 ? (at[2].length > 1 ? at[2].length - 2u : 0)
                 : (size_t)(end - name) - 1;
  if (!cgl_pp_is_known_header(name, n))
    return;
  copy_to(e, at->text);
  e->done = end;
}


/* The index of `word` in the declaration that starts at i, or `count`. */
static size_t find_word(const cgl_token *at, size_t count, size_t i,
                        const char *word) {
  for (; i < count; i++) {
    const cgl_token *t = &at[i];
    if (cgl_token_is(t, word))
      return i;
    if (cgl_token_is_any(t, "[", ";", "{", "=", "#"))
      return count;
  }
  return count;
}


static void replace_token(edit *e, const cgl_token *t, const char *text) {
  copy_to(e, t->text);
  cgl_text_put(e->out, text);
  e->done = token_end(t);
}


/* The `{` around token i, or `none`. */
static size_t find_open(const cgl_token *at, size_t i, size_t none) {
  for (size_t depth = 0; i-- > 0;) {
    if (cgl_token_is(&at[i], "}"))
      depth++;
    else if (cgl_token_is(&at[i], "{") && !depth--)
      return i;
  }
  return none;
}


/* Stands the token in a function's template, or in a member of a class's? */
static bool is_in_template(const cgl_token *at, size_t count, size_t i) {
  while ((i = find_open(at, i, count)) != count)
    for (size_t k = i; k-- > 0 && !cgl_token_is_any(&at[k], ";", "{", "}");)
      if (cgl_token_is(&at[k], "template"))
        return true;
  return false;
}


/* Past the specifier at i that is not part of a type, or i. */
static size_t skip_specifier(const cgl_token *at, size_t count, size_t i) {
  if (cgl_token_is_any(&at[i], "extern", "__shared__"))
    return i + 1;
  return cgl_token_is_any(&at[i], "__align__", "alignas", "__attribute__")
             ? cgl_tokens_close(at, count, i + 1)
             : i;
}


/* In a template the compiler forgets the name that __asm__ gives:
   T (&name)[] = *(T (*)[])cgl_dynamic_shared; */
static void share_reference(edit *e, const cgl_token *at, size_t count,
                            size_t first, size_t bracket) {
  const size_t name = bracket - 2;
  cgl_text type = {0};
  for (size_t i = first; i < name;) {
    const size_t next = skip_specifier(at, count, i);
    if (next == i)
      cgl_text_print(&type, "%.*s ", (int)at[i].length, at[i].text);
    i = next > i ? next : i + 1;
  }
  size_t end = bracket + 1;
  while (end < count && cgl_token_is(&at[end], "["))
    end = cgl_tokens_close(at, count, end);
  const int n = (int)(token_end(&at[end - 1]) - at[bracket - 1].text);
  copy_to(e, at[first].text);
  cgl_text_print(e->out, "%s(&%.*s)%.*s = *(%s(*)%.*s)cgl_dynamic_shared",
                 type.failed ? "" : type.data, (int)at[name].length,
                 at[name].text, n, at[bracket - 1].text,
                 type.failed ? "" : type.data, n, at[bracket - 1].text);
  for (int line = at[first].line; line < at[end - 1].line; line++)
    cgl_text_put(e->out, "\n");
  e->out->failed |= type.failed;
  e->done = token_end(&at[end - 1]);
  cgl_text_free(&type);
}


/* __shared__ alignas(n) T name; -> alignas(n) __shared__ T name;  to nvcc the
   word is an attribute, to g++ a specifier, which none may stand in front of.
 */
static void align_array(edit *e, const cgl_token *at, size_t count, size_t i) {
  size_t end = i + 1;
  while (end < count && cgl_token_is(&at[end], "alignas"))
    end = cgl_tokens_close(at, count, end + 1);
  if (end == i + 1)
    return;
  replace_token(e, &at[i], "");
  copy_to(e, token_end(&at[end - 1]));
  cgl_text_put(e->out, " __shared__");
}


/* extern __shared__ T name[]; -> extern __thread T name[] __asm__(...); all
   such arrays are one, as on a GPU.  `i` is at whichever word comes first. */
static void share_array(edit *e, const cgl_token *at, size_t count, size_t i) {
  size_t shared = find_word(at, count, i, "__shared__");
  size_t external = find_word(at, count, i, "extern");
  if (shared == i && external == count)
    align_array(e, at, count, i);
  if (shared == count || external == count)
    return;
  size_t first = shared < external ? shared : external;
  size_t second = shared < external ? external : shared;
  size_t bracket = second;
  while (bracket < count && !cgl_token_is(&at[bracket], "]") &&
         !cgl_token_is(&at[bracket], ";"))
    bracket++;
  if (bracket == count || !cgl_token_is(&at[bracket], "]"))
    return;
  if (bracket > second + 3 && cgl_token_is(&at[bracket - 1], "[") &&
      at[bracket - 2].kind == CGL_TOKEN_NAME && is_in_template(at, count, i)) {
    share_reference(e, at, count, first, bracket);
    return;
  }
  replace_token(e, &at[first], first == external ? "extern __thread" : "");
  replace_token(e, &at[second], second == external ? "extern __thread" : "");
  copy_to(e, token_end(&at[bracket]));
  cgl_text_put(e->out, " __asm__(\"cgl_dynamic_shared\")");
}


static void add_tokens(cgl_text *out, const cgl_token *at, size_t count) {
  for (size_t i = 0; i < count; i++) {
    cgl_text_put(out, " ");
    cgl_text_add(out, at[i].text, at[i].length);
  }
}


/* The loop's header, as a walk through the threads of a run of blocks. */
static void write_loop(edit *e, const cgl_stride_loop *loop) {
  cgl_text type = {0}, bound = {0};
  add_tokens(&type, loop->type, loop->ntype);
  add_tokens(&bound, loop->bound, loop->nbound);
  copy_to(e, loop->start);
  int n = (int)loop->variable->length;
  const char *name = loop->variable->text;
  if (!type.failed && !bound.failed)
    cgl_text_print(
        e->out,
        "for (%s cgl_base = (%s)cgl_first, cgl_end; cgl_base <%s && (cgl_end = "
        "cgl_step<%s>(cgl_base, cgl_span,%s), true); cgl_base = "
        "cgl_step<%s>(cgl_base, cgl_pace,%s)) CGL_UNORDERED for (%s %.*s = "
        "cgl_base; %.*s < cgl_end; %.*s++)",
        type.data, type.data, bound.data, type.data, bound.data, type.data,
        bound.data, type.data, n, name, n, name, n, name);
  e->out->failed |= type.failed || bound.failed;
  for (const char *at = loop->start; at < loop->end; at++)
    if (*at == '\n')
      cgl_text_put(e->out, "\n");
  e->done = loop->end;
  cgl_text_free(&type);
  cgl_text_free(&bound);
}


/* The parenthesis opens or closes an end's condition. */
static void write_end(edit *e, const cgl_end *end, const cgl_token *t) {
  const bool opens = end->open == t->text;
  copy_to(e, opens ? token_end(t) : t->text);
  if (opens)
    cgl_text_print(e->out, "%s::cgl_within%s(%s", end->leaves ? "!" : "",
                   end->last ? "_last" : "", end->leaves ? "!(" : "");
  else
    cgl_text_put(e->out, end->leaves ? "))" : ")");
}


/* The changes that begin at the token, once for all instances of a template. */
static void make_changes(edit *e, const cgl_changes *c, const cgl_token *t) {
  for (size_t i = 0; i < c->nloops; i++)
    if (c->loops[i]->start == t->text) {
      write_loop(e, c->loops[i]);
      return;
    }
  for (size_t i = 0; i < c->nends; i++)
    if (c->ends[i]->open == t->text || c->ends[i]->close == t->text) {
      write_end(e, c->ends[i], t);
      return;
    }
}


/* A body that begins with the token waits first. */
static void begin_kernel(edit *e, const cgl_token *t, const char *const *bodies,
                         size_t n) {
  for (size_t i = 0; i < n && cgl_token_is(t, "{"); i++)
    if (bodies[i] == t->text) {
      copy_to(e, token_end(t));
      cgl_text_put(e->out, " ::cgl_wait_for_grids();");
      return;
    }
}


/* ---- divisions ---- */

#define MOST_NAMES 64

/* The function that is being read: what divides in it for long. */
typedef struct function {
  size_t end; /* of its body */
  const cgl_token *names[MOST_NAMES];
  size_t count;
} function;


static bool is_changed(const cgl_token *at, size_t count, size_t from,
                       const cgl_token *name) {
  for (size_t i = from; i + 1 < count; i++)
    if (at[i].kind == CGL_TOKEN_NAME && cgl_token_same(&at[i], name) &&
        (cgl_token_is_any(&at[i + 1], "=", "+=", "-=", "*=", "/=", "%=", "&=",
                          "|=", "^=", "<<=", ">>=", "++", "--") ||
         cgl_token_is_any(&at[i - 1], "++", "--", "&")))
      return true;
  return false;
}


/* The body at `open` begins: its parameters that nothing changes, and its
   constants. */
static void begin_function(function *f, const cgl_token *at, size_t count,
                           size_t open) {
  size_t from = open - 1;
  for (size_t depth = 1; from && depth;) {
    from--;
    depth += cgl_token_is(&at[from], ")");
    depth -= cgl_token_is(&at[from], "(");
  }
  f->end = cgl_tokens_close(at, count, open);
  f->count = 0;
  for (size_t i = from + 1; i < f->end && f->count < MOST_NAMES; i++) {
    bool parameter = i < open && at[i].kind == CGL_TOKEN_NAME &&
                     cgl_token_is_any(&at[i + 1], ",", ")");
    bool constant = i > open && cgl_token_is(&at[i], "=") &&
                    at[i - 1].kind == CGL_TOKEN_NAME && i > open + 2 &&
                    cgl_token_is_any(&at[i - 3], "const", "constexpr");
    const cgl_token *name = constant ? &at[i - 1] : &at[i];
    if (constant || (parameter && !is_changed(at, f->end, open, name)))
      f->names[f->count++] = name;
  }
}


/* Past the divisor at i, when it is one that is worth a product. */
static size_t read_divisor(const function *f, const cgl_token *at, size_t i) {
  bool known = cgl_token_is_any(&at[i], "blockDim", "gridDim");
  for (size_t k = 0; k < f->count; k++)
    known |= cgl_token_same(f->names[k], &at[i]);
  size_t end = i + 1;
  while (known && end + 1 < f->end && cgl_token_is(&at[end], ".") &&
         at[end + 1].kind == CGL_TOKEN_NAME)
    end += 2;
  return known && !cgl_token_is_any(&at[end], "(", "[", ".", "->", "::", "++",
                                    "--")
             ? end
             : 0;
}


/* ---- places ---- */

/* A place with casts, which the compiler sees through where no place is past an
   int's: ::cgl_placed<T>((T)blockIdx.x * blockDim.x + threadIdx.x). */
static void write_place(edit *e, const cgl_token *at, size_t count,
                        const cgl_place *place) {
  copy_to(e, at->text);
  for (size_t i = 0; i < place->ncasts; i++) {
    cgl_text_put(e->out, i ? "," : "::cgl_placed<");
    add_tokens(e->out, place->casts[i].at, place->casts[i].count);
  }
  cgl_text_put(e->out, ">(");
  if (place->width)
    cgl_text_print(e->out, "%.*s, ", (int)place->width->length,
                   place->width->text);
  copy_to(e, token_end(&at[count - 1]));
  cgl_text_put(e->out, ")");
}


void cgl_source_rewrite(const cgl_source *source, bool host,
                        const cgl_changes *changes, const cgl_program *program,
                        cgl_text *out) {
  size_t nbodies = 0, directive = 0; /* the index behind the last one */
  size_t spoken = 0;                 /* likewise, of what an error would say */
  bool defines = false;              /* the last directive */
  const char *const *bodies =
      program && !host ? cgl_program_bodies(program, &nbodies) : NULL;
  cgl_tokens row = {0};
  edit e = {.out = out, .done = source->text};
  function in = {0};
  cgl_lex(source->text, source->length, 1, &row);
  out->failed |= row.failed;
  for (size_t i = 0; i < row.count; i++) {
    const cgl_token *t = &row.at[i];
    if (t->text < e.done)
      continue;
    if (changes && i >= directive)
      make_changes(&e, changes, t);
    if (t->text < e.done)
      continue;
    cgl_place place;
    const size_t spelled =
        host && (i < directive ? defines : i < in.end && i >= spoken)
            ? cgl_token_cast_place(row.at, row.count, i, &place)
            : 0;
    if (spelled && (i >= directive || t[spelled - 1].line == t->line)) {
      write_place(&e, t, spelled, &place);
      continue;
    }
    if (t->first && cgl_token_is(t, "#")) {
      size_t end = i + 1;
      while (end < row.count && !row.at[end].first)
        end++;
      drop_include(&e, t, end - i);
      directive = end;
      defines = end - i > 1 && cgl_token_is(&t[1], "define");
    } else if (host && cgl_token_is_any(t, "extern", "__shared__"))
      share_array(&e, row.at, row.count, i);
    else if (i >= directive) { /* a macro is no kernel's body */
      if (host && i && i >= in.end && cgl_token_is(t, "{") &&
          cgl_token_is(&row.at[i - 1], ")"))
        begin_function(&in, row.at, row.count, i);
      if (cgl_token_is(t, "assert") && i + 1 < in.end)
        spoken = cgl_tokens_close(row.at, row.count, i + 1);
      size_t by = i < in.end && i >= spoken &&
                          cgl_token_is_any(&row.at[i - 1], "/", "%")
                      ? read_divisor(&in, row.at, i)
                      : 0;
      if (by) {
        copy_to(&e, t->text);
        cgl_text_put(out, "cgl_over(");
        copy_to(&e, token_end(&row.at[by - 1]));
        cgl_text_put(out, ")");
      }
      if (host && program && cgl_program_is_sum(program, t)) {
        copy_to(&e, t->text);
        cgl_text_put(out, "cgl_sum_");
      }
      begin_kernel(&e, t, bodies, nbodies);
    }
  }
  copy_to(&e, source->text + source->length);
  cgl_tokens_free(&row);
}


void cgl_source_put_own_types(const cgl_program *program, cgl_text *out) {
  static const struct {
    const char *name, *type;
  } ours[] = {
      {"int8_t", "signed char"},  {"uint8_t", "unsigned char"},
      {"int16_t", "short"},       {"uint16_t", "unsigned short"},
      {"int32_t", "int"},         {"uint32_t", "unsigned int"},
      {"int64_t", "long"},        {"uint64_t", "unsigned long"},
      {"intptr_t", "long"},       {"uintptr_t", "unsigned long"},
      {"uchar", "unsigned char"}, {"ushort", "unsigned short"},
      {"uint", "unsigned int"},   {"ulong", "unsigned long"},
  };
  if (cgl_program_contains(program, "namespace"))
    return; /* whose names are not everybody's */
  for (const cgl_alias *a = program->aliases; a; a = a->outer)
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
      const char *type = ours[i].type;
      size_t k = 0;
      if (!cgl_token_is(&a->name, ours[i].name))
        continue;
      for (; k < a->count && strncmp(type, a->at[k].text, a->at[k].length) == 0;
           k++) {
        type += a->at[k].length;
        type += *type == ' ';
      }
      if (k < a->count || *type)
        cgl_text_print(out, "#define %s cgl_own_%s\n", ours[i].name,
                       ours[i].name);
    }
}
