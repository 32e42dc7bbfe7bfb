/* The inside of the room: a kernel's statements and variables.
   Invariant: a statement with neither `sync` nor `escapes` is all of `all`;
   of the others only the parts count. */
#ifndef CGL_COMPILE_LOOPS_PRIVATE_H
#define CGL_COMPILE_LOOPS_PRIVATE_H

#include "compile/frontend/program.h"
#include "compile/loops/loops.h"

typedef struct row {
  cgl_token *at;
  size_t n;
} row;

typedef enum statement_kind {
  STATEMENT_PLAIN,       /* an expression, or what is not looked into */
  STATEMENT_DECLARATION, /* of one variable */
  STATEMENT_IF,
  STATEMENT_FOR,
  STATEMENT_WHILE,
  STATEMENT_DO,
  STATEMENT_BLOCK,
  STATEMENT_JUMP,    /* break or continue */
  STATEMENT_BARRIER, /* `all`: the predicate, or nothing */
  STATEMENT_WARP,    /* `cond`: the arguments behind the mask */
  STATEMENT_GUARD    /* only threads for which `cond` holds go on */
} statement_kind;

/* SYNC_APART: control that stays outside the loops over threads (apart.c,
   common.c) */
enum { SYNC_BLOCK = 1, SYNC_WARP = 2, SYNC_APART = 4 };

#define MAX_PLAIN 32
#define MOST_OPERANDS 32

typedef struct variable variable;

typedef struct statement {
  statement_kind kind;
  row all;
  row cond, step;
  struct statement *init; /* of a for: declarations, or an expression */
  struct statement *body, *otherwise;
  variable *variable;       /* of a declaration, or a barrier's result */
  row value;                /* its initializer, with `=` or brackets */
  row mask;                 /* of a warp operation; nothing: all lanes */
  struct statement *head;   /* runs before each test of a loop's condition */
  cgl_token op;             /* of a barrier or a warp operation */
  int id;                   /* of a warp operation */
  unsigned sync;            /* SYNC_*, of all in it */
  bool escapes;             /* a break or continue in it leaves it */
  bool apart;               /* a loop that synchronizes nothing (apart.c) */
  bool common;              /* control that synchronizes nothing (common.c) */
  bool lanes;               /* a loop that a strip's threads leave (lanes.c) */
  bool inlined;             /* of a function, not of the kernel's own text */
  const cgl_token *few;     /* the lanes below it are wanted (first.c) */
  bool whole;               /* all lanes are, of what begins here */
  struct statement *beside; /* in a ring: what is whole when this is */
  struct statement *next;
} statement;

struct variable {
  cgl_token name; /* unique in the kernel */
  row type;       /* with its stars */
  row dims;       /* [4][4] */
  row value;
  variable *next; /* in the order of declaration */
  bool is_auto, constant, shared, dynamic, reference, parameter;
  bool constructed; /* T x(1); or T x{1}; */
  bool closed;      /* of a class, whose functions may change it */
  bool guarded;     /* a constant where it is not changed (region.c) */
  bool lambda;      /* written again where it is named */
  bool function;    /* a lambda that synchronizes, put in place of its calls */
  bool alias;     /* no variable but a type: `= type`, or a whole declaration */
  bool addressed; /* may be known by its address */
  bool assigned;  /* after its declaration, or declared in a split loop */
  bool changed;   /* after its declaration */
  bool uniform;   /* the same for all threads */
  bool again;     /* computed again in every region */
  bool written;   /* its declaration has been written */
  bool wanted;    /* a condition around a barrier is made of it (common.c) */
  bool kept;      /* has an array */
  bool counted;   /* of a loop that numbers alone bound */
  row index;      /* threadIdx.x behind this sum of whole numbers; or nothing */
  bool beside;    /* a sum of whole numbers and of another with an index */
  row warp;       /* such a sum, with threadIdx.x behind it divided by 32 */
  bool lane;      /* the rest of that division */
  struct statement *partial; /* what made it of few lanes (first.c), */
  struct statement *ever;    /* now, or in the loop up to now */
  int lanes;                 /* those that it has, in that */
  int region;                /* that uses it: -1 none yet, -2 several */
  int run;                   /* of warps that uses it; likewise */
  const statement *home;     /* its declaration */
  const cgl_token *origin;   /* the source's declaration; NULL: made here */
};

