/* What an image says of itself: its kernels' parameters, as the compiler has
   them, and the shared memory of its functions. */
#define _GNU_SOURCE
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/host/host.h"

enum { MOST_WORDS = 3 * 1024 }; /* of one answer */

/* In front of what the image says of a kernel's parameters; no code holds such
   a row. */
static const uint32_t answer_mark[4] = {0x6c676321, 0x9e3779b9, 0x7f4a7c15,
                                        0x85ebca6b};


void cgl_host_ask(cgl_text *out) {
  cgl_text_put(out, "#define cgl_offset(T, cgl_name) "
                    "__builtin_offsetof(T, cgl_name)\n");
  cgl_source_ask(out);
  cgl_text_print(
      out,
      "template <unsigned I, unsigned K, class W> struct cgl_told;\n"
      "template <unsigned I, unsigned K, unsigned... C>\n"
      "struct cgl_told<I, K, cgl_words<C...>> {\n"
      "  static const unsigned words[]; };\n"
      "template <unsigned I, unsigned K, unsigned... C>\n"
      "__attribute__((used)) const unsigned\n"
      "cgl_told<I, K, cgl_words<C...>>::words[] = {%uu, %uu, %uu, %uu, I, K,\n"
      "  sizeof...(C), C...};\n",
      answer_mark[0], answer_mark[1], answer_mark[2], answer_mark[3]);
}


void cgl_host_add_questions(const cgl_image *image, cgl_text *out) {
  for (size_t i = 0; i < image->nsignatures; i++) {
    const char *name = image->signatures[i].name;
    cgl_text_print(out,
                   "template struct cgl_told<%zu, 0, "
                   "cgl_answer<decltype(&%s)>::cgl_all>;\n",
                   i, *name == '&' ? name + 1 : name);
  }
  for (size_t i = 0; i < image->nsignatures; i++)
    for (size_t k = 0; k < image->signatures[i].nparameters; k++) {
      if (!image->signatures[i].parameters[k].nfields)
        continue;
      cgl_source_ask_fields(image, i, k, out);
      cgl_text_print(
          out, "template struct cgl_told<%zu, %zu, cgl_fields_%zu_%zu>;\n", i,
          k + 1, i, k);
    }
}


/* The words that the image tells of kernel i: part 0, its parameters; part k +
   1, the fields of parameter k.  Returns how many, or -1. */
static long answer_find(const cgl_image *image, size_t i, size_t part,
                        uint32_t words[MOST_WORDS]) {
  const char *end = (char *)image->bytes + image->size;
  uint32_t wanted[6], n;
  memcpy(wanted, answer_mark, sizeof answer_mark);
  wanted[4] = (uint32_t)i;
  wanted[5] = (uint32_t)part;
  const char *at = memmem(image->bytes, image->size, wanted, sizeof wanted);
  if (!at || (size_t)(end - at) < sizeof wanted + sizeof n)
    return -1;
  memcpy(&n, at + sizeof wanted, sizeof n);
  at += sizeof wanted + sizeof n;
  if (n > MOST_WORDS || (size_t)(end - at) < n * sizeof *words)
    return -1;
  memcpy(words, at, n * sizeof *words);
  return n;
}


int cgl_host_learn(cgl_job *job) {
  cgl_image *image = job->image;
  uint32_t words[MOST_WORDS];
  for (size_t i = 0; i < image->nsignatures; i++) {
    cgl_signature *s = &image->signatures[i];
    for (size_t k = 0; k < s->nparameters; k++) {
      cgl_parameter *p = &s->parameters[k];
      const long n = p->nfields ? answer_find(image, i, k + 1, words) : 0;
      if (n < 0)
        return -1;
      if (p->nfields)
        cgl_source_learn_fields(p, words, (size_t)n);
    }
    const long n = answer_find(image, i, 0, words);
    if (n < 0 || n % 3 ||
        cgl_source_learn(&image->arena, s, words, (size_t)n / 3) != 0)
      return -1;
  }
  return 0;
}


typedef struct symbol_table {
  const Elf64_Sym *row;
  size_t n;
  const char *names;
  size_t names_size;
} symbol_table;


