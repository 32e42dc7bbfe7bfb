/* The fields of structs, confirmed by the compiler.
   The reader gives their names, and which of them are structs.  The compiler
   tells kind, size, offset and array extents of each, and how many members a
   struct has: fields that leave a member out are no fields.
   A question must not refuse a source, so what a name does not stand for is
   answered with zeros. */
#include <stdlib.h>

#include "compile/source/source.h"

enum { POINTER = 8 }; /* place of the stars, as in parameters.c */


void cgl_source_ask_records(cgl_text *out) {
  cgl_text_put(
      out,
      "template <unsigned C, class F> struct cgl_taken { typedef void type; "
      "};\n"
      "template <class A, class... T> struct cgl_taken<0, void (*)(A, T...)> "
      "{\n"
      "  typedef A type; };\n"
      "template <unsigned C, class A, class... T>\n"
      "struct cgl_taken<C, void (*)(A, T...)> {\n"
      "  typedef typename cgl_taken<C - 1, void (*)(T...)>::type type; };\n"
      "template <class T> struct cgl_record { static constexpr unsigned\n"
      "  cgl_bytes = __is_aggregate(T) && __is_standard_layout(T) ?\n"
      "    sizeof(T) : 0; };\n"
      "template <> struct cgl_record<void> {\n"
      "  static constexpr unsigned cgl_bytes = 0; };\n"
      "template <class T, unsigned C, class = void> struct cgl_takes {\n"
      "  static constexpr bool cgl_is = false; };\n"
      "template <class T, unsigned C> struct cgl_layout {\n"
      "  static constexpr unsigned cgl_bytes = cgl_takes<T, C>::cgl_is &&\n"
      "    !cgl_takes<T, C + 1>::cgl_is ? cgl_record<T>::cgl_bytes : 0; };\n"
      "template <class T, class A, decltype(sizeof(0)) C,\n"
      "  bool = cgl_record<T>::cgl_bytes != 0> struct cgl_member {};\n"
      "template <class T, class F, decltype(sizeof(0)) C>\n"
      "struct cgl_member<T, F T::*, C, true> { typedef void type; };\n"
      "template <class T> struct cgl_extent {\n"
      "  typedef T type; static constexpr unsigned cgl_count = 0; };\n"
      "template <class T, decltype(sizeof(0)) C> struct cgl_extent<T[C]> {\n"
      "  typedef T type; static constexpr unsigned cgl_count = C; };\n"
      "template <class T, unsigned C> struct cgl_field {\n"
      "  typedef cgl_extent<T> cgl_first;\n"
      "  typedef cgl_extent<typename cgl_first::type> cgl_second;\n"
      "  typedef cgl_extent<typename cgl_second::type> cgl_third;\n"
      "  typedef typename cgl_bare<typename cgl_third::type>::type type;\n"
      "  static constexpr unsigned cgl_word = cgl_type<type>::word,\n"
      "    cgl_bytes = sizeof(type), cgl_at = C,\n"
      "    cgl_x = cgl_first::cgl_count, cgl_y = cgl_second::cgl_count,\n"
      "    cgl_z = cgl_third::cgl_count; };\n"
      "template <> struct cgl_field<void, 0> { typedef void type;\n"
      "  static constexpr unsigned cgl_word = 0, cgl_bytes = 0, cgl_at = 0,\n"
      "    cgl_x = 0, cgl_y = 0, cgl_z = 0; };\n");
}


/* Does a struct take `n` initializers?  Here, behind the source, all names are
   ours, because the script's macros hold. */
static void ask_count(uint32_t n, cgl_text *out) {
  cgl_text_print(out,
                 "#ifndef cgl_takes_%u\n#define cgl_takes_%u\n"
                 "template <class cgl_T> struct cgl_takes<cgl_T, %u,\n"
                 "decltype(void(cgl_T{",
                 n, n, n);
  for (uint32_t i = 0; i < n; i++)
    cgl_text_put(out, i ? ", {}" : "{}");
  cgl_text_put(out, "}))> { static constexpr bool cgl_is = true; };\n#endif\n");
}


/* What a struct has under a name. */
static void ask_name(const char *name, cgl_text *out) {
  cgl_text_print(
      out,
      "#ifndef cgl_named_%s\n#define cgl_named_%s cgl_named_%s\n#undef %s\n"
      "template <class cgl_T, class = void> struct cgl_named_%s :\n"
      "  cgl_field<void, 0> {};\n"
      "template <class cgl_T> struct cgl_named_%s<cgl_T, typename\n"
      "  cgl_member<cgl_T, decltype(&cgl_T::%s), sizeof(cgl_T::%s)>::type> :\n"
      "  cgl_field<decltype(cgl_T::%s), cgl_offset(cgl_T, %s)> {};\n#endif\n",
      name, name, name, name, name, name, name, name, name, name);
}


/* The index behind a field and those nested in it. */
static uint32_t field_next(const cgl_field *fields, uint32_t i) {
  return i + 1 + fields[i].nested;
}


/* Adds the words of a struct, which has the fields from `first` to `end` and is
   the type cgl_struct_PREFIX_FIRST, to `words`. */
