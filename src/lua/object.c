/* Userdata that hold one core object: made, checked, compared, shown and
   released the same way for every kind. */
#include "lua/binding.h"

#include <string.h>

enum { DESCRIPTION_ROOM = 200 };

static const char *const names[] = {
#define X(noun) "cgraphlua." #noun,
    CGL_LUA_KINDS(X)
#undef X
};

const char cgl_lua_tags[CGL_LUA_KIND_COUNT];

const char cgl_lua_released_hint[] =
    "keep an object until its last use, or make a new one";


const char *cgl_lua_kind_name(cgl_lua_kind kind) {
  return names[kind] + sizeof "cgraphlua." - 1;
}


static inline void drop(cgl_lua_kind kind, void *object) {
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


void *cgl_lua_new(lua_State *L, cgl_lua *S, cgl_lua_kind kind) {
  cgl_lua_box *box = lua_newuserdata(L, sizeof *box);
  *box = (cgl_lua_box){.tag = &cgl_lua_tags[kind]};
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->metatable_refs[kind]);
  lua_setmetatable(L, -2);
  return &box->object;
}


bool cgl_lua_is(lua_State *L, int index, cgl_lua_kind kind) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  return box && box->tag == &cgl_lua_tags[kind];
}


const char *cgl_lua_typename(lua_State *L, int index) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  return box ? names[box->tag - cgl_lua_tags] : luaL_typename(L, index);
}


static int wrong_kind(lua_State *L, cgl_lua *S, int index, cgl_lua_kind kind) {
  return cgl_lua_bad(L, S, index, "%s expected, got %s", names[kind],
                     cgl_lua_typename(L, index));
}


void *cgl_lua_check(lua_State *L, cgl_lua *S, int index, cgl_lua_kind kind) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  if (!box || box->tag != &cgl_lua_tags[kind])
    wrong_kind(L, S, index, kind);
  if (box->object)
    return box->object;
  if (index == 1 && strchr(S->operation, ':'))
    cgl_lua_raise(L, S, CGL_ERROR_RELEASED, cgl_lua_released_hint,
                  "this %s was released", cgl_lua_kind_name(kind));
  cgl_lua_raise(L, S, CGL_ERROR_RELEASED, cgl_lua_released_hint,
                "argument %d %s a %s that was released",
                (S->blame ? S->blame : index) - !!strchr(S->operation, ':'),
                S->blame ? "has" : "is", cgl_lua_kind_name(kind));
  return NULL;
}


/* The common functions have the kind as upvalue 2. */
static cgl_lua_kind upvalue_kind(lua_State *L) {
  return (cgl_lua_kind)lua_tointeger(L, lua_upvalueindex(2));
}


/* The script lets go of what was at index 1 by hand; it is released already
   for callbacks that look there. */
static inline void retire(lua_State *L, cgl_lua *S, cgl_lua_kind kind,
                          void *object) {
  if (kind == CGL_LUA_graph)
    cgl_lua_bury(L, S, object, false);
  else if (kind == CGL_LUA_buffer && object) {
    if (cgl_buffer_is_kept(object))
      cgl_lua_site(L, S); /* which a liveness check will tell */
    cgl_buffer_retire(object);
  } else if (kind == CGL_LUA_pinned && object) {
    cgl_lua_site(L, S);
    cgl_pinned_retire(object);
  }
}


/* Upvalue 2: the metatable of what is released.  Nothing is left to finalize
   then, which the collector takes long for. */
static inline int release(lua_State *L, cgl_lua_kind kind,
                          const char *operation) {
  cgl_lua *S = cgl_lua_enter(L, operation);
  cgl_lua_box *box = cgl_lua_box_at(L, 1);
  if (!box || box->tag != &cgl_lua_tags[kind])
    return wrong_kind(L, S, 1, kind);
  void *object = box->object;
  box->object = NULL;
  retire(L, S, kind, object);
  drop(kind, object);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_setmetatable(L, 1);
  return 0;
}


/* One of each kind, because buffers by the million are released by hand. */
#define X(noun)                                          \
  static int noun##_release(lua_State *L) {              \
    return release(L, CGL_LUA_##noun, #noun ":release"); \
  }
CGL_LUA_KINDS(X)
#undef X

static const lua_CFunction releases[] = {
#define X(noun) noun##_release,
    CGL_LUA_KINDS(X)
#undef X
};


/* Also runs after the state has ended, so it does not enter. */
static int object_gc(lua_State *L) {
  cgl_lua_kind kind = upvalue_kind(L);
  if (!cgl_lua_is(L, 1, kind))
    return 0;
  void **slot = lua_touserdata(L, 1);
  void *object = *slot;
  *slot = NULL;
  if (kind == CGL_LUA_graph)
    cgl_lua_bury(L, lua_touserdata(L, lua_upvalueindex(1)), object, true);
  drop(kind, object);
  return 0;
}


/* One stream of the driver may have several objects (the default stream, a
   borrowed one). */
static bool same_stream(const cgl_stream *a, const cgl_stream *b) {
  return cgl_stream_is_same(a, b);
}


