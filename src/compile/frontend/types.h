/* The types a kernel parameter may have, read from its declaration.
   What is known about a type is what an argument check needs: the kind of
   the value or of what a pointer points to, how many lanes a vector type
   has, whether the pointee may be written.  A name the reader does not know
   is CGL_KIND_STRUCT when the source declares it as one, else
   CGL_KIND_UNKNOWN; sizes are then 0 and the driver must be asked.
   Invariant: reading follows aliases (typedef, using, template arguments)
   to a bounded depth, so a circular alias ends as CGL_KIND_UNKNOWN. */
#ifndef CGL_COMPILE_TYPES_H
#define CGL_COMPILE_TYPES_H

#include "compile/frontend/lex.h"
#include "compile/base/base.h"

#define CGL_PHILOX_BYTES 32 /* of a cgl_philox, see device_random.h */

/* X(constant, word for messages, bytes of one element) */
#define CGL_KINDS(X)                                 \
  X(CGL_KIND_UNKNOWN, "unknown", 0)                  \
  X(CGL_KIND_VOID, "void", 1)                        \
  X(CGL_KIND_BOOL, "bool", 1)                        \
  X(CGL_KIND_INT8, "int8", 1)                        \
  X(CGL_KIND_UINT8, "uint8", 1)                      \
  X(CGL_KIND_INT16, "int16", 2)                      \
  X(CGL_KIND_UINT16, "uint16", 2)                    \
  X(CGL_KIND_INT32, "int32", 4)                      \
  X(CGL_KIND_UINT32, "uint32", 4)                    \
  X(CGL_KIND_INT64, "int64", 8)                      \
  X(CGL_KIND_UINT64, "uint64", 8)                    \
  X(CGL_KIND_HALF, "half", 2)                        \
  X(CGL_KIND_BFLOAT16, "bfloat16", 2)                \
  X(CGL_KIND_FLOAT, "float", 4)                      \
  X(CGL_KIND_DOUBLE, "double", 8)                    \
  X(CGL_KIND_PHILOX, "cgl_philox", CGL_PHILOX_BYTES) \
  X(CGL_KIND_STRUCT, "struct", 0)

typedef enum cgl_kind {
#define X(constant, word, bytes) constant,
  CGL_KINDS(X)
#undef X
      CGL_KIND_COUNT
} cgl_kind;

typedef struct cgl_parameter {
  char *type;         /* as spelled, without the name */
  char *name;         /* "" when it is unnamed */
  cgl_kind kind;      /* of the value, or of what the pointer points to */
  uint8_t lanes;      /* 1, or 2..4 for float4 and its like */
  uint8_t pointer;    /* levels of indirection; 0 is a value */
  uint8_t readonly;   /* the pointee is const */
  uint8_t restricted; /* __restrict__ */
  uint32_t size;      /* bytes of the parameter, 0 when unknown */
  uint32_t align;     /* its alignment, 0 when unknown */
  uint32_t element;   /* bytes of the pointee or value, 0 when unknown */
} cgl_parameter;

typedef struct cgl_alias {
  cgl_token name;
  const cgl_token *at; /* what it stands for; borrows the program's tokens */
  size_t count;
  bool record;                   /* a struct, class or union of the source */
  bool enumeration;              /* an enum of the source */
  const struct cgl_alias *outer; /* the next one to look at */
} cgl_alias;

/* The word of a kind ("float", "int32"). */
const char *cgl_kind_word(cgl_kind kind);

/* Bytes of one element of a kind, 0 when unknown. */
uint32_t cgl_kind_size(cgl_kind kind);

/* Reads one parameter declaration; strings come from `arena`.  Returns 0,
   or -1 when memory ran out. */
int cgl_parameter_read(const cgl_alias *aliases, const cgl_token *at,
                       size_t count, cgl_arena *arena, cgl_parameter *out);

/* Is the token a word that is part of a type or qualify it, and so cannot be
   the name of a parameter? */
bool cgl_token_is_type_word(const cgl_token *token);

/* Does the token name where a thread stands, or among how many? */
bool cgl_token_is_position(const cgl_token *token);

/* Does the token name a random draw of device_random.h? */
bool cgl_token_is_draw(const cgl_token *token);

/* The index past the bracket that closes the one at `i` (any of ( [ {), or
   `count`. */
size_t cgl_tokens_close(const cgl_token *at, size_t count, size_t i);

/* The same for a template's `<`; `>>` closes two. */
size_t cgl_tokens_close_angle(const cgl_token *at, size_t count, size_t i);

#endif
