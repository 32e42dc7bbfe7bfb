#include "compile/frontend/preprocess.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BUCKETS 256
#define MAX_STEPS 200000
#define MAX_TOKENS 4000000
#define MAX_DEPTH 16
#define MAX_FILE (16u << 20)

typedef struct cgl_macro {
  struct cgl_macro *next;
  cgl_token name;
  const cgl_token *body;
  size_t nbody;
  const cgl_token *parameters;
  size_t nparameters;
  bool function;  /* defined with a parameter list */
  bool variadic;  /* the last parameter takes the rest */
  bool undefined; /* #undef */
  bool busy;      /* being expanded */
} cgl_macro;

typedef struct frame {
  const cgl_token *at;
  size_t i, count;
  cgl_macro *macro; /* free again when the frame is read to its end */
  cgl_tokens own;   /* backing store of a macro's replacement */
} frame;

typedef struct expander {
  cgl_pp *pp;
  frame frames[64];
  size_t nframes;
  int line; /* of the outermost token read last */
} expander;

typedef struct group {
  bool active; /* tokens count */
  bool taken;  /* some branch was active */
  bool outer;  /* the enclosing group was active */
} group;


static cgl_macro **find_slot(cgl_pp *pp, const cgl_token *name) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < name->length; i++)
    hash = (hash ^ (unsigned char)name->text[i]) * 16777619u;
  cgl_macro **slot = &pp->macros[hash % BUCKETS];
  while (*slot && !cgl_token_same(&(*slot)->name, name))
    slot = &(*slot)->next;
  return slot;
}


static cgl_macro *find_macro(cgl_pp *pp, const cgl_token *name) {
  cgl_macro *macro = *find_slot(pp, name);
  return macro && !macro->undefined ? macro : NULL;
}


bool cgl_pp_defines(const cgl_pp *pp, const cgl_token *name, bool *function) {
  const cgl_macro *macro = pp->macros ? find_macro((cgl_pp *)pp, name) : NULL;
  *function = macro && macro->function;
  return macro != NULL;
}


static cgl_macro *new_macro(cgl_pp *pp, const cgl_token *name) {
  cgl_macro **slot = find_slot(pp, name);
  if (!*slot)
    *slot = cgl_arena_alloc(&pp->arena, sizeof **slot);
  if (*slot) {
    bool busy = (*slot)->busy;
    cgl_macro *next = (*slot)->next;
    **slot = (cgl_macro){.name = *name, .next = next, .busy = busy};
  }
  return *slot;
}


static cgl_token *copy_tokens(cgl_pp *pp, const cgl_token *at, size_t count) {
  cgl_token *copy = cgl_arena_alloc(&pp->arena, (count + 1) * sizeof *copy);
  if (copy && count)
    memcpy(copy, at, count * sizeof *copy);
  return copy;
}


/* #define, after the word: name, parameters, body. */
static void define_macro(cgl_pp *pp, const cgl_token *at, size_t count) {
  if (!count || at->kind != CGL_TOKEN_NAME)
    return;
  cgl_macro *macro = new_macro(pp, at);
  if (!macro)
    return;
  size_t i = 1;
  if (i < count && cgl_token_is(&at[i], "(") && !at[i].space) {
    cgl_tokens names = {0};
    macro->function = true;
    for (i++; i < count && !cgl_token_is(&at[i], ")"); i++) {
      if (cgl_token_is(&at[i], "...")) {
        macro->variadic = true;
        if (i > 0 && !cgl_token_is(&at[i - 1], ",") &&
            !cgl_token_is(&at[i - 1], "("))
          continue;
        cgl_token rest = at[i];
        rest.text = "__VA_ARGS__";
        rest.length = 11;
        rest.kind = CGL_TOKEN_NAME;
        cgl_tokens_add(&names, rest);
      } else if (at[i].kind == CGL_TOKEN_NAME)
        cgl_tokens_add(&names, at[i]);
    }
    i += i < count;
    macro->parameters = copy_tokens(pp, names.at, names.count);
    macro->nparameters = macro->parameters ? names.count : 0;
    cgl_tokens_free(&names);
  }
  macro->body = copy_tokens(pp, at + i, count - i);
  macro->nbody = macro->body ? count - i : 0;
}


