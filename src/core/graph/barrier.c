/* Why an operation is a barrier of data order. */
#include "core/graph/plan.h"

#include <string.h>

static bool field_has_pointer(const cgl_parameter *p) {
  for (uint32_t i = 0; i < p->nfields; i++)
    if (p->fields[i].pointer)
      return true;
  return !p->nfields;
}


/* Parameter `index`, whose value lies at `value`, may lead to other memory than
   the ranges say. */
static const char *parameter_reason(const cgl_recording *recording,
                                    const cgl_op *op, const cgl_kernel *kernel,
                                    size_t index, const unsigned char *value) {
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  uint64_t address = 0;
  if (kernel->sizes[index] == sizeof address)
    memcpy(&address, value, sizeof address);
  if (!p)
    return kernel->sizes[index] < sizeof address
               ? NULL
               : "the kernel was not compiled from source, and an argument may "
                 "hold an address";
  if (p->kind == CGL_KIND_PHILOX && !p->pointer)
    return NULL;
  const bool record = p->kind == CGL_KIND_STRUCT || p->kind == CGL_KIND_UNKNOWN;
  if (!p->pointer)
    return record && field_has_pointer(p) ? "a struct may hold an address"
                                          : NULL;
  if (!address)
    return NULL;
  if (!cgl_record_range_of(recording, op, index))
    return "an argument is a raw address";
  return p->pointer > 1 || record ? "a buffer may hold addresses" : NULL;
}


static const char *kernel_reason(const cgl_recording *recording,
                                 const cgl_op *op) {
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  const unsigned char *values = cgl_record_values(recording, op);
  const cgl_image *image = kernel ? kernel->module->image : NULL;
  if (!kernel || kernel->plain)
    return NULL; /* its ranges say all */
  if (!image)
    return "the kernel was not compiled from source, and its module may have "
           "variables";
  if (image->nvariables)
    return "the kernel's module has variables";
  const char *reason = NULL;
  for (size_t i = 0, at = 0; i < kernel->nparams && !reason; i++) {
    at = cgl_kernel_next_value(at);
    reason = parameter_reason(recording, op, kernel, i, values + at);
    at += kernel->sizes[i];
  }
  return reason;
}


static const char *op_reason(const cgl_recording *recording, const cgl_op *op);


static const char *bodies_reason(const cgl_recording *recording,
                                 const cgl_op *op) {
  const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
  const char *reason = NULL;
  for (uint32_t b = 0; b < op->nbodies && !reason; b++)
    for (size_t i = 0; i < cgl_record_count(bodies[b]) && !reason; i++)
      reason = op_reason(bodies[b], cgl_record_op(bodies[b], i));
  return reason;
}


static const char *op_reason(const cgl_recording *recording, const cgl_op *op) {
  switch (op->kind) {
  case CGL_OP_KERNEL:
    return kernel_reason(recording, op);
  case CGL_OP_RECORD:
  case CGL_OP_WAIT:
    return "an external event";
  case CGL_OP_FOREIGN:
    return "another library put the node into the capture";
  case CGL_OP_GRAPH:
  case CGL_OP_CONDITIONAL:
    return bodies_reason(recording, op);
  case CGL_OP_MEMCPY:
  case CGL_OP_MEMSET:
  case CGL_OP_CALL:
  case CGL_OP_COUNT:
    break;
  }
  return NULL;
}


/* Draws read the state of their generator without a range for it. */
static const char *state_reason(const cgl_draw *draws,
                                const cgl_recording *recording,
                                const cgl_op *op) {
  for (; draws; draws = draws->next)
    if (cgl_record_touches(recording, op, draws->state->memory->address,
                           cgl_buffer_bytes(draws->state->memory), false))
      return "the state of a generator is copied";
  return NULL;
}


const char *cgl_plan_barrier_reason(const cgl_draw *draws,
                                    const cgl_recording *recording,
                                    const cgl_op *op) {
  const char *reason = op_reason(recording, op);
  return reason ? reason : state_reason(draws, recording, op);
}
