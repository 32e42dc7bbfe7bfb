/* Images for other machines than this one: collected while a program runs,
   written to a folder, found again where no compiler is.
   The key of an image is what the script gives: source, expressions, options,
   and the library's own text in front of a source.  Nothing of the machine or
   of the script's place belongs to it: folders of options are written relative
   to the script's.  The record has the hashes of the script's own headers, by
   their path from the script ('=') or as the compiler had it ('+'). */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/compile.h"
#include "compile/host/host.h"
#include "compile/nvrtc/nvrtc.h"
#include "driver/kernel_abi.h"

enum { OLDEST_ARCH = 50, MAX_ARCHS = 16, TARGET_ROOM = 32 };


/* ---- folders ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_text given; /* folders, a NUL after each; under lock */


int cgl_compile_from(const char *folder) {
  char path[PATH_MAX];
  struct stat st;
  int error = 0;
  if (folder && (!realpath(folder, path) || stat(path, &st) != 0))
    return errno;
  if (folder && !S_ISDIR(st.st_mode))
    return ENOTDIR;
  pthread_mutex_lock(&lock);
  if (folder) {
    cgl_text_add(&given, path, strlen(path) + 1);
    error = given.failed ? ENOMEM : 0;
    given.failed = false;
  } else
    cgl_text_free(&given);
  pthread_mutex_unlock(&lock);
  return error;
}


/* All folders, a NUL after each.  A process with another user's rights does
   not take native code from its environment. */
static void list_folders(cgl_text *out) {
  const char *at = secure_getenv("CGRAPHLUA_KERNELS");
  pthread_mutex_lock(&lock);
  if (given.length)
    cgl_text_add(out, given.data, given.length);
  pthread_mutex_unlock(&lock);
  while (at && *at) {
    size_t n = strcspn(at, ":");
    if (n) {
      cgl_text_add(out, at, n);
      cgl_text_add(out, "", 1);
    }
    at += n + (at[n] == ':');
  }
}


void cgl_compile_say_shipped(cgl_text *log) {
  cgl_text folders = {0};
  list_folders(&folders);
  if (folders.length)
    cgl_text_put(log, "no shipped image of this source can be used, from:");
  for (size_t at = 0; at < folders.length; at += strlen(folders.data + at) + 1)
    cgl_text_print(log, " '%s'", folders.data + at);
  cgl_text_free(&folders);
}


/* ---- keys ---- */

/* The path from the folder, or NULL when it does not begin there. */
static const char *path_beneath(const char *folder, const char *path) {
  while (!strncmp(path, "./", 2))
    path += 2;
  while (!strncmp(folder, "./", 2))
    folder += 2;
  if (!strcmp(folder, "."))
    return *path != '/' ? path : NULL;
  size_t n = strlen(folder);
  if (strncmp(path, folder, n) || (path[n] && path[n] != '/'))
    return NULL;
  return path[n] ? path + n + 1 : ".";
}


/* The folder of an option that has headers, or NULL; *i counts on when it is an
   option of its own. */
static const char *include_folder(const cgl_source *s, size_t *i) {
  static const char *const words[] = {"--include-path=", "-I"};
  const char *o = s->options[*i];
  for (size_t k = 0; k < 2; k++)
    if (!strncmp(o, words[k], strlen(words[k])) && o[strlen(words[k])])
      return o + strlen(words[k]);
  if ((!strcmp(o, "-I") || !strcmp(o, "--include-path")) &&
      *i + 1 < s->noptions)
    return s->options[++*i];
  return NULL;
}


static void describe_options(const cgl_job *job, cgl_text *out) {
  const cgl_source *s = job->source;
  for (size_t i = 0; i < s->noptions; i++) {
    const char *option = s->options[i], *folder = include_folder(s, &i);
    const char *beneath = folder ? path_beneath(job->folder, folder) : NULL;
    if (folder)
      cgl_text_print(out, "-I%s%s", beneath ? "=" : "+",
                     beneath ? beneath : folder);
    else
      cgl_text_put(out, option);
    cgl_text_add(out, "", 1);
  }
}


/* -1 without memory. */
static int shipped_key(const cgl_job *job, cgl_cache_key *key) {
  const cgl_source *s = job->source;
  bool host = job->image->format == CGL_IMAGE_HOST;
  cgl_text text = {0};
  cgl_text_print(&text, "shipped %d %d\n", CGL_HOST_ABI,
                 (int)job->image->format);
  describe_options(job, &text);
  cgl_text_put(&text, "\n");
  for (size_t i = 0; i < s->nexpressions; i++)
    cgl_text_add(&text, s->expressions[i], strlen(s->expressions[i]) + 1);
  cgl_text_print(&text, "\n%zu\n", s->length);
  cgl_text_add(&text, s->text, s->length);
  if (host) {
    cgl_host_device_text(&text);
    cgl_host_ask(&text);
  } else
    cgl_nvrtc_device_text(&text);
  bool failed = text.failed;
  if (!failed)
    *key = cgl_cache_hash(text.data, text.length);
  cgl_text_free(&text);
  return failed ? -1 : 0;
}


