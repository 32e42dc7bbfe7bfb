/* Graphs in files: saved with all that they need, loaded without a compiler or
   a capture. */
#ifndef CGRAPHLUA_FILE_H
#define CGRAPHLUA_FILE_H

#include "graph.h"

/* A graph of a file, and buffers of it that have names there. */
typedef struct cgl_save_graph {
  const char *name; /* NULL: "" */
  cgl_graph *graph;
  const cgl_named_buffer *inputs, *outputs;
  size_t ninputs, noutputs;
} cgl_save_graph;

typedef enum cgl_save_keep {
  CGL_SAVE_CONTENTS, /* what the graphs' memory holds now */
  CGL_SAVE_ZERO      /* zeros */
} cgl_save_keep;

typedef struct cgl_save_desc {
  cgl_save_keep keep;
  bool no_sources; /* leave out the text of kernels */
  /* also for these: "host" is every processor of this architecture, "sm_90" a
     GPU architecture, "compute_90" that and all later ones */
  const char *const *devices;
  size_t ndevices;
} cgl_save_desc;

/* Writes n captured graphs of one device into a file: nodes, kernels, memory
   with its content, the seeds and offsets of generators, and parameters.
   Memory and parameters that several graphs use are there once.  Waits for the
   device.  An existing file is replaced when all is written.  A NULL desc means
   defaults. CGL_ERROR_NOT_CAPTURED for a graph without a capture;
   CGL_ERROR_INVALID_ARGUMENT, with the node's script line, for what a file
   cannot have: calls of cuBLAS and cuFFT, collectives,
   foreign nodes, external events, pinned memory, raw addresses,
   addresses in structs or buffers, modules with variables or without source,
   edges that were added by hand; CGL_ERROR_SYSTEM when it cannot be written;
   CGL_ERROR_COMPILE and CGL_ERROR_NO_COMPILER for the devices.
   cuMemcpyDtoHAsync */
CGL_API cgl_status cgl_graph_save(const cgl_save_graph *graphs, size_t n,
                                  const char *path, const cgl_save_desc *desc);

typedef struct cgl_load_desc {
  /* Sees all bytes of the file before anything of them is used; false refuses
     them.  An engine checks its signature here: images are machine code. */
  bool (*verify)(void *data, const void *bytes, size_t length);
  void *verify_data;
} cgl_load_desc;

/* Makes the first graph of a file: as captured ones, instantiated, with memory
   and parameters of its own (cgl_graph_param finds them by name).  The whole
   file is checked before the device is used; the digest in it finds damage, and
   is no signature.  Waits for the device.  A NULL desc means defaults.  The
   caller owns the reference. CGL_ERROR_INVALID_ARGUMENT for what is no file of
   graphs, is damaged, of another format or byte order, or refused by `verify`;
   CGL_ERROR_WRONG_DEVICE when it has no image for the context's device;
   CGL_ERROR_NOT_FOUND when it calls a library that is not there;
   CGL_ERROR_SYSTEM when it cannot be read.  cuModuleLoadData, cuGraphAddNode,
   cuGraphInstantiateWithParams */
CGL_API cgl_status cgl_graph_load(cgl_context *context, const char *path,
                                  const cgl_load_desc *desc, cgl_graph **graph);
/* The same with all graphs, in the order of their writing, for which there is
   `room`; they share their memory as they did.  *count is how many the file
   has; with less room than that nothing is made, and the status is CGL_OK.
   After a failure the graphs that were made are released, and NULL. */
CGL_API cgl_status cgl_graph_load_all(cgl_context *context, const char *path,
                                      const cgl_load_desc *desc,
                                      cgl_graph **graphs, size_t room,
                                      size_t *count);
/* Of a loaded graph: its name; its output of a name (borrowed from the graph),
   and the name of each in turn.  NULL: there is none.  Its inputs are those of
   cgl_graph_input. */
CGL_API const char *cgl_graph_saved_name(const cgl_graph *graph);
CGL_API cgl_buffer *cgl_graph_output(const cgl_graph *graph, const char *name);
CGL_API const char *cgl_graph_output_name(const cgl_graph *graph, size_t index);
/* Calls `line` for each line of a text that says what is in a file, after the
   same checks; needs no device. */
CGL_API cgl_status cgl_graph_inspect(const char *path,
                                     void (*line)(void *data, const char *text),
                                     void *data);

#endif
