/* Structs of kernels and parameters from tables, and back.
   The layout is the kernel's or the parameter's (cgl_kernel_field,
   cgl_param_field); a table has a value for every field, and nothing else.
   Tables are read without their metatables, because a function of the script's
   could release what other arguments borrow. */
#include "lua/values/values.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
  MOST_BYTES = 4096, /* of all parameters of a kernel */
  PATH_ROOM = 100,
  NAMES_ROOM = 200,
  STACK_ROOM = 8 /* values that a level of nesting pushes */
};

typedef struct struct_reader {
  lua_State *L;
  cgl_lua *S;
  const cgl_lua_fields *fields;
  int index;            /* of the argument on the stack */
  char path[PATH_ROOM]; /* of the field that is read: "box.lo[2]" */
} struct_reader;


/* A field that there is; not by cgl_lua_done, which may run the script's
   function for messages. */
static cgl_field_info field_info(const cgl_lua_fields *of, size_t field) {
  cgl_field_info info = {.name = ""};
  if (of->param)
    (void)cgl_param_field(of->param, field, &info);
  else
    (void)cgl_kernel_field(of->kernel, of->index, field, &info);
  return info;
}


static size_t field_count(const cgl_lua_fields *of) {
  return of->param ? cgl_param_field_count(of->param)
                   : cgl_kernel_field_count(of->kernel, of->index);
}


/* "kernel argument 2 'p'", or "the parameter p". */
static void fields_owner(const cgl_lua_fields *of,
                         char text[CGL_LUA_ARG_NAME_ROOM + 20]) {
  char name[CGL_LUA_ARG_NAME_ROOM];
  const size_t room = CGL_LUA_ARG_NAME_ROOM + 20;
  if (of->param)
    snprintf(text, room, "the parameter%s%.60s",
             *cgl_param_name(of->param) ? " " : "", cgl_param_name(of->param));
  else
    snprintf(text, room, "kernel %s",
             cgl_lua_arg_name(of->kernel, (int)of->index + 1, name));
}


/* Raises "kernel argument 2 'p': its field 'box.lo' ..." */
static void __attribute__((format(printf, 2, 3)))
struct_refuse(const struct_reader *r, const char *format, ...) {
  char text[300], name[CGL_LUA_ARG_NAME_ROOM + 20];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fields_owner(r->fields, name);
  if (*r->path)
    cgl_lua_bad(r->L, r->S, r->index, "%s: its field '%s' %s", name, r->path,
                text);
  cgl_lua_bad(r->L, r->S, r->index, "%s %s", name, text);
}


/* Adds to the path, and returns its length before. */
static size_t __attribute__((format(printf, 2, 3)))
path_add(struct_reader *r, const char *format, ...) {
  const size_t length = strlen(r->path);
  va_list args;
  va_start(args, format);
  vsnprintf(r->path + length, PATH_ROOM - length, format, args);
  va_end(args);
  return length;
}


/* The names of a struct's fields; of the `missing` ones only, when the table on
   top is to be looked at. */
static const char *field_names(const struct_reader *r, size_t first, size_t end,
                               bool missing, char text[NAMES_ROOM]) {
  size_t used = 0;
  *text = '\0';
  for (size_t i = first; i < end && used < NAMES_ROOM;) {
    const cgl_field_info info = field_info(r->fields, i);
    i += 1 + info.nested;
    if (missing) {
      lua_pushstring(r->L, info.name);
      lua_rawget(r->L, -2);
      const bool there = !lua_isnil(r->L, -1);
      lua_pop(r->L, 1);
      if (there)
        continue;
    }
    used += (size_t)snprintf(text + used, NAMES_ROOM - used, "%s'%s'",
                             used ? ", " : "", info.name);
  }
  return text;
}


/* Raises for the key below the top, when it is no field's name. */
static void struct_check_key(const struct_reader *r, size_t first, size_t end) {
  lua_State *L = r->L;
  char names[NAMES_ROOM], text[CGL_LUA_GUESS_ROOM];
  if (lua_type(L, -2) != LUA_TSTRING) {
    lua_pushvalue(L, -2);
    struct_refuse(r, "is a struct, whose fields go by name: %s; got the key %s",
                  field_names(r, first, end, false, names),
                  cgl_lua_value_text(L, r->S, lua_gettop(L),
                                     (char[CGL_LUA_VALUE_ROOM]){0}));
  }
  cgl_lua_guess guess = {.name = lua_tostring(L, -2)};
  for (size_t i = first; i < end;) {
    const cgl_field_info info = field_info(r->fields, i);
    if (!strcmp(info.name, guess.name))
      return;
    cgl_lua_guess_try(&guess, info.name);
    i += 1 + info.nested;
  }
  cgl_lua_guess_text(&guess, text);
  if (!guess.nearest)
    snprintf(text, sizeof text, "; its fields are ");
  struct_refuse(r, "has no field '%.40s'%s%s", guess.name, text,
                guess.nearest ? "" : field_names(r, first, end, false, names));
}


static void struct_store(struct_reader *r, size_t first, size_t end, char *to);


