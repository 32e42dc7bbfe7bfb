/* Generators: seeds, offsets, shared states. */
#include "core/random/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>


cgl_random_state *cgl_random_state_retain(cgl_random_state *state) {
  atomic_fetch_add_explicit(&state->references, 1, memory_order_relaxed);
  return state;
}


void cgl_random_state_release(cgl_random_state *state) {
  if (!state || atomic_fetch_sub_explicit(&state->references, 1,
                                          memory_order_acq_rel) != 1)
    return;
  cgl_buffer_release(state->memory);
  cgl_clock_release(state->clock);
  free(state);
}


static void generator_destroy(cgl_object *object) {
  cgl_random_state_release(((cgl_generator *)object)->state);
  free(object);
}


CGL_OBJECT_KIND(generator, .light = true, .destroy = generator_destroy)


/* Takes the caller's reference to the state, also when it fails. */
static cgl_status generator_new(cgl_context *context, cgl_random_state *state,
                                const char *operation, cgl_generator **out) {
  cgl_generator *generator = calloc(1, sizeof *generator);
  if (!generator) {
    cgl_random_state_release(state);
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for a generator");
  }
  generator->state = state;
  cgl_object_init(&generator->object, &generator_kind, context);
  *out = generator;
  return CGL_OK;
}


/* A generator with a state of its own.  The state's memory comes in the order
   of the default stream, which never captures, so that a generator can be made
   in the midst of a capture. */
static cgl_status generator_new_state(cgl_context *context, uint64_t seed,
                                      uint64_t offset, const char *operation,
                                      cgl_generator **out) {
  cgl_stream *stream = NULL;
  cgl_random_state *state = calloc(1, sizeof *state);
  if (!state)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for a generator");
  atomic_init(&state->references, 1);
  state->seed = seed;
  state->offset = offset;
  state->stale = true;
  cgl_status status = cgl_stream_default(context, &stream);
  if (!status)
    status =
        cgl_buffer_create(stream, NULL, CGL_TYPE_uint64, 2, &state->memory);
  if (!status) {
    state->clock = cgl_clock_retain(stream->clock);
    state->tick = cgl_clock_now(stream->clock);
    atomic_store(&state->memory->wide, true);
  }
  cgl_stream_release(stream);
  if (!status)
    return generator_new(context, state, operation, out);
  cgl_random_state_release(state);
  return status;
}


cgl_status cgl_generator_create(cgl_context *context, uint64_t seed,
                                cgl_generator **out) {
  static const char operation[] = "generator";
  cgl_status status = cgl_context_enter(context, operation);
  return status ? status
                : generator_new_state(context, seed, 0, operation, out);
}


/* ---- before the device uses a state ---- */

/* set(state, seed, offset) or advance(state, count), as a single thread. */
static cgl_status state_launch(cgl_random_state *state, cgl_stream *stream,
                               cgl_fill fill, uint64_t a, uint64_t b,
                               const char *operation) {
  CUfunction kernel;
  void *params[] = {&state->memory->address, &a, &b};
  cgl_status status =
      cgl_fill_kernel(stream->object.context, fill, operation, &kernel);
  if (status)
    return status;
  CUresult result = cgl_driver_of(stream)->cuLaunchKernel(
      kernel, 1, 1, 1, 1, 1, 1, 0, stream->handle, params, NULL);
  cgl_context_note_work(stream->object.context);
  return cgl_fail_driver(stream->object.context, result, operation,
                         "cuLaunchKernel");
}


/* An engine's stream may capture without our knowing; numbers drawn there
   would be the same in every replay. */
static cgl_status stream_check_engine(cgl_stream *stream,
                                      const char *operation) {
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result =
      cgl_driver_of(stream)->cuStreamIsCapturing(stream->handle, &capturing);
  if (result)
    return cgl_fail_driver(stream->object.context, result, operation,
                           "cuStreamIsCapturing");
  if (capturing == CU_STREAM_CAPTURE_STATUS_NONE)
    return CGL_OK;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           "the stream is captured by another library: its replays would draw "
           "the same numbers again and again");
  return cgl_fail_hint("capture with graph:capture_begin, which moves the "
                       "generator's offset in every replay");
}


