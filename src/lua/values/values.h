/* Lua values into C and back, checked.
   A reader raises "bad argument", with what was expected and what came, and
   returns what it read; strings and objects are borrowed from the Lua value.
   `what` names the value in the message. */
#ifndef CGL_LUA_VALUES_H
#define CGL_LUA_VALUES_H

#include "lua/base/call.h"
#include "lua/base/collect.h"
#include "lua/base/current.h"
#include "lua/base/error.h"
#include "lua/base/limits.h"
#include "lua/base/names.h"
#include "lua/base/object.h"

/* ---- cdata.c: FFI objects ---- */

/* Pushes an FFI helper of the Lua half; raises without LuaJIT's FFI. */
void cgl_lua_ffi(lua_State *L, cgl_lua *S, const char *name);
/* Takes an FFI object apart: CGL_ARG_INT, UINT, NUMBER, ADDRESS (a pointer) or
   BYTES (an array or a struct, borrowed). */
void cgl_lua_read_cdata(lua_State *L, cgl_lua *S, int index, cgl_arg *arg);
/* Raises when an FFI array holds numbers of another type (signs aside); bytes
   and structs are taken as they are. */
void cgl_lua_cdata_check_type(lua_State *L, cgl_lua *S, int index,
                              cgl_type type);
/* Pushes a 64-bit integer: a number when a double holds it, else an FFI
   integer. */
void cgl_lua_push_int64(lua_State *L, cgl_lua *S, bool is_signed,
                        uint64_t bits);

/* ---- read.c: single values ---- */

enum {
  CGL_LUA_NUMBER_ROOM = 40,
  CGL_LUA_VALUE_ROOM = 64,
  CGL_LUA_LIST_ROOM = 512
};

/* The shorter of Lua's and the exact spelling that means x. */
void cgl_lua_number_text(double x, char text[CGL_LUA_NUMBER_ROOM]);
/* A number of Lua or an FFI number as CGL_ARG_NUMBER, INT or UINT; false for
   any other value. */
bool cgl_lua_read_number(lua_State *L, cgl_lua *S, int index, cgl_arg *x);
/* What a message shows for a value. */
const char *cgl_lua_value_text(lua_State *L, cgl_lua *S, int index,
                               char text[CGL_LUA_VALUE_ROOM]);
/* Joins a NULL-terminated list for a message. */
const char *cgl_lua_list_text(const char *const *names,
                              char text[CGL_LUA_LIST_ROOM]);

/* A whole number from min to max (at most 2^53 away from 0). */
int64_t cgl_lua_read_integer(lua_State *L, cgl_lua *S, int index,
                             const char *what, int64_t min, int64_t max);
/* Any number, as a double. */
double cgl_lua_read_real(lua_State *L, cgl_lua *S, int index, const char *what);
/* A whole number without an error: false when the value is not such a number.
 */
bool cgl_lua_read_whole(lua_State *L, cgl_lua *S, int index, int64_t min,
                        int64_t max, int64_t *whole);
/* A string; when `bytes` is NULL, a string without a zero byte. */
const char *cgl_lua_read_string(lua_State *L, cgl_lua *S, int index,
                                const char *what, size_t *bytes);
/* A function, or a value that can be called: whether, and an error otherwise.
 */
bool cgl_lua_read_callable(lua_State *L, int index);
void cgl_lua_read_function(lua_State *L, cgl_lua *S, int index);
/* A boolean; nil is `otherwise`. */
bool cgl_lua_read_boolean(lua_State *L, cgl_lua *S, int index, const char *what,
                          bool otherwise);
/* Index of a string in a NULL-terminated list. */
int cgl_lua_read_choice(lua_State *L, cgl_lua *S, int index, const char *what,
                        const char *const *names);
/* The name of an element type. */
cgl_type cgl_lua_read_type(lua_State *L, cgl_lua *S, int index);
/* A device address from light userdata, a pointer or a number. */
uint64_t cgl_lua_read_address(lua_State *L, cgl_lua *S, int index);

/* ---- options.c: tables of options ---- */

/* An option table or nothing; raises for keys that are not in `known`. */
bool cgl_lua_options(lua_State *L, cgl_lua *S, int index,
                     const char *const *known);
/* Raises when the key on top is not in `known`; `index`: the table's. */
void cgl_lua_option_check_key(lua_State *L, cgl_lua *S, int index,
                              const char *const *known);
/* Pushes option `name` and returns true; false (nothing pushed) when there is
   no table or the option is nil. */
bool cgl_lua_option(lua_State *L, cgl_lua *S, int index, const char *name);
/* Read an option; `otherwise` (0, NULL) when it is not there. */
bool cgl_lua_option_boolean(lua_State *L, cgl_lua *S, int index,
                            const char *name, bool otherwise);
int64_t cgl_lua_option_integer(lua_State *L, cgl_lua *S, int index,
                               const char *name, int64_t min, int64_t max,
                               int64_t otherwise);