/* ---- what was read ---- */

/* Does the path lie in a folder that an option names? */
static bool is_included(const cgl_source *s, const char *path) {
  for (size_t i = 0; i < s->noptions; i++) {
    const char *folder = include_folder(s, &i);
    if (folder && path_beneath(folder, path))
      return true;
  }
  return false;
}


/* Of a compile's notes those of the script's own headers: the compiler's
   differ from machine to machine. */
static void keep_notes(const cgl_job *job, const cgl_text *files,
                       cgl_text *record) {
  enum { HASH = 34 }; /* "+", 32 digits and a blank */
  for (size_t at = 0; at < files->length; at += strlen(files->data + at) + 1) {
    const char *note = files->data + at, *path = note + HASH;
    if (*note != '+' || strlen(note) <= HASH)
      continue;
    const char *beneath = path_beneath(job->folder, path);
    if (!beneath && !is_included(job->source, path))
      continue;
    cgl_text_print(record, "%c%.*s%s", beneath ? '=' : '+', HASH - 1, note + 1,
                   beneath ? beneath : path);
    cgl_text_add(record, "", 1);
  }
}


/* Is the header of a note as it was, or not here?  Else *path (malloc'ed) is
   where it stands. */
static bool note_holds(const cgl_job *job, const char *note, char **path) {
  enum { HASH = 34 };
  const char *name = note + HASH;
  *path = NULL;
  if ((*note != '=' && *note != '+') || strlen(note) <= HASH)
    return false;
  *path = *note == '=' ? cgl_format("%s/%s", job->folder, name) : strdup(name);
  if (!*path || access(*path, F_OK) != 0)
    return *path;
  char *there = cgl_format("+%.*s%s", HASH - 1, note + 1, *path);
  bool holds = there && cgl_cache_is_as_noted(there);
  free(there);
  return holds;
}


/* A record is notes, a full stop, and what cgl_image_pack writes. */
static bool take_shipped(cgl_job *job, cgl_cache_entry *entry,
                         const char *folder, const char *target,
                         cgl_text *faults) {
  const char *at = entry->record, *end = at + entry->record_size;
  if (!entry->record_size || end[-1])
    return false;
  for (; at < end && *at != '.'; at += strlen(at) + 1) {
    char *path = NULL;
    bool holds = note_holds(job, at, &path);
    if (!holds)
      cgl_text_print(faults,
                     "the shipped kernel for %s in '%s' is not used: '%s' has "
                     "changed since it was compiled\n",
                     target, folder, path ? path : at);
    free(path);
    if (!holds)
      return false;
  }
  return at + 2 <= end && cgl_compile_take(job, entry, at + 2);
}


/* ---- finding ---- */

static bool try_target(cgl_job *job, const char *folder,
                       const cgl_cache_key *key, const char *target,
                       cgl_text *faults) {
  cgl_cache_entry entry;
  bool found = cgl_cache_shipped_read(folder, key, target, &entry, faults) &&
               take_shipped(job, &entry, folder, target, faults);
  cgl_cache_entry_free(&entry);
  return found;
}


/* The best level that this processor has, and the user allows. */
static bool find_host(cgl_job *job, const char *folder,
                      const cgl_cache_key *key, cgl_text *faults) {
  const char *most = getenv("CGRAPHLUA_HOST_LEVEL"), *level;
  size_t first = most && *most ? cgl_host_find_level(most) : 0;
  if (!cgl_host_level(first)) {
    cgl_text_print(faults,
                   "CGRAPHLUA_HOST_LEVEL is '%s', which is no level;"
                   " these are:",
                   most);
    for (size_t i = 0; (level = cgl_host_level(i)); i++)
      cgl_text_print(faults, " %s", level);
    cgl_text_put(faults, "\n");
    first = 0;
  }
  for (size_t i = first; (level = cgl_host_level(i)); i++)
    if (cgl_host_has_level(i) && try_target(job, folder, key, level, faults))
      return true;
  return false;
}


/* A cubin runs on its architecture and on later ones of the same major number;
   PTX is for every later architecture. */
