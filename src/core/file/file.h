/* Graphs in files: written with everything they need, and made from it again
   without a compiler, a script or a capture.
   Idea: a file is a content: images, kernels, regions of memory, generators,
   parameters, and recordings whose addresses are places.  collect.c makes a
   content of graphs, format.c turns contents into bytes and back, check.c
   proves that a content is whole, load.c makes graphs of it. Glossary.  region:
   memory that the graphs use, as one piece.  place: a region, a generator's
   state or memory of another library's, and an offset in it.  form: first, or
   second (driver/predicate.h). Invariants: nothing of a file is used before all
   of it was checked; each recording stands behind its bodies; what cannot be
   written is refused with its script line. */
#ifndef CGL_FILE_FILE_H
#define CGL_FILE_FILE_H

#include "compile/compile.h"
#include "core/call/call.h"
#include "core/copy/copy.h"
#include "core/graph/graph.h"

enum {
  CGL_FILE_VERSION = 5,
  CGL_FILE_ALIGN = 512,    /* of regions, as of blocks */
  CGL_FILE_OWN = 2,        /* lists of kernels of the library's own */
  CGL_FILE_DEPTH = 64,     /* most graphs inside one another */
  CGL_FILE_NODES = 1 << 24 /* most nodes of a graph, with those inside */
};

typedef enum cgl_file_kind {
  CGL_FILE_NOTHING, /* the address 0 */
  CGL_FILE_REGION,
  CGL_FILE_GENERATOR,
  CGL_FILE_LIBRARY /* memory of another library's */
} cgl_file_kind;

typedef struct cgl_file_place {
  uint8_t kind; /* cgl_file_kind */
  uint32_t index;
  uint64_t offset;
} cgl_file_place;

typedef struct cgl_file_bytes {
  const void *data;
  uint64_t length;
} cgl_file_bytes;

typedef struct cgl_file_image {
  uint8_t format; /* cgl_image_format */
  bool ptx, second;
  uint32_t sm;
  const char *level; /* of the host device: a level, or a processor */
  cgl_file_bytes row, bytes;
} cgl_file_image;

typedef struct cgl_file_module {
  uint8_t own;        /* from 1: of the library's own list; 0: a user's */
  uint32_t part;      /* kernel of that list whose part it is */
  cgl_file_bytes sum; /* of what that list is compiled from */
  const char *file;   /* of its script */
  uint32_t line;
  const char *source; /* "": not written */
  uint32_t nimages;
  cgl_file_image *images;
} cgl_file_module;

typedef struct cgl_file_kernel {
  uint32_t module;
  const char *name;
} cgl_file_kernel;

typedef struct cgl_file_region {
  uint64_t bytes;
  uint32_t skew;       /* its address modulo CGL_FILE_ALIGN */
  cgl_file_bytes data; /* empty: zeros */
  CUdeviceptr address; /* where it is; not written */
  bool words;          /* may hold addresses; not written */
} cgl_file_region;

typedef struct cgl_file_generator {
  uint64_t seed, offset;
  CUdeviceptr address; /* not written */
} cgl_file_generator;

/* Memory that another library makes again from the recipe. */
typedef struct cgl_file_library {
  const char *name;
  uint32_t version;
  uint64_t bytes;
  cgl_file_bytes recipe;
  CUdeviceptr address; /* not written */
} cgl_file_library;

typedef struct cgl_file_param {
  const char *name; /* "": none */
  uint8_t type;     /* cgl_type */
  cgl_file_bytes value;
} cgl_file_param;

/* cgl_param_use */
typedef struct cgl_file_use {
  uint32_t param, offset;
  uint16_t repeats, argument;
  bool follows;
} cgl_file_use;

typedef struct cgl_file_range {
  cgl_file_place place;
  uint64_t bytes;
  uint32_t argument;
  bool write;
} cgl_file_range;

typedef struct cgl_file_address {
  uint32_t at; /* in the values */
  cgl_file_place place;
} cgl_file_address;

typedef enum cgl_file_function {
  CGL_FILE_NO_FUNCTION,
  CGL_FILE_USER, /* a kernel of the file */
  CGL_FILE_OWN_1 /* and on: of the library's lists */
} cgl_file_function;

typedef struct cgl_file_op {
  uint8_t kind, handle, predication;
  uint8_t rule; /* from 1: of cgl_file_rules; 0: none */
  bool fills, follows, waits, fits, programmatic, off, streamed;
  int32_t priority;
  const char *name, *file;
  uint32_t line;
  cgl_launch launch;
  uint8_t function; /* cgl_file_function */
  uint32_t index;   /* of it in its list */
  bool second;      /* its form */
  uint32_t module;  /* of a function of the library's */
  cgl_file_bytes values;
  uint32_t naddresses, nuses, nranges, nbodies, nedges;
  cgl_file_address *addresses;
  cgl_file_use *uses;
  cgl_file_range *ranges;
  uint32_t *bodies, *edges; /* recordings, and operations before this one */
} cgl_file_op;