/* -DNAME, -DNAME=VALUE, -UNAME */
static void define_option(cgl_pp *pp, const char *text, bool undefine) {
  const char *equal = strchr(text, '=');
  cgl_text line = {0};
  cgl_text_add(&line, text, equal ? (size_t)(equal - text) : strlen(text));
  cgl_text_put(&line, " ");
  cgl_text_put(&line, equal ? equal + 1 : "1");
  char *copy = line.data && !line.failed
                   ? cgl_arena_copy(&pp->arena, line.data, line.length)
                   : NULL;
  cgl_tokens tokens = {0};
  if (copy)
    cgl_lex(copy, line.length, 0, &tokens);
  if (undefine && tokens.count) {
    cgl_macro *macro = find_macro(pp, tokens.at);
    if (macro)
      macro->undefined = true;
  } else if (!undefine)
    define_macro(pp, tokens.at, tokens.count);
  cgl_tokens_free(&tokens);
  cgl_text_free(&line);
}


static const cgl_token *next_token(expander *e) {
  while (e->nframes) {
    frame *f = &e->frames[e->nframes - 1];
    if (f->i < f->count) {
      if (e->nframes == 1)
        e->line = f->at[f->i].line;
      return &f->at[f->i++];
    }
    if (e->nframes == 1)
      return NULL;
    if (f->macro)
      f->macro->busy = false;
    cgl_tokens_free(&f->own);
    e->nframes--;
  }
  return NULL;
}


/* True when the next token, wherever it comes from, is `(`. */
static bool call_follows(const expander *e) {
  for (size_t k = e->nframes; k-- > 0;) {
    const frame *f = &e->frames[k];
    if (f->i < f->count)
      return cgl_token_is(&f->at[f->i], "(");
  }
  return false;
}


static void drop_frames(expander *e) {
  while (e->nframes > 1) {
    frame *f = &e->frames[--e->nframes];
    if (f->macro)
      f->macro->busy = false;
    cgl_tokens_free(&f->own);
  }
}


static void expand_tokens(cgl_pp *pp, const cgl_token *at, size_t count,
                          int depth, cgl_tokens *out);


/* Collects the arguments of a call whose `(` comes next.  `ends[k]` is the
   number of tokens up to the end of argument k. */
static size_t read_arguments(expander *e, const cgl_macro *macro,
                             cgl_tokens *all, size_t *ends, size_t room) {
  size_t n = 0, depth = 0;
  const cgl_token *t;
  next_token(e);
  while ((t = next_token(e))) {
    if (t->kind == CGL_TOKEN_PUNCT && t->length == 1) {
      char c = *t->text;
      if (c == '(')
        depth++;
      else if (c == ')' && depth-- == 0)
        break;
      else if (c == ',' && depth == 0 && n + 1 < room &&
               !(macro->variadic && n + 1 >= macro->nparameters)) {
        ends[n++] = all->count;
        continue;
      }
    }
    cgl_token copy = *t;
    copy.line = e->line;
    cgl_tokens_add(all, copy);
  }
  ends[n++] = all->count;
  return n;
}


static size_t parameter_index(const cgl_macro *macro, const cgl_token *t) {
  for (size_t i = 0; i < macro->nparameters; i++)
    if (t->kind == CGL_TOKEN_NAME && cgl_token_same(t, &macro->parameters[i]))
      return i;
  return macro->nparameters;
}


/* Joins the last token of `out` with `t`. */
static void paste_token(cgl_pp *pp, cgl_tokens *out, const cgl_token *t) {
  cgl_token *last = &out->at[out->count - 1];
  size_t n = (size_t)last->length + t->length;
  char *text = cgl_arena_alloc(&pp->arena, n + 1);
  if (!text)
    return;
  memcpy(text, last->text, last->length);
  memcpy(text + last->length, t->text, t->length);
  cgl_tokens made = {0};
  cgl_lex(text, n, last->line, &made);
  if (made.count) {
    last->text = text;
    last->length = (uint32_t)n;
    last->kind = made.at[0].kind;
    last->shut = false;
  }
  cgl_tokens_free(&made);
}


