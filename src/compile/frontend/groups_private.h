/* Cooperative groups as they are read: what groups.c, which knows groups by
   their names, and members.c, which writes what they are asked for, share. */
#ifndef CGL_COMPILE_GROUPS_PRIVATE_H
#define CGL_COMPILE_GROUPS_PRIVATE_H

#include "compile/frontend/program.h"

enum {
  MOST_GROUPS = 64,
  MOST_PASSED = 200,
  MOST_NAMES = 8,
  MOST_TEXT = 400,
  MOST_READINGS = 5
};

/* ACTIVE: the lanes that come together.  ANY: one of the others, that what it
   is made from or calls tell. */
typedef enum group_kind { NO_GROUP, BLOCK, TILE, GRID, ACTIVE, ANY } group_kind;

typedef struct group {
  const cgl_token *name;
  group_kind kind;
  char size[64]; /* of a tile; the name of what has the lanes of ACTIVE */
  bool of_block; /* a tile of the block */
  bool wide;     /* a thread_group, which counts in 64 bits */
  bool type;     /* the name is that of the group's type */
  size_t depth;  /* of the braces around what it is declared in */
} group;

/* A group that is an argument, as the tokens from `first` to `end`. */
typedef struct passed {
  size_t first, end;
  group group;
} passed;

/* What one reading tells the next one. */
typedef struct facts {
  passed passed[MOST_PASSED];
  size_t n;
  bool full;   /* or more of them */
  bool nested; /* a tile may be of another group than the block */
} facts;

typedef struct reading {
  const cgl_token *at;
  size_t count, i;
  size_t depth, parens;
  bool open;                          /* using namespace cooperative_groups */
  const cgl_token *names[MOST_NAMES]; /* of the namespace */
  const cgl_token *used[MOST_NAMES];  /* those in it that `using` names */
  size_t nnames, nused;
  group groups[MOST_GROUPS];
  size_t n;
  bool full; /* a group is not known: nothing is understood */
  const facts *known;
  facts *seen;
  cgl_arena *arena;
  cgl_tokens *out;
} reading;

/* ---- groups.c ---- */

/* Is token i the word? */
bool cgl_groups_is(const reading *r, size_t i, const char *word);

/* Writes the text's tokens on the line of another. */
void cgl_groups_emit(reading *r, const char *text, const cgl_token *like);

/* The token behind the namespace's name at i: i itself where names of it may
   stand alone, or where nothing but a call's arguments may tell. */
size_t cgl_groups_behind(const reading *r, size_t i);
bool cgl_groups_stands_alone(const reading *r, size_t i);

/* Past the group at i, or 0. */
size_t cgl_groups_read(const reading *r, size_t i, group *g);

/* Reads the tokens up to the end. */
void cgl_groups_read_on(reading *r, size_t end);

/* ---- members.c ---- */

/* The comma behind the argument at i, or the end. */
size_t cgl_groups_argument_end(const reading *r, size_t i, size_t end);

/* Writes what the group's member at i stands for; false: it is no such. */
bool cgl_groups_put_member(reading *r, const group *g, size_t i);

/* Is the name at i behind a type, as that of what is declared?  Is the name
   declared anywhere? */
bool cgl_groups_is_behind_type(const reading *r, size_t i);
bool cgl_groups_is_declared(const reading *r, const cgl_token *name);

/* sync(group), thread_rank(group), reduce(tile, value, operator) */
bool cgl_groups_put_call(reading *r);

#endif