static void ask_struct(const cgl_field *fields, uint32_t first, uint32_t end,
                       const char *prefix, cgl_text *out, cgl_text *words) {
  uint32_t n = 0;
  for (uint32_t i = first; i < end; i = field_next(fields, i))
    n++;
  ask_count(n, out);
  ask_count(n + 1, out);
  cgl_text_print(words, "%scgl_layout<cgl_struct_%s_%u, %u>::cgl_bytes",
                 words->length ? ",\n" : "", prefix, first, n);
  for (uint32_t i = first; i < end; i = field_next(fields, i)) {
    static const char *const members[] = {"cgl_word", "cgl_bytes", "cgl_at",
                                          "cgl_x",    "cgl_y",     "cgl_z"};
    ask_name(fields[i].name, out);
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
      cgl_text_print(words, ",\ncgl_named_%s<cgl_struct_%s_%u>::%s",
                     fields[i].name, prefix, first, members[k]);
    if (!fields[i].nested)
      continue;
    cgl_text_print(out,
                   "typedef cgl_named_%s<cgl_struct_%s_%u>::type "
                   "cgl_struct_%s_%u;\n",
                   fields[i].name, prefix, first, prefix, i + 1);
    ask_struct(fields, i + 1, field_next(fields, i), prefix, out, words);
  }
}


void cgl_source_ask_fields(const cgl_image *image, size_t kernel,
                           size_t parameter, cgl_text *out) {
  const cgl_signature *s = &image->signatures[kernel];
  const cgl_parameter *p = &s->parameters[parameter];
  char *prefix = cgl_format("%zu_%zu", kernel, parameter);
  cgl_text words = {0};
  out->failed |= !prefix;
  if (!prefix)
    return;
  cgl_text_print(out,
                 "typedef cgl_taken<%zu, decltype(&%s)>::type "
                 "cgl_struct_%s_0;\n",
                 parameter, *s->name == '&' ? s->name + 1 : s->name, prefix);
  ask_struct(p->fields, 0, p->nfields, prefix, out, &words);
  out->failed |= words.failed;
  if (!words.failed)
    cgl_text_print(out, "typedef cgl_words<%s> cgl_fields_%s;\n", words.data,
                   prefix);
  cgl_text_free(&words);
  free(prefix);
}


typedef struct answer {
  const uint32_t *at;
  size_t left;
} answer;


static uint32_t answer_take(answer *a) {
  return a->left ? a->left--, *a->at++ : 0;
}


/* A vector is a struct to the compiler, and an enumeration has the kind of its
   numbers. */
static bool field_take(cgl_field *f, answer *a) {
  const uint32_t word = answer_take(a);
  const cgl_kind told = (cgl_kind)(word & 0xff);
  uint64_t bytes = f->size = answer_take(a);
  f->offset = answer_take(a);
  f->pointer = word >> POINTER != 0;
  for (int i = 0; i < CGL_FIELD_DIMS; i++) {
    f->extents[i] = answer_take(a);
    bytes *= f->extents[i] ? f->extents[i] : 1;
    if (bytes > UINT32_MAX)
      return false;
  }
  if (f->pointer)
    return f->size == sizeof(void *) && !f->nested;
  if (f->nested)
    return told == CGL_KIND_STRUCT;
  if (told == CGL_KIND_STRUCT)
    return f->lanes > 1 && f->size == cgl_kind_size(f->kind) * f->lanes;
  f->kind = told;
  f->lanes = 1;
  return told != CGL_KIND_PHILOX && told < CGL_KIND_COUNT &&
         f->size == cgl_kind_size(told) && told != CGL_KIND_VOID;
}


/* Takes the fields from `first` to `end`; `size`: bytes of their struct. Fields
   lie one behind the other. */
static bool struct_take(cgl_field *fields, uint32_t first, uint32_t end,
                        uint32_t size, answer *a) {
  uint64_t at = 0;
  bool good = size && answer_take(a) == size;
  for (uint32_t i = first; i < end && good; i = field_next(fields, i)) {
    cgl_field *f = &fields[i];
    good = field_take(f, a) && f->offset >= at;
    at = f->size;
    for (int k = 0; k < CGL_FIELD_DIMS; k++)
      at *= f->extents[k] ? f->extents[k] : 1;
    at += f->offset;
    good = good && at <= size &&
           (!f->nested ||
            struct_take(fields, i + 1, field_next(fields, i), f->size, a));
  }
  return good;
}


void cgl_source_learn_fields(cgl_parameter *p, const uint32_t *words,
                             size_t n) {
  answer a = {words, n};
  if (n && struct_take(p->fields, 0, p->nfields, *words, &a) && !a.left)
    return;
  p->fields = NULL;
  p->nfields = 0;
}


bool cgl_source_drop_fields(cgl_image *image) {
  bool any = false;
  for (size_t i = 0; i < image->nsignatures; i++)
    for (size_t k = 0; k < image->signatures[i].nparameters; k++) {
      cgl_parameter *p = &image->signatures[i].parameters[k];
      any |= p->nfields != 0;
      p->fields = NULL;
      p->nfields = 0;
    }
  return any;
}
