/* cgraphlua.module: compiled CUDA C, from a string or a file.
   Compiler messages name the script's own file and line: the script that gave
   the source is searched for its text. */
#include "lua/types/types.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const known_options[] = {"source",  "file",        "line",
                                            "options", "expressions", NULL};


/* Pushes a file's bytes; false pushes nothing and leaves errno. */
static bool file_push(lua_State *L, const char *path) {
  struct stat about;
  if (stat(path, &about))
    return false;
  if (!S_ISREG(about.st_mode)) {
    errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    return false;
  }
  size_t size = (size_t)about.st_size;
  /* Allocates before the file is open, because Lua may raise. */
  char *bytes = lua_newuserdata(L, size + 1);
  FILE *file = fopen(path, "rb");
  size = file ? fread(bytes, 1, size, file) : 0;
  int failed = !file || ferror(file) ? errno : 0;
  if (file)
    fclose(file);
  if (!failed)
    lua_pushlstring(L, bytes, size);
  lua_remove(L, failed ? -1 : -2);
  errno = failed;
  return !failed;
}


/* The file (borrowed) and the line of the source in its script; pushes one
   value. */
static const char *source_locate(lua_State *L, cgl_lua *S, const char *source,
                                 size_t bytes, int *line) {
  lua_Debug ar;
  if (!cgl_lua_frame(L, S, &ar)) {
    lua_pushnil(L);
    return NULL;
  }
  const char *script = ar.source;
  const char *file = *script == '@' ? script + 1 : ar.short_src;
  if (*script == '@') {
    if (!file_push(L, file))
      lua_pushliteral(L, "");
  } else {
    lua_pushstring(L, *script == '=' ? "" : script);
  }
  size_t size;
  const char *text = lua_tolstring(L, -1, &size);
  const char *at = bytes ? memmem(text, size, source, bytes) : NULL;
  if (at) {
    *line = 1;
    for (const char *p = text; p < at; p++)
      *line += *p == '\n';
    lua_pop(L, 1);
    lua_pushstring(L, file);
  } else {
    /* Made at run time: the source's own lines, under the caller's name. */
    *line = 1;
    lua_pop(L, 1);
    lua_pushfstring(L, "%s:%d, kernel source", file, ar.currentline);
  }
  return lua_tostring(L, -1);
}


/* The strings of list option `name` as an array, which is left on the stack
   and has room for another string; the list keeps the strings. */
static const char **option_strings(lua_State *L, cgl_lua *S, int index,
                                   const char *name, size_t *count) {
  *count = 0;
  if (!cgl_lua_option(L, S, index, name))
    return NULL;
  int list = lua_gettop(L);
  if (!lua_istable(L, list))
    cgl_lua_bad(L, S, index, "%s must be a list of strings", name);
  size_t n = lua_objlen(L, list);
  const char **texts = lua_newuserdata(L, (n + 1) * sizeof *texts);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, list, (int)i + 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      cgl_lua_bad(L, S, index, "%s[%d] must be a string, got %s", name,
                  (int)i + 1, luaL_typename(L, -1));
    texts[i] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  *count = n;
  return texts;
}


/* PTX and cubin are not compiled. */
static bool source_is_image(const char *text, size_t bytes) {
  if (bytes > 4 && !memcmp(text, "\177ELF", 4))
    return true;
  while (bytes && (strchr(" \t\r\n", *text) ||
                   (bytes > 1 && text[0] == '/' && text[1] == '/'))) {
    size_t skip = 1;
    if (*text == '/')
      while (skip < bytes && text[skip] != '\n')
        skip++;
    text += skip;
    bytes -= skip;
  }
  return bytes > 8 && !memcmp(text, ".version", 8);
}


/* Fills the source fields from the string at `source` (0: from the options);
   leaves values on the stack that the texts live in. */
