/* Messages for a state's own log, which its script sets with on_log, or for
   standard error where neither the script nor the engine has set a log.
   The core may hold locks while it logs, so a message for a script's function
   waits in the state that this thread entered last until the core's call has
   returned. */
#ifndef CGL_LUA_LOG_H
#define CGL_LUA_LOG_H

#include "lua/base/base.h"

/* From here to cgl_lua_log_detach, the state gets messages. */
void cgl_lua_log_attach(cgl_lua *S);
/* Frees the messages that wait. */
void cgl_lua_log_detach(cgl_lua *S);
/* Makes the value on top on_log's function for messages from `least` up: nil
   for silence, false for the engine's log again; pops it. */
void cgl_lua_log_to(lua_State *L, cgl_lua *S, cgl_log_level least);
/* Logs a message of the binding's own, which is about the current device. */
void cgl_lua_log(lua_State *L, cgl_lua *S, cgl_log_level level,
                 const char *message);
/* Hands waiting messages to on_log's function. */
void cgl_lua_log_deliver(lua_State *L, cgl_lua *S);

#endif
