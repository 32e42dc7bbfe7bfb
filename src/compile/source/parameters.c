/* What a compiler knows of a kernel's parameters, asked and taken down. */
#include <stdio.h>
#include <string.h>

#include "compile/source/source.h"

enum { POINTER = 8, READONLY = 16 }; /* places in a parameter's first word */

/* The types that have a kind of their own; enumerations have that of their
   underlying type. */
static const struct {
  const char *type;
  cgl_kind kind;
} kinds[] = {
    {"void", CGL_KIND_VOID},
    {"bool", CGL_KIND_BOOL},
    {"signed char", CGL_KIND_INT8},
    {"unsigned char", CGL_KIND_UINT8},
    {"short", CGL_KIND_INT16},
    {"unsigned short", CGL_KIND_UINT16},
    {"char16_t", CGL_KIND_UINT16},
    {"int", CGL_KIND_INT32},
    {"unsigned int", CGL_KIND_UINT32},
    {"wchar_t", CGL_KIND_INT32},
    {"char32_t", CGL_KIND_UINT32},
    {"long", CGL_KIND_INT64},
    {"unsigned long", CGL_KIND_UINT64},
    {"long long", CGL_KIND_INT64},
    {"unsigned long long", CGL_KIND_UINT64},
    {"float", CGL_KIND_FLOAT},
    {"double", CGL_KIND_DOUBLE},
    {"__half", CGL_KIND_HALF},
    {"__nv_bfloat16", CGL_KIND_BFLOAT16},
    {"cgl_philox", CGL_KIND_PHILOX},
    {"char", CGL_KIND_INT8},
};


void cgl_source_ask(cgl_text *out) {
  cgl_text_print(
      out,
      "\n#line 1 \"cgraphlua\"\n"
      "struct __half; struct __nv_bfloat16; struct cgl_philox;\n"
      "template <unsigned... C> struct cgl_words {};\n"
      "template <class T, bool E> struct cgl_plain { typedef T type; };\n"
      "template <class T> struct cgl_plain<T, true> {\n"
      "  typedef __underlying_type(T) type; };\n"
      "template <class T> struct cgl_kind { static constexpr unsigned value =\n"
      "  __is_class(T) || __is_union(T) ? %d : %d; };\n",
      CGL_KIND_STRUCT, CGL_KIND_UNKNOWN);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    cgl_text_print(out,
                   "template <> struct cgl_kind<%s> { static constexpr "
                   "unsigned value = %d; };\n",
                   kinds[i].type, kinds[i].kind);
  cgl_text_print(
      out,
      "template <class T> struct cgl_bare { typedef T type; "
      "static constexpr unsigned readonly = 0; };\n"
      "template <class T> struct cgl_bare<const T> { typedef T type; "
      "static constexpr unsigned readonly = 1; };\n"
      "template <class T> struct cgl_bare<volatile T> { typedef T type; "
      "static constexpr unsigned readonly = 0; };\n"
      "template <class T> struct cgl_bare<const volatile T> { typedef T type; "
      "static constexpr unsigned readonly = 1; };\n"
      "template <class T, class = void> struct cgl_size {\n"
      "  static constexpr unsigned value = 0; };\n"
      "template <class T> struct cgl_size<T, decltype(void(sizeof(T *)),\n"
      "  void(sizeof(T[1])))> { static constexpr unsigned value = sizeof(T); "
      "};\n"
      "template <class T> struct cgl_type {\n"
      "  typedef typename cgl_plain<T, __is_enum(T)>::type plain;\n"
      "  static constexpr unsigned stars = 0, kind = cgl_kind<plain>::value,\n"
      "    word = kind, element = sizeof(T), align = alignof(T); };\n"
      "template <class T> struct cgl_pointee {\n"
      "  typedef typename cgl_plain<T, __is_enum(T)>::type plain;\n"
      "  static constexpr unsigned stars = 1, kind = cgl_kind<plain>::value,\n"
      "    element = cgl_size<T>::value; };\n"
      "template <class T> struct cgl_pointee<T *> {\n"
      "  typedef cgl_pointee<typename cgl_bare<T>::type> next;\n"
      "  static constexpr unsigned stars = next::stars < 200 ? next::stars + 1 "
      ": 200,\n    kind = next::kind, element = sizeof(T *); };\n"
      "template <class T> struct cgl_type<T *> {\n"
      "  typedef cgl_pointee<typename cgl_bare<T>::type> next;\n"
      "  static constexpr unsigned word = next::kind | next::stars << %d |\n"
      "    cgl_bare<T>::readonly << %d, element = next::element,\n"
      "    align = alignof(T *); };\n"
      "template <class F> struct cgl_answer;\n"
      "template <class... A> struct cgl_answer<void (*)(A...)> {\n"
      "  typedef cgl_words<cgl_type<A>::word..., cgl_type<A>::element...,\n"
      "    cgl_type<A>::align...> cgl_all; };\n",
      POINTER, READONLY);
  cgl_source_ask_records(out);
}


