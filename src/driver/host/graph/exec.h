/* Executables: a graph compiled to flat programs, and its launches.
   Glossary: a step is one op to run; a chain is a run of steps each of which
   has the next as its only follower; a program is the chains of one graph
   (child graphs dissolved into it), or of one conditional body; a run is one
   launch; a patch is a change of one step, carried by the next run.
   Invariants: one run of an executable is underway at a time, in the order of
   the launch calls (tickets); only the run underway touches steps and chains,
   so programs need no lock; calls touch host_exec_node alone, under host_lock;
   a step's op is replaced by patches only, at the start of a run. */
#ifndef CGL_HOST_EXEC_H
#define CGL_HOST_EXEC_H

#include "driver/host/graph/graph.h"

typedef struct host_program host_program;

typedef struct host_step {
  host_op *op;   /* in program->ops, or malloc after a patch */
  uint8_t kind;  /* host_op_kind */
  bool enabled;  /* false: passes order on and does nothing */
  uint32_t slot; /* EVENT: index in run->fences; CONDITIONAL: of the
                    first body in exec->programs */
} host_step;

typedef struct host_chain {
  host_task task; /* first member: runs the chain, or goes on with it */
  host_program *program;
  uint32_t first, end;      /* steps */
  uint32_t at;              /* next step: `first` but while it is parked */
  uint32_t preceding;       /* chains that must end first */
  _Atomic uint32_t waiting; /* of them, those that have not ended yet */
  uint32_t nnext;
  const uint32_t *next; /* chains that may follow, in program->links */
} host_chain;

struct host_program {
  CUgraphExec exec;
  host_step *steps;
  host_chain *chains;
  uint32_t nsteps, nchains, nroots; /* the first nroots chains have no
                                       predecessor */
  uint32_t *links;
  host_op *ops;               /* one per step */
  host_chain *parent;         /* whose conditional step runs this body */
  _Atomic uint32_t remaining; /* chains not ended, and one for the starter */
};

/* The calls' view of one node of the graph that was instantiated. */
typedef struct host_exec_node {
  uint64_t id; /* of the template's node */
  CUgraphNodeType type;
  bool enabled; /* as the last call set it */
  uint32_t program, step;
  const host_op *latest; /* what the next launch will run, owned elsewhere */
  struct host_patch *pending; /* the patch of the next launch, or NULL */
  uint32_t nin;
  struct host_exec_edge *in; /* in level->edges */
  struct host_level *inner;  /* ninner of them: child, bodies */
  uint32_t ninner;
  uint32_t body; /* CONDITIONAL: number of its first body's program */
} host_exec_node;

typedef struct host_exec_edge {
  uint32_t from; /* index in the level */
  CUgraphEdgeData data;
} host_exec_edge;

/* One graph of the tree, as it was when it was instantiated. */
typedef struct host_level {
  uint32_t nnodes;
  host_exec_node *nodes; /* creation order */
  host_exec_edge *edges;
} host_level;

typedef struct host_patch {
  struct host_patch *next;
  uint32_t program, step;
  bool enabled;
  host_op *op;          /* NULL: enabled alone changes */
  host_exec_node *node; /* used under host_lock, before the launch */
} host_patch;

typedef struct host_exec_run host_exec_run;
struct host_exec_run {
  host_launch launch; /* first member */
  CUgraphExec exec;
  host_exec_run *next; /* on a list of free or of parked runs */
  uint64_t ticket;
  CUstream stream;     /* whose worker began it */
  host_patch *patches; /* oldest first */
  host_fence **fences; /* exec->nevents: signalled or awaited by the steps */
  host_task task;      /* goes on when the run before has ended */
};