typedef struct cgl_file_recording {
  uint32_t nops;
  cgl_file_op *ops;
} cgl_file_recording;

typedef struct cgl_file_draw {
  uint32_t generator;
  bool used, written;
} cgl_file_draw;

typedef struct cgl_file_name {
  const char *name;
  bool output;
  cgl_file_place place;
  uint8_t type; /* cgl_type */
  uint32_t ndims;
  uint64_t *shape;
} cgl_file_name;

typedef struct cgl_file_graph {
  const char *name;
  uint32_t nrecordings, ndraws, nnames;
  cgl_file_recording *recordings; /* the last one is the graph's */
  cgl_file_draw *draws;
  cgl_file_name *names;
} cgl_file_graph;

typedef struct cgl_file_content {
  const char *library; /* its version */
  const char *device;
  uint8_t format; /* of images for the device that wrote it */
  uint32_t sm, multiprocessors, abi;
  uint32_t nmodules, nkernels, nregions, ngenerators, nlibraries, nparams,
      ngraphs;
  cgl_file_module *modules;
  cgl_file_kernel *kernels;
  cgl_file_region *regions;
  cgl_file_generator *generators;
  cgl_file_library *libraries;
  cgl_file_param *params;
  cgl_file_graph *graphs;
  cgl_arena arena; /* all of it */
} cgl_file_content;

/* What the graphs of a loaded file share: kept by their recordings. */
typedef struct cgl_file_memory {
  cgl_object object;
  cgl_buffer *block;      /* owned: all regions; NULL: there are none */
  cgl_kernel **kernels;   /* owned each */
  cgl_param **params;     /* likewise */
  cgl_buffer **libraries; /* likewise */
  size_t nkernels, nparams, nlibraries, nregions;
  struct cgl_file_span {
    CUdeviceptr address;
    uint64_t bytes;
  } * regions;
} cgl_file_memory;

extern const cgl_object_kind cgl_file_memory_kind;

/* The library's own kernels: their lists, and what they take. */
extern const cgl_own *const cgl_file_owns[CGL_FILE_OWN];
/* How values follow from numbers behind them (record.h). */
enum { CGL_FILE_RULES = 5 };
extern const cgl_rule *const cgl_file_rules[CGL_FILE_RULES];
/* Count of the kernel's values, 8 bytes each, 16 apart, and which are
   addresses, as bits. */
void cgl_file_own_values(size_t own, size_t index, size_t *count,
                         unsigned *addresses);
/* The hash of what a list is compiled from. */
cgl_cache_key cgl_file_own_sum(size_t own);

/* ---- format.c ---- */

/* The bytes of a file; `out` is freed by the caller.  CGL_ERROR_NO_MEMORY */
cgl_status cgl_file_pack(const cgl_file_content *content, cgl_text *out,
                         const char *operation);
/* The content of a file; it borrows from the bytes.  Fails with what is wrong
   with them.  The caller frees content->arena, whatever the status. */
cgl_status cgl_file_unpack(const char *bytes, size_t length, const char *path,
                           cgl_file_content *content, const char *operation);
/* All of a regular file (malloc'ed). */
cgl_status cgl_file_read(const char *path, char **bytes, size_t *length,
                         const char *operation);
cgl_status cgl_file_write(const char *path, const cgl_text *bytes,
                          const char *operation);

/* ---- check.c ---- */

/* Proves that every index, offset and length is one, for a device with these
   images: images[m] of module m, described.  NULL, or what is wrong; `where` is
   the operation that is, or NULL. */
const char *cgl_file_check(const cgl_file_content *content,
                           cgl_image *const *images, const cgl_file_op **where);

/* ---- images.c ---- */

typedef struct cgl_file_targets {
  cgl_context *context;
  const char *const *devices;
  size_t ndevices;
} cgl_file_targets;

/* Adds `image`, which was compiled from `source` for the context's device, and
   the images for the other devices; with `second`, of second forms too, of
   which `second_image` is there or NULL. */
cgl_status cgl_file_add_images(cgl_file_content *content,
                               const cgl_file_targets *targets,
                               const cgl_module_desc *source,
                               const cgl_image *image, bool second,
                               const cgl_image *second_image,
                               cgl_file_module *module, const char *operation);
/* The image that the context's device runs best; NULL: there is none. */
const cgl_file_image *cgl_file_find_image(const cgl_file_module *module,
                                          const cgl_context *context,
                                          bool second);
/* An image with its description, for cgl_image_free; NULL when that is no
   description, or without memory. */
cgl_image *cgl_file_open_image(const cgl_file_image *from);

/* ---- collect.c ---- */

/* The content of graphs that know their edges.  Refuses, with its line, what
   cannot be written. */
cgl_status cgl_file_collect(const cgl_save_graph *graphs, size_t n,
                            const cgl_save_desc *desc,
                            cgl_file_content *content, const char *operation);

#endif
