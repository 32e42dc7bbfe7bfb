/* The files that a compile read, noted in its entry: "+HASH PATH" for a file,
   "-PATH" where there was none. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/cache/cache.h"

#define MAX_FILE (64u << 20)


struct timespec cgl_cache_now(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  return now;
}


/* 32 digits and a NUL; -1 when there is no such file to be read. */
static int hash_file(const char *path, struct stat *st, char digits[33]) {
  cgl_text text = {0};
  if (stat(path, st) != 0 || !S_ISREG(st->st_mode) || st->st_size > MAX_FILE ||
      cgl_text_read(&text, path, MAX_FILE) != 0)
    return cgl_text_free(&text), -1;
  cgl_cache_key key = cgl_cache_hash(text.data ? text.data : "", text.length);
  cgl_text_free(&text);
  for (int i = 0; i < 16; i++)
    snprintf(digits + 2 * i, 3, "%02x", key.bytes[i]);
  return 0;
}


int cgl_cache_note_file(cgl_text *record, const char *path,
                        const struct timespec *since) {
  struct stat st;
  char digits[33];
  if (hash_file(path, &st, digits) != 0 || st.st_mtim.tv_sec > since->tv_sec ||
      (st.st_mtim.tv_sec == since->tv_sec &&
       st.st_mtim.tv_nsec > since->tv_nsec))
    return -1;
  cgl_text_print(record, "+%s %s", digits, path);
  cgl_text_add(record, "", 1);
  return 0;
}


void cgl_cache_note_absent(cgl_text *record, const char *path) {
  if (access(path, F_OK) == 0)
    return;
  cgl_text_print(record, "-%s", path);
  cgl_text_add(record, "", 1);
}


bool cgl_cache_is_as_noted(const char *note) {
  struct stat st;
  char digits[33];
  if (*note == '-')
    return access(note + 1, F_OK) != 0;
  return *note == '+' && strlen(note) > 34 &&
         hash_file(note + 34, &st, digits) == 0 &&
         memcmp(digits, note + 1, 32) == 0;
}
