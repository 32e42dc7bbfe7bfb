/* The cgraphlua program: LuaJIT's own conventions, with the graph runtime
   built in and a device that --device can choose. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>

#include "cgraphlua.h"
#include "cgraphlua/lua.h"
#include "cli/interrupt.h"
#include "cli/launch.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/repl.h"
#include "cli/report.h"

typedef struct program {
  int argc;
  char **argv;
  cgl_options options;
  int status; /* the exit status */
} program;


/* arg[0] is the script (or the program without a script); the words before it
   have negative indices. */
static void set_arg(lua_State *L, const program *p) {
  int zero = p->options.script < p->argc ? p->options.script : 0;
  lua_createtable(L, p->argc - zero, zero + 1);
  for (int i = 0; i < p->argc; i++) {
    lua_pushstring(L, p->argv[i]);
    lua_rawseti(L, -2, i - zero);
  }
  lua_setglobal(L, "arg");
}


/* Writes the kernels that a successful run compiled; returns the status. */
static int write_kernels(const program *p) {
  const char *out = p->options.out;
  size_t n = 0;
  if (!p->options.compiled)
    return 0;
  if (cgl_kernels_write(out, &n)) {
    cgl_report_line("no kernels were written: %s", cgl_last_error()->message);
    return 1;
  }
  if (n)
    cgl_report_line("wrote %zu compiled images to '%s'", n, out);
  else
    cgl_report_line("the script compiled no kernels: nothing was written");
  return n ? 0 : 1;
}


/* os.exit closes the state unless it is told not to, so that finalizers
   run; upvalue 1 is the library's own, upvalue 2 the program. */
static int exit_closing(lua_State *L) {
  lua_settop(L, 2);
  bool well = lua_isnoneornil(L, 1) || lua_toboolean(L, 1);
  if (lua_type(L, 1) == LUA_TNUMBER)
    well = lua_tonumber(L, 1) == 0;
  if (well && write_kernels(lua_touserdata(L, lua_upvalueindex(2)))) {
    lua_pushinteger(L, 1);
    lua_replace(L, 1);
  }
  if (lua_isnil(L, 2)) {
    lua_pushboolean(L, 1);
    lua_replace(L, 2);
  }
  if (!well)
    cgl_ranks_fail();
  if (lua_toboolean(L, 2))
    cgl_interrupt_detach();
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 2, 0);
  return 0;
}


static void open_libraries(lua_State *L, program *p) {
  if (p->options.no_environment) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  lua_gc(L, LUA_GCSTOP, 0);
  luaL_openlibs(L);
  lua_gc(L, LUA_GCRESTART, -1);
  lua_getglobal(L, "os");
  lua_getfield(L, -1, "exit");
  lua_pushlightuserdata(L, p);
  lua_pushcclosure(L, exit_closing, 2);
  lua_setfield(L, -2, "exit");
  lua_settop(L, 0);
  cgl_lua_preload(L, NULL);
  cgl_paths_setup(L, p->options.no_environment);
  set_arg(L, p);
}


static int run_loaded(lua_State *L, int status) {
  if (!status)
    status = cgl_report_call(L, 0, 0);
  return cgl_report_status(L, status);
}


static int run_string(lua_State *L, const char *text, const char *name) {
  return run_loaded(L, luaL_loadbuffer(L, text, strlen(text), name));
}


static int run_library(lua_State *L, const char *name) {
  lua_getglobal(L, "require");
  lua_pushstring(L, name);
  return cgl_report_status(L, cgl_report_call(L, 1, 0));
}


/* LUA_INIT, as every Lua program has it: a chunk, or @ and a file. */
static int run_init(lua_State *L) {
  const char *init = getenv("LUA_INIT");
  if (!init)
    return 0;
  if (*init == '@')
    return run_loaded(L, luaL_loadfile(L, init + 1));
  return run_string(L, init, "=LUA_INIT");
}


/* Whether a file begins as graph:save begins one. */
static bool is_graphs(const char *name) {
  static const char magic[] = "CGLGRAPH";
  char first[sizeof magic - 1];
  struct stat st;
  /* What is read of a pipe is gone. */
  const bool regular = name && !stat(name, &st) && S_ISREG(st.st_mode);
  FILE *file = regular ? fopen(name, "rb") : NULL;
  const bool well = file && fread(first, sizeof first, 1, file) == 1 &&
                    !memcmp(first, magic, sizeof first);
  if (file)
    fclose(file);
  return well;
}


/* Replays a graph of a file. */
static int run_graphs(lua_State *L, const program *p, int first) {
  static const char chunk[] = "return require('cgraphlua.play')(...)";
  luaL_checkstack(L, p->argc, "too many arguments");
  int status = luaL_loadbuffer(L, chunk, sizeof chunk - 1, "=cgraphlua");
  for (int i = first; i < p->argc && !status; i++)
    lua_pushstring(L, p->argv[i]);
  if (!status)
    status = cgl_report_call(L, p->argc - first, 1);
  if (status || lua_isnil(L, -1))
    return cgl_report_status(L, status);
  cgl_report_line("%s", lua_tostring(L, -1));
  return 1;
}


static void inspect_line(void *unused, const char *text) {
  (void)unused;
  puts(text);
}


static int inspect(const char *path) {
  if (!cgl_graph_inspect(path, inspect_line, NULL))
    return 0;
  cgl_report_line("%s", cgl_last_error()->message);
  return 1;
}


/* Runs argv[first] ("-" is standard input, and so is NULL) with the rest as
   its arguments. */