static cgl_token make_string(cgl_pp *pp, const cgl_token *at, size_t count,
                             cgl_token hash) {
  cgl_text text = {0};
  cgl_text_put(&text, "\"");
  for (size_t i = 0; i < count; i++) {
    if (i && at[i].space)
      cgl_text_put(&text, " ");
    cgl_text_add(&text, at[i].text, at[i].length);
  }
  cgl_text_put(&text, "\"");
  char *copy =
      text.failed ? NULL : cgl_arena_copy(&pp->arena, text.data, text.length);
  hash.text = copy ? copy : "\"\"";
  hash.length = copy ? (uint32_t)text.length : 2;
  hash.kind = CGL_TOKEN_STRING;
  cgl_text_free(&text);
  return hash;
}


/* Adds the tokens that `t` of a macro's body became; joining: the first one
   becomes a part of the last that is there. */
static void append_piece(cgl_pp *pp, cgl_tokens *piece, const cgl_token *t,
                         int line, bool joining, cgl_tokens *out) {
  for (size_t i = 0; i < piece->count; i++) {
    piece->at[i].line = line;
    piece->at[i].first = false;
    if (i == 0)
      piece->at[i].space = t->space | t->first;
    if (i == 0 && joining && out->count)
      paste_token(pp, out, &piece->at[i]);
    else
      cgl_tokens_add(out, piece->at[i]);
  }
  out->failed |= piece->failed;
}


/* The body of a call with its arguments in place. */
static void substitute_body(cgl_pp *pp, const cgl_macro *macro,
                            const cgl_token *arguments, const size_t *ends,
                            size_t n, int line, int depth, cgl_tokens *out) {
  bool joining = false;
  for (size_t i = 0; i < macro->nbody; i++) {
    const cgl_token *t = &macro->body[i];
    if (cgl_token_is(t, "##") && i > 0) {
      joining = out->count > 0;
      continue;
    }
    size_t k = parameter_index(macro, t), string = macro->nparameters;
    if (macro->function && cgl_token_is(t, "#") && i + 1 < macro->nbody)
      string = parameter_index(macro, &macro->body[i + 1]);
    size_t which = string < macro->nparameters ? string : k;
    size_t first = which > 0 && which <= n ? ends[which - 1] : 0;
    size_t last = which < n ? ends[which] : first;
    cgl_tokens piece = {0};
    if (string < macro->nparameters) {
      cgl_tokens_add(&piece,
                     make_string(pp, arguments + first, last - first, *t));
      i++;
    } else if (k < macro->nparameters) {
      bool raw = joining || (i + 1 < macro->nbody &&
                             cgl_token_is(&macro->body[i + 1], "##"));
      if (raw)
        for (size_t j = first; j < last; j++)
          cgl_tokens_add(&piece, arguments[j]);
      else
        expand_tokens(pp, arguments + first, last - first, depth + 1, &piece);
    } else
      cgl_tokens_add(&piece, *t);
    append_piece(pp, &piece, t, line, joining, out);
    cgl_tokens_free(&piece);
    joining = false;
  }
}


/* Replaces one macro call by pushing its body as a frame. */
static void expand_call(expander *e, cgl_macro *macro, int depth) {
  cgl_tokens arguments = {0}, made = {0};
  size_t ends[128], n = 0;
  if (macro->function)
    n = read_arguments(e, macro, &arguments, ends, 128);
  substitute_body(e->pp, macro, arguments.at, ends, n, e->line, depth, &made);
  cgl_tokens_free(&arguments);
  frame *f = &e->frames[e->nframes++];
  *f = (frame){.at = made.at, .count = made.count, .macro = macro, .own = made};
  macro->busy = true;
}


