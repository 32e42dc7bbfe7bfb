/* Contents as bytes, and back: one description serves both ways. */
#define _GNU_SOURCE
#include "core/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first bytes of a file, and nothing of them depends on the version. */
typedef struct header {
  char magic[8];
  uint32_t order; /* ORDER on this machine */
  uint32_t version;
  uint64_t length;   /* of the file */
  cgl_cache_key sum; /* of what follows */
  uint64_t zero;
} header;

static const char magic[8] = {'C', 'G', 'L', 'G', 'R', 'A', 'P', 'H'};
enum { ORDER = 0x01020304, OTHER_ORDER = 0x04030201 };


/* ---- both ways ---- */

/* Reads when `out` is NULL, else writes. */
typedef struct codec {
  cgl_text *out;
  const char *at, *end;
  cgl_arena *arena;
  bool bad; /* the bytes ended early, or were no such thing */
} codec;


static void code_raw(codec *c, void *value, size_t n) {
  if (c->out) {
    cgl_text_add(c->out, value, n);
  } else if (c->bad || n > (size_t)(c->end - c->at)) {
    c->bad = true;
    memset(value, 0, n);
  } else {
    memcpy(value, c->at, n);
    c->at += n;
  }
}


static void code_bool(codec *c, bool *value) {
  uint8_t byte = *value;
  code_raw(c, &byte, 1);
  c->bad |= byte > 1;
  *value = byte == 1;
}


static void code_bytes(codec *c, cgl_file_bytes *bytes) {
  code_raw(c, &bytes->length, sizeof bytes->length);
  if (c->out) {
    if (bytes->length)
      cgl_text_add(c->out, bytes->data, bytes->length);
    return;
  }
  bytes->data = c->at;
  c->bad |= bytes->length > (uint64_t)(c->end - c->at);
  if (c->bad)
    bytes->length = 0;
  c->at += bytes->length;
}


/* With the NUL. */
static void code_string(codec *c, const char **string) {
  cgl_file_bytes bytes = {*string, c->out ? strlen(*string) + 1 : 0};
  code_bytes(c, &bytes);
  if (c->out)
    return;
  const char *data = bytes.data;
  c->bad |=
      !bytes.length || memchr(data, 0, bytes.length) != data + bytes.length - 1;
  *string = c->bad ? "" : data;
}


/* The count of an array; read, it gets its room, which the bytes that are left
   bound: an element has `least` of them. */
static void *code_array(codec *c, void *array, uint32_t *n, size_t size,
                        size_t least) {
  code_raw(c, n, sizeof *n);
  if (c->out)
    return array;
  c->bad |= *n > (size_t)(c->end - c->at) / least;
  void *room =
      c->bad ? NULL : cgl_arena_alloc(c->arena, (*n + (size_t)1) * size);
  c->bad |= !room;
  if (c->bad)
    *n = 0;
  return room;
}

