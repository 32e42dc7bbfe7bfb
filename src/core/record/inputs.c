/* Inputs: memory of operations that is exchanged by name. */
#include "core/record/recording_private.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(cgl_range) == 24, "captures write and read many");


uint16_t cgl_record_find_input(const cgl_recording *recording,
                               const cgl_object *input) {
  for (size_t i = 0; i < recording->ninputs; i++)
    if (recording->inputs[i].input == input)
      return (uint16_t)(i + 1);
  return 0;
}


uint16_t cgl_record_add_input(cgl_recording *recording, cgl_object *input) {
  const uint16_t number = cgl_record_find_input(recording, input);
  if (number || recording->ninputs == CGL_RECORD_MOST_INPUTS)
    return number;
  cgl_object_retain(input);
  recording->inputs[recording->ninputs] = (cgl_record_input){.input = input};
  return (uint16_t)++recording->ninputs;
}


const cgl_record_input *cgl_record_input_at(const cgl_recording *recording,
                                            size_t number) {
  return number && number <= recording->ninputs ? &recording->inputs[number - 1]
                                                : NULL;
}


void cgl_record_mark_input(cgl_recording *recording, cgl_object *input,
                           CUdeviceptr address, size_t bytes) {
  for (size_t i = 0; i < recording->nranges; i++) {
    cgl_range *r = &recording->ranges[i];
    if (!cgl_record_ranges_touch(r, 1, address, bytes, false))
      continue;
    const uint16_t number = cgl_record_add_input(recording, input);
    const bool inside =
        r->address >= address && r->address - address + r->bytes <= bytes;
    if (r->input)
      recording->inputs[r->input - 1].mixed = true;
    if (r->input || !inside)
      recording->inputs[number - 1].mixed = true;
    else
      r->input = number;
  }
}


void cgl_record_bind(cgl_recording *recording, uint16_t number,
                     cgl_object *bound) {
  cgl_record_input *input = &recording->inputs[number - 1];
  cgl_object *before = input->bound;
  cgl_object_retain(bound);
  input->bound = bound;
  if (before)
    cgl_object_release(before);
}


bool cgl_record_move_range(cgl_recording *recording, size_t index, uint32_t k,
                           size_t at, CUdeviceptr address,
                           cgl_allocation *allocation) {
  const cgl_op *op = &recording->ops[index];
  cgl_range *range = &recording->ranges[op->ranges + k];
  if (range->address == address)
    return false;
  recording->outdated |= range->allocation || allocation;
  range->address = address;
  range->allocation =
      allocation ? cgl_record_add_allocation(recording, allocation) : 0;
  memcpy(recording->values + op->values + at, &address, sizeof address);
  free(recording->footprint);
  recording->footprint = NULL;
  cgl_record_set_due(recording, index);
  return true;
}


cgl_recording *cgl_record_own_body(cgl_recording *recording, size_t index) {
  return cgl_record_own(&recording->bodies[index]) ? recording->bodies[index]
                                                   : NULL;
}