static void expand_tokens(cgl_pp *pp, const cgl_token *at, size_t count,
                          int depth, cgl_tokens *out) {
  expander e = {.pp = pp};
  e.frames[0] = (frame){.at = at, .count = count};
  e.nframes = 1;
  const cgl_token *t;
  while ((t = next_token(&e)) && !out->failed && out->count < MAX_TOKENS) {
    cgl_token copy = *t;
    copy.line = e.line;
    if (copy.kind == CGL_TOKEN_NAME && !copy.shut) {
      cgl_macro *macro = find_macro(pp, &copy);
      if (macro && macro->busy)
        copy.shut = true;
      else if (macro && pp->steps >= MAX_STEPS)
        pp->partial = true;
      else if (macro && e.nframes < 64 && depth < MAX_DEPTH &&
               (!macro->function || call_follows(&e))) {
        pp->steps++;
        expand_call(&e, macro, depth);
        continue;
      }
    }
    cgl_tokens_add(out, copy);
  }
  drop_frames(&e);
}


bool cgl_pp_is_known_header(const char *name, size_t length) {
  static const char *const known[] = {
      "cuda_fp16.h",
      "cuda_fp16.hpp",
      "cuda_bf16.h",
      "cuda_bf16.hpp",
      "cuda_runtime.h",
      "cuda_runtime_api.h",
      "cuda.h",
      "device_launch_parameters.h",
      "cuComplex.h",
      "cooperative_groups.h",
      "cooperative_groups/reduce.h",
      "cooperative_groups/scan.h",
      "cooperative_groups/memcpy_async.h",
      "vector_types.h",
      "vector_functions.h",
      "math_constants.h",
      "device_functions.h",
      "device_types.h",
      "builtin_types.h",
      "math.h",
      "cmath",
      "stdint.h",
      "cstdint",
      "stddef.h",
      "cstddef",
      "stdio.h",
      "cstdio",
      "assert.h",
      "cassert",
      "float.h",
      "cfloat",
      "limits.h",
      "climits",
      "stdbool.h",
      "stdlib.h",
      "cstdlib",
      "string.h",
      "cstring",
      "cgraphlua/device.h",
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i]) == length && memcmp(known[i], name, length) == 0)
      return true;
  return false;
}


static bool is_same(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}


/* A file that was read before, or NULL. */
static cgl_included *known_file(cgl_pp *pp, const char *path) {
  for (size_t i = 0; i < pp->nfiles; i++)
    if (is_same(pp->files[i].path, path))
      return &pp->files[i];
  return NULL;
}


/* The header `name` at `path`; NULL when there is no such file. */
static cgl_included *read_file(cgl_pp *pp, const char *name, const char *path) {
  cgl_included *file = known_file(pp, path);
  struct stat st;
  cgl_text text = {0};
  /* One spelling of two files has two rows, which cannot be handed over. */
  if (file && is_same(file->name, name))
    return file;
  if (!path || stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
      cgl_text_read(&text, path, MAX_FILE) != 0)
    return cgl_text_free(&text), NULL;
  if (pp->nfiles == pp->file_room) {
    size_t room = pp->file_room ? 2 * pp->file_room : 8;
    cgl_included *more = cgl_arena_alloc(&pp->arena, room * sizeof *more);
    if (!more)
      return cgl_text_free(&text), NULL;
    if (pp->nfiles)
      memcpy(more, pp->files, pp->nfiles * sizeof *more);
    pp->files = more;
    pp->file_room = room;
  }
  file = &pp->files[pp->nfiles++];
  *file =
      (cgl_included){.name = cgl_arena_copy(&pp->arena, name, strlen(name)),
                     .path = cgl_arena_copy(&pp->arena, path, strlen(path)),
                     .text = cgl_arena_copy(
                         &pp->arena, text.data ? text.data : "", text.length),
                     .length = text.length};
  cgl_text_free(&text);
  return file->text ? file : NULL;
}


static cgl_included *try_folder(cgl_pp *pp, const char *folder,
                                const char *name) {
  char *path = cgl_format("%s/%s", folder, name);
  cgl_included *file = path ? read_file(pp, name, path) : NULL;
  free(path);
  return file;
}


/* Where a compiler looks: in quotes beside the file that includes and beside
   the script, then in the folders of the options. */
