#include "compile/frontend/types.h"

#include <string.h>

typedef struct spec {
  cgl_kind kind;
  uint8_t lanes, pointer, readonly, restricted, constant;
  const cgl_alias *record; /* of CGL_KIND_STRUCT, NULL where it is not known */
} spec;

typedef struct known {
  const char *word;
  cgl_kind kind;
} known;

static const known named_types[] = {
    {"int8_t", CGL_KIND_INT8},
    {"uint8_t", CGL_KIND_UINT8},
    {"int16_t", CGL_KIND_INT16},
    {"uint16_t", CGL_KIND_UINT16},
    {"int32_t", CGL_KIND_INT32},
    {"uint32_t", CGL_KIND_UINT32},
    {"int64_t", CGL_KIND_INT64},
    {"uint64_t", CGL_KIND_UINT64},
    {"size_t", CGL_KIND_UINT64},
    {"ssize_t", CGL_KIND_INT64},
    {"ptrdiff_t", CGL_KIND_INT64},
    {"intptr_t", CGL_KIND_INT64},
    {"uintptr_t", CGL_KIND_UINT64},
    {"uchar", CGL_KIND_UINT8},
    {"ushort", CGL_KIND_UINT16},
    {"uint", CGL_KIND_UINT32},
    {"ulong", CGL_KIND_UINT64},
    {"half", CGL_KIND_HALF},
    {"__half", CGL_KIND_HALF},
    {"nv_bfloat16", CGL_KIND_BFLOAT16},
    {"__nv_bfloat16", CGL_KIND_BFLOAT16},
    {"cgl_philox", CGL_KIND_PHILOX},
    {"cudaGraphConditionalHandle", CGL_KIND_UINT64},
    {"cudaTextureObject_t", CGL_KIND_UINT64},
    {"clock_t", CGL_KIND_INT64},
};

static const known vector_types[] = {
    {"char", CGL_KIND_INT8},
    {"uchar", CGL_KIND_UINT8},
    {"short", CGL_KIND_INT16},
    {"ushort", CGL_KIND_UINT16},
    {"int", CGL_KIND_INT32},
    {"uint", CGL_KIND_UINT32},
    {"long", CGL_KIND_INT64},
    {"ulong", CGL_KIND_UINT64},
    {"longlong", CGL_KIND_INT64},
    {"ulonglong", CGL_KIND_UINT64},
    {"float", CGL_KIND_FLOAT},
    {"double", CGL_KIND_DOUBLE},
    {"half", CGL_KIND_HALF},
    {"__half", CGL_KIND_HALF},
    {"nv_bfloat16", CGL_KIND_BFLOAT16},
    {"__nv_bfloat16", CGL_KIND_BFLOAT16},
};

static const char *const type_words[] = {
    "void",
    "bool",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "const",
    "volatile",
    "restrict",
    "__restrict",
    "__restrict__",
    "struct",
    "class",
    "union",
    "enum",
    "typename",
    "register",
    "__const__",
    "__grid_constant__",
    "wchar_t",
    "auto",
    NULL,
};


const char *cgl_kind_word(cgl_kind kind) {
  static const char *const words[] = {
#define X(constant, word, bytes) word,
      CGL_KINDS(X)
#undef X
  };
  return (unsigned)kind < CGL_KIND_COUNT ? words[kind] : "unknown";
}


uint32_t cgl_kind_size(cgl_kind kind) {
  static const uint32_t sizes[] = {
#define X(constant, word, bytes) bytes,
      CGL_KINDS(X)
#undef X
  };
  return (unsigned)kind < CGL_KIND_COUNT ? sizes[kind] : 0;
}


bool cgl_token_is_type_word(const cgl_token *token) {
  return cgl_token_is_of(token, type_words);
}


bool cgl_token_takes_arguments(const cgl_token *token) {
  return cgl_token_is_any(token, "__launch_bounds__", "__attribute__",
                          "__attribute", "alignas", "__align__",
                          "__cluster_dims__", "__maxnreg__", "__declspec",
                          "__block_size__", "noexcept", "decltype");
}


bool cgl_token_is_position(const cgl_token *token) {
  return cgl_token_is_any(token, "threadIdx", "blockIdx", "blockDim",
                          "gridDim");
}


bool cgl_token_is_draw(const cgl_token *token) {
  static const char *const stems[] = {"cgl_random", "cgl_uniform", "cgl_normal",
                                      "cgl_below"};
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
    if (token->kind == CGL_TOKEN_NAME && token->length >= strlen(stems[i]) &&
        !memcmp(token->text, stems[i], strlen(stems[i])))
      return true;
  return false;
}


