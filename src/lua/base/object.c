#include "lua/base/object.h"

#include <stdarg.h>
#include <string.h>

#include "lua/base/error.h"
#include "lua/base/limits.h"
#include "lua/base/names.h"

enum { DESCRIPTION_ROOM = 200 };

static const char *const type_names[] = {
#define X(noun) "cgraphlua." #noun,
    CGL_LUA_KINDS(X)
#undef X
};

const char cgl_lua_tags[CGL_LUA_KIND_COUNT];

const char cgl_lua_released_hint[] =
    "keep an object until its last use, or make a new one";


const char *cgl_lua_kind_name(cgl_lua_kind kind) {
  return type_names[kind] + sizeof "cgraphlua." - 1;
}


void cgl_lua_note_graph(lua_State *L, const cgl_lua *S, cgl_graph *graph) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->graphs_ref);
  lua_pushlightuserdata(L, graph);
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}


const char *cgl_lua_typename(lua_State *L, int index) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  return box ? type_names[box->tag - cgl_lua_tags] : luaL_typename(L, index);
}


void *cgl_lua_check(lua_State *L, cgl_lua *S, int index, cgl_lua_kind kind) {
  const cgl_lua_box *box = cgl_lua_box_of(L, index, kind);
  if (!box)
    cgl_lua_bad(L, S, index, "%s expected, got %s", type_names[kind],
                cgl_lua_typename(L, index));
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


/* The common functions have the type as upvalue 2. */
static const cgl_lua_type *upvalue_type(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(2));
}


/* For kinds whose type has no release. */
#define X(noun)                                                        \
  static int noun##_release(lua_State *L) {                            \
    return cgl_lua_release(L, CGL_LUA_##noun, #noun ":release", NULL); \
  }
CGL_LUA_KINDS(X)
#undef X

static const lua_CFunction common_releases[] = {
#define X(noun) noun##_release,
    CGL_LUA_KINDS(X)
#undef X
};


/* Also runs after the state has ended, so it does not enter. */
static int object_gc(lua_State *L) {
  const cgl_lua_type *type = upvalue_type(L);
  cgl_lua_box *box = cgl_lua_box_of(L, 1, type->kind);
  if (!box)
    return 0;
  void *object = box->object;
  box->object = NULL;
  if (type->collect && object)
    type->collect(L, lua_touserdata(L, lua_upvalueindex(1)), object);
  if (box->counted || box->charge)
    cgl_lua_limits_discount(lua_touserdata(L, lua_upvalueindex(1)), box);
  cgl_lua_drop(type->kind, object);
  return 0;
}


/* Two stream objects may stand for the same stream of the driver (the default
   stream, a borrowed stream). */
static int object_eq(lua_State *L) {
  const cgl_lua_kind kind = upvalue_type(L)->kind;
  const void *a = cgl_lua_peek(L, 1, kind), *b = cgl_lua_peek(L, 2, kind);
  bool same =
      a && b ? a == b || (kind == CGL_LUA_stream && cgl_stream_is_same(a, b))
             : lua_rawequal(L, 1, 2);
  lua_pushboolean(L, same);
  return 1;
}


static int object_tostring(lua_State *L) {
  const cgl_lua_type *type = upvalue_type(L);
  const cgl_lua_box *box = cgl_lua_box_of(L, 1, type->kind);
  if (!box)
    return luaL_error(L, "%s expected", type_names[type->kind]);
  char text[DESCRIPTION_ROOM] = "(released)";
  if (box->object)
    type->describe(box->object, text, sizeof text);
  lua_pushfstring(L, "%s %s", type_names[type->kind], text);
  cgl_lua_limits_hide_addresses(L, lua_touserdata(L, lua_upvalueindex(1)));
  return 1;
}


/* Raises a mistake in how the script uses an object, with the script's line. */
static int object_misused(lua_State *L, cgl_lua *S, const char *format, ...) {
  const char *where = cgl_lua_push_where(L, S);
  lua_pushstring(L, *where ? ": " : "");
  va_list args;
  va_start(args, format);
  lua_pushvfstring(L, format, args);
  va_end(args);
  lua_concat(L, 3);
  return lua_error(L);
}


static const char *noun_article(const char *noun) {
  return strchr("aeiou", *noun) ? "an" : "a";
}


int cgl_lua_unknown(lua_State *L, cgl_lua *S, const char *noun,
                    const char *const *fields, int methods) {
  if (lua_type(L, 2) != LUA_TSTRING)
    return object_misused(L, S, "%s %s cannot be indexed with a %s",
                          noun_article(noun), noun, luaL_typename(L, 2));
  cgl_lua_guess guess = {.name = lua_tostring(L, 2)};
  char text[CGL_LUA_GUESS_ROOM];
  for (const char *const *f = fields; f && *f; f++)
    cgl_lua_guess_try(&guess, *f);
  if (methods)
    cgl_lua_guess_try_keys(L, &guess, methods);
  return object_misused(L, S, "%s %s has no %s '%s'%s%s", noun_article(noun),
                        noun,
                        !methods ? "field"
                        : fields ? "method or field"
                                 : "method",
                        guess.name, S->limits ? " in a restricted state" : "",
                        cgl_lua_guess_text(&guess, text));
}


/* Called for names that are neither methods nor fields; index 1 is the object,
   or the table of its methods. */
