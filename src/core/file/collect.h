/* What collect.c and memory.c share while a content is made of graphs. */
#ifndef CGL_FILE_COLLECT_H
#define CGL_FILE_COLLECT_H

#include "core/file/file.h"

typedef struct cgl_file_collecting {
  cgl_file_content *content;
  cgl_file_targets targets;
  const cgl_save_desc *desc;
  const char *operation;
  const cgl_kernel **kernels;       /* of the content's, in its order */
  const cgl_module **modules;       /* likewise; NULL: the library's */
  const cgl_param **params;         /* likewise */
  bool *seconds;                    /* of each module: it has second forms */
  const cgl_recording **recordings; /* of the graph underway, in its order */
} cgl_file_collecting;

/* Room for one more element in an array of n; NULL without memory. */
void *cgl_file_grow(void *array, uint32_t n, size_t size);
cgl_status cgl_file_no_memory(const cgl_file_collecting *c);
/* Names the operation that no file can have. */
cgl_status cgl_file_refuse(const cgl_file_collecting *c, const cgl_op *op,
                           const char *why, const char *hint);

/* Adds the memory that a recording touches, bodies included; refuses what
   cannot be written. */
cgl_status cgl_file_collect_memory(cgl_file_collecting *c,
                                   const cgl_recording *recording);
/* Adds the states that the draws are of: before all memory. */
cgl_status cgl_file_collect_generators(cgl_file_collecting *c,
                                       const cgl_draw *draws);
/* Once all memory is there: what overlaps becomes one region. */
void cgl_file_join_regions(cgl_file_content *content);
/* False: the address is none that the file has. */
bool cgl_file_find_place(const cgl_file_content *content, CUdeviceptr address,
                         cgl_file_place *place);

#endif
