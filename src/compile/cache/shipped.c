/* Images that a program is shipped with: files of entries in a folder that
   somebody names.  Naming a folder is trusting it, as with a script, so owners
   are not compared and links are followed; only regular files are opened. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/cache/cache.h"


/* A renamed file is another target's image. */
static cgl_cache_key target_key(const cgl_cache_key *key, const char *target) {
  char text[64] = {0};
  memcpy(text, key->bytes, sizeof key->bytes);
  snprintf(text + sizeof key->bytes, sizeof text - sizeof key->bytes, "%s",
           target);
  return cgl_cache_hash(text, sizeof text);
}


char *cgl_cache_shipped_name(const cgl_cache_key *key, const char *target) {
  char hex[33];
  for (int i = 0; i < 16; i++)
    snprintf(hex + 2 * i, 3, "%02x", key->bytes[i]);
  return cgl_format("%s.%s.kernel", hex, target);
}


int cgl_cache_shipped_pack(const cgl_cache_key *key, const char *target,
                           const cgl_cache_entry *entry, cgl_cache_file *file) {
  cgl_cache_key whole = target_key(key, target);
  file->name = cgl_cache_shipped_name(key, target);
  file->bytes = cgl_cache_pack(&whole, entry, &file->length);
  return file->name && file->bytes ? 0 : -1;
}


/* A regular file for reading, or -1 with errno. */
static int open_regular(const char *path) {
  struct stat st;
  int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file >= 0 && (fstat(file, &st) != 0 || !S_ISREG(st.st_mode))) {
    close(file);
    errno = EINVAL;
    return -1;
  }
  return file;
}


bool cgl_cache_shipped_read(const char *folder, const cgl_cache_key *key,
                            const char *target, cgl_cache_entry *entry,
                            cgl_text *faults) {
  cgl_cache_key whole = target_key(key, target);
  const char *fault = NULL, *reason = "";
  size_t length = 0;
  memset(entry, 0, sizeof *entry);
  char *name = cgl_cache_shipped_name(key, target);
  char *path = name ? cgl_format("%s/%s", folder, name) : NULL;
  int file = path ? open_regular(path) : -1;
  char *bytes = file >= 0 ? cgl_cache_read_file(file, &length) : NULL;
  if (bytes)
    fault = cgl_cache_unpack(bytes, length, &whole, entry);
  else if (file >= 0)
    fault = "is empty, too large or cannot be read";
  else if (path && errno == EINVAL)
    fault = "is no regular file";
  else if (path && errno != ENOENT && errno != ENOTDIR) {
    fault = "cannot be opened: ";
    reason = strerror(errno);
  }
  if (fault)
    cgl_text_print(faults, "the shipped kernel '%s' is not used: it %s%s\n",
                   path, fault, reason);
  faults->failed |= !path;
  if (file >= 0)
    close(file);
  free(bytes);
  free(path);
  free(name);
  return entry->bytes;
}


/* Writes under a temporary name, which the caller frees; 0 or an errno. */
static int write_temporary(int place, const cgl_cache_file *file,
                           char **temporary) {
  *temporary = cgl_cache_temporary_name();
  if (!*temporary)
    return ENOMEM;
  int out = openat(place, *temporary,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (out < 0)
    return errno;
  int error = cgl_cache_write_file(out, file->bytes, file->length);
  if (close(out) != 0 && !error)
    error = errno;
  return error;
}


int cgl_cache_shipped_write(const char *folder, const cgl_cache_file *files,
                            size_t n) {
  bool made = access(folder, F_OK) != 0;
  int error = cgl_cache_make_folders(folder, 0755);
  int place = error ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char **temporary = calloc(n + 1, sizeof *temporary);
  if (!error && place < 0)
    error = errno;
  if (!temporary)
    error = ENOMEM;
  for (size_t i = 0; i < n && !error; i++)
    error = write_temporary(place, &files[i], &temporary[i]);
  for (size_t i = 0; i < n && !error; i++)
    if (renameat(place, temporary[i], place, files[i].name) != 0)
      error = errno;
  for (size_t i = 0; i < n && temporary; i++) {
    if (error && temporary[i])
      unlinkat(place, temporary[i], 0);
    free(temporary[i]);
  }
  free(temporary);
  if (place >= 0)
    close(place);
  if (error && made)
    rmdir(folder);
  return error;
}
