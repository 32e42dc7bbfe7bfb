/* The recording: what a capture noted.
   Glossary.  operation: one call issued through cgraphlua into a capture, with
   the node it became, its script line and the memory it touches.  foreign: a
   node that others put into the capture.  kept: an object that the recording
   holds a reference to.  body: the recording of a graph inside an operation: a
   child graph, or a body of a conditional node, which may run or not.
   allocation: memory that a capture allocated.  planned: of the graph's own
   pool; the graph keeps the pool, and not the buffers.
   Invariants: operations stand in the order of their issue, which is the order
   of the nodes' creation; room for an operation is made before the driver is
   called, so what the driver took is always noted; only this room touches a
   recording's fields; a recording that is a body does not change
   (cgl_record_own). */
#ifndef CGL_RECORD_RECORD_H
#define CGL_RECORD_RECORD_H

#include "core/param/param.h"
#include "core/stream/stream.h"
#include "driver/predicate.h"

/* X(constant, word, type of its node): the kinds of operations.  A new kind is
   a line here, a function that issues it (issue.h), and a line in graph/build.c
   that says how its node is built. */
#define CGL_OPS(X)                                                     \
  X(CGL_OP_KERNEL, "kernel", CU_GRAPH_NODE_TYPE_KERNEL)                \
  X(CGL_OP_MEMCPY, "memcpy", CU_GRAPH_NODE_TYPE_MEMCPY)                \
  X(CGL_OP_MEMSET, "memset", CU_GRAPH_NODE_TYPE_MEMSET)                \
  X(CGL_OP_GRAPH, "graph", CU_GRAPH_NODE_TYPE_GRAPH)                   \
  X(CGL_OP_CALL, "call", CU_GRAPH_NODE_TYPE_GRAPH)                     \
  X(CGL_OP_RECORD, "event_record", CU_GRAPH_NODE_TYPE_EVENT_RECORD)    \
  X(CGL_OP_WAIT, "event_wait", CU_GRAPH_NODE_TYPE_WAIT_EVENT)          \
  X(CGL_OP_CONDITIONAL, "conditional", CU_GRAPH_NODE_TYPE_CONDITIONAL) \
  X(CGL_OP_FOREIGN, "foreign", CU_GRAPH_NODE_TYPE_EMPTY)

typedef enum cgl_op_kind {
#define X(constant, word, type) constant,
  CGL_OPS(X)
#undef X
      CGL_OP_COUNT
} cgl_op_kind;

/* What sharing/ makes a content of. */
typedef struct cgl_allocation {
  cgl_object object;
  uint64_t born; /* serial of the capture that allocated it */
  CUdeviceptr address;
  size_t bytes;
  cgl_site made;
  atomic_uint slot;  /* perhaps its index in a recording */
  atomic_bool over;  /* its buffer has ended */
  atomic_bool fixed; /* others know the address: no plan moves it */
  bool temporary;    /* only the graph of its capture uses it */
} cgl_allocation;

typedef struct cgl_range {
  CUdeviceptr address;
  size_t bytes;
  uint32_t allocation; /* number of its allocation, from 1; 0: none */
  uint16_t argument;   /* index of a kernel's argument, from 0; behind all that
                          are possible: what a predicated kernel looks at, and
                          what parameters follow (kernel.h) */
  uint16_t input : 14; /* number of the input that it is in, from 1; 0: none */
  bool write : 1;      /* may be written to */
  bool planned : 1;    /* memory of the graph's own pool */
} cgl_range;

/* Memory that a graph exchanges by name: a buffer that the capture used, and
   what is in its place in all ranges of its number. */
typedef struct cgl_record_input {
  cgl_object *input; /* retained */
  cgl_object *bound; /* retained; NULL: nothing else was bound */
  bool mixed; /* ranges are partly in it, or in several inputs (a file's) */
} cgl_record_input;

typedef struct cgl_scope cgl_scope;

/* Bytes of an operation's values that are a parameter's.  To list those of a
   recording: for each operation its `nuses` uses (cgl_record_uses), then its
   bodies (cgl_record_bodies, or cgl_record_body of a child graph). */
typedef struct cgl_param_use {
  cgl_param *param;  /* borrowed from what is kept; NULL: a change of the node
                        ended the use */
  uint32_t offset;   /* behind the operation's first value; where it follows a
                        buffer, of the address of that */
  uint16_t repeats;  /* how often the value stands there in a row */
  uint16_t argument; /* of a kernel, from 0; of a fill 0; of a draw 0, 1;
                        of a grid from CGL_ARGUMENT_GRID */
  bool follows; /* a buffer: no value of the operation is the parameter's */
} cgl_param_use;