struct CUgraphExec_st {
  _Atomic unsigned refs; /* the handle, and each run in flight */
  uint64_t flags;
  /* what runs */
  host_program *programs; /* [0] the graph, then all bodies */
  uint32_t nprograms;
  _Atomic bool failed;     /* the run underway met an error */
  host_exec_run *current;  /* the run underway */
  _Atomic uint64_t ticket; /* of the run that may be underway */
  _Atomic unsigned nparked;
  _Atomic(host_exec_run *) ended; /* runs to use again, pushed by anyone */
  host_task task;                 /* frees the executable */
  /* what the calls see, under host_lock */
  host_level level;
  host_exec_node **map; /* by id, open addressing */
  uint32_t map_size;
  uint64_t next_ticket;
  host_fence *mark; /* a launch from which on no more may pile up, or NULL */
  host_exec_run *spare, *parked;
  host_patch *patches, **patches_end; /* for the next launch */
  CUevent *events; /* of the event steps, by slot; counted references */
  bool *records;   /* [slot]: a record, else a wait */
  uint32_t nevents;
  host_block **blocks; /* all that alloc and free steps name */
  uint8_t *block_use;  /* HOST_BLOCK_* */
  uint32_t nblocks;
  uint64_t *handles; /* conditional values to reset at launch */
  uint32_t nhandles;
  CUgraph claim; /* the graph that may have no other executable, or NULL */
  host_user_reference *users;
};

enum {
  HOST_BLOCK_ALLOCATED = 1, /* an alloc step names it */
  HOST_BLOCK_FREED = 2      /* a free step names it */
};

/* exec.c.  NOT_SUPPORTED for a part of another graph, and for a second
   executable of a graph with memory or conditional nodes.  A failure names the
   node to blame in *error, or leaves it. */
CUresult host_exec_instantiate(CUgraphExec *out, CUgraph graph,
                               cuuint64_t flags, CUgraphNode *error,
                               CUgraphInstantiateResult *why);
void host_exec_destroy(CUgraphExec exec); /* the handle dies */
/* Backs the memory of the graph's alloc nodes, as the first launch does. */
CUresult host_exec_upload(CUgraphExec exec);
/* Queues a launch.  *full is a fence that the caller waits for without
   host_lock when too many launches are underway, or NULL. */
CUresult host_exec_launch(CUgraphExec exec, CUstream stream, host_fence **full);

/* program.c.  Fills exec->level, programs, map, events, blocks and handles
   from the graph.  On failure *error is the node to blame, or NULL, and the
   executable is left for host_exec_clear. */
CUresult host_exec_compile(CUgraphExec exec, CUgraph graph, CUgraphNode *error,
                           CUgraphInstantiateResult *why);
/* Releases all that the executable owns, but not itself. */
void host_exec_clear(CUgraphExec exec);

/* chain.c.  Makes the chains of a program of nsteps steps out of its edges
   (pairs of steps); *order gets the new place of each step.  INVALID_VALUE
   for a cycle, with *stuck a step on or behind one. */
typedef struct host_link {
  uint32_t from, to;
} host_link;
CUresult host_chains_make(host_program *program, const host_link *edges,
                          size_t nedges, uint32_t *order, uint32_t *stuck);

/* update.c.  Changes that the next launch carries.  INVALID_VALUE for a node
   that the executable lacks. */
CUresult host_exec_set_params(CUgraphExec exec, CUgraphNode handle,
                              const CUgraphNodeParams *params);
CUresult host_exec_enable(CUgraphExec exec, CUgraphNode handle, bool enabled);
CUresult host_exec_is_enabled(CUgraphExec exec, CUgraphNode handle,
                              bool *enabled);
CUresult host_exec_update(CUgraphExec exec, CUgraph graph,
                          CUgraphExecUpdateResultInfo *info);
void host_exec_patches_free(host_patch *patches);

/* replay.c.  The program's chains are made: gives them their task.  Drops one
   reference; the last frees the executable, here when the caller holds
   host_lock, else on a worker. */
void host_program_ready(host_program *program);
void host_exec_unref(CUgraphExec exec, bool locked);
/* What a launch of the executable does in its stream. */
bool host_exec_begin(host_launch *launch, CUstream stream);
/* Leaves the run alone that the thread is about to queue (host_thread's
   `launching`), which the launch takes back. */
void host_exec_run_release(host_launch *launch);

#endif
