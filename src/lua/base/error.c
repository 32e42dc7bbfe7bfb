#include "lua/base/error.h"

#include <stdarg.h>
#include <string.h>

#include "compile/base/base.h"
#include "lua/base/call.h"
#include "lua/base/limits.h"
#include "lua/base/object.h"

enum {
  TEXT_ROOM = 512,
  OUT_OF_MEMORY = 2,  /* CUDA_ERROR_OUT_OF_MEMORY */
  FIRST_STICKY = 700, /* CUDA_ERROR_ILLEGAL_ADDRESS */
  LAST_STICKY = 719   /* CUDA_ERROR_LAUNCH_FAILED */
};


/* What an error object has. */
static const char *const error_fields[] = {
    "name", "code", "operation", "where", "message", "hint", "also", NULL};


/* __index: a name that the object does not have. */
static int error_unknown(lua_State *L) {
  lua_settop(L, 2);
  return cgl_lua_unknown(L, cgl_lua_enter(L, "error"), "error object",
                         error_fields, 0);
}


/* Pushes a field of the error object at 1; "" when it is no text. */
static const char *error_field(lua_State *L, const char *name) {
  lua_pushstring(L, name);
  lua_rawget(L, 1);
  const char *text = lua_tostring(L, -1);
  return text ? text : "";
}


static int error_tostring(lua_State *L) {
  if (!lua_istable(L, 1))
    return luaL_error(L, "an error object is a table");
  lua_settop(L, 1);
  const char *where = error_field(L, "where"), *name = error_field(L, "name");
  const char *operation = error_field(L, "operation");
  const char *message = error_field(L, "message");
  const char *hint = error_field(L, "hint"), *also = error_field(L, "also");
  const char *code = error_field(L, "code");
  lua_pushfstring(L, "%s%s%s%s%s [%s %s]%s%s%s%s", where, *where ? ": " : "",
                  operation, *operation ? ": " : "", message, name, code,
                  *hint ? "\n  hint: " : "", hint, *also ? "\n  then: " : "",
                  also);
  return 1;
}


/* Scripts join error values to strings. */
static int error_concat(lua_State *L) {
  lua_settop(L, 2);
  for (int i = 1; i <= 2; i++) {
    if (luaL_callmeta(L, i, "__tostring"))
      lua_replace(L, i);
  }
  lua_concat(L, 2);
  return 1;
}


/* Pushes the text of the error object at `index`. */
static void error_push_text(lua_State *L, int index) {
  lua_pushvalue(L, index);
  lua_pushcfunction(L, error_tostring);
  lua_insert(L, -2);
  lua_call(L, 1, 1);
}


void cgl_lua_error_open(lua_State *L, cgl_lua *S) {
  lua_createtable(L, 0, 4);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, error_unknown, 1);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, error_tostring);
  lua_setfield(L, -2, "__tostring");
  lua_pushcfunction(L, error_concat);
  lua_setfield(L, -2, "__concat");
  cgl_lua_set_text(L, "__metatable", "cgraphlua.error");
  S->error_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushboolean(L, false);
  S->last_error_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}


static const char stream_hint[] =
    "look for loops that do not end and for sizes past a buffer's end; the "
    "stream runs nothing more until the host gives the state its time anew";


/* A failure of a kernel, which stays with a restricted state's stream. */
static bool error_is_stream(const cgl_lua *S, const cgl_error *error) {
  return S->limits && error->code >= FIRST_STICKY && error->code <= LAST_STICKY;
}


/* Sets a text of the table on top; a restricted state sees no address. */
static void error_set(lua_State *L, const cgl_lua *S, const char *name,
                      const char *text) {
  lua_pushstring(L, text);
  cgl_lua_limits_hide_addresses(L, S);
  lua_setfield(L, -2, name);
}


/* The pool's own words list what others have. */
static void error_set_memory(lua_State *L, const cgl_lua *S) {
  lua_pushfstring(L,
                  "restricted: the state may have %f device_bytes, or the "
                  "device has no more",
                  (lua_Number)S->limits->most.device_bytes);
  lua_setfield(L, -2, "message");
  cgl_lua_set_text(L, "hint",
                   "release what is not needed, or ask the host for more");
}


static void error_push(lua_State *L, cgl_lua *S, const cgl_error *error) {
  lua_createtable(L, 0, 7);
  cgl_lua_set_text(L, "name", error->name);
  cgl_lua_set_number(L, "code", error->code);
  cgl_lua_set_text(L, "operation",
                   *error->operation ? error->operation : S->operation);
  error_set(L, S, "hint",
            error_is_stream(S, error) ? stream_hint : error->hint);
  error_set(L, S, "message", error->message);
  error_set(L, S, "also", error->also);
  if (S->limits && error->code == OUT_OF_MEMORY)
    error_set_memory(L, S);
  if (*error->where)
    lua_pushstring(L, error->where);
  else
    cgl_lua_push_where(L, S);
  lua_setfield(L, -2, "where");
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->error_ref);
  lua_setmetatable(L, -2);
}