static void module_read_source(lua_State *L, cgl_lua *S, int source,
                               int options, cgl_module_desc *desc) {
  size_t bytes = 0;
  const char *file = cgl_lua_option_string(L, S, options, "file");
  int line =
      (int)cgl_lua_option_integer(L, S, options, "line", 1, INT32_MAX, 0);
  const char *text;
  if (!source && cgl_lua_option(L, S, options, "source"))
    source = lua_gettop(L);
  if (source) {
    text = cgl_lua_read_string(L, S, source, "the source", &bytes);
    desc->file = file;
    desc->line = line;
    if (!file)
      desc->file = source_locate(L, S, text, bytes, &desc->line);
  } else if (file) {
    if (!file_push(L, file))
      cgl_lua_raise(L, S, CGL_ERROR_SYSTEM, "check the path of the source file",
                    "cannot read '%s': %s", file, strerror(errno));
    text = lua_tolstring(L, -1, &bytes);
    desc->file = file;
    desc->line = line ? line : 1;
  } else {
    cgl_lua_bad(L, S, options, "source or file must be given");
    return;
  }
  if (source_is_image(text, bytes)) {
    desc->image = text;
    desc->image_bytes = bytes; /* Lua ends its strings with a zero */
  } else if (strlen(text) != bytes) {
    cgl_lua_bad(L, S, source ? source : options,
                "the source has a zero byte at %d", (int)strlen(text) + 1);
  } else {
    desc->source = text;
  }
}


/* A restricted state has sources and images that its host allows, as they are,
   and others that are shipped.  Options and names of templates would be other
   sources; a file's name would say what is read. */
static void module_read_restricted(lua_State *L, cgl_lua *S, int source,
                                   int options, cgl_module_desc *desc) {
  static const char *const names[] = {"file", "line", "options", "expressions"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (desc->nexpressions || cgl_lua_option(L, S, options, names[i]))
      cgl_lua_limits_raise(L, S,
                           "a kernel's source is taken without options and "
                           "names of templates");
  if (!source && cgl_lua_option(L, S, options, "source"))
    source = lua_gettop(L);
  size_t bytes;
  const char *text = cgl_lua_read_string(L, S, source ? source : options,
                                         "the source", &bytes);
  const bool allowed = cgl_lua_limits_allow_kernel(S, text, bytes);
  const bool image = source_is_image(text, bytes);
  if ((image || strlen(text) != bytes) && !allowed)
    cgl_lua_limits_raise(L, S, "this image is not among its kernels");
  if (image) {
    desc->image = text;
    desc->image_bytes = bytes;
  } else {
    desc->source = text;
    desc->shipped = !allowed;
  }
}


/* Reads what a module is made of; leaves values on the stack that the
   description borrows from.  *expression, when not NULL, is one more name
   expression. */
static void module_read(lua_State *L, cgl_lua *S, int source, int options,
                        const char *const *expression, cgl_module_desc *desc) {
  cgl_lua_options(L, S, options, known_options);
  desc->options = option_strings(L, S, options, "options", &desc->noptions);
  const char **listed =
      option_strings(L, S, options, "expressions", &desc->nexpressions);
  bool missing = *expression;
  for (size_t i = 0; missing && i < desc->nexpressions; i++)
    missing = strcmp(listed[i], *expression) != 0;
  if (missing && listed)
    listed[desc->nexpressions] = *expression;
  desc->expressions = listed ? listed : expression;
  desc->nexpressions += missing;
  if (S->limits) {
    module_read_restricted(L, S, source, options, desc);
    return;
  }
  module_read_source(L, S, source, options, desc);
}


/* Pushes a module. */
static cgl_module *module_push(lua_State *L, cgl_lua *S, int source,
                               int options, const char *expression) {
  cgl_module_desc desc = {0};
  module_read(L, S, source, options, &expression, &desc);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_module **slot = cgl_lua_new_module(L, S);
  const cgl_status status = cgl_module_create(context, &desc, slot);
  if (status == CGL_ERROR_COMPILE && desc.shipped)
    cgl_lua_limits_raise(L, S,
                         "this kernel's source is not among those that the "
                         "host allows (kernels), and it is not shipped");
  if (cgl_lua_collected(L, S, status))
    cgl_lua_done(L, S, cgl_module_create(context, &desc, slot));
  else
    cgl_lua_done(L, S, status);
  return *slot;
}


static int kernel_push(lua_State *L, cgl_lua *S, cgl_module *module,
                       const char *name) {
  cgl_kernel **slot = cgl_lua_new_kernel(L, S);
  cgl_lua_done(L, S, cgl_module_kernel(module, name, slot));
  return 1;
}


/* cg.module(source | {file=path, ...} [, opts]) */
static int cg_module(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "module");
  lua_settop(L, 2);
  if (lua_istable(L, 1))
    module_push(L, S, 0, 1, NULL);
  else
    module_push(L, S, 1, 2, NULL);
  return 1;
}


