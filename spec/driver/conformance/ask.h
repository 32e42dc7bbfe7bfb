/* Questions to a driver, asked through its table.
   Idea: a question is a function that makes calls and notes what each of them
   answered; the notes make one row of text: the question's name, then a tab
   and `what=answer` per note.  Rows recorded from a real driver lie beside
   this file (*.tsv); a driver conforms where it gives the same row.
   Invariant: a question leaves nothing behind: calls go through a table
   (track.c) that remembers every object, and what a question left alive is
   destroyed before the next. */
#ifndef CGL_SPEC_ASK_H
#define CGL_SPEC_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/table.h"

typedef struct question {
  const char *name;
  void (*ask)(void);
} question;

/* A subject asks its rows: questions with names of their own from a list,
   families (an act in each mode) in a loop. */
typedef void (*subject)(void);
void ask_table(void); /* acts.c: the acts of the first table */
void ask_modes(void); /* modes.c: every act in each capture mode */
void ask_threads(int mode, const char *const *mode_names); /* threads.c */
void ask_captures(void);                                   /* captures.c */
void ask_executables(void);                                /* executables.c */
void ask_graphs(void);                                     /* graphs.c */
void ask_breaks(void);                                     /* breaks.c */
void ask_dependencies(void);                               /* dependencies.c */
void ask_parameters(void);                                 /* parameters.c */
void ask_instantiation(void);                              /* instantiation.c */
void ask_conditionals(void);                               /* conditionals.c */
void ask_allocations(void);                                /* allocations.c */
void ask_eager(void);                                      /* eager.c */
void ask_memory(void);   /* memory.c: memory, launches, modules, events */
void ask_pinned(void);   /* pinned.c: page-locked and registered memory */
void ask_planes(void);   /* planes.c: copies and fills of rows and planes */
void ask_queues(void);   /* queues.c: streams, events, host functions */
void ask_devices(void);  /* devices.c: devices, contexts, errors, entries */
void ask_kernels(void);  /* kernels.c: modules, functions, launches */
void ask_spaces(void);   /* spaces.c: virtual memory and pools */
void ask_mappings(void); /* mappings.c: runs of many handles, moved about */
void ask_replays(void);  /* replays.c: uploads, switches, changes in flight */
void ask_changes(void);  /* changes.c: updates by cause, what graphs tell */
void ask_sticky(void);   /* sticky.c: what follows an illegal address */

/* ---- the driver that is asked (ask.c) ---- */

/* The table to call; kernels `tick` (x[0] += a), `tock` (x[0] *= a), `wide`
   (uses shared memory), `setc` (sets a conditional while --*n > 0); 1 MiB of
   device memory; the image of their module, which holds more kernels and a
   variable (kernels.c, sticky.c). */
extern const cgl_driver *cu;
extern CUcontext ctx;
extern CUmodule mod;
extern CUfunction tick, tock, wide, setc;
extern CUdeviceptr d;
extern const void *img;

/* Opens the device and compiles the kernels; on failure the reason.  The
   driver is wrapped by track.c. */
const char *ask_open(const cgl_driver *driver);
void ask_close(void);

/* ---- rows ---- */

/* Asks: begins the row, runs the question, destroys what it left, hands the
   row to the program.  Names are printf formats. */
void row(void (*ask)(void), const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void row_list(const question *questions, size_t count);
/* alone.c: the same for questions that leave a context unfit for others: each
   is asked in a process of its own, this program called again. */
void row_list_alone(const question *questions, size_t count);
/* Notes that were made elsewhere, each begun by a tab. */
void row_take(const char *notes);
void say(const char *what, CUresult answer);
void num(const char *what, long value);
/* conformance.c: is the row to be asked; what came of it. */
bool row_wanted(const char *name);
void row_done(const char *name, const char *text);
/* conformance.c: the device's name; the one row that this process asks before
   it ends, or NULL. */
extern const char *row_device, *row_alone;

/* Calls through the table, noted under their own text. */
#define S(call) say(#call, cu->call)
/* The same for the helpers below. */
#define T(call) say(#call, call)

/* ---- short words of the questions ---- */

#define TL CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define GL CU_STREAM_CAPTURE_MODE_GLOBAL
#define RX CU_STREAM_CAPTURE_MODE_RELAXED

CUstream NS(void); /* a non-blocking stream */
CUstream BS(void); /* a blocking stream */
CUevent EV(void);
CUresult Kf(CUfunction f, CUstream s);       /* one small launch */
CUresult K(CUstream s);                      /* of tick */
long st(CUstream s);                         /* capture status, or -error */
long cnt(CUgraph g);                         /* nodes, -1 without a graph */
long edg(CUgraph g);                         /* edges, likewise */
CUgraph capn(int n);                         /* n ticks, captured */
void nodes_of(CUgraph g, CUgraphNode nd[4]); /* its first four, or NULL */
void clear_ticks(void);                      /* what ticks add to, back to 0 */
void note_ticks(void);                       /* that, as "ticks" */
/* A node that ticks once and adds *a; `p` is room for its two parameters. */
CUDA_KERNEL_NODE_PARAMS adding(float *a, void **p);
/* A host function of 30 ms, and from sleep_on() on of as many until wake(): a
   loaded machine may take its time over questions about what is underway.  At
   most *most times, an int; NULL: 300.  Host functions of other streams may
   have to wait for it. */
void doze(void *most);
void sleep_on(void);
void wake(void);
CUmemAllocationProp device_prop(void); /* of plain device memory */

/* ---- track.c ---- */

/* A table that calls `driver` and remembers what was made. */
const cgl_driver *track(const cgl_driver *driver);
/* Ends captures and destroys all that is left since the last call. */
void track_sweep(void);
/* A graph that another owns now. */
void track_forget(CUgraph graph);

#endif
