/* The inside of a cgl_program, for this room and for compile/loops.
   A chunk is one declaration at namespace scope: its tokens from the first
   specifier to the `;` or the `}` that ends it.
   Invariant: chunks are in source order and do not overlap; kernels and
   aliases point into the preprocessed tokens, which the program owns. */
#ifndef CGL_COMPILE_PROGRAM_H
#define CGL_COMPILE_PROGRAM_H

#include "compile/frontend/frontend.h"
#include "compile/frontend/preprocess.h"

typedef struct cgl_chunk {
  const cgl_token *at;
  size_t count;
  size_t header;     /* tokens of template <...> in front of it */
  const char *scope; /* "ns::" or "" */
  unsigned features; /* of its own tokens */
  bool record;       /* struct, class, union: everything in it is a name */
  bool operators;    /* defines an operator, which is called without a name */
  bool visited;      /* mark of the walk underway */
} cgl_chunk;

typedef struct cgl_name {
  const cgl_token *name;
  size_t chunk; /* that can be reached by it */
} cgl_name;

typedef struct cgl_template_parameter {
  cgl_token name;
  bool is_type;
  const cgl_token *type; /* of a value */
  size_t ntype;
  const cgl_token *standard; /* default argument, may be empty */
  size_t nstandard;
} cgl_template_parameter;

typedef struct cgl_declared {
  const char *scope; /* "ns::" or "" */
  cgl_token name;
  const cgl_token *parameters; /* between the parentheses */
  size_t nparameters;
  const cgl_token *bounds; /* first argument of __launch_bounds__ */
  size_t nbounds;
  cgl_template_parameter *templates;
  size_t ntemplates;
  bool is_template;
  bool c_linkage;
  bool defined; /* has a body */
  size_t chunk;
  const cgl_alias *aliases; /* visible where it is declared */
} cgl_declared;

struct cgl_program {
  const char *text; /* the source, borrowed */
  size_t length;
  cgl_program *guess; /* what was read before the compiler was asked */
  cgl_pp pp;
  cgl_tokens lowered;    /* without groups (groups.c) */
  const cgl_tokens *row; /* what is read: it, or what the pp gave */
  cgl_arena arena;
  cgl_chunk *chunks;
  size_t nchunks, chunk_room;
  cgl_declared *kernels;
  size_t nkernels, kernel_room;
  cgl_variable *variables;
  size_t nvariables, variable_room;
  cgl_name *names; /* sorted */
  size_t nnames, name_room;
  const char **bodies; /* the `{` of every __global__ function's body */
  size_t nbodies, body_room;
  const char **sums; /* atomicAdd of sums that no thread reads, in order */
  size_t nsums, sum_room;
  cgl_alias *aliases; /* newest first */
  bool failed;
};

typedef struct cgl_span {
  const cgl_token *at;
  size_t count;
} cgl_span;

enum { CGL_PLACE_CASTS = 6 };

/* How a thread's place is spelled. */
typedef struct cgl_place {
  cgl_span casts[CGL_PLACE_CASTS]; /* the types, in order */
  size_t ncasts;
  const cgl_token *width; /* instead of blockDim.x, or NULL */
} cgl_place;

/* Room for an element at `count` in an array that grows by doubling: the array,
   or NULL when memory ran out. */
void *cgl_program_grow(cgl_program *p, void *array, size_t count, size_t *room,
                       size_t size);

/* Does `blockIdx.x` (for the object "blockIdx") start at i? */
bool cgl_token_is_axis(const cgl_token *at, size_t count, size_t i,
                       const char *object);

/* The tokens of blockIdx.x * blockDim.x + threadIdx.x at i, or 0: the parts may
   be changed over, and parts and the product have casts and parentheses, as in
   (size_t)blockIdx.x * blockDim.x + threadIdx.x. */
size_t cgl_token_place(const cgl_token *at, size_t count, size_t i,
                       cgl_place *place);

/* The same of a place with a cast, where nothing around it binds more; a number
   or a name may stand in it for blockDim.x. */
size_t cgl_token_cast_place(const cgl_token *at, size_t count, size_t i,
                            cgl_place *place);

/* Is a place all that the tokens are?  It may be cast as a whole, which counts
   as one of *place's casts. */
bool cgl_tokens_are_place(const cgl_token *at, size_t count, cgl_place *place);

/* Are they the number of the grid's threads along x? */
bool cgl_tokens_are_width(const cgl_token *at, size_t count);

/* Is a position along x among them, whole or in part, or what the thread draws?
   y and z are the same for a row. */
bool cgl_tokens_mention_place(const cgl_token *at, size_t count);

/* Is it a number or a pointer: what the language alone works on? */
bool cgl_parameter_is_plain(const cgl_parameter *parameter);

/* Fills in every chunk's own features. */
void cgl_reach_mark(cgl_program *program);

/* Finds the sums that no thread reads (sums.c). */
void cgl_reach_find_sums(cgl_program *program);

/* Is the token the atomicAdd of such a sum? */
bool cgl_program_is_sum(const cgl_program *program, const cgl_token *token);

/* Does the kernel add up rows of memory, and no more (rows.c)? */
bool cgl_program_adds_rows(const cgl_program *program,
                           const cgl_declared *kernel);

/* The features of all a chunk may reach; *others, when not NULL, takes those
   of what it reaches beside itself. */
unsigned cgl_reach_features(cgl_program *program, size_t chunk,
                            unsigned *others);

/* The nth declaration that introduces the name; false past the last. */
bool cgl_reach_chunk(const cgl_program *program, const cgl_token *name,
                     size_t nth, size_t *chunk);

/* Has the chunk another text of the template, for some of its arguments? */
bool cgl_reach_specialises(const cgl_program *program, size_t chunk,
                           const cgl_declared *kernel);

/* Might the token of a row be expanded where it is written again? */
bool cgl_program_expands(const cgl_program *program, const cgl_token *row,
                         size_t count, size_t i);

/* Does any declaration of the source introduce the name? */
bool cgl_reach_declares(const cgl_program *program, const cgl_token *name);

/* Sets the signature's loop when a grid-stride loop is all that the kernel
   does, and may run as a walk in steps of one.  It points into the source's own
   text. */
void cgl_program_find_loop(cgl_program *program, const cgl_declared *kernel,
                           const cgl_alias *aliases, cgl_arena *arena,
                           cgl_signature *signature);

/* Sets the signature's ends (ends.c).  They point into the source's own text.
   Returns 0, or -1 when memory ran out. */
int cgl_program_find_ends(cgl_program *program, const cgl_declared *kernel,
                          const cgl_alias *aliases, cgl_arena *arena,
                          cgl_signature *signature);

/* Appends the row's tokens, with cooperative groups as the barriers, intrinsics
   and places that they stand for, as far as they are understood.  Texts are
   taken from the arena.  Returns 0, or -1 without memory. */
int cgl_program_lower_groups(const cgl_tokens *from, cgl_arena *arena,
                             cgl_tokens *out);

#endif