static int object_eq(lua_State *L) {
  cgl_lua_kind kind = upvalue_kind(L);
  bool same = cgl_lua_is(L, 1, kind) && cgl_lua_is(L, 2, kind);
  if (same) {
    void *const *a = lua_touserdata(L, 1), *const *b = lua_touserdata(L, 2);
    same = a == b || (*a && *a == *b) ||
           (*a && *b && kind == CGL_LUA_stream && same_stream(*a, *b));
  }
  lua_pushboolean(L, same);
  return 1;
}


/* Upvalue 3: the type's cgl_lua_type. */
static int object_tostring(lua_State *L) {
  cgl_lua_kind kind = upvalue_kind(L);
  const cgl_lua_type *type = lua_touserdata(L, lua_upvalueindex(3));
  if (!cgl_lua_is(L, 1, kind))
    return luaL_error(L, "%s expected", names[kind]);
  void *object = *(void **)lua_touserdata(L, 1);
  if (!object) {
    lua_pushfstring(L, "%s (released)", names[kind]);
    return 1;
  }
  char text[DESCRIPTION_ROOM] = "";
  type->describe(object, text, sizeof text);
  lua_pushfstring(L, "%s %s", names[kind], text);
  return 1;
}


/* What is no method; upvalue 3 as above. */
static int object_field(lua_State *L) {
  lua_settop(L, 2);
  lua_pushnil(L);
  if (lua_type(L, 2) != LUA_TSTRING)
    return 1;
  cgl_lua_kind kind = upvalue_kind(L);
  const cgl_lua_type *type = lua_touserdata(L, lua_upvalueindex(3));
  const char *name = lua_tostring(L, 2);
  for (const char *const *f = type->fields; *f; f++) {
    if (strcmp(*f, name))
      continue;
    cgl_lua *S = cgl_lua_enter(L, cgl_lua_kind_name(kind));
    void *object = *(void **)lua_touserdata(L, 1);
    if (!object)
      return cgl_lua_raise(L, S, CGL_ERROR_RELEASED, cgl_lua_released_hint,
                           "field '%s' of a %s that was released", name,
                           cgl_lua_kind_name(kind));
    return type->field(L, S, object, name);
  }
  return 1;
}


/* Methods first, then fields.  In Lua, because a method's lookup is compiled
   away there; the tail call leaves no frame of ours above the script's. */
static const char index_source[] = "local methods, field = ...\n"
                                   "return function(object, name)\n"
                                   "  local method = methods[name]\n"
                                   "  if method ~= nil then return method end\n"
                                   "  return field(object, name)\n"
                                   "end\n";


static void common_function(lua_State *L, lua_CFunction function, int kind,
                            const cgl_lua_type *type, const char *name) {
  lua_pushvalue(L, 1); /* the state */
  lua_pushinteger(L, kind);
  lua_pushlightuserdata(L, (void *)(uintptr_t)type);
  lua_pushcclosure(L, function, 3);
  lua_setfield(L, -2, name);
}


static void list_fields(lua_State *L, const char *const *fields) {
  lua_newtable(L);
  for (; fields && *fields; fields++) {
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, *fields);
  }
}


/* Pushes a copy of the metatable on top that finalizes nothing. */
static void push_released(lua_State *L) {
  lua_newtable(L);
  lua_pushnil(L);
  while (lua_next(L, -3)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4);
  }
  lua_pushnil(L);
  lua_setfield(L, -2, "__gc");
}


void cgl_lua_register(lua_State *L, cgl_lua *S, cgl_lua_kind kind,
                      const cgl_lua_type *type) {
  lua_newtable(L); /* the metatable */
  common_function(L, object_gc, kind, type, "__gc");
  common_function(L, object_eq, kind, type, "__eq");
  common_function(L, object_tostring, kind, type, "__tostring");
  lua_pushstring(L, names[kind]);
  lua_setfield(L, -2, "__metatable");
  if (type->metamethods)
    cgl_lua_functions(L, type->metamethods);
  list_fields(L, type->fields);
  lua_setfield(L, -2, "fields");
  lua_newtable(L); /* the methods */
  cgl_lua_functions(L, type->methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "methods");
  if (type->fields) {
    if (luaL_loadbuffer(L, index_source, sizeof index_source - 1, "=cgraphlua"))
      lua_error(L);
    lua_insert(L, -2);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, kind);
    lua_pushlightuserdata(L, (void *)(uintptr_t)type);
    lua_pushcclosure(L, object_field, 3);
    lua_call(L, 2, 1);
  }
  lua_setfield(L, -2, "__index");
  lua_getfield(L, -1, "methods");
  lua_pushvalue(L, 1);
  lua_pushvalue(L, -3);
  push_released(L);
  lua_remove(L, -2);
  lua_pushcclosure(L, releases[kind], 2);
  lua_setfield(L, -2, "release");
  lua_pop(L, 1);
  S->metatable_refs[kind] = luaL_ref(L, LUA_REGISTRYINDEX);
}


void cgl_lua_methods(lua_State *L, cgl_lua *S, cgl_lua_kind kind,
                     const luaL_Reg *methods) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->metatable_refs[kind]);
  lua_getfield(L, -1, "methods");
  cgl_lua_functions(L, methods);
  lua_pop(L, 2);
}


void cgl_lua_functions(lua_State *L, const luaL_Reg *functions) {
  lua_pushvalue(L, 1);
  luaL_setfuncs(L, functions, 1);
}
