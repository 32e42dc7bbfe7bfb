/* Compiled images on disk, so that a script's second run compiles nothing.
   An entry is one file named by its key, the 128-bit hash of all that
   is known before a compile: source, options, device header, CPU or
   architecture.  What only the compile knows stands in the entry's record: the
   files that were read, with their hashes, and paths where no file was.  It is
   written under a temporary name and renamed, so readers see a whole entry or
   no entry.
   Invariant: an entry is used only when its magic, key, lengths and checksum
   are right and when it and its folder belong to this user or to root and
   nobody else may write them; any other entry counts as absent.  Links and
   FIFOs are not opened.  The cache never makes a compile fail. */
#ifndef CGL_COMPILE_CACHE_H
#define CGL_COMPILE_CACHE_H

#include <stdint.h>
#include <time.h>

#include "compile/base/base.h"

#define CGL_CACHE_LIMIT (512ull << 20) /* bytes kept on disk */

typedef struct cgl_cache_key {
  unsigned char bytes[16];
} cgl_cache_key;

typedef struct cgl_cache_entry {
  void *bytes; /* malloc'ed image */
  size_t size;
  char *record; /* malloc'ed: strings, a NUL after each (compile.c) */
  size_t record_size;
  char *message; /* malloc'ed: what the compiler said, or "" */
} cgl_cache_entry;

/* Where entries live: $CGRAPHLUA_CACHE, else $XDG_CACHE_HOME/cgraphlua, else
   ~/.cache/cgraphlua (malloc'ed).  NULL when the cache is off
   (CGRAPHLUA_CACHE=off), or there is no home. */
char *cgl_cache_folder(void);

/* The key of `length` bytes that describe an image. */
cgl_cache_key cgl_cache_hash(const void *bytes, size_t length);

/* Takes an entry out, its parts the caller's to free with
   cgl_cache_entry_free; false when it is absent or damaged. */
bool cgl_cache_read(const char *folder, const cgl_cache_key *key,
                    cgl_cache_entry *entry);

/* Puts an entry in, making the folder when it is missing, and removes the
   entries used longest ago when there is too much.  On failure adds one line
   to `warning`, once per folder and process. */
void cgl_cache_write(const char *folder, const cgl_cache_key *key,
                     const cgl_cache_entry *entry, cgl_text *warning);

/* ---- an entry as bytes ---- */

/* The file of an entry: header and parts (malloc'ed), NULL without memory. */
char *cgl_cache_pack(const cgl_cache_key *key, const cgl_cache_entry *entry,
                     size_t *length);

/* Takes an entry out of the bytes of its file, as cgl_cache_read does.  NULL,
   or what is wrong with them ("is truncated"). */
const char *cgl_cache_unpack(const char *bytes, size_t length,
                             const cgl_cache_key *key, cgl_cache_entry *entry);

/* All of an open file (malloc'ed), up to the largest size of an entry; NULL
   when it cannot be read. */
char *cgl_cache_read_file(int file, size_t *length);

/* 0 or an errno. */
int cgl_cache_write_file(int file, const void *bytes, size_t length);

/* ---- images in a folder that a program is shipped with (shipped.c) ---- */

typedef struct cgl_cache_file {
  char *name; /* in its folder, malloc'ed */
  char *bytes;
  size_t length;
} cgl_cache_file;

/* The name of an image's file, KEY.TARGET.kernel (malloc'ed). */
char *cgl_cache_shipped_name(const cgl_cache_key *key, const char *target);

/* Makes the file of an entry, whose parts the caller frees; -1 without
   memory. */
int cgl_cache_shipped_pack(const cgl_cache_key *key, const char *target,
                           const cgl_cache_entry *entry, cgl_cache_file *file);

/* Takes an image out, as cgl_cache_read does.  Of a file that is there and not
   believed it adds a line to `faults`. */
bool cgl_cache_shipped_read(const char *folder, const cgl_cache_key *key,
                            const char *target, cgl_cache_entry *entry,
                            cgl_text *faults);

/* Writes n files into a folder, which is made when it is missing: all of them,
   or none and an errno. */
int cgl_cache_shipped_write(const char *folder, const cgl_cache_file *files,
                            size_t n);

/* mkdir -p with this mode; 0 or an errno. */
int cgl_cache_make_folders(const char *folder, unsigned mode);

/* A name that no other thread or process takes (malloc'ed). */
char *cgl_cache_temporary_name(void);

/* ---- */

/* Removes what was used longest ago until at most `limit` bytes are left. */
void cgl_cache_trim(const char *folder, uint64_t limit);

/* ---- what a compile read (files.c) ---- */

/* Adds a file with the hash of its content to a record; -1 when it cannot be
   read, or was changed after `since`. */
int cgl_cache_note_file(cgl_text *record, const char *path,
                        const struct timespec *since);

/* Adds the path when there is no file. */
void cgl_cache_note_absent(cgl_text *record, const char *path);

/* Is the file, or its absence, that a string of a record notes as it was? */
bool cgl_cache_is_as_noted(const char *note);

/* The clock of file times, for `since`. */
struct timespec cgl_cache_now(void);

/* ---- */

/* The file of an entry (malloc'ed). */
char *cgl_cache_path(const char *folder, const cgl_cache_key *key);

/* Frees the parts; the entry is empty after. */
void cgl_cache_entry_free(cgl_cache_entry *entry);

#endif