static cgl_included *find_include(cgl_pp *pp, const char *name, bool quoted) {
  cgl_included *file = NULL;
  pp->guessed = true;
  cgl_text_add(&pp->wanted, name, strlen(name) + 1);
  if (*name == '/')
    return read_file(pp, name, name);
  if (quoted && pp->here)
    file = try_folder(pp, pp->here, name);
  if (quoted && pp->folder && !file)
    file = try_folder(pp, pp->folder, name);
  for (size_t i = 0; i < pp->noptions && !file; i++)
    if (strncmp(pp->options[i], "-I", 2) == 0) {
      const char *folder = pp->options[i] + 2;
      if (!*folder && i + 1 < pp->noptions)
        folder = pp->options[++i];
      file = try_folder(pp, folder, name);
    } else if (strncmp(pp->options[i], "--include-path=", 15) == 0)
      file = try_folder(pp, pp->options[i] + 15, name);
  return file;
}


/* The name between the quotes or angles of a row of tokens, or NULL. */
static char *header_name(cgl_pp *pp, const cgl_token *at, size_t count,
                         bool *quoted) {
  const char *name = at->text + 1;
  const cgl_token *last = &at[count - 1];
  size_t n = (size_t)(last->text + last->length - name);
  *quoted = at->kind == CGL_TOKEN_STRING;
  if ((!*quoted && !cgl_token_is(at, "<")) || n < 2 || n > 4096)
    return NULL;
  if (*quoted)
    n = at->length > 1 ? at->length - 1 : 1;
  return cgl_arena_copy(&pp->arena, name, n - 1);
}


/* A known header is one that the compiler itself may lack, and asked for it
   says so: only what is on disk counts. */
static bool has_header(cgl_pp *pp, const cgl_token *at, size_t count) {
  bool quoted;
  char *name = header_name(pp, at, count, &quoted);
  return name && find_include(pp, name, quoted);
}


static void pp_text(cgl_pp *pp, const char *text, size_t length, int line,
                    int depth);


static void include_file(cgl_pp *pp, const cgl_token *at, size_t count,
                         int line, int depth, bool once) {
  bool quoted;
  if (!count)
    return;
  char *name = header_name(pp, at, count, &quoted);
  cgl_included *file = NULL;
  if (name && cgl_pp_is_known_header(name, strlen(name))) {
    pp->complex |= !strcmp(name, "cuComplex.h");
    pp->groups |= !strncmp(name, "cooperative_groups", 18);
    return;
  }
  pp->steps += 100;
  if (name && depth < MAX_DEPTH && pp->steps < MAX_STEPS)
    file = find_include(pp, name, quoted);
  if (!file) {
    pp->partial = true;
    return;
  }
  if (file->once)
    return;
  file->once = once;
  const char *here = pp->here, *slash = strrchr(file->path, '/');
  pp->here = cgl_arena_copy(&pp->arena, file->path,
                            slash ? (size_t)(slash - file->path) : 0);
  pp->file = (size_t)(file - pp->files) + 1;
  pp_text(pp, file->text, file->length, -line, depth + 1);
  pp->here = here;
}


static bool condition_holds(cgl_pp *pp, const cgl_token *at, size_t count) {
  static const cgl_token one = {
      .text = "1", .length = 1, .kind = CGL_TOKEN_NUMBER};
  static const cgl_token zero = {
      .text = "0", .length = 1, .kind = CGL_TOKEN_NUMBER};
  cgl_tokens plain = {0}, full = {0};
  for (size_t i = 0; i < count; i++) {
    if (cgl_token_is(&at[i], "defined") && i + 1 < count) {
      bool bracket = cgl_token_is(&at[i + 1], "(") && i + 2 < count;
      const cgl_token *name = &at[i + 1 + (size_t)bracket];
      cgl_tokens_add(&plain, find_macro(pp, name) ? one : zero);
      i += bracket ? 3 : 1;
    } else if (cgl_token_is_any(&at[i], "__has_include", "__has_builtin") &&
               i + 1 < count && cgl_token_is(&at[i + 1], "(")) {
      size_t end = cgl_tokens_close(at, count, i + 1);
      bool found = cgl_token_is(&at[i], "__has_include") && end > i + 3 &&
                   has_header(pp, &at[i + 2], end - i - 3);
      cgl_tokens_add(&plain, found ? one : zero);
      i = end - 1;
    } else
      cgl_tokens_add(&plain, at[i]);
  }
  expand_tokens(pp, plain.at, plain.count, 0, &full);
  for (size_t i = 0; i < full.count; i++)
    if (full.at[i].kind == CGL_TOKEN_NAME)
      full.at[i] = cgl_token_is(&full.at[i], "true") ? one : zero;
  long long value = 0;
  if (cgl_evaluate(full.at, full.count, &value) != 0)
    value = 0;
  cgl_tokens_free(&plain);
  cgl_tokens_free(&full);
  return value != 0;
}


