/* Parameters: values that captured launches read again.
   Idea: a parameter stands where a number stands, as an argument of a launch,
   the value of a fill, a bound of a draw or a grid.  What is not captured reads
   it at the call.  A graph takes a change up at its next replay, in every node
   that uses the parameter; replays that were issued before run as they were.
   A parameter that follows a buffer is read from there by the work that uses
   it, when that runs. */
#ifndef CGRAPHLUA_PARAM_H
#define CGRAPHLUA_PARAM_H

#include "buffer.h"

#define CGL_MAX_FIELD_DIMS 3

/* A field of a struct, as the compiler lays it out.  The fields of a struct
   inside of it follow the field. */
typedef struct cgl_field_info {
  const char *type; /* as spelled by the source, an array's of its elements */
  const char *name;
  cgl_type element; /* of its numbers; CGL_TYPE_COUNT: an address or a struct */
  int lanes;        /* numbers in a vector, 4 of a float4; else 1 */
  bool pointer;
  size_t offset; /* in the struct that declares the field */
  size_t bytes;  /* of the value, or of each element of an array */
  size_t extents[CGL_MAX_FIELD_DIMS]; /* of an array, the slowest first */
  int ndims;                          /* 0: no array */
  size_t nested; /* fields that follow and are inside of this one */
} cgl_field_info;

/* Creates a parameter of `count` elements of `type`, with these values
   (copied): 1 is a number or a vector (CGL_TYPE_float4), 2 to 4 numbers fit a
   vector, and the bytes of a struct are elements of uint8 (of one whose fields
   are known cgl_kernel_param_create makes a parameter).  `name` (copied;
   NULL: none) is what cgl_graph_param finds it by.  It can be used on every
   device.  The caller owns the reference. CGL_ERROR_INVALID_ARGUMENT for no
   elements, or more than 4096 bytes. */
CGL_API cgl_status cgl_param_create(cgl_context *context, cgl_type type,
                                    size_t count, const void *values,
                                    const char *name, cgl_param **param);
/* Sets all elements; `values` is copied.  Any thread may call it, while graphs
   that use the parameter are replayed.  CGL_ERROR_INVALID_ARGUMENT while the
   parameter follows a buffer. */
CGL_API cgl_status cgl_param_set(cgl_param *param, const void *values);
/* Copies the elements that were set last to `values`; those of a buffer that
   the parameter follows are read from there (cgl_param_followed). */
CGL_API void cgl_param_get(const cgl_param *param, void *values);
/* What is launched and captured from now on reads the parameter from `buffer`,
   which is kept until the parameter follows another or ends; NULL ends it, and
   the value is again what was set last.  The buffer has the parameter's type
   and count, and its address is a multiple of the largest power of two up to 16
   that divides the parameter's bytes, of which there are at most 32.  Kernels
   that cgraphlua compiled take such a parameter as an argument, and fills as
   their value; both then use the buffer, as memory that they read.  Captures
   that were made before stay as they are: without the buffer, or with it.  Any
   thread may call it. CGL_ERROR_INVALID_ARGUMENT for another buffer or a
   struct; else as work that uses the buffer fails. */
CGL_API cgl_status cgl_param_follow(cgl_param *param, cgl_buffer *buffer);
/* The buffer that the parameter follows, with a reference that the caller owns;
   NULL: none. */
CGL_API cgl_buffer *cgl_param_followed(cgl_param *param);
CGL_API cgl_type cgl_param_type(const cgl_param *param);
/* The number of elements. */
CGL_API size_t cgl_param_count(const cgl_param *param);
/* Borrowed; "" without a name. */
CGL_API const char *cgl_param_name(const cgl_param *param);
/* The number of fields, nested ones counted, and a field by index from 0; its
   texts are borrowed for the process.  None, but for parameters that stand for
   a struct: cgl_kernel_param_create, and those of loaded graphs.
   CGL_ERROR_INVALID_ARGUMENT past the last. */
CGL_API size_t cgl_param_field_count(const cgl_param *param);
CGL_API cgl_status cgl_param_field(const cgl_param *param, size_t field,
                                   cgl_field_info *info);

#endif