static int run_script(lua_State *L, const program *p, int first) {
  const char *name = first < p->argc ? p->argv[first] : NULL;
  if (name && !strcmp(name, "-") && strcmp(p->argv[first - 1], "--"))
    name = NULL;
  if (is_graphs(name))
    return run_graphs(L, p, first);
  int status = luaL_loadfile(L, name);
  int nargs = 0;
  if (status == LUA_ERRSYNTAX)
    cgl_report_add_hint(L, name);
  if (!status) {
    luaL_checkstack(L, p->argc, "too many arguments");
    for (int i = first + 1; i < p->argc; i++, nargs++)
      lua_pushstring(L, p->argv[i]);
    status = cgl_report_call(L, nargs, 0);
  }
  return cgl_report_status(L, status);
}


/* Lists the devices through the module itself, as a script gets them. */
static int show_devices(lua_State *L) {
  static const char chunk[] =
      "local cg = require 'cgraphlua'\n"
      "for _, d in ipairs(cg.devices()) do\n"
      "  local line = d.device .. ': ' .. d.name\n"
      "  if d.memory then\n"
      "    line = line .. string.format(', %.1f GiB', d.memory / 2^30)\n"
      "  end\n"
      "  if d.compute then line = line .. ', compute ' .. d.compute end\n"
      "  if d.driver then line = line .. ', driver ' .. d.driver end\n"
      "  print(line)\n"
      "end\n";
  return run_string(L, chunk, "=devices");
}


static int show_version(lua_State *L, bool devices) {
  printf("cgraphlua %s\n", cgl_version(NULL));
  puts(LUAJIT_VERSION " -- " LUAJIT_URL);
  fflush(stdout);
  return devices ? show_devices(L) : 0;
}


static int run_actions(lua_State *L, const program *p) {
  for (int i = 0; i < p->options.nactions; i++) {
    const cgl_action *a = &p->options.actions[i];
    int status = a->kind == 'e' ? run_string(L, a->text, "=(command line)")
                                : run_library(L, a->text);
    if (status)
      return status;
  }
  return 0;
}


static int run_program(lua_State *L, const program *p) {
  const cgl_options *o = &p->options;
  bool scripted = o->script < p->argc;
  if (!o->no_environment && run_init(L))
    return 1;
  if (o->version && show_version(L, true))
    return 1;
  if (o->plans &&
      run_string(L, "require('cgraphlua').defaults { plan = true }", "=--plan"))
    return 1;
  if (run_actions(L, p))
    return 1;
  if (scripted && run_script(L, p, o->script) && !o->interactive)
    return 1;
  if (o->interactive) {
    if (!o->version && isatty(STDIN_FILENO))
      show_version(L, false);
    cgl_repl_run(L);
    return 0;
  }
  if (scripted || o->nactions || o->version)
    return 0;
  if (!isatty(STDIN_FILENO))
    return run_script(L, p, p->argc) ? 1 : 0;
  show_version(L, false);
  cgl_repl_run(L);
  return 0;
}


/* What --compile needs before the script runs. */
static int collect_kernels(const program *p) {
  char *list = strdup(p->options.arch ? p->options.arch : ""), *rest = NULL;
  const char *archs[64];
  size_t n = 0;
  cgl_status status = CGL_OK;
  for (char *arch = list ? strtok_r(list, ",", &rest) : NULL;
       arch && n < sizeof archs / sizeof *archs;
       arch = strtok_r(NULL, ",", &rest))
    archs[n++] = arch;
  if (p->options.compiled)
    status = cgl_kernels_collect(archs, n);
  if (status)
    cgl_report_line("--arch: %s", cgl_last_error()->message);
  free(list);
  return status ? 1 : 0;
}


static int protected_main(lua_State *L) {
  program *p = lua_touserdata(L, 1);
  lua_settop(L, 0);
  open_libraries(L, p);
  p->status = collect_kernels(p) || run_program(L, p) || write_kernels(p);
  return 0;
}


static int run_state(program *p) {
  lua_State *L = luaL_newstate();
  if (!L) {
    cgl_report_line("cannot create a state: not enough memory");
    return 1;
  }
  if (!cgl_interrupt_attach(L))
    cgl_report_line("no timer: Ctrl-C ends the program at once");
  p->status = 1;
  if (cgl_report_status(L, lua_cpcall(L, protected_main, p)))
    p->status = 1;
  if (p->status)
    cgl_ranks_fail();
  if (p->status && cgl_interrupt_left_work()) {
    fflush(NULL);
    _exit(p->status); /* no teardown waits for what a GPU goes on with */
  }
  cgl_interrupt_detach();
  lua_close(L);
  return p->status;
}


int main(int argc, char **argv) {
  program p = {.argc = argc, .argv = argv};
  int status = 0;
  if (!cgl_options_parse(&p.options, argc, argv)) {
    cgl_options_usage(stderr);
    cgl_report_line("%s", p.options.wrong); /* last, where it is seen */
    status = 1;
  } else if (p.options.help) {
    cgl_options_usage(stdout);
  } else if (p.options.inspected) {
    status = inspect(p.options.inspected);
  } else if (p.options.device &&
             setenv("CGRAPHLUA_DEVICE", p.options.device, 1)) {
    cgl_report_line("--device: %s", strerror(errno));
    status = 1;
  } else if (p.options.ranks) {
    cgl_launch_ranks(p.options.ranks, argc, argv);
    status = 1;
  } else if (!cgl_launch_place()) {
    status = 1;
  } else {
    status = run_state(&p);
  }
  cgl_options_free(&p.options);
  if (fflush(stdout) || ferror(stdout)) {
    cgl_report_line("cannot write to standard output: %s", strerror(errno));
    status = 1;
  }
  return status;
}
