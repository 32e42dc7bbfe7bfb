/* Parameters: values that captured launches read again.
   Idea: a parameter stands where a number stands, as an argument of a launch or
   the value of a fill.  What is not captured reads it at the call.  A graph
   takes a change up at its next replay, in every node that uses the parameter;
   replays that were issued before run as they were. */
#ifndef CGRAPHLUA_PARAM_H
#define CGRAPHLUA_PARAM_H

#include "buffer.h"

/* Creates a parameter of `count` elements of `type`, with these values
   (copied): 1 is a number or a vector (CGL_TYPE_float4), 2 to 4 numbers fit a
   vector, and the bytes of a struct are elements of uint8.  `name` (copied;
   NULL: none) is what cgl_graph_param finds it by.  It can be used on every
   device.  The caller owns the reference. CGL_ERROR_INVALID_ARGUMENT for no
   elements, or more than 4096 bytes. */
CGL_API cgl_status cgl_param_create(cgl_context *context, cgl_type type,
                                    size_t count, const void *values,
                                    const char *name, cgl_param **param);
/* Sets all elements; `values` is copied.  Any thread may call it, while graphs
   that use the parameter are replayed. */
CGL_API cgl_status cgl_param_set(cgl_param *param, const void *values);
/* Copies the elements to `values`. */
CGL_API void cgl_param_get(const cgl_param *param, void *values);
CGL_API cgl_type cgl_param_type(const cgl_param *param);
/* The number of elements. */
CGL_API size_t cgl_param_count(const cgl_param *param);
/* Borrowed; "" without a name. */
CGL_API const char *cgl_param_name(const cgl_param *param);

#endif