size_t cgl_tokens_close(const cgl_token *at, size_t count, size_t i) {
  size_t depth = 0;
  for (; i < count; i++) {
    if (at[i].kind != CGL_TOKEN_PUNCT || at[i].length != 1)
      continue;
    char c = *at[i].text;
    if (c == '(' || c == '[' || c == '{')
      depth++;
    else if ((c == ')' || c == ']' || c == '}') && --depth == 0)
      return i + 1;
  }
  return count;
}


size_t cgl_tokens_close_angle(const cgl_token *at, size_t count, size_t i) {
  size_t depth = 0;
  while (i < count) {
    if (at[i].kind == CGL_TOKEN_PUNCT) {
      char c = *at[i].text;
      if (c == '(' || c == '[' || c == '{') {
        i = cgl_tokens_close(at, count, i);
        continue;
      }
      if (c == ';')
        return i;
      if (cgl_token_is(&at[i], "<"))
        depth++;
      else if (cgl_token_is(&at[i], ">") && --depth == 0)
        return i + 1;
      else if (cgl_token_is(&at[i], ">>")) {
        if (depth <= 2)
          return i + 1;
        depth -= 2;
      }
    }
    i++;
  }
  return count;
}


/* Are the tokens what stands between a template's < and >, and not what stands
   between two comparisons? */
static bool may_be_arguments(const cgl_token *at, size_t from, size_t to) {
  static const char *const others[] = {")", "]", "}",  "&&", "||",
                                       "?", "=", "+=", "!=", NULL};
  for (size_t i = from; i < to;)
    if (cgl_token_is_of(&at[i], others))
      return false;
    else
      i = cgl_token_is_any(&at[i], "(", "[", "{") ? cgl_tokens_close(at, to, i)
                                                  : i + 1;
  return true;
}


size_t cgl_tokens_past(const cgl_token *at, size_t count, size_t i) {
  if (cgl_token_is_any(&at[i], "(", "[", "{"))
    return cgl_tokens_close(at, count, i);
  if (at[i].kind != CGL_TOKEN_NAME || i + 1 >= count ||
      !cgl_token_is(&at[i + 1], "<"))
    return i + 1;
  const size_t end = cgl_tokens_close_angle(at, count, i + 1);
  return end < count && cgl_token_is(&at[end - 1], ">") &&
                 cgl_token_is_any(&at[end], "(", "{", "::") &&
                 may_be_arguments(at, i + 2, end - 1)
             ? end
             : i + 1;
}


size_t cgl_tokens_element_end(const cgl_token *at, size_t count, size_t i) {
  while (i < count && !cgl_token_is(&at[i], ",")) {
    if (cgl_token_is_any(&at[i], "(", "[", "{"))
      i = cgl_tokens_close(at, count, i);
    else if (cgl_token_is(&at[i], "<"))
      i = cgl_tokens_close_angle(at, count, i);
    else
      i++;
  }
  return i < count ? i : count;
}


