/* The fields of a recording: for this room alone. */
#ifndef CGL_RECORD_RECORDING_PRIVATE_H
#define CGL_RECORD_RECORDING_PRIVATE_H

#include "core/record/issue.h"
#include "core/record/order.h"
#include "core/record/record.h"

/* X(array): filled by a capture, and reused by the next. */
#define CGL_RECORD_ARRAYS(X) \
  X(ops) X(ranges) X(values) X(kept) X(allocations) X(bodies)

/* The scope in force from a node of the capture on, for foreign nodes. */
typedef struct cgl_scope_mark {
  size_t node; /* count of the capture's nodes when it came into force */
  const cgl_scope *scope;
} cgl_scope_mark;

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
  cgl_allocation *allocations;
  size_t nallocations, allocations_size;
  cgl_recording **bodies; /* retained each, all different */
  size_t nbodies, bodies_size;
  size_t nstale, noff;
  size_t nhalted;            /* operations that are off and write to an
                                allocation */
  cgl_object *summary;       /* retained */
  struct cgl_scopes *scopes; /* retained: shared with copies; lazily */
  const cgl_scope *scope;    /* in force, in the capture underway */
  cgl_scope_mark *marks;
  size_t nmarks;
  size_t *edges; /* dependencies of all operations, one after the other */
  size_t *first; /* where those of operation i begin; nops + 1 entries */
  cgl_range *footprint; /* lazily */
  size_t nfootprint;
};

/* Makes room; false without memory. */
bool cgl_record_reserve(cgl_recording *recording, const cgl_room *room);
/* After a change: forgets what was derived from the recording. */
void cgl_record_changed(cgl_recording *recording);
void cgl_scope_retain(struct cgl_scopes *scopes); /* NULL is fine */
void cgl_scope_release(struct cgl_scopes *scopes);

#endif
