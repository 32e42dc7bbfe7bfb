#include "cli/paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifndef CGL_LUADIR
#define CGL_LUADIR "/usr/local/share/lua/5.1"
#endif


/* Pushes nothing and returns false when `folder` does not hold the Lua
   half; otherwise prepends it. */
static bool try_folder(lua_State *L, const char *folder) {
  char path[PATH_MAX];
  int n = snprintf(path, sizeof path, "%s/cgraphlua/init.lua", folder);
  if (n < 0 || (size_t)n >= sizeof path || access(path, R_OK))
    return false;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", folder, folder,
                  lua_tostring(L, -1));
  lua_setfield(L, -3, "path");
  lua_pop(L, 2);
  return true;
}


/* The program's own file, without links; the kernel keeps the path by which the
   program was started for where there is no /proc. */
static bool program_path(char path[PATH_MAX]) {
  const char *started = (const char *)getauxval(AT_EXECFN);
  return realpath("/proc/self/exe", path) ||
         (started && realpath(started, path));
}


void cgl_paths_setup(lua_State *L, bool no_environment) {
  static const char *const near_program[] = {"lua", "../lua",
                                             "../share/lua/5.1"};
  const char *named = no_environment ? NULL : getenv("CGRAPHLUA_LUA");
  if (named && *named && try_folder(L, named))
    return;
  char self[PATH_MAX];
  if (program_path(self)) {
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof near_program / sizeof *near_program; i++) {
      char folder[PATH_MAX + 64];
      snprintf(folder, sizeof folder, "%s/%s", self, near_program[i]);
      if (try_folder(L, folder))
        return;
    }
  }
  try_folder(L, CGL_LUADIR);
}