cgl_status cgl_random_state_ready(cgl_random_state *state, cgl_stream *stream,
                                  bool flush, const char *operation) {
  cgl_status status = CGL_OK;
  if (!stream->owned && !cgl_stream_is_default(stream))
    status = stream_check_engine(stream, operation);
  if (!status && stream->clock != state->clock &&
      !cgl_clock_covers(stream->clock, state->clock, state->tick))
    status = cgl_clock_order(stream, state->clock, operation);
  if (status)
    return status;
  if (stream->clock != state->clock) {
    cgl_clock *before = state->clock;
    state->clock = cgl_clock_retain(stream->clock);
    cgl_clock_release(before);
  }
  if (state->stale) {
    status = state_launch(state, stream, CGL_FILL_set, state->seed,
                          state->offset, operation);
    state->stale = status;
  } else if (flush && state->pending) {
    status = state_launch(state, stream, CGL_FILL_advance, state->pending, 0,
                          operation);
    state->pending = status ? state->pending : 0;
  }
  cgl_random_state_used(state);
  return status;
}


/* ---- what the host knows of a state, and sets ---- */

static cgl_status generator_check_free(const cgl_generator *generator,
                                       const cgl_stream *stream,
                                       const char *operation) {
  if (!generator->state->captures && !stream->capture)
    return CGL_OK;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           generator->state->captures
               ? "a capture that draws from this generator is underway"
               : "the current stream captures: the call would take effect "
                 "once, during the capture, and not in the replays");
  return cgl_fail_hint("do it before the capture or after it; between replays "
                       "it takes effect at the next one.  generator:get_state "
                       "and generator:set_state copy the state in replays");
}


cgl_status cgl_random_state_read(cgl_random_state *state, cgl_stream *stream,
                                 const char *operation, uint64_t words[2]) {
  cgl_context *context = stream->object.context;
  words[0] = state->seed;
  words[1] = state->offset;
  if (state->stale)
    return CGL_OK;
  cgl_status status = cgl_captures_check_wait(false, operation);
  if (!status)
    status = cgl_random_state_ready(state, stream, true, operation);
  if (status)
    return status;
  const char *entry = "cuMemcpyDtoHAsync";
  CUresult result = context->driver->cuMemcpyDtoHAsync(
      words, state->memory->address, 2 * sizeof *words, stream->handle);
  if (!result) {
    entry = "cuStreamSynchronize";
    result = cgl_context_wait_stream(context, stream->handle);
  }
  if (!result) {
    state->seed = words[0];
    state->unread = false;
  }
  return cgl_fail_driver(context, result, operation, entry);
}


static cgl_status generator_read(cgl_generator *generator, cgl_stream *stream,
                                 const char *operation, uint64_t words[2]) {
  words[0] = generator->state->seed;
  words[1] = generator->state->offset;
  cgl_status status =
      cgl_object_check_device(&generator->object, &stream->object, operation);
  if (!status)
    status = generator_check_free(generator, stream, operation);
  if (!status)
    status = cgl_context_enter(generator->object.context, operation);
  return status ? status
                : cgl_random_state_read(generator->state, stream, operation,
                                        words);
}


cgl_status cgl_generator_initial_seed(cgl_generator *generator,
                                      cgl_stream *stream, uint64_t *seed) {
  uint64_t words[2];
  cgl_status status = CGL_OK;
  if (generator->state->unread)
    status = generator_read(generator, stream, "generator:initial_seed", words);
  *seed = generator->state->seed;
  return status;
}


cgl_status cgl_generator_get_offset(cgl_generator *generator,
                                    cgl_stream *stream, uint64_t *offset) {
  uint64_t words[2];
  cgl_status status =
      generator_read(generator, stream, "generator:get_offset", words);
  *offset = words[1];
  return status;
}


/* Gives the state a seed and an offset for the next operation or replay. */
static cgl_status generator_restart(cgl_generator *generator,
                                    cgl_stream *stream, uint64_t seed,
                                    uint64_t offset, const char *operation) {
  cgl_random_state *state = generator->state;
  cgl_status status = generator_check_free(generator, stream, operation);
  if (status)
    return status;
  state->seed = seed;
  state->offset = offset;
  state->pending = 0;
  state->stale = true;
  state->unread = false;
  return CGL_OK;
}


cgl_status cgl_generator_manual_seed(cgl_generator *generator,
                                     cgl_stream *stream, uint64_t seed) {
  const cgl_random_state *state = generator->state;
  if (seed == state->seed && !state->unread &&
      (state->captures || stream->capture))
    return CGL_OK;
  return generator_restart(generator, stream, seed, 0, "generator:manual_seed");
}


