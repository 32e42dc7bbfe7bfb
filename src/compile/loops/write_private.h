/* How the files that write loops share their work: text.c, region.c, guard.c,
   stride.c, first.c, few.c, split.c, shape.c, warp.c, function.c and write.c.
   Invariant: what is pending is written before anything that must follow it;
   the names of variables are unique, so where a text stands does not matter. */
#ifndef CGL_COMPILE_LOOPS_WRITE_PRIVATE_H
#define CGL_COMPILE_LOOPS_WRITE_PRIVATE_H

#include "compile/loops/loops_private.h"

#define WARP_LANES 32
#define MAX_PENDING 512
#define MAX_GUARDS 12
#define MAX_INNER 64
#define MAX_MASKS 32

/* Tokens of the script's, as often as they are written, that make a kernel
   long.  Of a long one less is made to be fast: not what blocks of several rows
   run where it knows none, nor what the last warp of a row runs that is not
   whole; and where it knows rows, a block of one has no function of its own.
   Most of its compile would be theirs. */
#define LONG_KERNEL 2000

/* A comparison that may have one value for a row of threads, or a slide. */
typedef struct guard {
  row all;         /* the comparison, or the slide */
  row left, right; /* its sides; of a slide by `%`, too */
  row moving;     /* the side that grows by 1 from thread to thread, or nothing;
                     what a slide follows */
  uint64_t names; /* bits: those of w->inner that it needs */
  bool slides;
  bool edge;     /* only threads for which it holds do anything */
  bool equal;    /* == or != */
  bool expected; /* a comparison's value, where rows are inside */
} guard;

/* A name that a region declares for itself (inner.c). */
typedef struct inner_name {
  const cgl_token *name;
  row type;
  row value;   /* of a loop's variable, the first */
  row end;     /* of a loop's variable, what bounds it; nothing: no loop's */
  bool below;  /* which it does not reach */
  bool usable; /* it has one meaning, and the value */
} inner_name;

typedef struct writer {
  tree *t;
  const cgl_loops_style *style;
  cgl_text *out;
  int line;             /* of the script, at the end of the text; -1 unknown */
  bool counting;        /* the first time */
  bool global;          /* a function may ask for the thread's index */
  int loops;            /* around what is written */
  bool comes_back;      /* threads leave in a loop */
  bool alive;           /* threads leave before the last region */
  bool ragged;          /* some of a whole warp's threads may have left */
  int run_loops;        /* around the run */
  int run_end;          /* the label at its end, for a warp that has left */
  bool left;            /* threads left in it */
  int region, returned; /* counted; the first region that returns */
  int run, runs;        /* of warps; 0: none */
  int labels, masks;
  size_t tokens; /* of the script's, that were written */
  bool lengthy;  /* the kernel is a long one */
  bool fast;     /* the run's warps are whole, and their threads in a row */
  bool more;     /* an operation follows what is written */
  bool inside;   /* a loop over threads is being written */
  bool lanes;    /* it is over all lanes of a strip (lanes.c) */
  const cgl_token *walked;      /* the variable of the stride in it, or NULL */
  const char *mask;             /* array of the lanes that take part, or NULL */
  const char *outer[MAX_MASKS]; /* those around it */
  size_t nouter;
  const char *body_mask; /* of the loop that lanes leave one by one, or NULL */
  size_t loop_mask;      /* the place of that of all its turns in `outer` */
  bool strict;           /* in a mask: all lanes of the warp must take part */
  guard guards[MAX_GUARDS];
  size_t nguards;
  inner_name inner[MAX_INNER]; /* what the region with the guards declares */
  size_t ninner;
  bool crowded; /* it may declare others */
  bool holds;   /* the guards are known to hold where is written */
  bool widths;  /* the block's width is worth a function */
  bool pieces;  /* in a piece of a row: cgl_many threads from cgl_from on */
  statement *pending[MAX_PENDING];
  size_t npending;
} writer;

#define MAX_OUTER 6

/* A strided loop, as it runs for a row of threads. */
typedef struct stride {
  row type, name, base, bound, step, body;
  row outer[MAX_OUTER]; /* heads of loops around it, and declarations in them */
  size_t nouter;
  bool rows;   /* differs from row to row: by threadIdx.y or z */
  bool lane;   /* walks by lanes, not by threads */
  bool narrow; /* begins at no less than 0, and steps forward */
} stride;

/* ---- text.c ---- */

/* What follows is on that line of the script. */
void cgl_put_line(writer *w, int line);

/* What follows is on no line of the script. */
void cgl_put_own(writer *w);

/* The tokens; a `return` leaves the thread's part of a region. */
void cgl_put_tokens(writer *w, row r, bool in_region);

void cgl_put_name(writer *w, const char *prefix, const variable *v);

/* The variable that counts the threads of the row, the piece of one or the warp
   that a loop is over; and its value in the last of them. */
const char *cgl_put_counter(const writer *w);
const char *cgl_put_last(const writer *w);

/* The type without const, unless it is that of a pointee. */
void cgl_put_type(writer *w, const variable *v);