/* One directive, without its #; returns with groups and macros changed. */
static void run_directive(cgl_pp *pp, const cgl_token *at, size_t count,
                          group *groups, size_t *ngroups, int line, int depth,
                          size_t file) {
  if (!count)
    return;
  group *g = &groups[*ngroups - 1];
  bool has_name = count > 1;
  if (cgl_token_is_any(at, "if", "ifdef", "ifndef")) {
    bool value = false;
    pp->guessed = true;
    if (g->active && cgl_token_is(at, "if"))
      value = condition_holds(pp, at + 1, count - 1);
    else if (g->active && has_name)
      value = !find_macro(pp, at + 1) != cgl_token_is(at, "ifdef");
    if (*ngroups < 256)
      groups[(*ngroups)++] = (group){
          .active = g->active && value, .taken = value, .outer = g->active};
  } else if (cgl_token_is(at, "elif") && *ngroups > 1) {
    bool value =
        g->outer && !g->taken && condition_holds(pp, at + 1, count - 1);
    g->active = value;
    g->taken |= value;
  } else if (cgl_token_is(at, "else") && *ngroups > 1) {
    g->active = g->outer && !g->taken;
    g->taken = true;
  } else if (cgl_token_is(at, "endif") && *ngroups > 1)
    --*ngroups;
  else if (!g->active)
    return;
  else if (cgl_token_is(at, "define"))
    define_macro(pp, at + 1, count - 1);
  else if (cgl_token_is(at, "undef") && has_name) {
    cgl_macro *macro = find_macro(pp, at + 1);
    if (macro)
      macro->undefined = true;
  } else if (cgl_token_is_any(at, "include", "import"))
    include_file(pp, at + 1, count - 1, line, depth,
                 cgl_token_is(at, "import"));
  else if (cgl_token_is(at, "include_next"))
    pp->partial = pp->guessed = true;
  else if (cgl_token_is(at, "pragma") && has_name &&
           cgl_token_is(at + 1, "once") && file)
    pp->files[file - 1].once = true;
}


/* A negative `line` means: an included file, all of whose tokens stand on
   line -`line` of the script. */
static void pp_text(cgl_pp *pp, const char *text, size_t length, int line,
                    int depth) {
  cgl_tokens row = {0};
  group groups[256] = {{.active = true, .taken = true, .outer = true}};
  size_t ngroups = 1, i = 0, file = pp->file;
  pp->file = 0;
  cgl_lex(text, length, line < 0 ? 1 : line, &row);
  pp->out.failed |= row.failed;
  if (line < 0)
    for (size_t k = 0; k < row.count; k++)
      row.at[k].line = -line;
  while (i < row.count && !pp->out.failed) {
    size_t end = i + 1;
    bool is_directive = row.at[i].first && cgl_token_is(&row.at[i], "#");
    while (end < row.count &&
           (is_directive
                ? !row.at[end].first
                : !(row.at[end].first && cgl_token_is(&row.at[end], "#"))))
      end++;
    if (is_directive)
      run_directive(pp, &row.at[i + 1], end - i - 1, groups, &ngroups,
                    row.at[i].line, depth, file);
    else if (groups[ngroups - 1].active)
      expand_tokens(pp, &row.at[i], end - i, 0, &pp->out);
    i = end;
  }
  cgl_tokens_free(&row);
}


static bool is_std20(const cgl_pp *pp) {
  bool is = false;
  for (size_t i = 0; i < pp->noptions; i++) {
    const char *o = pp->options[i] + (pp->options[i][0] == '-');
    o += *o == '-' ? 1 : 0;
    if (strncmp(o, "std=", 4) == 0)
      is = strcmp(o + 4, "c++20") == 0;
  }
  return is;
}