/* cg.module_async(source | {file=path, ...} [, opts]) */
static int cg_module_async(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "module_async");
  const char *const none = NULL;
  cgl_module_desc desc = {0};
  lua_settop(L, 2);
  bool described = lua_istable(L, 1);
  module_read(L, S, !described, described ? 1 : 2, &none, &desc);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_compilation **slot = cgl_lua_new_compilation(L, S);
  cgl_lua_try(L, S, cgl_module_create_async(context, &desc, slot));
  return 1;
}


/* cg.kernel_hash(source), by which a host allows it to a restricted state */
static int cg_kernel_hash(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "kernel_hash");
  char hash[33];
  size_t bytes;
  const char *source = cgl_lua_read_string(L, S, 1, "the source", &bytes);
  cgl_module_hash(source, bytes, hash);
  lua_pushstring(L, hash);
  return 1;
}


/* cg.kernels_from(path); nil forgets the folders */
static int cg_kernels_from(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernels_from");
  const char *path = NULL;
  if (lua_isnone(L, 1) || !lua_isnil(L, 1))
    path = cgl_lua_read_string(L, S, 1, "the folder", NULL);
  cgl_lua_done(L, S, cgl_kernels_from(path));
  return 0;
}


/* cg.kernel(source [, name] [, opts]) */
static int cg_kernel(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernel");
  lua_settop(L, 3);
  bool described = lua_istable(L, 1);
  bool unnamed = lua_isnil(L, 2) || (lua_istable(L, 2) && lua_isnil(L, 3));
  const char *name =
      unnamed ? NULL : cgl_lua_read_string(L, S, 2, "the name", NULL);
  int options = described ? 1 : lua_istable(L, 2) ? 2 : 3;
  bool templated = name && strchr(name, '<');
  cgl_module *module =
      module_push(L, S, !described, options, templated ? name : NULL);
  return kernel_push(L, S, module, name);
}


/* m:kernel([name]) */
static int module_kernel(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "module:kernel");
  cgl_module *module = cgl_lua_check_module(L, S, 1);
  const char *name = lua_isnoneornil(L, 2)
                         ? NULL
                         : cgl_lua_read_string(L, S, 2, "the name", NULL);
  return kernel_push(L, S, module, name);
}


/* m:kernels(), their names in source order */
static int module_kernels(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "module:kernels");
  const cgl_module *module = cgl_lua_check_module(L, S, 1);
  lua_newtable(L);
  const char *name;
  for (int i = 0; (name = cgl_module_kernel_name(module, (size_t)i)); i++) {
    lua_pushstring(L, name);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}


/* m:global(name, type), a variable of the module as a buffer */
static int module_global(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "module:global");
  cgl_module *module = cgl_lua_check_module(L, S, 1);
  const char *name = cgl_lua_read_string(L, S, 2, "the name", NULL);
  cgl_type type = cgl_lua_read_type(L, S, 3);
  cgl_buffer **slot = cgl_lua_new_buffer(L, S);
  cgl_lua_done(L, S, cgl_module_global(module, name, type, slot));
  return 1;
}


static void module_describe(void *object, char *text, size_t room) {
  const char *first = cgl_module_kernel_name(object, 0);
  bool more = first && cgl_module_kernel_name(object, 1);
  snprintf(text, room, "%p (%s%s)", object, first ? first : "no kernels",
           more ? ", ..." : "");
}


void cgl_lua_open_module(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"kernel", module_kernel},
      {"kernels", module_kernels},
      {"global", module_global},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"module", cg_module},           {"module_async", cg_module_async},
      {"kernel_hash", cg_kernel_hash}, {"kernels_from", cg_kernels_from},
      {"kernel", cg_kernel},           {NULL, NULL},
  };
  static const cgl_lua_type type = {.kind = CGL_LUA_module,
                                    .methods = methods,
                                    .describe = module_describe,
                                    .functions = functions};
  cgl_lua_register(L, S, &type);
}