cgl_status cgl_generator_seed(cgl_generator *generator, cgl_stream *stream,
                              uint64_t *seed) {
  static const char operation[] = "generator:seed";
  uint64_t fresh = 0;
  if (getrandom(&fresh, sizeof fresh, 0) != (ssize_t)sizeof fresh)
    return cgl_fail(CGL_ERROR_SYSTEM, operation,
                    "the system gives no random numbers: %s", strerror(errno));
  fresh &= (UINT64_C(1) << 53) - 1;
  cgl_status status = generator_restart(generator, stream, fresh, 0, operation);
  if (!status)
    *seed = fresh;
  return status;
}


cgl_status cgl_generator_set_offset(cgl_generator *generator,
                                    cgl_stream *stream, uint64_t offset) {
  static const char operation[] = "generator:set_offset";
  uint64_t words[2] = {generator->state->seed};
  cgl_status status = CGL_OK;
  if (generator->state->unread)
    status = generator_read(generator, stream, operation, words);
  return status ? status
                : generator_restart(generator, stream, words[0], offset,
                                    operation);
}


/* ---- copies of a state, also in captures ---- */

/* Copies between the memory of a state, which `write` replaces, and a
   buffer. */
static cgl_status state_copy(cgl_random_state *state, bool write,
                             cgl_buffer *buffer, cgl_stream *stream,
                             const char *operation) {
  cgl_status status =
      cgl_object_check_device(&buffer->object, &stream->object, operation);
  if (!status)
    status = cgl_object_check_device(&state->memory->object, &stream->object,
                                     operation);
  if (!status)
    status = cgl_context_enter(stream->object.context, operation);
  if (!status && (buffer->type != CGL_TYPE_uint64 || buffer->count != 2)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "a state is 2 elements of uint64, not %zu of %s", buffer->count,
             cgl_type_name(buffer->type));
    return cgl_fail_hint("make the buffer with cg.buffer(\"uint64\", 2)");
  }
  if (!status)
    status = cgl_draw_enter(state, stream, operation);
  if (!status)
    status = write ? cgl_buffer_copy(state->memory, buffer, stream)
                   : cgl_buffer_copy(buffer, state->memory, stream);
  if (!status)
    cgl_draw_leave(state, stream, write);
  return status;
}


cgl_status cgl_generator_get_state(cgl_generator *generator, cgl_stream *stream,
                                   cgl_buffer *into) {
  return state_copy(generator->state, false, into, stream,
                    "generator:get_state");
}


cgl_status cgl_generator_set_state(cgl_generator *generator, cgl_stream *stream,
                                   cgl_buffer *from) {
  return state_copy(generator->state, true, from, stream,
                    "generator:set_state");
}


/* ---- states ---- */

cgl_status cgl_generator_clone_state(cgl_generator *generator,
                                     cgl_stream *stream, cgl_generator **out) {
  static const char operation[] = "generator:clone_state";
  cgl_random_state *state = generator->state;
  cgl_generator *clone = NULL;
  const bool known = state->stale && !stream->capture;
  cgl_status status =
      cgl_object_check_device(&generator->object, &stream->object, operation);
  if (!status)
    status = generator_new_state(generator->object.context,
                                 stream->capture ? 0 : state->seed,
                                 known ? state->offset : 0, operation, &clone);
  if (!status && known) {
    *out = clone;
    return CGL_OK;
  }
  if (!status)
    status = cgl_draw_enter(state, stream, operation);
  if (!status)
    status = state_copy(clone->state, true, state->memory, stream, operation);
  if (status) {
    cgl_generator_release(clone);
    return status;
  }
  cgl_draw_leave(state, stream, false);
  if (!stream->capture)
    clone->state->unread = state->unread;
  *out = clone;
  return CGL_OK;
}


cgl_status cgl_generator_graphsafe_get_state(cgl_generator *generator,
                                             cgl_generator **out) {
  return generator_new(generator->object.context,
                       cgl_random_state_retain(generator->state),
                       "generator:graphsafe_get_state", out);
}


cgl_status cgl_generator_graphsafe_set_state(cgl_generator *generator,
                                             cgl_generator *other) {
  cgl_status status = cgl_object_check_device(
      &generator->object, &other->object, "generator:graphsafe_set_state");
  if (status)
    return status;
  cgl_random_state *before = generator->state;
  generator->state = cgl_random_state_retain(other->state);
  cgl_random_state_release(before);
  return CGL_OK;
}
