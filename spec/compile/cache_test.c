/* The disk cache by itself: which entries are sound, which go first, and what
   is done about a folder that cannot be used. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "compile/cache/cache.h"
#include "tap.h"

static char *folder;


static cgl_cache_key key_of(const char *name) {
  return cgl_cache_hash(name, strlen(name));
}


/* Writes an entry under the name; returns the warning, which the caller
   frees. */
static char *put(const char *name, const char *bytes) {
  cgl_cache_key key = key_of(name);
  cgl_cache_entry entry = {.bytes = (void *)(uintptr_t)bytes,
                           .size = strlen(bytes),
                           .record = "k",
                           .record_size = 2,
                           .message = "said"};
  cgl_text warning = {0};
  cgl_cache_write(folder, &key, &entry, &warning);
  return cgl_text_take(&warning);
}


static bool has(const char *name, const char *bytes) {
  cgl_cache_key key = key_of(name);
  cgl_cache_entry entry;
  bool found =
      cgl_cache_read(folder, &key, &entry) && entry.size == strlen(bytes) &&
      !memcmp(entry.bytes, bytes, entry.size) && entry.record_size == 2 &&
      !strcmp(entry.record, "k") && !strcmp(entry.message, "said");
  cgl_cache_entry_free(&entry);
  return found;
}


/* Sets when the file was written last; `path` is freed. */
static void age(char *path, time_t seconds) {
  struct timespec times[2] = {{time(NULL) - seconds, 0},
                              {time(NULL) - seconds, 0}};
  utimensat(AT_FDCWD, path, times, 0);
  free(path);
}


static char *path_of(const char *name) {
  cgl_cache_key key = key_of(name);
  return cgl_cache_path(folder, &key);
}


static bool exists(const char *name) {
  char *path = cgl_format("%s/%s", folder, name);
  bool there = access(path, F_OK) == 0;
  free(path);
  return there;
}


static void make_file(const char *name, time_t seconds) {
  char *path = cgl_format("%s/%s", folder, name);
  close(open(path, O_CREAT | O_WRONLY, 0600));
  age(path, seconds);
}


static void test_entries(void) {
  free(put("one", "first"));
  free(put("two", "second"));
  tap_ok(has("one", "first") && has("two", "second") && !has("three", ""),
         "what was written is read");
  char *one = path_of("one"), *two = path_of("two");
  rename(two, one);
  tap_ok(!has("one", "first") && !has("one", "second") && !has("two", "second"),
         "an entry under another's name is not taken");
  free(put("one", ""));
  cgl_cache_key key = key_of("one");
  cgl_cache_entry entry;
  tap_ok(!cgl_cache_read(folder, &key, &entry), "nor is one without an image");
  free(put("one", "again"));
  tap_ok(has("one", "again"), "it is written anew");
  unlink(one);
  free(one);
  free(two);
}


static void test_trim(void) {
  static const char *const names[] = {"a", "b", "c"};
  struct stat st;
  for (int i = 0; i < 3; i++) {
    free(put(names[i], "of one size"));
    age(path_of(names[i]), 1000 * (3 - i));
  }
  char *path = path_of("a");
  stat(path, &st);
  free(path);
  tap_ok(has("a", "of one size"), "the oldest is used");
  cgl_cache_trim(folder, 2 * (uint64_t)st.st_size);
  tap_ok(has("a", "of one size") && !has("b", "of one size") &&
             has("c", "of one size"),
         "what was used longest ago goes first");
  make_file(".kernel-1-1", 10);
  make_file(".kernel-1-2", 7200);
  make_file("not ours", 7200);
  cgl_cache_trim(folder, UINT64_MAX);
  tap_ok(exists(".kernel-1-1") && !exists(".kernel-1-2") && exists("not ours"),
         "what a process that died left behind goes when it is old");
  path = cgl_format("%s/.kernel-1-1", folder);
  unlink(path);
  free(path);
  path = cgl_format("%s/not ours", folder);
  unlink(path);
  free(path);
  cgl_cache_trim(folder, 0);
  tap_ok(!has("a", "of one size") && rmdir(folder) == 0, "all of it goes");
}


static void test_folders(void) {
  char *place = folder;
  mkdir(place, 0700);
  chmod(place, 0777);
  char *warning = put("x", "bytes"), *again = put("x", "bytes");
  tap_ok(strstr(warning, "may be written by others") && !has("x", "bytes"),
         "a folder that everybody may write to is not used");
  tap_ok(!*again, "which is said once");
  free(warning);
  free(again);
  chmod(place, 0700);
  char *path = path_of("x");
  mkdir(path, 0700);
  warning = put("x", "bytes");
  tap_ok(!*warning && rmdir(path) == 0 && rmdir(place) == 0,
         "an entry that cannot be put in its place leaves nothing behind");
  free(warning);
  free(path);
  folder = cgl_format("%s/deep/er", place);
  warning = put("x", "bytes");
  tap_ok(!*warning && has("x", "bytes"), "folders are made");
  free(warning);
  cgl_cache_trim(folder, 0);
  rmdir(folder);
  path = cgl_format("%s/deep", place);
  rmdir(path);
  free(path);
  free(folder);
  folder = place;
}


int main(void) {
  char made[] = "/tmp/cgraphlua-test-XXXXXX";
  folder = mkdtemp(made);
  if (!folder)
    return 1;
  test_entries();
  test_trim();
  test_folders();
  rmdir(folder);
  return tap_done();
}