int cgl_pp_run(cgl_pp *pp, const char *text, size_t length, int line) {
  pp->macros = cgl_arena_alloc(&pp->arena, BUCKETS * sizeof *pp->macros);
  if (!pp->macros)
    return -1;
  define_option(
      pp, is_std20(pp) ? "__cplusplus=202002L" : "__cplusplus=201703L", false);
  define_option(pp, "__CUDACC__", false);
  define_option(pp, "__CUDACC_VER_MAJOR__=12", false);
  define_option(pp, "__CUDACC_VER_MINOR__=0", false);
  define_option(pp, "CUDART_VERSION=12000", false);
  define_option(pp, "CUDA_VERSION=12000", false);
  define_option(pp, "__CUDA_ARCH__=900", false);
  define_option(pp, "__CGRAPHLUA__", false);
  if (pp->before)
    pp_text(pp, pp->before, strlen(pp->before), -1, 0);
  pp->out.count = 0;
  pp->guessed = pp->partial = false;
  for (size_t i = 0; i < pp->noptions; i++) {
    const char *option = pp->options[i];
    if (strncmp(option, "-D", 2) && strncmp(option, "-U", 2))
      continue;
    const char *value = option + 2;
    if (!*value && i + 1 < pp->noptions)
      value = pp->options[++i];
    define_option(pp, value, option[1] == 'U');
  }
  pp_text(pp, text, length, line, 0);
  return pp->out.failed || pp->arena.failed || pp->wanted.failed ? -1 : 0;
}


/* `# 12 "file"`: the line of the script that follows, or 0 in a header. */
static int marked_line(const cgl_token *at, size_t count, const char *file) {
  if (count < 3 || at[1].kind != CGL_TOKEN_NUMBER ||
      at[2].kind != CGL_TOKEN_STRING)
    return -1;
  size_t n = strlen(file);
  bool is_script =
      at[2].length == n + 2 && memcmp(at[2].text + 1, file, n) == 0;
  return is_script ? atoi(at[1].text) : 0;
}


int cgl_pp_output(cgl_pp *pp, const char *text, size_t length, const char *file,
                  int line) {
  cgl_tokens row = {0};
  int here = line, shift = 0; /* of the output's lines to the script's */
  bool header = false;
  cgl_lex(text, length, 1, &row);
  for (size_t i = 0; i < row.count; i++) {
    cgl_token t = row.at[i];
    if (t.first && cgl_token_is(&t, "#")) {
      size_t end = i + 1;
      while (end < row.count && !row.at[end].first)
        end++;
      int marked = marked_line(&row.at[i], end - i, file);
      header = marked >= 0 ? !marked : header;
      if (marked > 0)
        shift = marked - t.line - 1;
      i = end - 1;
      continue;
    }
    if (!header)
      here = t.line + shift;
    t.line = here;
    cgl_tokens_add(&pp->out, t);
  }
  bool failed = row.failed || pp->out.failed;
  cgl_tokens_free(&row);
  return failed ? -1 : 0;
}


/* Past `_Pragma("...")`, which a compiler's output has as a directive. */
static size_t skip_pragma(const cgl_tokens *row, size_t i) {
  while (i < row->count && cgl_token_is(&row->at[i], "_Pragma") &&
         i + 1 < row->count && cgl_token_is(&row->at[i + 1], "("))
    i = cgl_tokens_close(row->at, row->count, i + 1);
  return i;
}


bool cgl_pp_agree(const cgl_pp *a, const cgl_pp *b) {
  size_t i = skip_pragma(&a->out, 0), k = skip_pragma(&b->out, 0);
  while (i < a->out.count && k < b->out.count) {
    if (!cgl_token_same(&a->out.at[i], &b->out.at[k]) &&
        !cgl_token_is_any(&a->out.at[i], "__LINE__", "__FILE__", "__COUNTER__"))
      return false;
    i = skip_pragma(&a->out, i + 1);
    k = skip_pragma(&b->out, k + 1);
  }
  return i == a->out.count && k == b->out.count;
}


void cgl_pp_free(cgl_pp *pp) {
  cgl_tokens_free(&pp->out);
  cgl_text_free(&pp->wanted);
  cgl_arena_free(&pp->arena);
  memset(pp, 0, sizeof *pp);
}
