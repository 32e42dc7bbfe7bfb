/* Changes of a captured graph: what its operations use, and what it keeps. */
#include "core/record/recording_private.h"

#include <stdlib.h>
#include <string.h>

/* The argument of a range that has none any more. */
enum { NO_ARGUMENT = UINT16_MAX };
/* As retained_by: another capture may still keep what a change dropped. */
#define DROPPED UINT64_MAX


cgl_status cgl_record_edit_reserve(const cgl_record_edit *edit, size_t gained,
                                   const char *operation) {
  const cgl_op *op = &edit->recording->ops[edit->index];
  const cgl_room room = {.ranges = gained ? op->nranges + gained : 0,
                         .kept = edit->nobjects};
  return room.ranges || room.kept
             ? cgl_issue_reserve(edit->recording, &room, operation)
             : CGL_OK;
}


void cgl_record_edit_keep(cgl_record_edit *edit, cgl_object *object) {
  cgl_recording *recording = edit->recording;
  if (!object || atomic_load_explicit(&object->retained_by,
                                      memory_order_relaxed) == edit->serial)
    return;
  for (size_t i = 0; i < recording->nkept; i++)
    if (recording->kept[i] == object)
      return;
  cgl_record_keep(recording, object, edit->serial);
  edit->gained = true;
}


/* ---- ranges ---- */

const cgl_range *cgl_record_range_of(const cgl_recording *recording,
                                     const cgl_op *op, size_t argument) {
  const cgl_range *range = &recording->ranges[op->ranges];
  for (uint32_t i = 0; i < op->nranges; i++, range++)
    if (range->argument == argument)
      return range;
  return NULL;
}


/* Where the range of an argument goes that had none: in the place of a range
   without an argument, or in a longer run at the end. */
static cgl_range *op_new_range(cgl_recording *recording, cgl_op *op) {
  cgl_range *range =
      (cgl_range *)cgl_record_range_of(recording, op, NO_ARGUMENT);
  if (range)
    return range;
  cgl_range *from = &recording->ranges[op->ranges];
  cgl_range *to = &recording->ranges[recording->nranges];
  if (op->ranges + op->nranges != recording->nranges) {
    memcpy(to, from, op->nranges * sizeof *to);
    memset(from, 0, op->nranges * sizeof *from);
    op->ranges = recording->nranges;
    recording->nranges += op->nranges;
  }
  op->nranges++;
  return &recording->ranges[recording->nranges++];
}


void cgl_record_edit_range(cgl_record_edit *edit, size_t argument,
                           const cgl_range *now, cgl_allocation *allocation) {
  cgl_recording *recording = edit->recording;
  cgl_op *op = &recording->ops[edit->index];
  cgl_range *range = (cgl_range *)cgl_record_range_of(recording, op, argument);
  if (range && now && range->address == now->address &&
      range->bytes == now->bytes)
    return;
  const cgl_range before = range ? *range : (cgl_range){0};
  if (range && !before.planned)
    edit->replaced[edit->nreplaced++] = before;
  if (now) {
    range = range ? range : op_new_range(recording, op);
    *range = *now;
    range->argument = (uint16_t)argument;
    range->planned = before.planned;
    if (before.planned)
      range->allocation = before.allocation;
    else if (allocation)
      range->allocation = cgl_record_add_allocation(recording, allocation);
    recording->outdated |= range->allocation != 0;
  } else if (range && !before.planned)
    *range = (cgl_range){.argument = NO_ARGUMENT};
  recording->outdated |= before.allocation != 0;
}


/* No more blocks than before, and of the same shape. */
static bool launch_is_within(const cgl_launch *launch,
                             const cgl_launch *before) {
  const uint32_t *now = launch->grid, *then = before->grid;
  return (uint64_t)now[0] * now[1] * now[2] <=
             (uint64_t)then[0] * then[1] * then[2] &&
         !memcmp(launch->block, before->block, sizeof launch->block) &&
         launch->shared_bytes <= before->shared_bytes;
}


void cgl_record_edit_values(cgl_record_edit *edit, const void *values,
                            const cgl_launch *launch) {
  cgl_op *op = &edit->recording->ops[edit->index];
  if (op->nvalues)
    memcpy(edit->recording->values + op->values, values, op->nvalues);
  if (launch) {
    op->fits = op->fits && launch_is_within(launch, &op->launch);
    op->launch = *launch;
  }
}


/* ---- releasing ---- */

void cgl_record_edit_end(cgl_record_edit *edit, bool stale) {
  cgl_recording *recording = edit->recording;
  cgl_op *op = &recording->ops[edit->index];
  recording->nstale += stale - op->stale;
  op->stale = stale;
  free(recording->footprint);
  recording->footprint = NULL;
  if (!edit->nreplaced)
    return;
  size_t kept = 0;
  for (size_t i = 0; i < recording->nkept; i++) {
    cgl_object *object = recording->kept[i];
    uint64_t address;
    size_t bytes;
    if (object->kind->extent &&
        object->kind->extent(object, &address, &bytes) &&
        cgl_record_ranges_touch(edit->replaced, edit->nreplaced, address, bytes,
                                false) &&
        !cgl_record_ranges_touch(recording->ranges, recording->nranges, address,
                                 bytes, false)) {
      uint64_t serial = edit->serial;
      atomic_compare_exchange_strong(&object->retained_by, &serial, DROPPED);
      cgl_object_release(object);
    } else
      recording->kept[kept++] = object;
  }
  recording->nkept = kept;
}


/* ---- off and stale ---- */

void cgl_record_relocate(cgl_recording *recording, const CUdeviceptr *to,
                         const size_t *at) {
  for (size_t i = 0; i < recording->nops; i++) {
    cgl_op *op = &recording->ops[i];
    for (size_t r = op->ranges; r < op->ranges + op->nranges; r++) {
      cgl_range *range = &recording->ranges[r];
      const size_t slot = range->allocation - 1;
      if (!range->allocation || !to[slot])
        continue;
      range->address += to[slot] - recording->allocations[slot]->address;
      memcpy(recording->values + at[r], &range->address, sizeof range->address);
      recording->nstale += !op->stale;
      op->stale = true;
    }
  }
  for (size_t slot = 0; slot < recording->nallocations; slot++)
    if (to[slot])
      recording->allocations[slot]->address = to[slot];
  free(recording->footprint);
  recording->footprint = NULL;
}


void cgl_record_set_off(cgl_recording *recording, size_t index, bool off) {
  cgl_op *op = &recording->ops[index];
  const cgl_range *range = &recording->ranges[op->ranges];
  for (uint32_t i = 0; i < op->nranges && off != op->off; i++)
    recording->outdated |= range[i].allocation != 0;
  recording->noff += off - op->off;
  op->off = off;
}


bool cgl_record_next_stale(const cgl_recording *recording, size_t *index) {
  if (!recording->nstale)
    return false;
  while (*index < recording->nops && !recording->ops[*index].stale)
    ++*index;
  return *index < recording->nops;
}


void cgl_record_refreshed(cgl_recording *recording, size_t index) {
  recording->nstale -= recording->ops[index].stale;
  recording->ops[index].stale = false;
}
