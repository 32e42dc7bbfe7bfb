/* Userdata that hold a reference to one core object: made, checked, compared,
   shown and released the same way for every kind. */
#ifndef CGL_LUA_OBJECT_H
#define CGL_LUA_OBJECT_H

#include "lua/base/base.h"
#include "lua/base/call.h"

/* The memory of a userdata.  The tag tells the kind in fewer calls of Lua's
   API than a metatable does; userdata of other modules hold no such address. */
typedef struct cgl_lua_box {
  void *object;    /* NULL: released */
  const char *tag; /* &cgl_lua_tags[kind] */
  uint8_t mark;    /* the kind's own; 0 at first */
  bool hooked;     /* a graph: has an environment of its own; graph/endings.c */
  bool counted;    /* among a restricted state's objects; limits.h */
  uint32_t charge; /* to its limits: nodes of a graph, pages of pinned memory */
} cgl_lua_box;

extern const char cgl_lua_tags[CGL_LUA_KIND_COUNT];

/* What the metatable of a kind is built from. */
typedef struct cgl_lua_type {
  cgl_lua_kind kind;
  lua_CFunction release;   /* on cgl_lua_release; NULL: the common function */
  const luaL_Reg *methods; /* beyond release */
  const luaL_Reg *metamethods; /* beyond the common, or NULL */
  const luaL_Reg *functions;   /* of the module, or NULL */
  /* Pushes the value of a field and returns 1; NULL: only methods. */
  int (*field)(lua_State *L, void *object, const char *name);
  const char *const *fields; /* names that `field` knows, or NULL */
  const char *elements;      /* how a script reaches elements, or NULL */
  const char *calls; /* what a script calls instead of the object, or NULL */
  /* Writes what tostring shows after the type's name. */
  void (*describe)(void *object, char *text, size_t room);
  /* Runs before the collector drops an object's reference; may be NULL. */
  void (*collect)(lua_State *L, cgl_lua *S, void *object);
} cgl_lua_type;

/* Adds functions to the table on top; each gets the state as upvalue 1. */
void cgl_lua_functions(lua_State *L, const luaL_Reg *functions);
/* Raises "a NOUN has no method 'x'; did you mean 'y'?" for the key at 2: the
   names that there are stand in `fields` (or NULL) and in the table `methods`
   (or 0). */
int cgl_lua_unknown(lua_State *L, cgl_lua *S, const char *noun,
                    const char *const *fields, int methods);
/* Builds the metatable of the type, and adds the type's functions to the
   module's table, which is on top of the stack; the state's userdata is at
   index 1. */
void cgl_lua_register(lua_State *L, cgl_lua *S, const cgl_lua_type *type);
/* Adds methods to a kind that is registered. */
void cgl_lua_methods(lua_State *L, cgl_lua *S, cgl_lua_kind kind,
                     const luaL_Reg *methods);

const char *cgl_lua_kind_name(cgl_lua_kind kind);
/* What a message calls a value: "cgraphlua.buffer", or Lua's own word. */
const char *cgl_lua_typename(lua_State *L, int index);
/* What to do instead of using a released object. */
extern const char cgl_lua_released_hint[];

/* In a restricted state (limits.c): notes a new userdata, or raises; gives back
   what an ended one has noted. */
void cgl_lua_limits_count(lua_State *L, cgl_lua *S, cgl_lua_box *box);
void cgl_lua_limits_discount(cgl_lua *S, cgl_lua_box *box);

/* Pushes a userdata without an object; the caller puts a reference into the
   slot.  Inline, because scripts make buffers by the million. */
static inline void *cgl_lua_new(lua_State *L, cgl_lua *S, cgl_lua_kind kind) {
  cgl_lua_box *box = lua_newuserdata(L, sizeof *box);
  *box = (cgl_lua_box){.tag = &cgl_lua_tags[kind]};
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->metatable_refs[kind]);
  lua_setmetatable(L, -2);
  if (S->limits)
    cgl_lua_limits_count(L, S, box);
  return &box->object;
}
/* Notes the userdata on top as the graph's in this state. */
void cgl_lua_note_graph(lua_State *L, const cgl_lua *S, cgl_graph *graph);
/* The object of a userdata; raises for another type or a released object. */
void *cgl_lua_check(lua_State *L, cgl_lua *S, int index, cgl_lua_kind kind);

/* The memory of a userdata of ours; NULL for any other value. */
static inline cgl_lua_box *cgl_lua_box_at(lua_State *L, int index) {
  cgl_lua_box *box = lua_touserdata(L, index);
  /* In this order: the length of a number would make it a string. */
  if (!box || lua_objlen(L, index) != sizeof *box)
    return NULL;
  uintptr_t kind = (uintptr_t)box->tag - (uintptr_t)cgl_lua_tags;
  return kind < CGL_LUA_KIND_COUNT ? box : NULL;
}

/* The memory of a userdata of this kind, released or not; else NULL. */
static inline cgl_lua_box *cgl_lua_box_of(lua_State *L, int index,
                                          cgl_lua_kind kind) {
  cgl_lua_box *box = cgl_lua_box_at(L, index);
  return box && box->tag == &cgl_lua_tags[kind] ? box : NULL;
}

/* The object of a userdata of this kind; else NULL. */
static inline void *cgl_lua_peek(lua_State *L, int index, cgl_lua_kind kind) {
  const cgl_lua_box *box = cgl_lua_box_of(L, index, kind);
  return box ? box->object : NULL;
}

/* Is the value of this kind, released or not? */
static inline bool cgl_lua_is(lua_State *L, int index, cgl_lua_kind kind) {
  return cgl_lua_box_of(L, index, kind);
}

/* Both of the above by name: cgl_lua_check_buffer, cgl_lua_new_buffer. */
#define X(noun)                                                             \
  static inline cgl_##noun *cgl_lua_check_##noun(lua_State *L, cgl_lua *S,  \
                                                 int index) {               \
    return cgl_lua_check(L, S, index, CGL_LUA_##noun);                      \
  }                                                                         \
  static inline cgl_##noun **cgl_lua_new_##noun(lua_State *L, cgl_lua *S) { \
    return cgl_lua_new(L, S, CGL_LUA_##noun);                               \
  }
CGL_LUA_KINDS(X)
#undef X

/* Drops a reference. */
static inline void cgl_lua_drop(cgl_lua_kind kind, void *object) {
  switch (kind) {
#define X(noun)                   \
  case CGL_LUA_##noun:            \
    cgl_##noun##_release(object); \
    break;
    CGL_LUA_KINDS(X)
#undef X
  case CGL_LUA_KIND_COUNT:
    break;
  }
}

/* The method `release` of a kind; inline, because scripts release buffers by
   the million.  `retire`, or NULL, runs before the reference is dropped; for
   callbacks in it the userdata is released already.  Upvalue 2 is the
   metatable of released userdata: it has no __gc, which costs the collector
   time. */
static inline int
cgl_lua_release(lua_State *L, cgl_lua_kind kind, const char *operation,
                void (*retire)(lua_State *L, cgl_lua *S, void *object)) {
  cgl_lua *S = cgl_lua_enter(L, operation);
  cgl_lua_box *box = cgl_lua_box_of(L, 1, kind);
  if (!box) {
    cgl_lua_check(L, S, 1, kind); /* raises */
    return 0;
  }
  void *object = box->object;
  box->object = NULL;
  if (retire && object)
    retire(L, S, object);
  if (box->counted || box->charge)
    cgl_lua_limits_discount(S, box);
  cgl_lua_drop(kind, object);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_setmetatable(L, 1);
  return 0;
}

#endif