/* int, float4, uint32_t, __half2: what the language or CUDA names. */
static void find_known(const cgl_token *name, spec *out) {
  for (size_t i = 0; i < sizeof named_types / sizeof *named_types; i++)
    if (cgl_token_is(name, named_types[i].word)) {
      out->kind = named_types[i].kind;
      return;
    }
  if (cgl_token_is_any(name, "dim3", "uint3")) {
    out->kind = CGL_KIND_UINT32;
    out->lanes = 3;
    return;
  }
  static const known pairs[] = {{"__nv_bfloat162", CGL_KIND_BFLOAT16},
                                {"nv_bfloat162", CGL_KIND_BFLOAT16},
                                {"cuComplex", CGL_KIND_FLOAT},
                                {"cuFloatComplex", CGL_KIND_FLOAT},
                                {"cuDoubleComplex", CGL_KIND_DOUBLE}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (cgl_token_is(name, pairs[i].word)) {
      out->kind = pairs[i].kind;
      out->lanes = 2;
      return;
    }
  char last = name->text[name->length - 1];
  if (last < '1' || last > '4')
    return;
  cgl_token stem = *name;
  stem.length--;
  for (size_t i = 0; i < sizeof vector_types / sizeof *vector_types; i++)
    if (stem.length && cgl_token_is(&stem, vector_types[i].word)) {
      out->kind = vector_types[i].kind;
      out->lanes = (uint8_t)(last - '0');
      return;
    }
}


bool cgl_token_is_known_type(const cgl_token *token) {
  spec found = {.kind = CGL_KIND_UNKNOWN};
  if (token->length)
    find_known(token, &found);
  return found.kind != CGL_KIND_UNKNOWN;
}


static cgl_kind integer_kind(int bits, bool is_unsigned) {
  switch (bits) {
  case 8:
    return is_unsigned ? CGL_KIND_UINT8 : CGL_KIND_INT8;
  case 16:
    return is_unsigned ? CGL_KIND_UINT16 : CGL_KIND_INT16;
  case 32:
    return is_unsigned ? CGL_KIND_UINT32 : CGL_KIND_INT32;
  default:
    return is_unsigned ? CGL_KIND_UINT64 : CGL_KIND_INT64;
  }
}


static void read_spec(const cgl_alias *aliases, const cgl_token *at,
                      size_t count, int depth, spec *out);


static void resolve_name(const cgl_alias *aliases, const cgl_token *name,
                         int depth, spec *out) {
  for (const cgl_alias *a = aliases; a; a = a->outer)
    if (cgl_token_same(&a->name, name)) {
      if (a->record) {
        out->kind = cgl_token_is(name, "cgl_philox") ? CGL_KIND_PHILOX
                                                     : CGL_KIND_STRUCT;
        out->record = a;
      } else if (a->enumeration && !a->count)
        out->kind = CGL_KIND_INT32;
      else if (depth < 16)
        read_spec(a->outer, a->at, a->count, depth + 1, out);
      return;
    }
  find_known(name, out);
}


static void add_pointer(spec *out) {
  out->readonly = out->constant;
  out->constant = 0;
  out->restricted = 0;
  if (out->pointer < 255)
    out->pointer++;
}


/* What the words of a type have said so far. */
typedef struct reading {
  spec said;
  int bits; /* of int, long and their like */
  bool is_unsigned, integer;
  bool resolved; /* said.kind is known, whatever these say */
} reading;


/* Reads a word of the language; false for any other. */
static bool try_word(const cgl_token *t, reading *r) {
  static const struct {
    const char *word;
    int bits; /* 0: it does not say */
  } integers[] = {{"int", 0},    {"signed", 0}, {"unsigned", 0},
                  {"short", 16}, {"long", 64},  {"char", 8}};
  static const known others[] = {{"float", CGL_KIND_FLOAT},
                                 {"double", CGL_KIND_DOUBLE},
                                 {"bool", CGL_KIND_BOOL},
                                 {"void", CGL_KIND_VOID}};
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
    if (cgl_token_is(t, integers[i].word)) {
      if (integers[i].bits)
        r->bits = integers[i].bits;
      r->is_unsigned |= cgl_token_is(t, "unsigned");
      return r->integer = true;
    }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (cgl_token_is(t, others[i].word)) {
      r->said.kind = others[i].kind;
      return r->resolved = true;
    }
  return false;
}


/* The name at i, with its template's arguments; the index of its last token.
   What a member of an instance, or an expression's type, is only a compiler
   knows. */
static size_t read_name(const cgl_alias *aliases, const cgl_token *at,
                        size_t count, size_t i, int depth, reading *r) {
  spec named = {.kind = CGL_KIND_UNKNOWN, .lanes = 1};
  bool computed = cgl_token_is_any(&at[i], "decltype", "__typeof__");
  if (i + 1 < count && cgl_token_is(&at[i + 1], "::"))
    return i;
  if (i + 1 < count && cgl_token_is(&at[i + 1], "<")) {
    named.kind = CGL_KIND_STRUCT;
    i = cgl_tokens_close_angle(at, count, i + 1) - 1;
    if (i + 2 < count && cgl_token_is(&at[i + 1], "::")) {
      named.kind = CGL_KIND_UNKNOWN;
      i += 2;
    }
  } else if (!computed)
    resolve_name(aliases, &at[i], depth, &named);
  if (!r->resolved)
    r->said = named;
  r->resolved = true;
  return i;
}


/* Reads a type; what follows a top-level name that is not part of the type
   has been cut off by the caller. */
static void read_spec(const cgl_alias *aliases, const cgl_token *at,
                      size_t count, int depth, spec *out) {
  reading r = {.said = {.kind = CGL_KIND_UNKNOWN, .lanes = 1}, .bits = 32};
  int constant = 0;
  size_t i = 0;
  for (; i < count && !cgl_token_is_any(&at[i], "*", "&", "&&"); i++) {
    if (cgl_token_is_any(&at[i], "const", "__const__"))
      constant = 1;
    else if (cgl_token_is_any(&at[i], "[", "("))
      i = cgl_tokens_close(at, count, i) - 1;
    else if (!try_word(&at[i], &r) && at[i].kind == CGL_TOKEN_NAME &&
             !cgl_token_is_type_word(&at[i]))
      i = read_name(aliases, at, count, i, depth, &r);
  }
  *out = r.said;
  if (r.integer && !r.resolved)
    out->kind = integer_kind(r.bits, r.is_unsigned);
  out->constant |= (uint8_t)constant;
  for (; i < count; i++) {
    if (cgl_token_is(&at[i], "*"))
      add_pointer(out);
    else if (cgl_token_is(&at[i], "const"))
      out->constant = 1;
    else if (cgl_token_is_any(&at[i], "__restrict__", "__restrict", "restrict"))
      out->restricted = 1;
  }
}


static uint32_t vector_align(cgl_kind kind, uint32_t lanes) {
  uint32_t size = cgl_kind_size(kind);
  if (lanes == 3 || lanes == 1)
    return size;
  return size * lanes > 16 ? 16 : size * lanes;
}


/* The index of the declared name, or `count` for an unnamed parameter. */
static size_t find_name(const cgl_token *at, size_t count) {
  bool type_seen = false;
  for (size_t i = 0; i < count; i++) {
    const cgl_token *t = &at[i];
    if (cgl_token_is(t, "(") && i + 1 < count &&
        cgl_token_is(&at[i + 1], "*")) {
      for (size_t k = i + 1; k < count && !cgl_token_is(&at[k], ")"); k++)
        if (at[k].kind == CGL_TOKEN_NAME && !cgl_token_is_type_word(&at[k]))
          return k;
      return count;
    }
    if (t->kind != CGL_TOKEN_NAME)
      continue;
    if (cgl_token_is_any(t, "__attribute__", "alignas", "__align__", "decltype",
                         "__typeof__")) {
      type_seen |= cgl_token_is_any(t, "decltype", "__typeof__");
      if (i + 1 < count && cgl_token_is(&at[i + 1], "("))
        i = cgl_tokens_close(at, count, i + 1) - 1;
      continue;
    }
    if (cgl_token_is_type_word(t)) {
      type_seen |=
          !cgl_token_is_any(t, "const", "volatile", "restrict", "__restrict",
                            "__restrict__", "struct", "class", "union", "enum",
                            "typename", "register", "__grid_constant__");
      continue;
    }
    if (i + 1 < count && cgl_token_is(&at[i + 1], "::")) {
      i++;
      continue;
    }
    if (type_seen)
      return i;
    type_seen = true;
    if (i + 1 < count && cgl_token_is(&at[i + 1], "<"))
      i = cgl_tokens_close_angle(at, count, i + 1) - 1;
    if (i + 1 < count && cgl_token_is(&at[i + 1], "::"))
      type_seen = false; /* a member of the template's instance is the type */
  }
  return count;
}


/* As source text, one space where the source has white space; NULL without
   memory. */
static char *spell_tokens(const cgl_token *at, size_t count, cgl_arena *arena) {
  size_t n = 1;
  for (size_t i = 0; i < count; i++)
    n += at[i].length + 1;
  char *text = cgl_arena_alloc(arena, n), *end = text;
  if (!text)
    return NULL;
  for (size_t i = 0; i < count; i++) {
    if (i && (at[i].space || at[i].first))
      *end++ = ' ';
    memcpy(end, at[i].text, at[i].length);
    end += at[i].length;
  }
  return text;
}


int cgl_parameter_read(const cgl_alias *aliases, const cgl_token *at,
                       size_t count, cgl_arena *arena, cgl_parameter *out) {
  *out = (cgl_parameter){.lanes = 1};
  for (size_t i = 0, depth = 0; i < count; i++) {
    if (cgl_token_is_any(&at[i], "(", "<"))
      depth++;
    else if (cgl_token_is_any(&at[i], ")", ">"))
      depth -= depth > 0;
    else if (!depth && cgl_token_is(&at[i], "="))
      count = i;
  }
  size_t name = find_name(at, count);
  size_t arrays = 0;
  bool function = false;
  for (size_t i = name; i < count; i++) {
    arrays += cgl_token_is(&at[i], "[") ? 1 : 0;
    function |= cgl_token_is(&at[i], "(");
  }
  cgl_token row[64] = {{0}};
  size_t n = 0;
  for (size_t i = 0; i < count && n < 64; i++)
    if (i < name)
      row[n++] = at[i];
  spec s;
  read_spec(aliases, row, n, 0, &s);
  if (arrays && s.pointer < 255)
    add_pointer(&s);
  if (function)
    s = (spec){.kind = CGL_KIND_UNKNOWN, .lanes = 1, .pointer = 1};
  out->kind = s.kind;
  out->lanes = s.lanes;
  out->pointer = s.pointer;
  out->readonly = s.pointer ? s.readonly : 0;
  out->restricted = s.restricted;
  out->element = s.pointer > 1 ? 8 : cgl_kind_size(s.kind) * s.lanes;
  if (s.pointer)
    out->size = out->align = (uint32_t)sizeof(void *);
  else {
    out->size = out->element;
    out->align = vector_align(s.kind, s.lanes);
  }
  out->type = spell_tokens(row, n, arena);
  out->name = name < count
                  ? cgl_arena_copy(arena, at[name].text, at[name].length)
                  : cgl_arena_copy(arena, "", 0);
  if (s.kind == CGL_KIND_STRUCT && !s.pointer)
    out->record = s.record;
  return out->type && out->name ? 0 : -1;
}
