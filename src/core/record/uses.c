/* Parameters in the values of operations. */
#include "core/record/recording_private.h"

#include <string.h>


static bool bytes_are_equal(const void *a, const void *b, size_t bytes) {
  uint32_t x, y;
  if (bytes != sizeof x) /* what nearly all parameters have */
    return !memcmp(a, b, bytes);
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return x == y;
}


/* The value of a use; NULL: the operation has it, or the use has ended. */
static const unsigned char *use_value(const cgl_recording *recording,
                                      const cgl_op *op,
                                      const cgl_param_use *use,
                                      unsigned char value[CGL_PARAM_MOST]) {
  if (!use->param)
    return NULL;
  cgl_param_get(use->param, value);
  return bytes_are_equal(recording->values + op->values + use->offset, value,
                         use->param->bytes)
             ? NULL
             : value;
}


bool cgl_record_renew(cgl_recording *recording, size_t index, size_t use) {
  cgl_op *op = &recording->ops[index];
  const cgl_param_use *u = &recording->uses[op->uses + use];
  unsigned char room[CGL_PARAM_MOST];
  const unsigned char *value = use_value(recording, op, u, room);
  if (!value)
    return false;
  unsigned char *at = recording->values + op->values + u->offset;
  for (uint16_t i = 0; i < u->repeats; i++)
    memcpy(at + i * u->param->bytes, value, u->param->bytes);
  cgl_record_set_due(recording, index);
  return true;
}


void cgl_record_set_due(cgl_recording *recording, size_t index) {
  cgl_op *op = &recording->ops[index];
  recording->nstale += !op->stale;
  op->stale = op->due = true;
}


void cgl_record_renewed(cgl_recording *recording, size_t index) {
  recording->ops[index].due = false;
}


bool cgl_record_op_varies(const cgl_recording *recording, const cgl_op *op) {
  bool varies = op->nuses;
  for (uint32_t i = 0; i < op->nranges && !varies; i++)
    varies = recording->ranges[op->ranges + i].input;
  return varies;
}


bool cgl_record_varies(const cgl_recording *recording) {
  bool varies = recording->nuses || recording->ninputs;
  for (size_t i = 0; i < recording->nbodies && !varies; i++)
    varies = cgl_record_varies(recording->bodies[i]);
  return varies;
}


/* Whether a parameter is not what the recording or a body in it has. */
static bool record_is_behind(const cgl_recording *recording) {
  unsigned char room[CGL_PARAM_MOST];
  for (size_t i = 0; i < recording->nops && recording->nuses; i++) {
    const cgl_op *op = &recording->ops[i];
    const cgl_param_use *uses = cgl_record_uses(recording, op);
    for (uint32_t k = 0; k < op->nuses; k++)
      if (use_value(recording, op, &uses[k], room))
        return true;
  }
  for (size_t i = 0; i < recording->nbodies; i++)
    if (record_is_behind(recording->bodies[i]))
      return true;
  return false;
}


bool cgl_record_bodies_are_behind(const cgl_recording *recording,
                                  const cgl_op *op) {
  const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
  bool behind = false;
  for (uint32_t i = 0; i < op->nbodies && !behind; i++)
    behind = record_is_behind(bodies[i]);
  return behind;
}


/* Whoever refreshes a body's nodes sets all that have uses, so none is stale.
 */
static void body_renew(cgl_recording *body) {
  for (size_t i = 0; i < body->nops; i++)
    for (size_t k = 0; k < body->ops[i].nuses; k++)
      if (cgl_record_renew(body, i, k)) {
        cgl_record_refreshed(body, i);
        cgl_record_renewed(body, i);
      }
}


bool cgl_record_renew_bodies(cgl_recording *recording) {
  for (size_t i = 0; i < recording->nbodies; i++) {
    if (!record_is_behind(recording->bodies[i]))
      continue;
    if (!cgl_record_own(&recording->bodies[i]))
      return false;
    body_renew(recording->bodies[i]);
    if (!cgl_record_renew_bodies(recording->bodies[i]))
      return false;
  }
  return true;
}


void cgl_record_end_use(cgl_recording *recording, size_t index,
                        size_t argument) {
  const cgl_op *op = &recording->ops[index];
  cgl_param_use *use = &recording->uses[op->uses];
  for (uint32_t i = 0; i < op->nuses; i++, use++)
    if (use->argument == argument)
      use->param = NULL;
}