/* Checks that the value on top is a list of n, as `count` counts. */
static void list_check(const struct_reader *r, const char *type, size_t n,
                       size_t (*count)(lua_State *L, int index)) {
  const bool list = lua_istable(r->L, -1);
  const size_t got = list ? count(r->L, -1) : 0;
  if (!list)
    struct_refuse(r, "is %s, which takes a list of %d, got %s", type, (int)n,
                  cgl_lua_typename(r->L, -1));
  if (got != n)
    struct_refuse(r, "is %s, which takes a list of %d, got %d", type, (int)n,
                  (int)got);
}


/* A number, or a list of the numbers of a vector. */
static void numbers_store(struct_reader *r, const cgl_field_info *info,
                          char *to) {
  lua_State *L = r->L;
  char reason[CGL_LUA_REASON_ROOM], type[NAMES_ROOM];
  const size_t bytes = cgl_type_bytes(info->element);
  snprintf(type, sizeof type, "a %s", info->type);
  if (info->lanes > 1)
    list_check(r, type, (size_t)info->lanes, cgl_lua_lane_count);
  for (int i = 0; i < info->lanes; i++, to += bytes) {
    if (info->lanes > 1)
      cgl_lua_lane_push(L, -1, i);
    if (!cgl_lua_read_element_if(L, r->S, lua_gettop(L), info->element, to,
                                 reason)) {
      if (info->lanes > 1)
        path_add(r, "[%d]", i + 1);
      struct_refuse(r, "%s", reason);
    }
    if (info->lanes > 1)
      lua_pop(L, 1);
  }
}


/* An address, as a pointer parameter takes it: the launch does not know what
   memory it means. */
static void address_store(struct_reader *r, const cgl_field_info *info,
                          char *to) {
  lua_State *L = r->L;
  cgl_arg arg = {.kind = CGL_ARG_NULL};
  cgl_lua_limits_refuse(L, r->S, "the address in a struct is not taken");
  if (lua_type(L, -1) == CGL_LUA_TCDATA)
    cgl_lua_read_cdata(L, r->S, -1, &arg);
  else if (lua_type(L, -1) == LUA_TLIGHTUSERDATA)
    arg = (cgl_arg){.kind = CGL_ARG_ADDRESS,
                    .address = (uint64_t)(uintptr_t)lua_touserdata(L, -1)};
  if (arg.kind != CGL_ARG_ADDRESS)
    struct_refuse(r,
                  "is a %s; it takes cg.null or an FFI pointer, got %s: "
                  "ffi.cast('void *', buffer:address()) is the pointer to a "
                  "buffer, which the launch does not keep",
                  info->type, cgl_lua_typename(L, -1));
  memcpy(to, &arg.address, sizeof arg.address);
}


/* The value on top into a field, or into the elements of an array's dimension
   `dim`. */
static void field_store(struct_reader *r, size_t field,
                        const cgl_field_info *info, int dim, char *to) {
  if (dim < info->ndims && dim < CGL_MAX_FIELD_DIMS) {
    size_t bytes = info->bytes;
    for (int k = dim + 1; k < info->ndims && k < CGL_MAX_FIELD_DIMS; k++)
      bytes *= info->extents[k];
    luaL_checkstack(r->L, STACK_ROOM, "structs are nested too deep");
    list_check(r, "an array", info->extents[dim], lua_objlen);
    for (size_t i = 0; i < info->extents[dim]; i++) {
      const size_t length = path_add(r, "[%d]", (int)i + 1);
      lua_rawgeti(r->L, -1, (int)i + 1);
      field_store(r, field, info, dim + 1, to + i * bytes);
      lua_pop(r->L, 1);
      r->path[length] = '\0';
    }
  } else if (info->pointer) {
    address_store(r, info, to);
  } else if (info->nested) {
    struct_store(r, field + 1, field + 1 + info->nested, to);
  } else {
    numbers_store(r, info, to);
  }
}


/* The table on top into the struct that has the fields from `first` to `end`.
 */
static void struct_store(struct_reader *r, size_t first, size_t end, char *to) {
  lua_State *L = r->L;
  char names[NAMES_ROOM];
  luaL_checkstack(L, STACK_ROOM, "structs are nested too deep");
  if (!lua_istable(L, -1))
    struct_refuse(r, "is a struct, which takes a table with %s, got %s",
                  field_names(r, first, end, false, names),
                  cgl_lua_typename(L, -1));
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
    struct_check_key(r, first, end);
  for (size_t i = first; i < end;) {
    const cgl_field_info info = field_info(r->fields, i);
    lua_pushstring(L, info.name);
    lua_rawget(L, -2);
    if (lua_isnil(L, -1)) {
      lua_pop(L, 1);
      struct_refuse(r, "lacks %s; every field needs a value",
                    field_names(r, first, end, true, names));
    }
    const size_t length = path_add(r, *r->path ? ".%s" : "%s", info.name);
    field_store(r, i, &info, 0, to + info.offset);
    lua_pop(L, 1);
    r->path[length] = '\0';
    i += 1 + info.nested;
  }
}