/* What stands behind the statement that is read, up to the kernel's end. */
typedef struct behind {
  row r;
  const struct behind *outer;
} behind;

typedef struct known_body known_body;

/* The side of an operator of the source's that it may change. */
typedef struct operand {
  const cgl_token *symbol;
  bool right;
} operand;

typedef struct tree {
  cgl_program *program;
  cgl_arena *arena;
  const cgl_declared *kernel;
  const cgl_alias *given;   /* of the kernel's template */
  const cgl_alias *aliases; /* of types, those of templates first */
  statement *body;
  variable *variables, **last;
  int ids;         /* inlined functions, warp operations */
  int depth;       /* of inlining */
  size_t inlined;  /* tokens */
  const char *why; /* refused */
  int line;
  bool failed;                    /* no memory */
  int loops;                      /* around what is read, with barriers */
  const cgl_token *origin, *copy; /* a row of the source, and what is read */
  unsigned char *known;           /* SYNC_* of every chunk (sync.c) */
  bool *reached;                  /* the classes that are named */
  known_body *known_bodies;
  row *bodies;     /* of the functions among them, rewritten (lives.c) */
  bool references; /* a function takes a reference to what is not const */
  bool keeps;      /* one might keep where something is */
  operand operands[MOST_OPERANDS]; /* that operators take by one */
  size_t noperands;
  bool returns; /* a thread may leave before a barrier */
  bool hides;   /* a token stands for a name and namespaces around it */
  int strides;  /* loops that a row of threads takes together */
  bool guarded; /* rows inside an array run without what asks for its edge */
  bool strips;  /* loops that strips take together count as SYNC_WARP */
  bool turns;   /* and so do its functions', or a kernel with barriers' own
                   loops of arithmetic */
  int turned;   /* loops that were read as such */
  const char *plain[MAX_PLAIN]; /* the `for` of those that they do not, or
                                   that are not apart */
  size_t nplain;
  int reads;  /* of the kernel before this one */
  row text;   /* the kernel's body, with loops that count in one form */
  int aparts; /* loops that were read as apart */
  const char *commons[MAX_PLAIN]; /* control that is read as its parts */
  size_t ncommons;
  const char *leaves[MAX_PLAIN]; /* the `if` of those that threads leave by */
  size_t nleaves;
  const behind *rest; /* behind the list, where threads leave in it */
  bool lone;          /* that was tried, and did not help */
} tree;

/* The tokens from one place up to another; has the row the word? */
row cgl_row_slice(row r, size_t from, size_t to);
bool cgl_row_has(row r, const char *word);

/* The row without the brackets around all of it. */
row cgl_row_unwrap(row r);

/* Where one of the operators first stands outside of brackets; r.n: nowhere. */
size_t cgl_row_find(row r, const char *a, const char *b);

/* Refuses the kernel; the first reason stays. */
void cgl_tree_refuse(tree *t, const cgl_token *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What the tokens, and all functions they name, synchronize: SYNC_*; what the
   one does, where it stands.  (sync.c) */
unsigned cgl_tree_sync(tree *t, const cgl_token *at, size_t n);
unsigned cgl_tree_sync_at(tree *t, row r, size_t i);

/* Refuses a kernel that may reach operators or constructors that do. */
void cgl_tree_refuse_unnamed(tree *t);

/* Is the chunk the class of that name? */
bool cgl_sync_is_class(const cgl_chunk *c, const cgl_token *name);

/* Declares a type that stands for the tokens. */
variable *cgl_tree_alias(tree *t, const cgl_token *name, row type);

/* The statements of a row of tokens; of the one that is r[from..to), without
   its braces. */
statement *cgl_tree_read(tree *t, row r);
statement *cgl_tree_read_body(tree *t, row r, size_t from, size_t to);

/* Sets `sync` and `escapes` of the statements and all in them. */
void cgl_tree_mark(tree *t, statement *list);

/* May a break or continue in the branch leave it, or in the loop end a turn?
   Known when the statements are marked. */
bool cgl_tree_is_left(const statement *s);

/* A copy whose tokens may be changed. */
row cgl_tree_copy(tree *t, const cgl_token *at, size_t n);

/* A token spelled as printf writes, on the line of `where`. */
cgl_token cgl_tree_token(tree *t, const cgl_token *where, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));

