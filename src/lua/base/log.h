/* Messages of the core, for on_log's function or standard error.
   The core may hold locks while it logs, so a message waits in the state that
   this thread entered last until the core's call has returned. */
#ifndef CGL_LUA_LOG_H
#define CGL_LUA_LOG_H

#include "lua/base/base.h"

/* From here to cgl_lua_log_detach, the state gets messages. */
void cgl_lua_log_attach(cgl_lua *S);
/* Frees the messages that wait. */
void cgl_lua_log_detach(cgl_lua *S);
/* Makes the value on top on_log's function, nil for silence; pops it. */
void cgl_lua_log_to(lua_State *L, cgl_lua *S);
/* Hands a message of this state's own to on_log's function. */
void cgl_lua_log(lua_State *L, cgl_lua *S, const char *message);
/* Hands waiting messages to on_log's function. */
void cgl_lua_log_deliver(lua_State *L, cgl_lua *S);

#endif