bool cgl_lua_read_struct(lua_State *L, cgl_lua *S, const cgl_lua_fields *of,
                         int index, cgl_arg *arg) {
  const size_t n = field_count(of);
  struct_reader r = {.L = L, .S = S, .fields = of, .index = index};
  char bytes[MOST_BYTES];
  cgl_param_info info = {.bytes = 0};
  if (!n || (!of->param && cgl_kernel_param(of->kernel, of->index, &info)))
    return false;
  const size_t size = of->param ? cgl_param_count(of->param) : info.bytes;
  memset(bytes, 0, size); /* padding, too */
  lua_pushvalue(L, index);
  struct_store(&r, 0, n, bytes);
  lua_pop(L, 1);
  lua_pushlstring(L, bytes, size);
  lua_replace(L, index);
  arg->kind = CGL_ARG_BYTES;
  arg->bytes.data = lua_tolstring(L, index, &arg->bytes.size);
  return true;
}


/* ---- back ---- */

static void struct_push(lua_State *L, cgl_lua *S, const cgl_lua_fields *of,
                        size_t first, size_t end, const char *from);


/* Pushes a number, or the list of a vector's. */
static void numbers_push(lua_State *L, cgl_lua *S, const cgl_field_info *info,
                         const char *from) {
  if (info->lanes <= 1) {
    cgl_lua_push_element(L, S, info->element, from);
    return;
  }
  lua_createtable(L, info->lanes, 0);
  cgl_lua_push_elements(L, S, lua_gettop(L), info->element, from,
                        (size_t)info->lanes);
}


/* Pushes the value of a field, or of the elements of an array's dimension
   `dim`. */
static void field_push(lua_State *L, cgl_lua *S, const cgl_lua_fields *of,
                       size_t field, const cgl_field_info *info, int dim,
                       const char *from) {
  if (dim < info->ndims && dim < CGL_MAX_FIELD_DIMS) {
    size_t bytes = info->bytes;
    for (int k = dim + 1; k < info->ndims && k < CGL_MAX_FIELD_DIMS; k++)
      bytes *= info->extents[k];
    luaL_checkstack(L, STACK_ROOM, "structs are nested too deep");
    lua_createtable(L, (int)info->extents[dim], 0);
    for (size_t i = 0; i < info->extents[dim]; i++) {
      field_push(L, S, of, field, info, dim + 1, from + i * bytes);
      lua_rawseti(L, -2, (int)i + 1);
    }
  } else if (info->pointer) {
    uint64_t address;
    memcpy(&address, from, sizeof address);
    if (address)
      cgl_lua_limits_refuse(L, S, "the address in a struct is not given");
    lua_pushlightuserdata(L, (void *)(uintptr_t)address);
  } else if (info->nested) {
    struct_push(L, S, of, field + 1, field + 1 + info->nested, from);
  } else {
    numbers_push(L, S, info, from);
  }
}


/* Pushes the struct that has the fields from `first` to `end`. */
static void struct_push(lua_State *L, cgl_lua *S, const cgl_lua_fields *of,
                        size_t first, size_t end, const char *from) {
  luaL_checkstack(L, STACK_ROOM, "structs are nested too deep");
  lua_newtable(L);
  for (size_t i = first; i < end;) {
    const cgl_field_info info = field_info(of, i);
    lua_pushstring(L, info.name);
    field_push(L, S, of, i, &info, 0, from + info.offset);
    lua_rawset(L, -3);
    i += 1 + info.nested;
  }
}


void cgl_lua_push_struct(lua_State *L, cgl_lua *S, const cgl_lua_fields *of,
                         const void *bytes) {
  struct_push(L, S, of, 0, field_count(of), bytes);
}


/* Pushes the list of the fields from `first` to `end`. */
static void fields_push(lua_State *L, const cgl_lua_fields *of, size_t first,
                        size_t end) {
  luaL_checkstack(L, LUA_MINSTACK, "structs are nested too deep");
  lua_newtable(L);
  for (int n = 1; first < end;) {
    const cgl_field_info info = field_info(of, first);
    lua_createtable(L, 0, 7);
    cgl_lua_set_text(L, "type", info.type);
    cgl_lua_set_text(L, "name", info.name);
    cgl_lua_set_boolean(L, "pointer", info.pointer);
    cgl_lua_set_number(L, "offset", (double)info.offset);
    cgl_lua_set_number(L, "bytes", (double)info.bytes);
    if (info.ndims) {
      lua_createtable(L, info.ndims, 0);
      for (int i = 0; i < info.ndims; i++) {
        lua_pushnumber(L, (double)info.extents[i]);
        lua_rawseti(L, -2, i + 1);
      }
      lua_setfield(L, -2, "shape");
    }
    if (info.nested) {
      fields_push(L, of, first + 1, first + 1 + info.nested);
      lua_setfield(L, -2, "fields");
    }
    lua_rawseti(L, -2, n++);
    first += 1 + info.nested;
  }
}


void cgl_lua_set_fields(lua_State *L, const cgl_lua_fields *of) {
  const size_t n = field_count(of);
  if (!n)
    return;
  fields_push(L, of, 0, n);
  lua_setfield(L, -2, "fields");
}
