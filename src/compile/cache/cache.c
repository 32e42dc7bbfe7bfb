#define _GNU_SOURCE
#include "compile/cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#define SUFFIX ".kernel"
#define TEMPORARY ".kernel-"
#define MAX_ENTRY (256u << 20)

typedef struct entry_header {
  char magic[8];
  uint32_t version;
  uint32_t unused;
  uint64_t size, record_size, message_size;
  unsigned char key[16];
  unsigned char checksum[16]; /* of all else, header included */
} entry_header;

static const char entry_magic[8] = "cglimage";
enum { ENTRY_VERSION = 2 };


char *cgl_cache_folder(void) {
  const char *own = getenv("CGRAPHLUA_CACHE");
  const char *base = getenv("XDG_CACHE_HOME");
  const char *home = getenv("HOME");
  if (own && *own)
    return strcmp(own, "off") ? strdup(own) : NULL;
  if (base && *base == '/')
    return cgl_format("%s/cgraphlua", base);
  return home && *home ? cgl_format("%s/.cache/cgraphlua", home) : NULL;
}


cgl_cache_key cgl_cache_hash(const void *bytes, size_t length) {
  cgl_cache_key key;
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, length));
  memcpy(key.bytes, canonical.digest, sizeof key.bytes);
  return key;
}


char *cgl_cache_path(const char *folder, const cgl_cache_key *key) {
  char hex[33];
  for (int i = 0; i < 16; i++)
    snprintf(hex + 2 * i, 3, "%02x", key->bytes[i]);
  return cgl_format("%s/%s" SUFFIX, folder, hex);
}


void cgl_cache_entry_free(cgl_cache_entry *entry) {
  free(entry->bytes);
  free(entry->record);
  free(entry->message);
  memset(entry, 0, sizeof *entry);
}


static void entry_checksum(const entry_header *header, const void *payload,
                           size_t length, unsigned char out[16]) {
  entry_header plain = *header;
  XXH128_canonical_t canonical;
  memset(plain.checksum, 0, sizeof plain.checksum);
  XXH128_hash_t seed = XXH3_128bits(&plain, sizeof plain);
  XXH128_canonicalFromHash(
      &canonical,
      XXH3_128bits_withSeed(payload, length, seed.low64 ^ seed.high64));
  memcpy(out, canonical.digest, 16);
}


/* Only this user, or root, may have written it. */
static bool is_ours(const struct stat *st) {
  return (st->st_uid == geteuid() || st->st_uid == 0) &&
         !(st->st_mode & (S_IWGRP | S_IWOTH));
}


/* The folder's descriptor, or -1 with errno: EPERM where others may write. */
static int open_folder(const char *folder) {
  struct stat st;
  int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file >= 0 && (fstat(file, &st) != 0 || !is_ours(&st))) {
    close(file);
    errno = EPERM;
    return -1;
  }
  return file;
}