#define RAW(field) code_raw(c, &x->field, sizeof x->field)
#define FLAG(field) code_bool(c, &x->field)
#define STRING(field) code_string(c, &x->field)
#define BYTES(field) code_bytes(c, &x->field)
#define EACH(array, code, least)                                             \
  x->array = code_array(c, x->array, &x->n##array, sizeof *x->array, least); \
  for (uint32_t i = 0; i < x->n##array && !c->bad; i++)                      \
  code(c, &x->array[i])


static void code_u32(codec *c, uint32_t *x) {
  code_raw(c, x, sizeof *x);
}


static void code_place(codec *c, cgl_file_place *x) {
  RAW(kind);
  RAW(index);
  RAW(offset);
}


static void code_image(codec *c, cgl_file_image *x) {
  RAW(format);
  FLAG(ptx);
  FLAG(second);
  RAW(sm);
  STRING(level);
  BYTES(row);
  BYTES(bytes);
}


static void code_module(codec *c, cgl_file_module *x) {
  RAW(own);
  RAW(part);
  BYTES(sum);
  STRING(file);
  RAW(line);
  STRING(source);
  EACH(images, code_image, 31);
}


static void code_kernel(codec *c, cgl_file_kernel *x) {
  RAW(module);
  STRING(name);
}


static void code_region(codec *c, cgl_file_region *x) {
  RAW(bytes);
  RAW(skew);
  BYTES(data);
}


static void code_generator(codec *c, cgl_file_generator *x) {
  RAW(seed);
  RAW(offset);
}


static void code_library(codec *c, cgl_file_library *x) {
  STRING(name);
  RAW(version);
  RAW(bytes);
  BYTES(recipe);
}


static void code_param(codec *c, cgl_file_param *x) {
  STRING(name);
  RAW(type);
  BYTES(value);
}


static void code_use(codec *c, cgl_file_use *x) {
  RAW(param);
  RAW(offset);
  RAW(repeats);
  RAW(argument);
  FLAG(follows);
}


static void code_address(codec *c, cgl_file_address *x) {
  RAW(at);
  code_place(c, &x->place);
}


static void code_range(codec *c, cgl_file_range *x) {
  code_place(c, &x->place);
  RAW(bytes);
  RAW(argument);
  FLAG(write);
}


static void code_op(codec *c, cgl_file_op *x) {
  RAW(kind);
  RAW(handle);
  RAW(predication);
  RAW(rule);
  FLAG(fills);
  FLAG(follows);
  FLAG(waits);
  FLAG(fits);
  FLAG(programmatic);
  FLAG(off);
  FLAG(streamed);
  RAW(priority);
  STRING(name);
  STRING(file);
  RAW(line);
  RAW(launch);
  RAW(function);
  RAW(index);
  FLAG(second);
  RAW(module);
  BYTES(values);
  EACH(addresses, code_address, 17);
  EACH(uses, code_use, 13);
  EACH(ranges, code_range, 26);
  EACH(bodies, code_u32, 4);
  EACH(edges, code_u32, 4);
}


static void code_recording(codec *c, cgl_file_recording *x) {
  EACH(ops, code_op, 102);
}


static void code_draw(codec *c, cgl_file_draw *x) {
  RAW(generator);
  FLAG(used);
  FLAG(written);
}


static void code_extent(codec *c, uint64_t *x) {
  code_raw(c, x, sizeof *x);
}


static void code_name(codec *c, cgl_file_name *x) {
  STRING(name);
  FLAG(output);
  code_place(c, &x->place);
  RAW(type);
  x->shape = code_array(c, x->shape, &x->ndims, sizeof *x->shape, 8);
  for (uint32_t i = 0; i < x->ndims && !c->bad; i++)
    code_extent(c, &x->shape[i]);
}


static void code_graph(codec *c, cgl_file_graph *x) {
  STRING(name);
  EACH(recordings, code_recording, 4);
  EACH(draws, code_draw, 6);
  EACH(names, code_name, 27);
}


static void code_content(codec *c, cgl_file_content *x) {
  STRING(library);
  STRING(device);
  RAW(format);
  RAW(sm);
  RAW(multiprocessors);
  RAW(abi);
  EACH(modules, code_module, 38);
  EACH(kernels, code_kernel, 12);
  EACH(regions, code_region, 20);
  EACH(generators, code_generator, 16);
  EACH(libraries, code_library, 29);
  EACH(params, code_param, 18);
  EACH(graphs, code_graph, 20);
}


/* ---- files ---- */

cgl_status cgl_file_pack(const cgl_file_content *content, cgl_text *out,
                         const char *operation) {
  header head = {.order = ORDER, .version = CGL_FILE_VERSION};
  cgl_file_content copy = *content;
  codec c = {.out = out};
  memcpy(head.magic, magic, sizeof magic);
  cgl_text_add(out, (const char *)&head, sizeof head);
  code_content(&c, &copy);
  if (out->failed)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for the file");
  head.length = out->length;
  head.sum = cgl_cache_hash(out->data + sizeof head, out->length - sizeof head);
  memcpy(out->data, &head, sizeof head);
  return CGL_OK;
}


static cgl_status file_refuse(const char *path, const char *operation,
                              const char *what, const char *hint) {
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "'%s' %s", path, what);
  return cgl_fail_hint("%s", hint);
}


static const char again[] = "write it again, with graph:save";


cgl_status cgl_file_unpack(const char *bytes, size_t length, const char *path,
                           cgl_file_content *content, const char *operation) {
  header head;
  char text[120];
  memset(content, 0, sizeof *content);
  if (length < sizeof head || memcmp(bytes, magic, sizeof magic) != 0)
    return file_refuse(path, operation, "is no file of graphs",
                       "name a file that graph:save wrote");
  memcpy(&head, bytes, sizeof head);
  if (head.order == OTHER_ORDER)
    return file_refuse(path, operation,
                       "was written on a machine of another byte order", again);
  if (head.version != CGL_FILE_VERSION) {
    snprintf(text, sizeof text,
             "has format %u, and this version of cgraphlua reads format %d",
             (unsigned)head.version, CGL_FILE_VERSION);
    return file_refuse(path, operation, text,
                       "write it again with this version");
  }
  if (head.length != length) {
    snprintf(text, sizeof text, "has %zu bytes, and its header says %llu",
             length, (unsigned long long)head.length);
    return file_refuse(path, operation, text, again);
  }
  const cgl_cache_key sum =
      cgl_cache_hash(bytes + sizeof head, length - sizeof head);
  if (head.order != ORDER || memcmp(&sum, &head.sum, sizeof sum) != 0)
    return file_refuse(path, operation,
                       "is damaged: its bytes are not those that were written",
                       again);
  codec c = {.at = bytes + sizeof head,
             .end = bytes + length,
             .arena = &content->arena};
  code_content(&c, content);
  if (content->arena.failed)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for the file");
  return c.bad || c.at != c.end
             ? file_refuse(path, operation, "is damaged: its parts do not fit",
                           again)
             : CGL_OK;
}


static cgl_status file_fail(const char *path, int error, const char *what,
                            const char *operation) {
  return cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot %s '%s': %s", what, path,
                  strerror(error));
}