/* Which conditional node's handle a kernel sets: its first value, which each
   graph that is built has its own of. */
typedef enum cgl_handle {
  CGL_HANDLE_NONE,
  CGL_HANDLE_NEXT,  /* of the conditional operation that follows */
  CGL_HANDLE_AROUND /* of the operation whose body it is in */
} cgl_handle;

/* What a kernel has to do with predicated bodies. */
typedef enum cgl_predication {
  CGL_PREDICATION_NONE,
  CGL_PREDICATION_LOOKS, /* it is a second form: its last value is a
                            cgl_predicate */
  CGL_PREDICATION_WRITES /* it writes the words of bodies, all 0 unless the
                            word that its first value is the address of is more
                            than its second; without an address it asks none */
} cgl_predication;

/* Numbers behind the values of an operation, which parameters may be. */
enum { CGL_NUMBERS = 3 };
typedef struct cgl_numbers {
  uint8_t types[CGL_NUMBERS]; /* cgl_type of each */
  uint8_t element;            /* of a draw: the buffer's cgl_type */
  uint32_t threads;           /* of a grid: in a block */
  uint64_t raw[CGL_NUMBERS];  /* each an element of its type, and then zeros */
} cgl_numbers;

typedef struct cgl_op cgl_op;

/* How the rest of an operation follows from its numbers. */
typedef struct cgl_rule {
  /* Refuses numbers that the operation cannot have. */
  cgl_status (*check)(const cgl_op *op, const cgl_numbers *numbers,
                      const char *operation);
  /* Writes what follows into its values and its launch, whatever the numbers
     are. */
  void (*apply)(const cgl_numbers *numbers, unsigned char *values,
                cgl_launch *launch);
} cgl_rule;

struct cgl_op {
  cgl_op_kind kind;
  CUgraphNode node; /* NULL: not known yet */
  const char *name; /* interned */
  cgl_site site;
  cgl_object *object;  /* borrowed from what is kept: a user's kernel, an event;
                          NULL: none */
  CUfunction function; /* of kernels */
  bool fills;          /* a kernel or a call that does not read what it
                          writes */
  bool waits;          /* a kernel that does (compile/source.h) */
  bool fits;           /* a kernel whose blocks fit the device at once */
  bool programmatic;   /* its node has one dependency, by such an edge */
  bool follows;        /* a kernel in its following form (driver/predicate.h) */
  bool off;            /* executables do not run it */
  bool stale;          /* changed since the template's node was set */
  bool due;            /* a parameter changed since the executable's was set */
  int priority;        /* of the stream */
  uint64_t stream;     /* its serial; 0: put into the graph by hand */
  cgl_launch launch;   /* of kernels */
  cgl_handle handle;   /* that a kernel of ours sets */
  cgl_predication predication; /* of kernels; of a loop's node, LOOKS: its body
                                  is predicated turns */
  uint32_t body;               /* from 1: which body is its first; 0: none */
  uint32_t nbodies;            /* those after one another; of a loop, 1 */
  uint32_t nranges, nvalues;   /* memory it touches; bytes of its arguments */
  uint32_t nuses;              /* of parameters, in its values */
  size_t ranges, values, uses; /* where they begin in the recording's arrays */
  const cgl_rule *rule;        /* its last value is a cgl_numbers, from which
                                  others follow; NULL: none */
  const cgl_scope *scope;      /* its annotations; NULL: none */
};

/* "kernel", "memcpy", ... */
extern const char *const cgl_record_words[CGL_OP_COUNT];

/* ---- recording.c ------------------------------------------------------------
   Growing arrays and touching their new pages costs more than filling them, so
   the context keeps the arrays of one ended recording for the next capture: the
   largest so far, of 4 MiB at most. */

/* An empty recording with one reference, and room for one object to keep; NULL
   without memory. */
cgl_recording *cgl_record_new(cgl_context *context);
cgl_recording *cgl_record_retain(cgl_recording *recording);
/* The last release releases all kept objects.  NULL is fine. */
void cgl_record_release(cgl_recording *recording);
/* After a capture: replaces arrays that are much larger than their content by
   smaller ones; without memory it changes nothing. */
void cgl_record_tighten(cgl_recording *recording);
/* Before a change: replaces a recording that others refer to by a copy of it.
   False without memory. */
bool cgl_record_own(cgl_recording **recording);

