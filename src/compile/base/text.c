#include "compile/base/base.h"

#include <locale.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cgl_arena_piece {
  struct cgl_arena_piece *next;
  size_t used, room;
  _Alignas(16) unsigned char bytes[];
};


/* Makes room for n more bytes and the NUL; false when memory ran out. */
static bool text_reserve(cgl_text *text, size_t n) {
  if (text->failed)
    return false;
  if (n >= SIZE_MAX / 2 - text->length)
    return text->failed = true, false;
  size_t need = text->length + n + 1;
  if (need <= text->room)
    return true;
  size_t room = text->room ? text->room : 256;
  while (room < need)
    room *= 2;
  char *data = realloc(text->data, room);
  if (!data)
    return text->failed = true, false;
  text->data = data;
  text->room = room;
  return true;
}


void cgl_text_add(cgl_text *text, const char *bytes, size_t n) {
  if (!text_reserve(text, n))
    return;
  if (n)
    memcpy(text->data + text->length, bytes, n);
  text->length += n;
  text->data[text->length] = 0;
}


void cgl_text_put(cgl_text *text, const char *string) {
  cgl_text_add(text, string, strlen(string));
}


static void text_vprint(cgl_text *text, const char *format, va_list list) {
  va_list again;
  va_copy(again, list);
  int n = vsnprintf(NULL, 0, format, list);
  if (n < 0)
    text->failed = true;
  else if (text_reserve(text, (size_t)n)) {
    vsnprintf(text->data + text->length, (size_t)n + 1, format, again);
    text->length += (size_t)n;
  }
  va_end(again);
}


void cgl_text_print(cgl_text *text, const char *format, ...) {
  va_list list;
  va_start(list, format);
  text_vprint(text, format, list);
  va_end(list);
}


void cgl_text_quote(cgl_text *text, const char *string) {
  for (; *string; string++) {
    unsigned char c = (unsigned char)*string;
    if (c == '"' || c == '\\') {
      char pair[2] = {'\\', (char)c};
      cgl_text_add(text, pair, 2);
    } else if (c < 32 || c == 127)
      cgl_text_print(text, "\\%03o", c);
    else
      cgl_text_add(text, string, 1);
  }
}


int cgl_text_read(cgl_text *text, const char *path, size_t limit) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return -1;
  char block[8192];
  size_t n;
  while (text->length < limit && (n = fread(block, 1, sizeof block, file)) > 0)
    cgl_text_add(text, block, n);
  bool bad = ferror(file) || text->failed;
  fclose(file);
  return bad ? -1 : 0;
}


char *cgl_text_take(cgl_text *text) {
  cgl_text_add(text, "", 0);
  char *data = text->data;
  if (text->failed) {
    free(data);
    data = NULL;
  }
  memset(text, 0, sizeof *text);
  return data;
}


void cgl_text_free(cgl_text *text) {
  free(text->data);
  memset(text, 0, sizeof *text);
}


void *cgl_arena_alloc(cgl_arena *arena, size_t n) {
  struct cgl_arena_piece *piece = arena->pieces;
  if (n > SIZE_MAX / 4)
    return arena->failed = true, NULL;
  n = (n + 15) & ~(size_t)15;
  if (!piece || piece->room - piece->used < n) {
    size_t room = n > 8192 ? n : 8192;
    piece = calloc(1, sizeof *piece + room);
    if (!piece)
      return arena->failed = true, NULL;
    piece->room = room;
    piece->next = arena->pieces;
    arena->pieces = piece;
  }
  void *bytes = piece->bytes + piece->used;
  piece->used += n;
  return bytes;
}


char *cgl_arena_copy(cgl_arena *arena, const char *bytes, size_t n) {
  char *copy = cgl_arena_alloc(arena, n + 1);
  if (copy)
    memcpy(copy, bytes, n);
  return copy;
}


void cgl_arena_free(cgl_arena *arena) {
  struct cgl_arena_piece *piece = arena->pieces;
  while (piece) {
    struct cgl_arena_piece *next = piece->next;
    free(piece);
    piece = next;
  }
  memset(arena, 0, sizeof *arena);
}


char *cgl_format(const char *format, ...) {
  cgl_text text = {0};
  va_list list;
  va_start(list, format);
  text_vprint(&text, format, list);
  va_end(list);
  return cgl_text_take(&text);
}


static pthread_once_t point_once = PTHREAD_ONCE_INIT;
static locale_t point; /* writes numbers with a point; 0: no memory for it */


static void point_make(void) {
  point = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}


/* Gives the calling thread the locale with the point, and returns the former
   locale; uselocale(0) changes nothing. */
static locale_t point_use(void) {
  pthread_once(&point_once, point_make);
  return uselocale(point);
}


int cgl_format_into(char *text, size_t room, const char *format, va_list args) {
  locale_t former = point_use();
  int length = vsnprintf(text, room, format, args);
  uselocale(former);
  return length;
}


void cgl_format_number(char *text, size_t room, double number) {
  locale_t former = point_use();
  snprintf(text, room, "%.14g", number);
  if (strtod(text, NULL) != number)
    snprintf(text, room, "%.17g", number);
  uselocale(former);
}