/* `count` bytes at `offset` of the image, or NULL. */
static const void *image_part(const cgl_image *image, uint64_t offset,
                              uint64_t count) {
  if (offset > image->size || count > image->size - offset || offset & 7)
    return NULL;
  return (const char *)image->bytes + offset;
}


/* All symbols; none in an image without them. */
static symbol_table find_symbols(const cgl_image *image) {
  symbol_table table = {0};
  const Elf64_Ehdr *head = image_part(image, 0, sizeof *head);
  const Elf64_Shdr *all =
      head ? image_part(image, head->e_shoff,
                        (uint64_t)head->e_shnum * sizeof *all)
           : NULL;
  for (size_t i = 0; all && i < head->e_shnum; i++) {
    if (all[i].sh_type != SHT_SYMTAB || all[i].sh_link >= head->e_shnum)
      continue;
    const Elf64_Shdr *text = &all[all[i].sh_link];
    if (text->sh_offset > image->size ||
        text->sh_size > image->size - text->sh_offset || !text->sh_size)
      continue;
    table.row = image_part(image, all[i].sh_offset, all[i].sh_size);
    table.n = table.row ? all[i].sh_size / sizeof *table.row : 0;
    table.names = (const char *)image->bytes + text->sh_offset;
    table.names_size = (size_t)text->sh_size;
  }
  return table;
}


/* The length of what stands in front of a local variable's own name, its
   function: of _ZZ1kPiE1a it is that of _ZZ1kPi.  0 for any other name. */
static size_t function_length(const char *name, size_t n) {
  if (n < 6 || memcmp(name, "_ZZ", 3))
    return 0;
  for (size_t i = n - 1; i > 3; i--) {
    char *end;
    if (name[i] != 'E' || !isdigit((unsigned char)name[i + 1]))
      continue;
    size_t length = strtoul(name + i + 1, &end, 10);
    size_t left = n - (size_t)(end - name);
    if (length == left || (length < left && end[length] == '_'))
      return i;
  }
  return 0;
}


/* "a" of _ZZ1kPiE1a, or the whole name. */
static const char *variable_name(const char *name, size_t n, int *length) {
  size_t function = function_length(name, n);
  char *end = (char *)(uintptr_t)name;
  *length = (int)n;
  if (function)
    *length = (int)strtoul(name + function + 1, &end, 10);
  return end;
}


/* Bytes of the variable and of its function's others. */
static uint64_t function_bytes(const symbol_table *t, size_t which) {
  const char *name = t->names + t->row[which].st_name;
  size_t function = function_length(name, strlen(name));
  uint64_t bytes = t->row[which].st_size;
  for (size_t i = 0; function && i < t->n; i++)
    if (i != which && ELF64_ST_TYPE(t->row[i].st_info) == STT_TLS &&
        t->row[i].st_name < t->names_size) {
      const char *other = t->names + t->row[i].st_name;
      if (function_length(other, strlen(other)) == function &&
          memcmp(other, name, function) == 0)
        bytes += t->row[i].st_size;
    }
  return bytes;
}


/* Shared variables are thread-local ones here. */
cgl_compile_status cgl_host_check_shared(cgl_job *job) {
  symbol_table t = find_symbols(job->image);
  if (!t.n || t.names[t.names_size - 1])
    return CGL_COMPILE_OK;
  for (size_t i = 0; i < t.n; i++) {
    const char *name = t.names + t.row[i].st_name;
    if (ELF64_ST_TYPE(t.row[i].st_info) != STT_TLS ||
        t.row[i].st_name >= t.names_size || !strcmp(name, "cgl_dynamic_shared"))
      continue;
    uint64_t bytes = function_bytes(&t, i);
    if (bytes <= CGL_STATIC_SHARED)
      continue;
    int length;
    const char *variable = variable_name(name, strlen(name), &length);
    cgl_text_print(&job->log,
                   "%s:%d: error: __shared__ %.*s and what its function "
                   "declares beside it take %llu bytes; static shared memory "
                   "has %d: declare it extern __shared__ %.*s[] and launch "
                   "with {blocks, shared = bytes}\n",
                   job->source->file, job->source->line, length, variable,
                   (unsigned long long)bytes, CGL_STATIC_SHARED, length,
                   variable);
    return CGL_COMPILE_REFUSED;
  }
  return CGL_COMPILE_OK;
}