/* Appends an operation that was read from a file: copies its values, its
   nranges ranges and nuses uses, whose parameters the caller has kept, and
   references to its nbodies bodies; the rest is as in *op.
   CGL_ERROR_NO_MEMORY */
cgl_status cgl_record_append(cgl_recording *recording, const cgl_op *op,
                             const void *values, const cgl_range *ranges,
                             const cgl_param_use *uses,
                             cgl_recording *const *bodies,
                             const char *operation);

/* ---- content ---- */

size_t cgl_record_count(const cgl_recording *recording);
const cgl_op *cgl_record_op(const cgl_recording *recording, size_t index);
const cgl_range *cgl_record_ranges(const cgl_recording *recording,
                                   const cgl_op *op);
const unsigned char *cgl_record_values(const cgl_recording *recording,
                                       const cgl_op *op);
const cgl_param_use *cgl_record_uses(const cgl_recording *recording,
                                     const cgl_op *op);
/* The kept objects, each once, and then what is bound to inputs; the bodies
   (op->body - 1) and the allocations, each once; NULL past the last. */
cgl_object *cgl_record_kept(const cgl_recording *recording, size_t index);
const cgl_recording *cgl_record_body(const cgl_recording *recording,
                                     size_t index);
cgl_allocation *cgl_record_allocation(const cgl_recording *recording,
                                      size_t index);
/* The op->nbodies bodies of an operation; NULL when it has none. */
const cgl_recording *const *cgl_record_bodies(const cgl_recording *recording,
                                              const cgl_op *op);
/* Of an operation that is a conditional node. */
CUgraphConditionalNodeType
cgl_record_conditional_type(const cgl_recording *recording, const cgl_op *op);
/* Whether an operation of the recording, or of a body in it, is of the kind. */
bool cgl_record_has(const cgl_recording *recording, cgl_op_kind kind);
/* How many operations are off. */
size_t cgl_record_noff(const cgl_recording *recording);
/* What sharing/ makes of the recording, and whether a change has come since;
   set takes the reference. */
cgl_object *cgl_record_summary(const cgl_recording *recording);
bool cgl_record_is_outdated(const cgl_recording *recording);
void cgl_record_set_summary(cgl_recording *recording, cgl_object *summary);
/* Keeps an object for the recording's life, once per capture; the caller made
   room. */
void cgl_record_keep(cgl_recording *recording, cgl_object *object,
                     uint64_t serial);

/* All memory that a replay touches, bodies included: ranges that do not
   overlap, in order of address; one range of everything when a node is foreign.
   Valid until the recording changes; NULL without memory. */
const cgl_range *cgl_record_footprint(const cgl_recording *recording,
                                      size_t *count);
/* Whether one of the ranges touches the bytes, or, with `write`, may write to
   them. */
bool cgl_record_ranges_touch(const cgl_range *ranges, size_t n,
                             CUdeviceptr address, size_t bytes, bool write);
/* Whether an operation, or a body in it, touches the bytes, or, with `write`,
   may write to them.  Without memory it is assumed. */
bool cgl_record_touches(const cgl_recording *recording, const cgl_op *op,
                        CUdeviceptr address, size_t bytes, bool write);

/* ---- template.c: nodes and edges of the driver's graph ---- */

/* Gives the first operations the `first` first nodes of `graph`, which are
   theirs; they stay unknown where it has fewer.  With `over`, the capture is:
   then all nodes are learned, and those of others become foreign operations, in
   order of creation.  cuGraphGetNodes */
CUresult cgl_record_learn_nodes(cgl_recording *recording, CUgraph graph,
                                size_t first, bool over);
/* The node of an operation, which was added by hand. */
void cgl_record_set_node(cgl_recording *recording, size_t index,
                         CUgraphNode node);
/* Learns the dependencies of all operations, unless they are known.
   cuGraphGetEdges */
CUresult cgl_record_learn_edges(cgl_recording *recording, CUgraph graph);
/* The same of a capture that nobody else put work into: when one stream issued
   all operations, none is of a predicated body, which may fork, and there are
   as many edges as a line has, it is a line, and the driver only counts. */
CUresult cgl_record_learn_line(cgl_recording *recording, CUgraph graph);
/* Each operation depends on the one before alone; false without memory.  And
   the dependencies are unknown. */
bool cgl_record_assume_line(cgl_recording *recording);
void cgl_record_forget_edges(cgl_recording *recording);
/* The operations that operation `index` depends on, once learned; SIZE_MAX for
   a node that is no operation. */
