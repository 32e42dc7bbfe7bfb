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


/* ---- seeds and offsets ---- */

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
                       "it takes effect at the next one");
}


uint64_t cgl_generator_initial_seed(const cgl_generator *generator) {
  return generator->state->seed;
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
  return CGL_OK;
}


cgl_status cgl_generator_manual_seed(cgl_generator *generator,
                                     cgl_stream *stream, uint64_t seed) {
  const cgl_random_state *state = generator->state;
  if (seed == state->seed && (state->captures || stream->capture))
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
  return generator_restart(generator, stream, generator->state->seed, offset,
                           "generator:set_offset");
}


/* Reads the device's offset, in the order of `stream`, unless it is stale. */
static cgl_status generator_offset(cgl_generator *generator, cgl_stream *stream,
                                   const char *operation, uint64_t *offset) {
  cgl_context *context = generator->object.context;
  cgl_random_state *state = generator->state;
  *offset = state->offset;
  cgl_status status =
      cgl_object_check_device(&generator->object, &stream->object, operation);
  if (!status)
    status = generator_check_free(generator, stream, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  if (status || state->stale)
    return status;
  status = cgl_captures_check_wait(false, operation);
  if (!status)
    status = cgl_random_state_ready(state, stream, false, operation);
  if (status)
    return status;
  uint64_t words[2];
  const char *entry = "cuMemcpyDtoHAsync";
  CUresult result = context->driver->cuMemcpyDtoHAsync(
      words, state->memory->address, sizeof words, stream->handle);
  if (!result) {
    entry = "cuStreamSynchronize";
    result = context->driver->cuStreamSynchronize(stream->handle);
  }
  if (!result)
    *offset = words[1] + state->pending;
  return cgl_fail_driver(context, result, operation, entry);
}


cgl_status cgl_generator_get_offset(cgl_generator *generator,
                                    cgl_stream *stream, uint64_t *offset) {
  return generator_offset(generator, stream, "generator:get_offset", offset);
}


/* ---- states ---- */

cgl_status cgl_generator_clone_state(cgl_generator *generator,
                                     cgl_stream *stream, cgl_generator **out) {
  static const char operation[] = "generator:clone_state";
  uint64_t offset;
  cgl_status status = generator_offset(generator, stream, operation, &offset);
  return status ? status
                : generator_new_state(generator->object.context,
                                      generator->state->seed, offset, operation,
                                      out);
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