int cgl_lua_option_choice(lua_State *L, cgl_lua *S, int index, const char *name,
                          const char *const *names, int otherwise);
const char *cgl_lua_option_string(lua_State *L, cgl_lua *S, int index,
                                  const char *name);
void *cgl_lua_option_object(lua_State *L, cgl_lua *S, int index,
                            const char *name, cgl_lua_kind kind);

/* ---- sizes.c: shapes, grids and blocks ---- */

typedef struct cgl_lua_shape {
  size_t count; /* elements */
  size_t extents[CGL_MAX_DIMS];
  int ndims;
} cgl_lua_shape;

/* A count or a list of extents. */
void cgl_lua_read_shape(lua_State *L, cgl_lua *S, int index,
                        cgl_lua_shape *shape);
/* A plain number from 1 on, which nearly every size is; false for any other
   value. */
static inline bool cgl_lua_read_size(lua_State *L, int index, uint32_t *size) {
  if (lua_type(L, index) != LUA_TNUMBER)
    return false;
  double x = lua_tonumber(L, index);
  *size = x >= 1 && x <= UINT32_MAX ? (uint32_t)x : 0;
  return *size && *size == x;
}
/* Three sizes from a number or {x, y, z}; keys in `known` may be there too.
   Where `params` is not NULL, a size may be a parameter, which goes there; the
   others of `params` stay as they are. */
void cgl_lua_read_sizes(lua_State *L, cgl_lua *S, int index, const char *what,
                        uint32_t sizes[3], cgl_param *params[3],
                        const char *const *known);

/* ---- elements.c: typed elements ---- */

typedef struct cgl_lua_elements {
  const void *bytes; /* borrowed from the value, or from what was pushed */
  cgl_lua_shape shape;
} cgl_lua_elements;

/* Elements of a type from a table (lists of lists have more dimensions), a
   string of raw bytes or an FFI array; may push a scratch value. */
void cgl_lua_read_elements(lua_State *L, cgl_lua *S, int index, cgl_type type,
                           cgl_lua_elements *elements);
/* An element from the value at `index`. */
void cgl_lua_read_element(lua_State *L, cgl_lua *S, int index, cgl_type type,
                          void *element);
/* The same without an error: false leaves the reason, "is 1.5; ...". */
enum { CGL_LUA_REASON_ROOM = 160 };
bool cgl_lua_read_element_if(lua_State *L, cgl_lua *S, int index, cgl_type type,
                             void *element, char reason[CGL_LUA_REASON_ROOM]);
/* How many numbers a table for a vector has: of a list, or of {x = 1, y = 2}
   and {re = 1, im = 2}. */
size_t cgl_lua_lane_count(lua_State *L, int index);
/* Pushes number `i`, from 0 to 3, of such a table; nil, when it is not there.
 */
void cgl_lua_lane_push(lua_State *L, int index, int i);
/* Pushes an element; a list of its numbers for a vector or a complex number. */
void cgl_lua_push_element(lua_State *L, cgl_lua *S, cgl_type type,
                          const char *from);
/* Writes elements into the list at `index` (1 .. count). */
void cgl_lua_push_elements(lua_State *L, cgl_lua *S, int index, cgl_type type,
                           const void *bytes, size_t count);

/* ---- kernel_arg.c: kernel arguments ---- */

enum { CGL_LUA_MAX_ARGS = 256 };
/* The value at `index` (absolute) as argument `number`, from 1, of a kernel;
   what it points to is borrowed from there.  A table is replaced there by a
   string of its bytes. */
void cgl_lua_read_arg(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                      int index, int number, cgl_arg *arg);

/* "argument 3 'n'", as the kernel's parameter list counts and names it. */
enum { CGL_LUA_ARG_NAME_ROOM = 80 };
const char *cgl_lua_arg_name(const cgl_kernel *kernel, int number,
                             char text[CGL_LUA_ARG_NAME_ROOM]);

/* ---- struct.c: structs from tables, and back ---- */

/* Whose fields a struct has: a parameter's, or those of a kernel's parameter
   `index`, from 0. */
typedef struct cgl_lua_fields {
  const cgl_param *param; /* NULL: the kernel's */
  const cgl_kernel *kernel;
  size_t index;
} cgl_lua_fields;

/* The table at `index`, whose keys are names of fields; replaced there by a
   string of the struct's bytes.  False when the fields are not known. */
bool cgl_lua_read_struct(lua_State *L, cgl_lua *S, const cgl_lua_fields *of,
                         int index, cgl_arg *arg);
/* Pushes the struct as such a table. */
void cgl_lua_push_struct(lua_State *L, cgl_lua *S, const cgl_lua_fields *of,
                         const void *bytes);
/* Sets `fields` of the table on top to the list of the fields, if there are
   any. */
void cgl_lua_set_fields(lua_State *L, const cgl_lua_fields *of);

#endif