const size_t *cgl_record_dependencies(const cgl_recording *recording,
                                      size_t index, size_t *count);

/* Whether each operation depends on the one before alone, in bodies, too. */
bool cgl_record_is_line(const cgl_recording *recording);
/* Whether an operation may have a programmatic edge: it waits, and depends on
   one operation, which waits and fits, and is `alone` (cgl_order_find_alone;
   NULL: none is): what comes early takes places where others could run. */
bool cgl_record_may_come_early(const cgl_recording *recording,
                               const unsigned char *alone, size_t index);
void cgl_record_set_programmatic(cgl_recording *recording, size_t index,
                                 bool programmatic);
/* Replaces the dependencies of all operations, those of operation i from
   first[i] to first[i + 1] in `edges`.  Takes both arrays, of malloc. */
void cgl_record_set_dependencies(cgl_recording *recording, size_t *first,
                                 size_t *edges);

/* ---- edit.c: changes of a captured graph ------------------------------------
   A change of one operation: count the objects that it will use, make room,
   call the driver, then say what is so now.  A buffer that no operation uses
   any more goes back to its pool as memory that any stream may still use. */

enum { CGL_RECORD_MOST = 256 }; /* ranges of one operation */

typedef struct cgl_record_edit {
  cgl_recording *recording;
  size_t index;
  uint64_t serial; /* of the recording's capture */
  size_t nobjects; /* count of wanted objects that are not kept yet */
  bool gained;     /* a new object was kept */
  size_t nreplaced;
  cgl_range replaced[CGL_RECORD_MOST]; /* ranges that the node no longer uses */
} cgl_record_edit;

/* Leaves `replaced` uninitialized: clearing it would cost each change. */
static inline void cgl_record_edit_begin(cgl_record_edit *edit,
                                         cgl_recording *recording, size_t index,
                                         uint64_t serial) {
  edit->recording = recording;
  edit->index = index;
  edit->serial = serial;
  edit->nobjects = edit->nreplaced = 0;
  edit->gained = false;
}
/* Room for the objects and for so many ranges that are new. */
cgl_status cgl_record_edit_reserve(const cgl_record_edit *edit, size_t gained,
                                   const char *operation);
/* The driver took the change: keeps an object that was wanted, notes the
   memory of an argument (NULL: none any more) and its allocation (NULL: it has
   none), numbers and launch (NULL: the same); and in the end lets go of what no
   operation uses.  `stale`: the
   template's node is as it was before. */
void cgl_record_edit_keep(cgl_record_edit *edit, cgl_object *object);
void cgl_record_edit_range(cgl_record_edit *edit, size_t argument,
                           const cgl_range *now, cgl_allocation *allocation);
void cgl_record_edit_values(cgl_record_edit *edit, const void *values,
                            const cgl_launch *launch);
void cgl_record_edit_end(cgl_record_edit *edit, bool stale);
/* The range of an argument; NULL: none. */
const cgl_range *cgl_record_range_of(const cgl_recording *recording,
                                     const cgl_op *op, size_t argument);
/* While no graph is made of the recording: allocation i, from 0, lies at to[i]
   from now on, unless that is 0, and the operations that use it are stale.  The
   address of range r lies at[r] bytes behind the begin of all values. */
void cgl_record_relocate(cgl_recording *recording, const CUdeviceptr *to,
                         const size_t *at);
/* Operation `index` is switched off or on. */
void cgl_record_set_off(cgl_recording *recording, size_t index, bool off);
/* The next operation from *index on whose node in the template is stale; false:
   none.  And that it is stale no more. */
bool cgl_record_next_stale(const cgl_recording *recording, size_t *index);
void cgl_record_refreshed(cgl_recording *recording, size_t index);

/* ---- parameters ----
   What a parameter is now becomes part of the values. */

/* Number `i`, from 0, as a double; what is no number is 0. */
double cgl_record_number(const cgl_numbers *numbers, size_t i);
/* Number `i` becomes what a parameter is, or with NULL the number given.
   CGL_ERROR_ARGUMENT_TYPE when the parameter is not one number. */
cgl_status cgl_record_set_number(cgl_numbers *numbers, size_t i,
                                 const cgl_param *param, double number,
                                 const char *operation);
/* Where the numbers of an operation with a rule begin in its values. */
static inline size_t cgl_record_numbers_at(const cgl_op *op) {
  return op->nvalues - sizeof(cgl_numbers);
}
/* Refuses what parameters are now, when the rule of the operation does; or that
   of any operation of the recording, or of a body in it. */