cgl_status cgl_file_read(const char *path, char **bytes, size_t *length,
                         const char *operation) {
  struct stat st;
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  *bytes = NULL;
  if (file < 0)
    return file_fail(path, errno, "read", operation);
  int error = fstat(file, &st) ? errno : 0;
  if (!error && !S_ISREG(st.st_mode)) {
    close(file);
    return file_refuse(path, operation, "is not a regular file",
                       "name a file that graph:save wrote");
  }
  *length = 0;
  if (!error && !(*bytes = malloc((size_t)st.st_size + 1)))
    error = ENOMEM;
  while (!error && *length < (size_t)st.st_size) {
    const ssize_t n =
        read(file, *bytes + *length, (size_t)st.st_size - *length);
    if (n < 0 && errno != EINTR)
      error = errno;
    else if (n == 0)
      break; /* it became shorter: its length is wrong */
    *length += n > 0 ? (size_t)n : 0;
  }
  close(file);
  if (!error)
    return CGL_OK;
  free(*bytes);
  *bytes = NULL;
  return file_fail(path, error, "read", operation);
}


/* Writes what is open and closes it; 0 or an errno. */
static int file_fill(int file, const cgl_text *bytes) {
  int error = cgl_cache_write_file(file, bytes->data, bytes->length);
  return close(file) != 0 && !error ? errno : error;
}


/* Under a name of its own first, so that a reader sees a whole file. */
static int file_replace(const char *path, const cgl_text *bytes) {
  char *own = cgl_cache_temporary_name();
  char *temporary = own ? cgl_format("%s%s", path, own) : NULL;
  int error = temporary ? 0 : ENOMEM;
  const int file =
      error ? -1
            : open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (!error && file < 0)
    error = errno;
  if (!error) {
    error = file_fill(file, bytes);
    if (!error && rename(temporary, path))
      error = errno;
    if (error)
      unlink(temporary);
  }
  free(own);
  free(temporary);
  return error;
}


cgl_status cgl_file_write(const char *path, const cgl_text *bytes,
                          const char *operation) {
  struct stat st;
  int error = 0;
  if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) {
    error = file_replace(path, bytes);
  } else if (S_ISCHR(st.st_mode)) {
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    error = file < 0 ? errno : file_fill(file, bytes);
  } else
    return file_refuse(path, operation, "is not a regular file",
                       "name a new file, or one that may be replaced");
  return error ? file_fail(path, error, "write", operation) : CGL_OK;
}