static bool find_cuda(cgl_job *job, const char *folder,
                      const cgl_cache_key *key, cgl_text *faults) {
  char target[TARGET_ROOM];
  for (int sm = job->sm; sm >= job->sm / 10 * 10; sm--) {
    snprintf(target, sizeof target, "sm_%d", sm);
    if (try_target(job, folder, key, target, faults))
      return true;
  }
  for (int sm = job->sm; sm >= OLDEST_ARCH; sm--) {
    snprintf(target, sizeof target, "compute_%d", sm);
    if (try_target(job, folder, key, target, faults))
      return true;
  }
  return false;
}


bool cgl_compile_find_shipped(cgl_job *job, cgl_text *faults) {
  cgl_text folders = {0};
  cgl_cache_key key;
  bool found = false;
  list_folders(&folders);
  if (folders.length && shipped_key(job, &key) == 0)
    for (size_t at = 0; at < folders.length && !found;
         at += strlen(folders.data + at) + 1)
      found = job->image->format == CGL_IMAGE_HOST
                  ? find_host(job, folders.data + at, &key, faults)
                  : find_cuda(job, folders.data + at, &key, faults);
  cgl_text_free(&folders);
  return found;
}


/* ---- collecting ---- */

typedef struct wanted {
  cgl_target target;
  char name[TARGET_ROOM];
} wanted;

/* What is collected; under `lock`. */
static struct collection {
  bool on;
  wanted targets[MAX_ARCHS];
  size_t ntargets;
  cgl_cache_file *files;
  cgl_cache_key *notes; /* of the headers that each was made of */
  size_t nfiles, room;
  cgl_text failure; /* of the first source that failed for a target */
} collection;


static int add_target(cgl_target target, const char *name) {
  struct collection *c = &collection;
  if (c->ntargets == MAX_ARCHS)
    return -1;
  c->targets[c->ntargets].target = target;
  snprintf(c->targets[c->ntargets++].name, TARGET_ROOM, "%s", name);
  return 0;
}


cgl_compile_status cgl_compile_arch(const char *arch, cgl_target *target,
                                    cgl_text *why) {
  const char *number = strchr(arch, '_');
  char *end = NULL;
  *target = (cgl_target){.format = CGL_IMAGE_CUBIN, .exact = true};
  target->ptx = !strncmp(arch, "compute_", 8);
  if ((target->ptx || !strncmp(arch, "sm_", 3)) && number[1] >= '1' &&
      number[1] <= '9')
    target->sm = (int)strtol(number + 1, &end, 10);
  if (!end || *end || target->sm < OLDEST_ARCH || target->sm > 999) {
    cgl_text_print(why,
                   "'%s' is no architecture; sm_90 is one, and "
                   "compute_90 for PTX",
                   arch);
    return CGL_COMPILE_REFUSED;
  }
  return cgl_nvrtc_has(target->sm, why);
}


static int add_arch(const char *arch, cgl_text *why) {
  cgl_target target;
  if (cgl_compile_arch(arch, &target, why))
    return -1;
  if (add_target(target, arch) == 0)
    return 0;
  cgl_text_print(why, "'%s' is one architecture too many", arch);
  return -1;
}


static void collection_clear(void) {
  struct collection *c = &collection;
  for (size_t i = 0; i < c->nfiles; i++) {
    free(c->files[i].name);
    free(c->files[i].bytes);
  }
  free(c->files);
  free(c->notes);
  cgl_text_free(&c->failure);
  memset(c, 0, sizeof *c);
}


cgl_compile_status cgl_compile_collect(const char *const *archs, size_t n,
                                       cgl_text *why) {
  const char *level;
  int failed = 0;
  pthread_mutex_lock(&lock);
  collection_clear();
  for (size_t i = 0; (level = cgl_host_level(i)); i++)
    add_target((cgl_target){.format = CGL_IMAGE_HOST, .level = level}, level);
  for (size_t i = 0; i < n && !failed; i++)
    failed = add_arch(archs[i], why);
  collection.on = !failed;
  pthread_mutex_unlock(&lock);
  return failed ? CGL_COMPILE_REFUSED : CGL_COMPILE_OK;
}


/* Under the lock: takes a file, unless one of its name is there.  -1 without
   memory, and when that one was made of other headers. */
static int collection_put(cgl_cache_file *file, cgl_cache_key notes,
                          cgl_text *log) {
  struct collection *c = &collection;
  if (!c->on)
    return 0;
  for (size_t i = 0; i < c->nfiles; i++)
    if (!strcmp(c->files[i].name, file->name)) {
      bool same = !memcmp(&c->notes[i], &notes, sizeof notes);
      if (!same)
        cgl_text_put(log, "two modules have the same source and options, and "
                          "headers that differ: an option, as -DKIND=1, tells "
                          "them apart");
      return same ? 0 : -1;
    }
  if (c->nfiles == c->room) {
    size_t room = c->room ? 2 * c->room : 16;
    cgl_cache_file *files = realloc(c->files, room * sizeof *files);
    c->files = files ? files : c->files;
    cgl_cache_key *all = realloc(c->notes, room * sizeof *all);
    c->notes = all ? all : c->notes;
    if (!files || !all)
      return -1;
    c->room = room;
  }
  c->notes[c->nfiles] = notes;
  c->files[c->nfiles++] = *file;
  *file = (cgl_cache_file){0};
  return 0;
}