/* "const float *": for a parameter that the reader took for another type. */
static char *spell_type(const cgl_parameter *p, cgl_arena *arena) {
  char text[300];
  int n = snprintf(text, sizeof text, "%s%s%s%.*s", p->readonly ? "const " : "",
                   cgl_kind_word(p->kind), p->pointer ? " " : "",
                   (int)p->pointer, "********************************");
  return cgl_arena_copy(arena, text, (size_t)n);
}


/* A vector type is a struct to the compiler. */
static bool is_vector(const cgl_parameter *read, const cgl_parameter *told) {
  return read->lanes > 1 && told->kind == CGL_KIND_STRUCT &&
         read->pointer == told->pointer && read->element == told->element;
}


static bool is_integer(cgl_kind kind) {
  return kind >= CGL_KIND_INT8 && kind <= CGL_KIND_UINT64;
}


/* Is the spelling that was read one of the type that the compiler told?  The
   sign of an enumeration is in no spelling. */
static bool is_spelling(const cgl_parameter *read, const cgl_parameter *told) {
  if (read->kind == CGL_KIND_UNKNOWN)
    return true;
  return read->pointer == told->pointer && read->readonly == told->readonly &&
         (read->kind == told->kind ||
          (read->element == told->element && is_integer(read->kind) &&
           is_integer(told->kind)));
}


/* What the compiler told of a parameter, which may confirm what was read. */
static int learn_parameter(cgl_parameter *p, bool known, const uint32_t *word,
                           size_t n, cgl_arena *arena) {
  cgl_parameter told = {.kind = (cgl_kind)(word[0] & 0xff),
                        .lanes = 1,
                        .pointer = (uint8_t)(word[0] >> POINTER),
                        .readonly = word[0] >> READONLY & 1,
                        .element = word[n],
                        .align = word[2 * n]};
  if ((unsigned)told.kind >= CGL_KIND_COUNT)
    return -1;
  if (told.pointer == 1 && told.kind == CGL_KIND_VOID)
    told.element = 1;
  told.size = told.pointer ? (uint32_t)sizeof(void *) : told.element;
  if (known && is_vector(p, &told)) {
    told.kind = p->kind;
    told.lanes = p->lanes;
  }
  bool same = known && is_spelling(p, &told);
  told.restricted = same && told.pointer ? p->restricted : 0;
  told.name = known ? p->name : "";
  if (same && told.kind == CGL_KIND_STRUCT && !told.pointer &&
      p->kind == CGL_KIND_STRUCT) {
    told.fields = p->fields;
    told.nfields = p->nfields;
  }
  told.type = same ? p->type : spell_type(&told, arena);
  *p = told;
  return p->type ? 0 : -1;
}


int cgl_source_learn(cgl_arena *arena, cgl_signature *s, const uint32_t *words,
                     size_t n) {
  bool known = s->nparameters == n;
  if (!known) {
    s->parameters = cgl_arena_alloc(arena, (n + 1) * sizeof *s->parameters);
    s->nparameters = s->parameters ? n : 0;
    if (!s->parameters)
      return -1;
  }
  for (size_t i = 0; i < n; i++)
    if (learn_parameter(&s->parameters[i], known, &words[i], n, arena) != 0)
      return -1;
  return 0;
}