/* An entry's descriptor, or -1 where there is none to be trusted. */
static int open_entry(const char *folder, const char *path, struct stat *st) {
  int place = open_folder(folder);
  if (place < 0)
    return -1;
  int file = openat(place, strrchr(path, '/') + 1,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  close(place);
  if (file >= 0 &&
      (fstat(file, st) != 0 || !S_ISREG(st->st_mode) || !is_ours(st))) {
    close(file);
    return -1;
  }
  return file;
}


char *cgl_cache_read_file(int file, size_t *length) {
  struct stat st;
  char *bytes = NULL;
  if (fstat(file, &st) == 0 && st.st_size > 0 &&
      (uint64_t)st.st_size < MAX_ENTRY)
    bytes = malloc((size_t)st.st_size);
  *length = 0;
  while (bytes && *length < (size_t)st.st_size) {
    ssize_t n = read(file, bytes + *length, (size_t)st.st_size - *length);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    *length += (size_t)n;
  }
  return bytes;
}


/* The whole of an entry, which counts as used now; or NULL. */
static char *read_entry(const char *folder, const char *path, size_t *length) {
  struct stat st;
  int file = open_entry(folder, path, &st);
  if (file < 0)
    return NULL;
  char *bytes = cgl_cache_read_file(file, length);
  futimens(file, NULL);
  close(file);
  return bytes;
}


/* What is wrong with an entry's bytes, or NULL. */
static const char *entry_fault(const char *bytes, size_t length,
                               const cgl_cache_key *key, entry_header *header) {
  unsigned char sum[16];
  memset(header, 0, sizeof *header);
  memcpy(header, bytes, length < sizeof *header ? length : sizeof *header);
  if (memcmp(header->magic, entry_magic, 8))
    return "holds no compiled kernel";
  if (length < sizeof *header)
    return "is truncated";
  if (header->version != ENTRY_VERSION)
    return "was written by another version of cgraphlua";
  size_t payload = length - sizeof *header;
  if (header->size > payload || header->record_size > payload - header->size ||
      header->message_size > payload - header->size - header->record_size)
    return "is truncated";
  if (header->message_size != payload - header->size - header->record_size ||
      !header->size)
    return "is damaged";
  if (memcmp(header->key, key->bytes, 16))
    return "holds the image of another source, or for another device";
  entry_checksum(header, bytes + sizeof *header, payload, sum);
  return memcmp(sum, header->checksum, 16) ? "is damaged" : NULL;
}


static char *copy_part(const char *from, size_t n) {
  char *copy = malloc(n + 1);
  if (copy) {
    memcpy(copy, from, n);
    copy[n] = 0;
  }
  return copy;
}


const char *cgl_cache_unpack(const char *bytes, size_t length,
                             const cgl_cache_key *key, cgl_cache_entry *entry) {
  entry_header header;
  memset(entry, 0, sizeof *entry);
  const char *fault = entry_fault(bytes, length, key, &header);
  if (fault)
    return fault;
  const char *payload = bytes + sizeof header;
  entry->size = header.size;
  entry->record_size = header.record_size;
  entry->bytes = copy_part(payload, header.size);
  entry->record = copy_part(payload + header.size, header.record_size);
  entry->message = copy_part(payload + header.size + header.record_size,
                             header.message_size);
  if (entry->bytes && entry->record && entry->message)
    return NULL;
  cgl_cache_entry_free(entry);
  return "needs more memory than there is";
}


bool cgl_cache_read(const char *folder, const cgl_cache_key *key,
                    cgl_cache_entry *entry) {
  size_t length = 0;
  memset(entry, 0, sizeof *entry);
  char *path = cgl_cache_path(folder, key);
  char *bytes = path ? read_entry(folder, path, &length) : NULL;
  if (bytes)
    cgl_cache_unpack(bytes, length, key, entry);
  free(bytes);
  free(path);
  return entry->bytes;
}


int cgl_cache_make_folders(const char *folder, unsigned mode) {
  char *path = strdup(folder);
  if (!path)
    return ENOMEM;
  int error = 0;
  for (char *at = path + 1; !error; at++) {
    char was = *at;
    if (was && was != '/')
      continue;
    *at = 0;
    if (mkdir(path, mode) != 0 && errno != EEXIST)
      error = errno;
    *at = was;
    if (!was)
      break;
  }
  free(path);
  return error;
}


/* Says once per folder why it is not used. */
static void warn_once(const char *folder, const char *why, cgl_text *warning) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static uint64_t reported[64];
  static size_t nreported;
  uint64_t hash = XXH3_64bits(folder, strlen(folder));
  bool known = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < nreported; i++)
    known |= reported[i] == hash;
  if (!known && nreported < 64)
    reported[nreported++] = hash;
  pthread_mutex_unlock(&lock);
  if (!known)
    cgl_text_print(warning,
                   "warning: compiled kernels are not kept: the cache folder "
                   "'%s' %s; name another in $CGRAPHLUA_CACHE, or 'off'\n",
                   folder, why);
}


int cgl_cache_write_file(int file, const void *bytes, size_t length) {
  const char *at = bytes;
  while (length) {
    ssize_t done = write(file, at, length);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return done ? errno : EIO;
    at += done;
    length -= (size_t)done;
  }
  return 0;
}


char *cgl_cache_pack(const cgl_cache_key *key, const cgl_cache_entry *entry,
                     size_t *length) {
  const char *message = entry->message ? entry->message : "";
  entry_header header = {.version = ENTRY_VERSION,
                         .size = entry->size,
                         .record_size = entry->record_size,
                         .message_size = strlen(message)};
  memcpy(header.magic, entry_magic, 8);
  memcpy(header.key, key->bytes, 16);
  size_t payload = entry->size + entry->record_size + header.message_size;
  char *bytes = malloc(sizeof header + payload);
  if (!bytes)
    return NULL;
  char *at = bytes + sizeof header;
  memcpy(at, entry->bytes, entry->size);
  if (entry->record_size)
    memcpy(at + entry->size, entry->record, entry->record_size);
  memcpy(at + entry->size + entry->record_size, message, header.message_size);
  entry_checksum(&header, at, payload, header.checksum);
  memcpy(bytes, &header, sizeof header);
  *length = sizeof header + payload;
  return bytes;
}


