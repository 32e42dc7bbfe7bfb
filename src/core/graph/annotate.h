/* Annotations: what a script says about the operations of a capture.
   Glossary.  scope: the annotations in force from one begin to its end, those
   of the scopes around it included, the inner one's winning; op->scope: the
   scope in which the operation was issued.  mark: the scope in force from a
   node of the capture on, for nodes that others add.
   Invariants: scopes belong to the recording and live as long as it; without
   the graph's annotations option there are none. */
#ifndef CGL_CORE_ANNOTATE_H
#define CGL_CORE_ANNOTATE_H

#include "core/record/record.h"

struct cgl_scope {
  cgl_scope *next;         /* in the recording's list */
  const cgl_scope *around; /* the scope outside, or NULL */
  uint64_t id;             /* unique in the process */
  const char *label;       /* the annotation "label", or NULL */
  size_t npairs;
  cgl_annotation pairs[]; /* then come the texts */
};

typedef struct cgl_scope_mark {
  size_t node; /* count of the capture's nodes when the scope began to hold */
  const cgl_scope *scope;
} cgl_scope_mark;

/* The capture is over: no scope is in force. */
void cgl_annotate_close(cgl_graph *graph);
/* Gives the foreign nodes of a template just captured their scopes. */
void cgl_annotate_foreign(cgl_graph *graph);
/* Frees the scopes of a recording. */
void cgl_annotate_free(cgl_recording *recording);
/* "label, key=value, ..." of what a scope adds to the one around it. */
void cgl_annotate_text(const cgl_scope *scope, char *text, size_t size);

/* ---- nvtx.c ---- */

/* Whether this build can name ranges for profilers. */
bool cgl_nvtx_available(void);
/* A range of the calling thread, in the domain "cgraphlua": nvtxRangePushEx,
   nvtxRangePop.  Nothing without a profiler. */
void cgl_nvtx_push(const char *name);
void cgl_nvtx_pop(void);

#endif
