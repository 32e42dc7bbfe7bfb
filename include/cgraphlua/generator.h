/* Random numbers, of which every replay of a graph draws new ones. */
#ifndef CGRAPHLUA_GENERATOR_H
#define CGRAPHLUA_GENERATOR_H

#include "param.h"

/* Creates a Philox4x32-10 generator with a state of its own: a seed and an
   offset on the device.  The caller owns the reference.
   Every operation that draws takes one number of the state.  A graph that draws
   moves the offset itself, so each replay draws new numbers, and eager draws
   and replays make one sequence.  Generators may share a state.  One thread at
   a time may use a generator and the objects that draw from it.  Draws on
   several streams are put in order.
   A kernel takes a generator as a parameter of type cgl_philox, and draws with
   cgl_random, cgl_random4, cgl_uniform, cgl_uniform4, cgl_uniform_double,
   cgl_normal, cgl_normal4, cgl_normal_double and cgl_below. */
CGL_API cgl_status cgl_generator_create(cgl_context *context, uint64_t seed,
                                        cgl_generator **generator);
/* Sets the seed, and offset 0, for the next operation or replay.  `stream` is
   the caller's current stream.  While it captures, or while a capture that
   draws from the state is underway, only the seed that is set already is
   accepted, and setting it does nothing. */
CGL_API cgl_status cgl_generator_manual_seed(cgl_generator *generator,
                                             cgl_stream *stream, uint64_t seed);
/* Sets a seed below 2^53 from the system likewise, and returns it.
   getrandom */
CGL_API cgl_status cgl_generator_seed(cgl_generator *generator,
                                      cgl_stream *stream, uint64_t *seed);
/* The seed in use.  Waits for `stream` when a copy on the device gave it, which
   captures refuse.  cuMemcpyDtoHAsync */
CGL_API cgl_status cgl_generator_initial_seed(cgl_generator *generator,
                                              cgl_stream *stream,
                                              uint64_t *seed);
/* How many numbers were taken since the seed was set; waits for `stream`.
   Refused in captures.  cuMemcpyDtoHAsync */
CGL_API cgl_status cgl_generator_get_offset(cgl_generator *generator,
                                            cgl_stream *stream,
                                            uint64_t *offset);
/* Sets the offset for the next operation or replay.  Refused in captures. */
CGL_API cgl_status cgl_generator_set_offset(cgl_generator *generator,
                                            cgl_stream *stream,
                                            uint64_t offset);
/* Copies the state into a buffer of two uint64, the seed and the offset, or
   from such a buffer, asynchronously on `stream`.  In a capture every replay
   copies the state that its draws have reached there.
   CGL_ERROR_INVALID_ARGUMENT for another buffer.  cuMemcpyDtoDAsync */
CGL_API cgl_status cgl_generator_get_state(cgl_generator *generator,
                                           cgl_stream *stream,
                                           cgl_buffer *into);
CGL_API cgl_status cgl_generator_set_state(cgl_generator *generator,
                                           cgl_stream *stream,
                                           cgl_buffer *from);
/* Creates a generator with a copy of the state, made in the order of `stream`;
   the caller owns the reference.  In a capture every replay copies the state
   again, and until the first the clone has seed 0 and offset 0.
   cuMemcpyDtoDAsync */
CGL_API cgl_status cgl_generator_clone_state(cgl_generator *generator,
                                             cgl_stream *stream,
                                             cgl_generator **clone);
/* Creates a generator that shares the state; the caller owns the reference. */
CGL_API cgl_status cgl_generator_graphsafe_get_state(cgl_generator *generator,
                                                     cgl_generator **same);
/* Makes the generator use the state of `other` from now on, also in
   captures. */
CGL_API cgl_status cgl_generator_graphsafe_set_state(cgl_generator *generator,
                                                     cgl_generator *other);
/* Keeps the state alive with the graph's capture.  A generator that is used in
   a capture registers itself. */
CGL_API cgl_status cgl_graph_register_generator_state(cgl_graph *graph,
                                                      cgl_generator *generator);

/* Fills a buffer of float, double, half or bfloat16, or of vectors or complex
   numbers of them, whose every number is drawn, with uniform numbers from
   [low, high), asynchronously on `stream`.  Bounds are rounded to the type.
   The bits are the same on every device, as for the two fills below.
   cuLaunchKernel */
CGL_API cgl_status cgl_buffer_uniform(cgl_buffer *buffer,
                                      cgl_generator *generator,
                                      cgl_stream *stream, double low,
                                      double high);
/* Fills a buffer of the same types with normal numbers likewise. */
CGL_API cgl_status cgl_buffer_normal(cgl_buffer *buffer,
                                     cgl_generator *generator,
                                     cgl_stream *stream, double mean,
                                     double deviation);
/* A number of a draw; a parameter of one number, of any type but bool, is read
   again by replays, and one that the draw cannot have refuses the replay. */
typedef struct cgl_bound {
  cgl_param *param; /* NULL: the number */
  double number;
} cgl_bound;

/* The same two fills.  CGL_ERROR_ARGUMENT_TYPE for a parameter of several
   numbers. */
CGL_API cgl_status cgl_buffer_uniform_params(cgl_buffer *buffer,
                                             cgl_generator *generator,
                                             cgl_stream *stream, cgl_bound low,
                                             cgl_bound high);
CGL_API cgl_status cgl_buffer_normal_params(cgl_buffer *buffer,
                                            cgl_generator *generator,
                                            cgl_stream *stream, cgl_bound mean,
                                            cgl_bound deviation);
/* Fills a buffer of integers or bool likewise with whole numbers, each of
   low .. low + count - 1 with equal probability.  A count of 0 means 2^64. */
CGL_API cgl_status cgl_buffer_random(cgl_buffer *buffer,
                                     cgl_generator *generator,
                                     cgl_stream *stream, int64_t low,
                                     uint64_t count);
/* The same fill with whole numbers from `low` to below `high`: whole bounds,
   with at most 2^32 numbers between them. */
CGL_API cgl_status cgl_buffer_random_params(cgl_buffer *buffer,
                                            cgl_generator *generator,
                                            cgl_stream *stream, cgl_bound low,
                                            cgl_bound high);

#endif
