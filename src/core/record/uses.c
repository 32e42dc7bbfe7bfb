/* Parameters in the values of operations, and what follows from them. */
#include "core/base/half.h"
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


/* The value of a use; NULL: the operation has it, or needs none. */
static const unsigned char *use_value(const cgl_recording *recording,
                                      const cgl_op *op,
                                      const cgl_param_use *use,
                                      unsigned char value[CGL_PARAM_MOST]) {
  if (!use->param || use->follows)
    return NULL;
  cgl_param_get(use->param, value);
  return bytes_are_equal(recording->values + op->values + use->offset, value,
                         use->param->bytes)
             ? NULL
             : value;
}


/* ---- rules ---- */

_Static_assert(sizeof(cgl_numbers) % 16 == 0, "it stands at multiples of 16");


static const cgl_numbers *op_numbers(const cgl_recording *recording,
                                     const cgl_op *op) {
  return (const cgl_numbers *)(recording->values + op->values +
                               cgl_record_numbers_at(op));
}


double cgl_record_number(const cgl_numbers *numbers, size_t i) {
  const uint64_t raw = numbers->raw[i];
  double real;
  float single;
  switch ((cgl_type)numbers->types[i]) {
  case CGL_TYPE_double:
    memcpy(&real, &raw, sizeof real);
    return real;
  case CGL_TYPE_float:
    memcpy(&single, &raw, sizeof single);
    return single;
  case CGL_TYPE_half:
    return cgl_half_value((uint16_t)raw);
  case CGL_TYPE_bfloat16:
    return cgl_bfloat16_value((uint16_t)raw);
  case CGL_TYPE_int8:
    return (int8_t)raw;
  case CGL_TYPE_int16:
    return (int16_t)raw;
  case CGL_TYPE_int32:
    return (int32_t)raw;
  case CGL_TYPE_int64:
    return (double)(int64_t)raw;
  case CGL_TYPE_uint8:
  case CGL_TYPE_uint16:
  case CGL_TYPE_uint32:
  case CGL_TYPE_uint64:
    return (double)raw;
  default:
    return 0;
  }
}


cgl_status cgl_record_set_number(cgl_numbers *numbers, size_t i,
                                 const cgl_param *param, double number,
                                 const char *operation) {
  numbers->raw[i] = 0;
  numbers->types[i] = CGL_TYPE_double;
  if (!param) {
    memcpy(&numbers->raw[i], &number, sizeof number);
    return CGL_OK;
  }
  if (param->count != 1 || param->type > CGL_TYPE_bfloat16) {
    cgl_fail(CGL_ERROR_ARGUMENT_TYPE, operation,
             "the parameter%s%s has %zu bytes in %zu elements; one number is "
             "wanted",
             *param->name ? " " : "", param->name, param->bytes, param->count);
    return cgl_fail_hint("make a parameter of one element of a number's type");
  }
  if (cgl_param_follows(param)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the parameter%s%s follows a buffer, and this number is wanted "
             "before the work runs",
             *param->name ? " " : "", param->name);
    return cgl_fail_hint("a parameter that follows a buffer is an argument of "
                         "a kernel or the value of a fill");
  }
  numbers->types[i] = (uint8_t)param->type;
  cgl_param_get(param, &numbers->raw[i]);
  return CGL_OK;
}


cgl_status cgl_record_check_rule(const cgl_recording *recording,
                                 const cgl_op *op, const char *operation) {
  const cgl_param_use *use = cgl_record_uses(recording, op);
  if (!op->rule)
    return CGL_OK;
  cgl_numbers now = *op_numbers(recording, op);
  const size_t at = cgl_record_numbers_at(op);
  for (uint32_t k = 0; k < op->nuses; k++)
    if (use[k].param && use[k].offset >= at)
      cgl_param_get(use[k].param, (char *)&now + (use[k].offset - at));
  return op->rule->check(op, &now, operation);
}


cgl_status cgl_record_check_rules(const cgl_recording *recording,
                                  const char *operation) {
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < recording->nops && !status; i++)
    status = cgl_record_check_rule(recording, &recording->ops[i], operation);
  for (size_t i = 0; i < recording->nbodies && !status; i++)
    status = cgl_record_check_rules(recording->bodies[i], operation);
  return status;
}


bool cgl_record_has_rules(const cgl_recording *recording) {
  bool has = false;
  for (size_t i = 0; i < recording->nops && !has; i++)
    has = recording->ops[i].rule;
  for (size_t i = 0; i < recording->nbodies && !has; i++)
    has = cgl_record_has_rules(recording->bodies[i]);
  return has;
}


/* ---- changes ---- */

/* Of a number that stands once, which is what most parameters are. */
static bool renew_number(const cgl_param *param, unsigned char *at) {
  uint32_t now, before;
  cgl_param_get(param, &now);
  memcpy(&before, at, sizeof before);
  memcpy(at, &now, sizeof now);
  return now != before;
}


static bool renew_bytes(cgl_recording *recording, const cgl_op *op,
                        const cgl_param_use *u, unsigned char *at) {
  unsigned char room[CGL_PARAM_MOST];
  const unsigned char *value = use_value(recording, op, u, room);
  for (uint16_t i = 0; value && i < u->repeats; i++)
    memcpy(at + i * u->param->bytes, value, u->param->bytes);
  return value;
}


bool cgl_record_renew(cgl_recording *recording, size_t index, size_t use) {
  cgl_op *op = &recording->ops[index];
  const cgl_param_use *u = &recording->uses[op->uses + use];
  unsigned char *at = recording->values + op->values + u->offset;
  const bool number = u->param && !u->follows && u->repeats == 1 &&
                      u->param->bytes == sizeof(uint32_t);
  if (!(number ? renew_number(u->param, at)
               : renew_bytes(recording, op, u, at)))
    return false;
  if (op->rule)
    op->rule->apply(op_numbers(recording, op), recording->values + op->values,
                    &op->launch);
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