/* Where in a sum an index stands that has a wide form, *n tokens; or *n = 0. */
size_t cgl_put_find_index(const writer *w, row r, size_t *n);

/* The sum without the n tokens at `at`. */
void cgl_put_rest(writer *w, row r, size_t at, size_t n);

/* Is an atomic operation at i on shared memory, so that no other thread of the
   machine comes between? */
bool cgl_put_is_plain_atomic(writer *w, row r, size_t i);

/* ---- region.c ---- */

/* May every thread have a value of its own? */
bool cgl_region_is_local(const variable *v);

/* Marks in `used`, by the variable's place in the list, what the row names. */
void cgl_region_mark(writer *w, row r, bool *used, int depth);

/* Puts a statement off, and writes what was put off as one region. */
void cgl_region_add(writer *w, statement *s);
void cgl_region_flush(writer *w);

/* One loop for `n` statements, or for the body of a stride. */
void cgl_region_put(writer *w, statement *const *list, size_t n,
                    const stride *walk);

/* What declares the array that keeps a variable, but for its size. */
void cgl_region_put_room(writer *w, const variable *v);

/* Opens a block for what all lanes of a warp do, and declares in it what the
   row names, as the first of them has it. */
void cgl_region_put_common(writer *w, row r);

/* May some of the threads have left that are written for? */
bool cgl_region_is_ragged(const writer *w);

/* Declares what is computed again and is used. */
void cgl_region_put_again(writer *w, const bool *used);

/* A statement that is run once. */
void cgl_region_put_scalar(writer *w, row r);

/* A statement that is not the script's. */
statement *cgl_region_statement(writer *w, const cgl_token *where,
                                const char *front, row r, const char *back);

/* A token of the statement, for its line. */
const cgl_token *cgl_region_where(const writer *w, const statement *s);

/* ---- inner.c ---- */

/* Finds what the statements declare for themselves; false when that is not
   known of all. */
bool cgl_inner_find(writer *w, statement *const *list, size_t n);

/* The row with the values of those names, and 0 for variables of loops; *names
   becomes their bits.  Nothing when a name is not usable or a loop's variable
   stands there twice. */
row cgl_inner_expand(writer *w, row r, uint64_t *names);

/* Have all threads of a row the bounds of those loops? */
bool cgl_inner_is_bounded(writer *w, uint64_t names);

/* Those of the names that are variables of loops. */
uint64_t cgl_inner_loops(const writer *w, uint64_t names);

/* Declares the names, within loops over both ends of those that are variables
   of loops; and the end of that.  `exact`: declares them once more, as numbers
   that do not wrap around. */
void cgl_inner_put(writer *w, uint64_t names, bool exact);
void cgl_inner_put_end(writer *w, uint64_t names);

/* Marks what the names' values name, as cgl_region_mark. */
void cgl_inner_mark(writer *w, uint64_t names, bool *used);

/* ---- first.c ---- */

/* Finds what only the first lanes of a warp need to have; sets `few`. */
void cgl_first_find(writer *w);

/* Is what is written now of such lanes alone, where it may be? */
bool cgl_first_is_few(const writer *w, const statement *s);

/* ---- few.c ---- */

/* The threads of a row that a region is of, as the loop over them is written:
   from, below cgl_k, by so many. */
typedef struct few_threads {
  const char *from, *step;
  row guarded; /* the statement of all of them; nothing: the region's own */
} few_threads;

/* Opens a block and declares in it what the loop needs; false: the region may
   be of all threads. */
bool cgl_few_put(writer *w, statement *const *list, size_t n, few_threads *f);

/* May the statement be left out of threads that do no more? */
bool cgl_few_is_idle(writer *w, const statement *s);

/* The condition with what is computed again written out, or as it is: a type
   that is no whole number's would be lost. */
row cgl_few_expand(writer *w, row cond);

/* Has the expression no effect?  Only of some functions is that known. */
bool cgl_few_is_pure(writer *w, row r);

/* The condition of `if (...) ...` with `&&` alone, or 0 tokens when it has an
   else, or when a term has an effect that others stand behind. */
row cgl_few_condition(writer *w, const statement *s);

/* The next term of a condition, up to `&&`, from *i on. */
row cgl_few_next(row cond, size_t *i);

/* Is the statement of all threads or of none? */
bool cgl_few_is_common(writer *w, const statement *s);

/* Which thread of a row or a warp the statement is of, when it is of one. */
row cgl_few_one(writer *w, const statement *s);

/* Does a run of warps nothing that is seen in any warp but the first, where a
   block is one row?  Of what was put off in front of it, too. */
bool cgl_few_is_of_first_warp(writer *w, statement *const *before, size_t n,
                              const statement *s, const statement *end);

/* ---- split.c ---- */

/* The list with what conditions stand around taken apart, where a part is of a
   few threads: how many statements `out` then has, which has room for
   MAX_PENDING. */
size_t cgl_split_few(writer *w, statement *const *list, size_t n,
                     statement **out);

/* ---- guard.c ---- */

/* Finds the guards of the statements and of what they use that is computed
   again: true when a row of threads can be asked whether all are known for all
   of it. */
