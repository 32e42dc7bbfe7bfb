/* PNG files for Lua, on libpng: core.png.read and core.png.write, which
   lua/cgraphlua/image.lua turns into cgraphlua.image.
   Invariant: whatever a call holds (the file, libpng's structures, the
   pixels) hangs on one userdata with a finalizer, so a Lua error anywhere
   leaks nothing; libpng's longjmp never crosses a Lua frame. */
#ifndef CGL_LUA_IMAGE_H
#define CGL_LUA_IMAGE_H

#include <lua.h>

/* Pushes the table {read, write}.
   read(path, max_size) returns width, height, channels (1 gray, 2 gray and
   alpha, 3 RGB, 4 RGBA), pixels (a string, 8 bits a channel, top row
   first); or nil and a message.
   write(path, width, height, channels, pixels, compression) returns true,
   or nil and a message; the file is complete or not there. */
int cgl_image_open(lua_State *L);

#endif