/* "other" processes may be on other machines that share the folder. */
char *cgl_cache_temporary_name(void) {
  uint64_t number[2] = {0};
  if (getrandom(number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    static atomic_uint counter;
    number[0] = (uint64_t)getpid();
    number[1] = atomic_fetch_add(&counter, 1);
  }
  return cgl_format(TEMPORARY "%016llx%016llx", (unsigned long long)number[0],
                    (unsigned long long)number[1]);
}


/* Writes under a name of its own, then renames; 0 or an errno. */
static int write_entry(const char *folder, const cgl_cache_key *key,
                       const cgl_cache_entry *entry) {
  size_t length = 0;
  int place = open_folder(folder);
  if (place < 0)
    return errno;
  char *bytes = cgl_cache_pack(key, entry, &length);
  char *path = cgl_cache_path(folder, key);
  char *temporary = cgl_cache_temporary_name();
  int error = ENOMEM;
  if (bytes && path && temporary) {
    int file =
        openat(place, temporary,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    error = file < 0 ? errno : 0;
    if (file >= 0) {
      error = cgl_cache_write_file(file, bytes, length);
      if (close(file) != 0 && !error)
        error = errno;
      if (!error &&
          renameat(place, temporary, place, strrchr(path, '/') + 1) != 0)
        error = errno;
      if (error)
        unlinkat(place, temporary, 0);
    }
  }
  close(place);
  free(bytes);
  free(path);
  free(temporary);
  return error;
}


void cgl_cache_write(const char *folder, const cgl_cache_key *key,
                     const cgl_cache_entry *entry, cgl_text *warning) {
  int error = write_entry(folder, key, entry);
  if (error == ENOENT) {
    error = cgl_cache_make_folders(folder, 0700);
    if (!error)
      error = write_entry(folder, key, entry);
  }
  if (error == ENOTDIR && access(folder, F_OK) == 0)
    warn_once(folder, "is no folder", warning);
  else if (error == EPERM)
    warn_once(folder, "belongs to another user or may be written by others",
              warning);
  else if (error) {
    char why[256];
    snprintf(why, sizeof why, "cannot be written (%s)", strerror(error));
    warn_once(folder, why, warning);
  } else
    cgl_cache_trim(folder, CGL_CACHE_LIMIT);
}


typedef struct aged {
  char *path;
  uint64_t size;
  struct timespec used;
} aged;


static int older_first(const void *a, const void *b) {
  const struct timespec *x = &((const aged *)a)->used;
  const struct timespec *y = &((const aged *)b)->used;
  if (x->tv_sec != y->tv_sec)
    return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}


static bool is_entry(const char *name) {
  return strlen(name) == 32 + sizeof SUFFIX - 1 &&
         strspn(name, "0123456789abcdef") == 32 &&
         strcmp(name + 32, SUFFIX) == 0;
}


void cgl_cache_trim(const char *folder, uint64_t limit) {
  DIR *list = opendir(folder);
  struct dirent *item;
  aged *files = NULL;
  size_t n = 0, room = 0;
  uint64_t total = 0;
  if (!list)
    return;
  while ((item = readdir(list))) {
    struct stat st;
    bool temporary = strncmp(item->d_name, TEMPORARY, strlen(TEMPORARY)) == 0;
    if ((!temporary && !is_entry(item->d_name)) ||
        fstatat(dirfd(list), item->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (temporary) { /* left behind by a process that died */
      if (st.st_mtim.tv_sec < time(NULL) - 3600)
        unlinkat(dirfd(list), item->d_name, 0);
      continue;
    }
    if (n == room) {
      room = room ? room * 2 : 64;
      aged *more = realloc(files, room * sizeof *files);
      if (!more)
        break;
      files = more;
    }
    files[n] = (aged){cgl_format("%s/%s", folder, item->d_name),
                      (uint64_t)st.st_size, st.st_mtim};
    total += files[n++].size;
  }
  closedir(list);
  if (total > limit)
    qsort(files, n, sizeof *files, older_first);
  for (size_t i = 0; i < n; i++) {
    if (total > limit && files[i].path && unlink(files[i].path) == 0)
      total -= files[i].size;
    free(files[i].path);
  }
  free(files);
}