/* Forgets what was read, but for the plain loops. */
void cgl_tree_renew(tree *t);

/* Reads the number at *i, which goes past it; false when no such stands there,
   of up to 30 bits. */
bool cgl_tree_number(row r, size_t *i, long *n);

/* How often `for (int i = 0; i < 5; i++)` at i runs; 0: not a few times that
   numbers alone say. */
unsigned long cgl_tree_turns(row r, size_t i);

/* Past the statement at i. */
size_t cgl_tree_end(row r, size_t i);

/* Past the lambda that begins at i, or 0 when none does. */
size_t cgl_tree_lambda(row r, size_t i);

/* How often the row returns, but for what its lambdas return. */
size_t cgl_tree_returns(row r);

/* Is token i of the row a name of its own, and not a member's? */
bool cgl_tree_is_name(row r, size_t i);

/* Is it a type that words of the language name, or a pointer to one? */
bool cgl_tree_is_fundamental(row type);

/* Is it ++ or --; = or its like? */
bool cgl_tree_is_step(const cgl_token *t);
bool cgl_tree_is_equal(const cgl_token *t);

statement *cgl_tree_new(tree *t, statement_kind kind);
variable *cgl_tree_declare(tree *t, const cgl_token *name);
variable *cgl_tree_find(const tree *t, const cgl_token *name);

/* Is it an argument of the kernel's template?  Nothing changes one, nor has it
   a place. */
bool cgl_tree_is_argument(const variable *v);

/* Past the specifiers of a declaration at i, or i when there is none.  They
   set the flags of `v`; what of them is a type is added to `type`. */
size_t cgl_tree_specifiers(row r, size_t i, variable *v, row type,
                           size_t *ntype);

/* A variable whose name stands at r.at[i], known up to the end of r. */
variable *cgl_tree_declare_at(tree *t, row r, size_t i, const variable *like);

/* Is the row a declaration of types alone?  And declares them.  (types.c) */
bool cgl_tree_declares_type(row all);
void cgl_tree_declare_type(tree *t, row all);

/* Makes a declaration of its own of the type that the one from i to end
   declares or needs, and the names of an enum known; where the rest begins, or
   i. */
size_t cgl_tree_split_types(tree *t, row r, size_t i, size_t end);

/* The declaration of a variable that begins with the value. */
statement *cgl_tree_declare_value(tree *t, const cgl_token *name, row type,
                                  row value);

/* Is it what a tile makes of its values: a reduction or a scan, of which `cond`
   is the operator and `step` the tile's size? */
bool cgl_tree_is_group(const cgl_token *op);

/* Puts functions that synchronize in place of their calls, and every warp
   operation in a statement of its own (inline.c). */
void cgl_tree_inline(tree *t, statement **list);

/* A copy of the list of statements, with loops that count in one form
   (count.c). */
row cgl_count_rewrite(tree *t, row list);

/* A copy of the list, with what synchronizes behind `&&`, `||` or `?` in
   statements of its own (choose.c). */
row cgl_choose_rewrite(tree *t, row list);

/* The body of a function of that type, with its returns as one at its end; or
   as it is, when they cannot be.  (returns.c) */
row cgl_returns_rewrite(tree *t, row body, row type);

/* A copy of the body of a function, where a variable that is given a value anew
   is another one from there on (lives.c). */
row cgl_lives_rewrite(tree *t, row body, row parameters);

/* Is the token the first of a loop that a strip's threads take together, or
   might leave one by one?  (strip.c) */
bool cgl_strip_is_loop(tree *t, row r, size_t i);

/* Might the loop at i be one that the threads of a strip leave one by one?
   (lanes.c) */