bool cgl_guard_find(writer *w, statement *const *list, size_t n,
                    const bool *used);

/* Is the statement of some rows of a block, as `if (threadIdx.y == 0)`? */
bool cgl_guard_is_of_rows(writer *w, const statement *s);

/* Declares cgl_holds: they are known for all of a row, a piece of one or a
   warp.  True: or for its threads from cgl_from to cgl_to, which it declares,
   and the others do nothing. */
bool cgl_guard_put(writer *w);

/* Writes what a guard at i is known to be; how many tokens it has, or 0. */
size_t cgl_guard_put_known(writer *w, row r, size_t i);

/* ---- stride.c ---- */

/* Is it a sum of numbers that all threads of a row have, and of the thread's
   place in the row (*moves)?  It loads nothing.  *blocks: and differs from
   block to block, or by variables. */
bool cgl_stride_is_place(writer *w, row r, bool *moves, bool *blocks);

/* The row with what is computed again written out. */
row cgl_stride_expand(writer *w, row r, int depth);

bool cgl_stride_find(writer *w, const statement *s, stride *out);
void cgl_stride_put(writer *w, statement *s, const stride *walk);

/* The lane of the thread, as `threadIdx.x % 32`, or its warp, as
   `threadIdx.x / 32`, at i: how many tokens it has, or 0. */
size_t cgl_stride_lane(row r, size_t i, bool *warp);

/* Finds the variables that are threadIdx.x behind a sum, and warps and lanes of
   such sums. */
void cgl_stride_find_indices(writer *w);

/* ---- warp.c ---- */

/* One operation, an if and a loop that only some lanes take. */
void cgl_warp_put(writer *w, statement *s);
void cgl_warp_put_if(writer *w, statement *s);
void cgl_warp_put_loop(writer *w, statement *s);

/* Does a condition that may part the lanes stand around a break or continue? */
bool cgl_warp_parts(writer *w, const statement *list);

/* A break or continue of some lanes; and behind what may have one, the end of
   the turn for a warp of which none is left in it. */
void cgl_warp_put_jump(writer *w, statement *s);
void cgl_warp_put_left(writer *w);

/* Declares the type `name`: that of what the row gives a thread. */
void cgl_warp_put_type(writer *w, const char *name, row value);

/* Has the condition one value for the lanes of a whole warp? */
bool cgl_warp_is_uniform(writer *w, row r);

/* `if (c) return;`, where the lanes of a whole warp go or stay together: writes
   it and returns true. */
bool cgl_warp_put_return(writer *w, const statement *s);

/* Writes the statements from s on that are run warp by warp, with what was put
   off; returns the one behind them. */
statement *cgl_warp_find_end(writer *w, statement *s);
void cgl_warp_put_run(writer *w, statement *s, statement *end);

/* ---- strip.c ---- */

/* Is the statement `if (cond) return;`? */
bool cgl_strip_is_leave(const statement *s, row *cond);

/* Counts loops that the strip's threads do not take together as plain ones;
   true when there were new ones: the kernel is to be read again. */
bool cgl_strip_exclude(writer *w);

/* The function's head, its body, and the class around it. */
void cgl_strip_put_head(writer *w);
void cgl_strip_put_body(writer *w);
void cgl_strip_put_class(writer *w);
void cgl_strip_put_guard(writer *w, statement *s);

/* May the declaration of a scalar stand in front of what is put off? */
bool cgl_strip_may_hoist(writer *w, const statement *s);

/* Writes a region that is a condition; false: it is no such. */
bool cgl_strip_put_coherent(writer *w, statement **list, size_t n);

/* ---- lanes.c ---- */

/* May the threads of a strip leave the loop one by one, as its variables tell?
 */
bool cgl_lanes_may(const writer *w, const statement *s);
void cgl_lanes_put(writer *w, statement *s);

/* ---- shape.c ---- */

/* Do numbers and the block's width say how often the loop runs, as one that
   halves the width does?  Then the kernel has functions for some widths. */
bool cgl_shape_knows(writer *w, const statement *s);

/* What calls the function for the block's shape.  Indices that may wrap around
   have a function of their own. */
void cgl_shape_put(writer *w);

/* ---- function.c ---- */

/* The kernel's function, and the class that calls it. */
void cgl_loops_put_function(writer *w);

/* Names the row what a warp operation gives? */
bool cgl_loops_has_warp_value(row r);

/* Is it an int? */
bool cgl_loops_is_int(const variable *v);

/* ---- write.c ---- */

/* Is everything of the loop's header the same for all threads? */
bool cgl_loops_is_uniform(writer *w, const statement *s);

/* Are its names constants, also those that loops become when unrolled? */
bool cgl_loops_is_number(writer *w, row r);

/* Do numbers alone say how often the loop runs?  Then shuffles in it have
   constant distances when it is unrolled. */
bool cgl_loops_is_counted(writer *w, const statement *s);

/* One statement, after what was put off. */
void cgl_loops_put_statement(writer *w, statement *s);

void cgl_loops_put_list(writer *w, statement *list);
void cgl_loops_put_block(writer *w, statement *list);

#endif