static int object_unknown(lua_State *L) {
  const cgl_lua_type *type = upvalue_type(L);
  const char *noun = cgl_lua_kind_name(type->kind);
  cgl_lua *S = cgl_lua_enter(L, noun);
  if (lua_type(L, 2) == LUA_TNUMBER && type->elements)
    return object_misused(L, S, "%s %s cannot be indexed with a number: %s",
                          noun_article(noun), noun, type->elements);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->metatable_refs[type->kind]);
  lua_getfield(L, -1, "methods");
  return cgl_lua_unknown(L, S, noun, type->fields, lua_gettop(L));
}


/* Called by __index for names that are no methods. */
static int object_field(lua_State *L) {
  lua_settop(L, 2);
  const cgl_lua_type *type = upvalue_type(L);
  const char *noun = cgl_lua_kind_name(type->kind);
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  for (const char *const *f = type->fields; *f; f++) {
    if (strcmp(*f, name))
      continue;
    cgl_lua *S = cgl_lua_enter(L, noun);
    const cgl_lua_box *box = cgl_lua_box_of(L, 1, type->kind);
    if (!box)
      return object_misused(L, S, "%s expected, got %s", type_names[type->kind],
                            cgl_lua_typename(L, 1));
    if (!box->object)
      return cgl_lua_raise(L, S, CGL_ERROR_RELEASED, cgl_lua_released_hint,
                           "field '%s' of a %s that was released", name, noun);
    return type->field(L, box->object, name);
  }
  return object_unknown(L);
}


/* __newindex of the kinds that have no fields to assign. */
static int object_assign(lua_State *L) {
  const cgl_lua_type *type = upvalue_type(L);
  const char *noun = cgl_lua_kind_name(type->kind);
  cgl_lua *S = cgl_lua_enter(L, noun);
  if (lua_type(L, 2) == LUA_TNUMBER && type->elements)
    return object_misused(L, S, "%s %s cannot be assigned to by index: %s",
                          noun_article(noun), noun, type->elements);
  return object_misused(L, S, "%s %s has no fields to assign",
                        noun_article(noun), noun);
}


/* __call, for an object that scripts take for a function. */
static int object_called(lua_State *L) {
  const cgl_lua_type *type = upvalue_type(L);
  const char *noun = cgl_lua_kind_name(type->kind);
  return object_misused(L, cgl_lua_enter(L, noun),
                        "%s %s is not a function: %s", noun_article(noun), noun,
                        type->calls);
}


/* Methods first, then fields.  In Lua, where the lookup of a method is compiled
   away; the tail call leaves no frame of ours above the script's. */
static const char index_source[] = "local methods, field = ...\n"
                                   "return function(object, name)\n"
                                   "  local method = methods[name]\n"
                                   "  if method ~= nil then return method end\n"
                                   "  return field(object, name)\n"
                                   "end\n";


/* Pushes a function with the state and the type as upvalues. */
static void push_common(lua_State *L, lua_CFunction function,
                        const cgl_lua_type *type) {
  lua_pushvalue(L, 1);
  lua_pushlightuserdata(L, (void *)(uintptr_t)type);
  lua_pushcclosure(L, function, 2);
}


static void metatable_list_fields(lua_State *L, const char *const *fields) {
  lua_newtable(L);
  for (; fields && *fields; fields++) {
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, *fields);
  }
}


/* Pushes a copy of the metatable on top that finalizes nothing. */
static void metatable_push_released(lua_State *L) {
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


/* Adds what the metatable on top looks names up with. */
static void metatable_set_index(lua_State *L, const cgl_lua_type *type) {
  lua_newtable(L);
  cgl_lua_functions(L, type->methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "methods");
  if (type->fields) {
    if (luaL_loadbuffer(L, index_source, sizeof index_source - 1, "=cgraphlua"))
      lua_error(L);
    lua_insert(L, -2);
    push_common(L, object_field, type);
    lua_call(L, 2, 1);
  } else { /* a method that is there is found without a call */
    lua_createtable(L, 0, 1);
    push_common(L, object_unknown, type);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
  }
  lua_setfield(L, -2, "__index");
}


void cgl_lua_register(lua_State *L, cgl_lua *S, const cgl_lua_type *type) {
  lua_newtable(L);
  push_common(L, object_gc, type);
  lua_setfield(L, -2, "__gc");
  push_common(L, object_eq, type);
  lua_setfield(L, -2, "__eq");
  push_common(L, object_tostring, type);
  lua_setfield(L, -2, "__tostring");
  push_common(L, object_assign, type);
  lua_setfield(L, -2, "__newindex");
  if (type->calls) {
    push_common(L, object_called, type);
    lua_setfield(L, -2, "__call");
  }
  cgl_lua_set_text(L, "__metatable", type_names[type->kind]);
  if (type->metamethods)
    cgl_lua_functions(L, type->metamethods);
  metatable_list_fields(L, type->fields);
  lua_setfield(L, -2, "fields");
  metatable_set_index(L, type);
  lua_getfield(L, -1, "methods");
  lua_pushvalue(L, 1);
  lua_pushvalue(L, -3);
  metatable_push_released(L);
  lua_remove(L, -2);
  lua_pushcclosure(
      L, type->release ? type->release : common_releases[type->kind], 2);
  lua_setfield(L, -2, "release");
  lua_pop(L, 1);
  S->metatable_refs[type->kind] = luaL_ref(L, LUA_REGISTRYINDEX);
  if (type->functions)
    cgl_lua_functions(L, type->functions);
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
