/* The fields of a recording: for this room alone. */
#ifndef CGL_RECORD_RECORDING_PRIVATE_H
#define CGL_RECORD_RECORDING_PRIVATE_H

#include "core/record/issue.h"
#include "core/record/order.h"

/* The scopes of a recording, and of copies of it. */
struct cgl_scopes {
  cgl_object object;
  cgl_scope *first;
};

/* X(array): what a capture fills, and the next capture may use again. */
#define CGL_RECORD_ARRAYS(X) \
  X(ops) X(ranges) X(values) X(kept) X(allocations) X(bodies) X(uses) X(inputs)

struct cgl_recording {
  atomic_int references;
  cgl_context *context; /* borrowed: its graphs keep it */
  cgl_op *ops;
  size_t nops, ops_size;
  cgl_range *ranges;
  size_t nranges, ranges_size;
  unsigned char *values;
  size_t nvalues, values_size;
  cgl_object **kept; /* retained each */
  size_t nkept, kept_size;
  cgl_allocation **allocations; /* retained each, all different */
  size_t nallocations, allocations_size;
  cgl_recording **bodies; /* retained each, all different: from op->body - 1 */
  size_t nbodies, bodies_size;
  cgl_param_use *uses;
  size_t nuses, uses_size;
  cgl_record_input *inputs; /* all different */
  size_t ninputs, inputs_size;
  size_t nstale, noff;       /* operations */
  cgl_object *summary;       /* retained: sharing/ puts its share here */
  bool outdated;             /* the summary is */
  struct cgl_scopes *scopes; /* retained: shared with copies; lazily */
  const cgl_scope *scope;    /* in force, in the capture underway */
  struct cgl_scope_mark {
    size_t node; /* count of the capture's nodes when it came into force */
    const cgl_scope *scope;
  } * marks; /* the scope in force from a node on, for foreign nodes */
  size_t nmarks;
  size_t *edges; /* dependencies of all operations, one after the other */
  size_t *first; /* where those of operation i begin; nops + 1 entries */
  cgl_range *footprint; /* lazily */
  size_t nfootprint;
};

/* The number of the allocation in the recording, from 1; it is added where it
   is missing, and the caller has made room. */
uint32_t cgl_record_add_allocation(cgl_recording *recording,
                                   cgl_allocation *allocation);

#endif