/* Packs an image and keeps it; what went wrong is in `log`. */
static int collect_image(const cgl_job *job, const char *target,
                         const cgl_text *files, cgl_text *log) {
  cgl_cache_file file = {0};
  cgl_cache_key key, notes;
  cgl_text record = {0};
  const cgl_image *image = job->image;
  keep_notes(job, files, &record);
  cgl_text_add(&record, ".", 2);
  if (record.data)
    notes = cgl_cache_hash(record.data, record.length);
  cgl_image_pack(image, &record);
  cgl_cache_entry entry = {.bytes = image->bytes,
                           .size = image->size,
                           .record = record.data,
                           .record_size = record.length};
  int status = -1;
  if (!record.failed && shipped_key(job, &key) == 0 &&
      cgl_cache_shipped_pack(&key, target, &entry, &file) == 0) {
    pthread_mutex_lock(&lock);
    status = collection_put(&file, notes, log);
    pthread_mutex_unlock(&lock);
  }
  free(file.name);
  free(file.bytes);
  cgl_text_free(&record);
  return status;
}


static cgl_compile_status add_image(const cgl_source *source,
                                    const wanted *want, cgl_text *log) {
  cgl_image *image = NULL;
  cgl_text files = {0};
  char *message = NULL;
  char *folder = cgl_compile_folder(source->file);
  cgl_compile_status status =
      cgl_compile_here(&want->target, source, &image, &message, &files);
  if (status == CGL_COMPILE_OK) {
    cgl_job job = {.source = source, .folder = folder, .image = image};
    if (!folder || collect_image(&job, want->name, &files, log) != 0)
      status = CGL_COMPILE_SYSTEM;
  } else
    cgl_text_print(log, "for %s:\n%s", want->name, message ? message : "");
  cgl_image_free(image);
  cgl_text_free(&files);
  free(message);
  free(folder);
  return status;
}


/* The target of this index, while images are collected. */
static bool next_wanted(size_t index, wanted *want) {
  pthread_mutex_lock(&lock);
  bool there = collection.on && index < collection.ntargets;
  if (there)
    *want = collection.targets[index];
  pthread_mutex_unlock(&lock);
  return there;
}


/* A script that catches the failure does not make the images complete. */
static void note_failure(const cgl_source *source, const char *said) {
  pthread_mutex_lock(&lock);
  if (collection.on && !collection.failure.length)
    cgl_text_print(&collection.failure, "%s:%d: %s", source->file, source->line,
                   said);
  pthread_mutex_unlock(&lock);
}


cgl_compile_status cgl_compile_add(const cgl_target *target,
                                   const cgl_source *source, cgl_text *log) {
  wanted want;
  for (size_t i = 0; next_wanted(i, &want); i++) {
    cgl_text said = {0};
    cgl_compile_status status = add_image(source, &want, &said);
    const char *text = said.length ? said.data : "not enough memory";
    /* What a GPU's compiler took may be for GPUs only. */
    bool gpu_only = status == CGL_COMPILE_REFUSED &&
                    target->format != CGL_IMAGE_HOST &&
                    want.target.format == CGL_IMAGE_HOST;
    if (gpu_only)
      cgl_text_put(log, "warning: the host device has no image of this, ");
    else if (status != CGL_COMPILE_OK)
      note_failure(source, text);
    if (status != CGL_COMPILE_OK)
      cgl_text_put(log, text);
    cgl_text_free(&said);
    if (status != CGL_COMPILE_OK && !gpu_only)
      return status;
  }
  return CGL_COMPILE_OK;
}


cgl_compile_status cgl_compile_write(const char *folder, size_t *count,
                                     cgl_text *why) {
  cgl_compile_status status = CGL_COMPILE_OK;
  pthread_mutex_lock(&lock);
  *count = collection.nfiles;
  if (folder && collection.failure.length) {
    cgl_text_put(why, collection.failure.data);
    status = CGL_COMPILE_REFUSED;
  } else if (folder && collection.nfiles) {
    int error =
        cgl_cache_shipped_write(folder, collection.files, collection.nfiles);
    if (error) {
      cgl_text_print(why, "cannot write to '%s': %s", folder, strerror(error));
      status = CGL_COMPILE_SYSTEM;
    }
  }
  collection_clear();
  pthread_mutex_unlock(&lock);
  return status;
}
