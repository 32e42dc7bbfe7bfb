/* Parameters, and who is told of their changes.
   Glossary.  watch: a graph's interest in a parameter.  changes: the watches of
   a graph whose parameters were set since the graph looked.
   Invariants: a watch is on its parameter's list from begin to end, and among
   its graph's changes at most once; its values are read after it was taken from
   there, so no change is missed; a graph without changes pays one load; the
   fields of a struct are known before others use the parameter. */
#ifndef CGL_PARAM_PARAM_H
#define CGL_PARAM_PARAM_H

#include "core/base/base.h"
#include "core/base/latch.h"

enum { CGL_PARAM_MOST = 4096 }; /* bytes */

typedef struct cgl_param_watch cgl_param_watch;
/* Pushed to by any thread, taken whole by the graph's, which may follow it by
   `changed` before. */
typedef _Atomic(cgl_param_watch *) cgl_param_changes;

struct cgl_param_watch {
  cgl_param *param;             /* borrowed: a recording keeps it */
  cgl_param_changes *changes;   /* of the graph */
  cgl_param_watch *next, *last; /* on the parameter's list, under its latch */
  cgl_param_watch *changed;     /* among the changes */
  atomic_bool queued;           /* is among them */
};

struct cgl_param {
  cgl_object object;
  _Atomic(cgl_object *) followed; /* a buffer, retained; under the latch */
  const char *name;               /* behind the words */
  cgl_type type;
  size_t count, bytes;
  cgl_field_info *fields; /* owned, their texts interned; NULL: none */
  size_t nfields;
  cgl_latch latch; /* of those that set it, and of the list */
  cgl_param_watch *watches;
  atomic_uint sequence;      /* odd while the value is written */
  _Atomic(uint64_t) words[]; /* the value */
};

/* The value is a struct with these fields (copied), of a parameter that others
   do not use yet.  CGL_ERROR_NO_MEMORY */
cgl_status cgl_param_set_fields(cgl_param *param, const cgl_field_info *fields,
                                size_t n, const char *operation);

/* Replaces what the parameter follows (NULL: nothing), which it retains. */
void cgl_param_set_followed(cgl_param *param, cgl_object *followed);
/* What the parameter follows, with a reference for the caller. */
cgl_object *cgl_param_retain_followed(cgl_param *param);
/* Whether it follows something now. */
static inline bool cgl_param_follows(const cgl_param *param) {
  return atomic_load_explicit(&param->followed, memory_order_relaxed);
}

/* Begins to watch a parameter, as if it had just changed; and ends it. */
void cgl_param_watch_begin(cgl_param_watch *watch, cgl_param *param,
                           cgl_param_changes *changes);
void cgl_param_watch_end(cgl_param_watch *watch);
/* As if the parameter had changed again. */
void cgl_param_watch_again(cgl_param_watch *watch);
/* Takes all changes; then one after the other, until NULL. */
cgl_param_watch *cgl_param_take(cgl_param_changes *changes);
cgl_param_watch *cgl_param_take_next(cgl_param_watch *watch);

#endif