cgl_status cgl_record_check_rule(const cgl_recording *recording,
                                 const cgl_op *op, const char *operation);
cgl_status cgl_record_check_rules(const cgl_recording *recording,
                                  const char *operation);
/* Whether an operation of the recording, or of a body in it, has a rule. */
bool cgl_record_has_rules(const cgl_recording *recording);
/* Use `use` of operation `index`, which is stale and due from then on; false:
   the value is as it was. */
bool cgl_record_renew(cgl_recording *recording, size_t index, size_t use);
/* The operation is stale and due. */
void cgl_record_set_due(cgl_recording *recording, size_t index);
/* The operation is due no more. */
void cgl_record_renewed(cgl_recording *recording, size_t index);
/* Whether a value in the operation's bodies is not what its parameter is. */
bool cgl_record_bodies_are_behind(const cgl_recording *recording,
                                  const cgl_op *op);
/* All uses in bodies, of which the recording gets copies of its own where
   others refer to them.  False without memory. */
bool cgl_record_renew_bodies(cgl_recording *recording);
/* Whether the values of an operation may change: it uses parameters or inputs;
   or those of one of the recording or of a body in it. */
bool cgl_record_op_varies(const cgl_recording *recording, const cgl_op *op);
bool cgl_record_varies(const cgl_recording *recording);
/* The argument is a parameter no more. */
void cgl_record_end_use(cgl_recording *recording, size_t index,
                        size_t argument);

/* ---- inputs.c ---- */

enum { CGL_RECORD_MOST_INPUTS = (1 << 14) - 1 };

/* The number of an input, from 1, which is added where it is missing and the
   caller has made room (cgl_room.kept); 0: there are too many. */
uint16_t cgl_record_add_input(cgl_recording *recording, cgl_object *input);
/* The number of an input; 0: the recording has it not. */
uint16_t cgl_record_find_input(const cgl_recording *recording,
                               const cgl_object *input);
/* Input `number`, from 1; NULL for 0 and past the last. */
const cgl_record_input *cgl_record_input_at(const cgl_recording *recording,
                                            size_t number);
/* Before the first use of the recording: all ranges in these bytes are of the
   input, which is added where there are some. */
void cgl_record_mark_input(cgl_recording *recording, cgl_object *input,
                           CUdeviceptr address, size_t bytes);
/* Notes what is in the input's place. */
void cgl_record_bind(cgl_recording *recording, uint16_t number,
                     cgl_object *bound);
/* Range `k` of operation `index`, whose address is `at` bytes behind its first
   value, begins at another from now on, in an allocation (NULL: none; the
   caller has made room).  The operation is stale and due; false: that is where
   it begins. */
bool cgl_record_move_range(cgl_recording *recording, size_t index, uint32_t k,
                           size_t at, CUdeviceptr address,
                           cgl_allocation *allocation);
/* Body `index`, to be changed; NULL without memory. */
cgl_recording *cgl_record_own_body(cgl_recording *recording, size_t index);

/* ---- scope.c: annotations ---------------------------------------------------
   Glossary.  scope: the annotations in force from a begin to its end; an inner
   scope includes the annotations around it and overrides equal keys.
   Invariant: scopes belong to the recording and live as long as it. */

struct cgl_scope {
  cgl_scope *next;         /* in the recording's list */
  const cgl_scope *around; /* the scope outside, or NULL */
  uint64_t id;             /* unique in the process */
  const char *label;       /* the annotation "label", or NULL */
  size_t npairs;
  cgl_annotation pairs[]; /* then come the texts */
};

/* Opens a scope in the capture underway; NULL without memory. */
const cgl_scope *cgl_scope_begin(cgl_capture *capture,
                                 const cgl_annotation *pairs, size_t n);
/* Closes the scope `id` and those inside it; 0: all.  Returns how many. */
size_t cgl_scope_end(cgl_capture *capture, uint64_t id);
/* The capture of a body begins: its nodes have the annotations in force around
   it.  False without memory. */
bool cgl_scope_enter_body(cgl_capture *body, cgl_recording *around);
/* Gives the foreign nodes of a capture that has ended their scopes. */
void cgl_scope_find_foreign(cgl_recording *recording);
/* Removes all annotations. */
void cgl_scope_clear(cgl_recording *recording);
/* "label, key=value, ..." of the annotations that a scope adds or overrides. */
void cgl_scope_text(const cgl_scope *scope, char *text, size_t size);

#endif