bool cgl_lanes_is_loop(tree *t, row r, size_t i);

/* Ends the body of such a loop. */
void cgl_strip_end_loop(tree *t, statement *loop, const cgl_token *where);

/* Makes guards of the conditions that all else stands behind. */
void cgl_strip_find_guards(tree *t);

/* May the loop at i stay outside the loops over threads?  And makes those plain
   that, as the kernel was read, may not: true when there were any, and the
   kernel is to be read again.  (apart.c) */
bool cgl_apart_is_loop(const tree *t, row r, size_t i);
bool cgl_apart_exclude(tree *t);

/* Is control at i read as its parts, though it synchronizes nothing?  And finds
   what is to be, for the conditions around barriers: true when the kernel is to
   be read again.  (common.c) */
bool cgl_common_is_control(const tree *t, row r, size_t i);
bool cgl_common_find(tree *t);

/* Is the statement at i an `if` around a barrier, by which the other threads
   leave the kernel?  Reads it; and finds one in what ends the kernel: true when
   there was one, and the kernel is to be read again.  (leave.c) */
bool cgl_leave_is(const tree *t, row r, size_t i);
statement **cgl_leave_read(tree *t, row r, size_t i, size_t end,
                           statement **tail);
bool cgl_leave_find(tree *t, statement *list);

/* Reads `a = 1, b = c = 2;` as a statement for each: the new tail, or NULL when
   the row is no such.  (effects.c) */
statement **cgl_effects_read(tree *t, row all, statement **tail);

/* `if (a && b) c` as `if (a) if (b) c`, where b synchronizes, or the statement
   as it is. */
row cgl_effects_nest(tree *t, row all);

/* Takes k++ and the like out of conditions that must be the same for all
   threads. */
void cgl_effects_split(tree *t, statement **list);

/* Of the name that the source gives, without what made it unique (text.c). */
int cgl_put_length(const variable *v);

/* Sets `references`, `keeps` and `operands` (changes.c). */
void cgl_values_find_functions(tree *t);

/* Finds what is uniform and what is computed again (values.c). */
void cgl_values_find(tree *t);

/* Has the expression one value for all threads, and no effects?  `fixed`: it
   also has it everywhere in the kernel. */
bool cgl_values_is_uniform(tree *t, row r, bool fixed);

/* A function that has no effect; and names of the source, no function's, that
   have one value for all threads, or one that never changes. */
bool cgl_values_is_pure_call(const tree *t, const cgl_token *name);
bool cgl_values_is_common(tree *t, const cgl_token *name);
bool cgl_values_is_constant(tree *t, const cgl_token *name);

/* Has a call of the source's function no effect, and a result that depends on
   its arguments alone?  (calls.c) */
bool cgl_calls_is_uniform(tree *t, const cgl_token *name);

/* Names the type one of the source's that is a reference? (changes.c) */
bool cgl_values_is_reference(const tree *t, row type);

/* Is the variable of a class, of a type that is a reference, or a vector that
   functions may change by one? */
bool cgl_values_is_closed(tree *t, const variable *v);

/* Might the object that the variable is point into itself?  May a function that
   is given it by reference keep its place?  (changes.c) */
bool cgl_values_points_inward(const tree *t, const variable *v);
bool cgl_values_is_kept(const tree *t, row r, const variable *v);

/* The uniform variable that `name = value;` or its like sets, or NULL. */
variable *cgl_values_assignment(tree *t, row r);

/* May the tokens change the variable? (changes.c) */
bool cgl_values_is_assigned(const tree *t, row r, const variable *v);

/* May the name be known by its address, or a reference, as the tokens tell? */
bool cgl_values_is_addressed(const tree *t, row r, const cgl_token *name);

/* Is the row the address of shared memory for certain?  `depth`: 0.
   (shared.c) */
bool cgl_shared_is_address(const tree *t, row r, int depth);

/* Calls `visit` with every row of tokens of the list, nested ones too; a
   declaration's is its value. */
void cgl_values_each(tree *t, statement *list,
                     void (*visit)(tree *, statement *, row, void *),
                     void *user);

#endif
