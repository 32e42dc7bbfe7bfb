/* The disk cache by itself: which entries are sound, which go first, and what
   is done about a folder that cannot be used. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
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


/* Nothing is taken that somebody else may have put there. */
static void test_strangers(void) {
  free(put("own", "bytes"));
  char *path = path_of("own"), *aside = cgl_format("%s/aside", folder);
  static const mode_t modes[] = {0620, 0602, 0666};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    chmod(path, modes[i]);
    tap_ok(!has("own", "bytes"), "an entry of mode %o is not taken",
           (unsigned)modes[i]);
  }
  chmod(path, 0600);
  static const mode_t places[] = {0770, 0707, 01777};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    chmod(folder, places[i]);
    tap_ok(!has("own", "bytes"), "nor one of a folder of mode %o",
           (unsigned)places[i]);
  }
  chmod(folder, 0700);
  tap_ok(has("own", "bytes"), "it was good");
  rename(path, aside);
  tap_ok(symlink(aside, path) == 0 && !has("own", "bytes"),
         "a link is not followed");
  unlink(path);
  unlink(aside);
  alarm(20); /* a FIFO that is opened waits for a writer */
  tap_ok(mkfifo(path, 0600) == 0 && !has("own", "bytes"),
         "a FIFO is not waited for");
  char *warning = put("own", "bytes");
  tap_ok(!*warning && has("own", "bytes"), "and an entry takes its place");
  alarm(0);
  if (geteuid() == 0 && chown(path, 65534, 65534) == 0)
    tap_ok(!has("own", "bytes"), "nor is another user's entry taken");
  else
    tap_skip("nor is another user's entry taken", "only root can give it away");
  if (geteuid() == 0 && chown(path, 0, 0) == 0 &&
      chown(folder, 65534, 65534) == 0) {
    tap_ok(!has("own", "bytes"), "nor one of another user's folder");
    chown(folder, 0, 0);
  } else
    tap_skip("nor one of another user's folder", "only root can give it away");
  free(warning);
  free(path);
  free(aside);
  cgl_cache_trim(folder, 0);
}


static void *put_often(void *argument) {
  bool *good = argument;
  for (int i = 0; i < 50; i++) {
    char *warning = put("together", "bytes");
    *good &= !*warning && has("together", "bytes");
    free(warning);
  }
  return NULL;
}


/* Names that a process of this number could have left, and many threads. */
static void test_names(void) {
  pthread_t threads[8];
  bool good[8], all = true;
  char name[64];
  for (int i = 0; i < 2000; i++) {
    snprintf(name, sizeof name, ".kernel-%ld-%d", (long)getpid(), i);
    make_file(name, 0);
  }
  for (int i = 0; i < 8; i++) {
    good[i] = true;
    pthread_create(&threads[i], NULL, put_often, &good[i]);
  }
  for (int i = 0; i < 8; i++) {
    pthread_join(threads[i], NULL);
    all &= good[i];
  }
  tap_ok(all, "no two writers take the same name");
  for (int i = 0; i < 2000; i++) {
    char *path = cgl_format("%s/.kernel-%ld-%d", folder, (long)getpid(), i);
    unlink(path);
    free(path);
  }
  cgl_cache_trim(folder, 0);
}


int main(void) {
  char made[] = "/tmp/cgraphlua-test-XXXXXX";
  folder = mkdtemp(made);
  if (!folder)
    return 1;
  test_entries();
  test_strangers();
  test_names();
  test_trim();
  test_folders();
  rmdir(folder);
  return tap_done();
}
