/* Random numbers that graphs draw anew in every replay. */
#ifndef CGRAPHLUA_GENERATOR_H
#define CGRAPHLUA_GENERATOR_H

#include "base.h"

/* Philox4x32-10.  A generator holds a state, a seed and an offset on the
   device; every operation that draws takes one number of it.  Replays of a
   graph that draws move the offset by themselves, so each draws anew, and
   captured, eager and replayed draws make one sequence.  Generators may share
   a state.  A generator, and what draws from it, serves one thread at a time;
   its use by several streams is put in order.
   A kernel takes one as a parameter of type cgl_philox and draws with
   cgl_random, cgl_random4, cgl_uniform, cgl_uniform4, cgl_uniform_double,
   cgl_normal, cgl_normal4, cgl_normal_double and cgl_below. */
CGL_API cgl_status cgl_generator_create(cgl_context *context, uint64_t seed,
                                        cgl_generator **generator);
/* Starts over with this seed, at offset 0, from the next operation or replay
   on.  `stream` is the current one: while it captures, or any stream that
   draws from the state, only the seed that is there already is taken, and does
   nothing. */
CGL_API cgl_status cgl_generator_manual_seed(cgl_generator *generator,
                                             cgl_stream *stream, uint64_t seed);
/* The same with a seed below 2^53 from the system.  getrandom */
CGL_API cgl_status cgl_generator_seed(cgl_generator *generator,
                                      cgl_stream *stream, uint64_t *seed);
CGL_API uint64_t cgl_generator_initial_seed(const cgl_generator *generator);
/* How many numbers were taken since the seed; waits for `stream`.  Refused in
   captures.  cuMemcpyDtoHAsync */
CGL_API cgl_status cgl_generator_get_offset(cgl_generator *generator,
                                            cgl_stream *stream,
                                            uint64_t *offset);
CGL_API cgl_status cgl_generator_set_offset(cgl_generator *generator,
                                            cgl_stream *stream,
                                            uint64_t offset);
/* A generator with a copy of the state as it is now; waits for `stream`. */
CGL_API cgl_status cgl_generator_clone_state(cgl_generator *generator,
                                             cgl_stream *stream,
                                             cgl_generator **clone);
/* A generator with the same state; and makes a generator use another's state
   from now on, in a capture too. */
CGL_API cgl_status cgl_generator_graphsafe_get_state(cgl_generator *generator,
                                                     cgl_generator **same);
CGL_API cgl_status cgl_generator_graphsafe_set_state(cgl_generator *generator,
                                                     cgl_generator *other);
/* Keeps the state alive with the graph.  A generator used in a capture does
   so by itself. */
CGL_API cgl_status cgl_graph_register_generator_state(cgl_graph *graph,
                                                      cgl_generator *generator);

/* Asynchronous fills with random numbers, the same bits on every device;
   buffers of float, double, half and bfloat16.  From [low, high), bounds
   rounded to the type. */
CGL_API cgl_status cgl_buffer_uniform(cgl_buffer *buffer,
                                      cgl_generator *generator,
                                      cgl_stream *stream, double low,
                                      double high);
CGL_API cgl_status cgl_buffer_normal(cgl_buffer *buffer,
                                     cgl_generator *generator,
                                     cgl_stream *stream, double mean,
                                     double deviation);
/* Whole numbers: each of low .. low + count - 1 alike (0: 2^64 of them);
   buffers of integers and bool. */
CGL_API cgl_status cgl_buffer_random(cgl_buffer *buffer,
                                     cgl_generator *generator,
                                     cgl_stream *stream, int64_t low,
                                     uint64_t count);

#endif