/* Pushes the error object, which becomes the state's last. */
static void error_note(lua_State *L, cgl_lua *S, const cgl_error *error) {
  error_push(L, S, error);
  lua_pushvalue(L, -1);
  lua_rawseti(L, LUA_REGISTRYINDEX, S->last_error_ref);
}


/* Raises the error object on top, or its text. */
static int error_raise(lua_State *L, const cgl_lua *S) {
  if (S->string_errors)
    error_push_text(L, -1);
  return lua_error(L);
}


int cgl_lua_fail(lua_State *L, cgl_lua *S) {
  error_note(L, S, cgl_last_error());
  if (S->nmessages)
    cgl_lua_log_deliver(L, S);
  return error_raise(L, S);
}


/* Adds to the `also` of the error object on top. */
static void error_add_also(lua_State *L, const cgl_error *error) {
  lua_pushliteral(L, "also");
  lua_rawget(L, -2);
  const char *former = lua_tostring(L, -1);
  former = former ? former : "";
  lua_pushfstring(L, "%s%s%s: %s [%s %d]%s%s", former, *former ? "; " : "",
                  error->operation, error->message, error->name, error->code,
                  *error->also ? "; " : "", error->also);
  lua_setfield(L, -3, "also");
  lua_pop(L, 1);
}


static bool error_is_object(lua_State *L, const cgl_lua *S) {
  if (!lua_istable(L, -1) || !lua_getmetatable(L, -1))
    return false;
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->error_ref);
  bool is = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return is;
}


/* Puts the state's last error object in the place of its text on top; false
   when another value is there. */
static bool error_restore_object(lua_State *L, const cgl_lua *S) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->last_error_ref);
  if (!S->string_errors || !lua_istable(L, -1)) {
    lua_pop(L, 1);
    return false;
  }
  error_push_text(L, -1);
  bool is = lua_rawequal(L, -1, -3);
  lua_pop(L, 1);
  if (is)
    lua_replace(L, -2);
  else
    lua_pop(L, 1);
  return is;
}


void cgl_lua_also(lua_State *L, cgl_lua *S) {
  const cgl_error *error = cgl_last_error();
  if (error_is_object(L, S)) {
    error_add_also(L, error);
    return;
  }
  if (error_restore_object(L, S)) {
    error_add_also(L, error);
    error_push_text(L, -1);
    lua_replace(L, -2);
    return;
  }
  lua_pushfstring(L, "%s: %s [%s %d]", error->operation, error->message,
                  error->name, error->code);
  cgl_lua_log(L, S, CGL_LOG_ERROR, lua_tostring(L, -1));
  lua_pop(L, 1);
}


int cgl_lua_raise(lua_State *L, cgl_lua *S, cgl_status code, const char *hint,
                  const char *format, ...) {
  char message[TEXT_ROOM];
  va_list args;
  va_start(args, format);
  cgl_format_into(message, sizeof message, format, args);
  va_end(args);
  cgl_error error = {.code = code,
                     .name = cgl_status_name(code),
                     .operation = S->operation,
                     .where = "",
                     .message = message,
                     .hint = hint,
                     .also = ""};
  error_note(L, S, &error);
  return error_raise(L, S);
}


/* Is argument 1 the module's table, as after cg:buffer(...)? */
static bool is_module(lua_State *L) {
  if (!lua_istable(L, 1))
    return false;
  lua_pushliteral(L, "is_current_stream_capturing");
  lua_rawget(L, 1);
  bool is = lua_iscfunction(L, -1);
  lua_pop(L, 1);
  return is;
}


/* Pushes what cgl_lua_bad raises, without the script's line. */
static void bad_push_text(lua_State *L, const cgl_lua *S, int index,
                          const char *message) {
  const char *method = strchr(S->operation, ':');
  if (S->blame && S->blamed)
    message = lua_pushfstring(L, "%s: %s", S->blamed, message);
  if (method && index == 1)
    lua_pushfstring(L,
                    "calling '%s' on bad self (%s; write object:%s(...), with "
                    "':' instead of '.')",
                    S->operation, message, method + 1);
  else if (!method && is_module(L))
    lua_pushfstring(L, "calling '%s' with ':' (write cg.%s(...), with '.')",
                    S->operation, S->operation);
  else
    lua_pushfstring(L, "bad argument #%d to '%s' (%s)",
                    method ? index - 1 : index, S->operation, message);
}


int cgl_lua_bad(lua_State *L, cgl_lua *S, int index, const char *format, ...) {
  char message[TEXT_ROOM];
  va_list args;
  va_start(args, format);
  cgl_format_into(message, sizeof message, format, args);
  va_end(args);
  bad_push_text(L, S, S->blame ? S->blame : index, message);
  cgl_error error = {.code = CGL_ERROR_INVALID_ARGUMENT,
                     .name = cgl_status_name(CGL_ERROR_INVALID_ARGUMENT),
                     .operation = S->operation,
                     .where = "",
                     .message = lua_tostring(L, -1),
                     .hint = "",
                     .also = ""};
  error_note(L, S, &error);
  lua_pop(L, 1);
  lua_pushstring(L, *cgl_lua_push_where(L, S) ? ": " : "");
  lua_pushvalue(L, -3);
  lua_concat(L, 3);
  return lua_error(L);
}
