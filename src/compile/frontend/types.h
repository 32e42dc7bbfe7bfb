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

enum {
  CGL_FIELD_DIMS = 3,   /* of an array in a struct */
  CGL_FIELDS_MOST = 256 /* of a parameter; a struct with more has none */
};

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

/* A member of a struct that a parameter passes by value.  The reader gives
   name, type and nesting; all else is 0 until the compiler tells it. */
typedef struct cgl_field {
  char *name;
  char *type;                       /* as spelled, an array's of its elements */
  cgl_kind kind;                    /* of the value, or of each element */
  uint8_t lanes;                    /* 1, or 2..4 for float4 and its like */
  uint8_t pointer;                  /* holds an address */
  uint32_t offset;                  /* in the struct that declares the field */
  uint32_t size;                    /* bytes of the value, or of each element */
  uint32_t extents[CGL_FIELD_DIMS]; /* of an array, outermost first; then 0 */
  uint32_t nested; /* fields of a struct: they follow, with their own nested */
} cgl_field;

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
  cgl_field *fields;  /* of a struct of plain data by value, else NULL */
  uint32_t nfields;   /* nested ones counted */
  const struct cgl_alias *record; /* of a struct by value; the program's */
} cgl_parameter;

typedef struct cgl_alias {
  cgl_token name;
  const cgl_token *at; /* what it stands for; borrows the program's tokens */
  size_t count;
  bool record;                   /* a struct, class or union of the source */
  const cgl_token *body;         /* of a struct that may be plain, else NULL */
  size_t nbody;                  /* between the braces */
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

/* Reads the fields of a parameter's struct.  The parameter is left without when
   the struct has a member that this reader does not know.  Returns 0, or -1
   when memory ran out. */
int cgl_fields_read(cgl_arena *arena, cgl_parameter *parameter);

/* Is the token a word that is part of a type or qualify it, and so cannot be
   the name of a parameter? */
bool cgl_token_is_type_word(const cgl_token *token);

/* Is the token a word of a declaration that is followed by arguments, as
   alignas is, and is no function? */
bool cgl_token_takes_arguments(const cgl_token *token);

/* Does the language or CUDA name a type so? */
bool cgl_token_is_known_type(const cgl_token *token);

/* Does the token name where a thread stands, or among how many? */
bool cgl_token_is_position(const cgl_token *token);

/* Does the token name a random draw of device_random.h? */
bool cgl_token_is_draw(const cgl_token *token);

/* The index past the bracket that closes the one at `i` (any of ( [ {), or
   `count`. */
size_t cgl_tokens_close(const cgl_token *at, size_t count, size_t i);

/* The same for a template's `<`; `>>` closes two. */
size_t cgl_tokens_close_angle(const cgl_token *at, size_t count, size_t i);

/* The index past what begins at `i` in an expression: brackets, a name with its
   template's arguments that is called, one token. */
size_t cgl_tokens_past(const cgl_token *at, size_t count, size_t i);

/* The index of the comma that ends the list element at `i`, or `count`. */
size_t cgl_tokens_element_end(const cgl_token *at, size_t count, size_t i);

#endif
