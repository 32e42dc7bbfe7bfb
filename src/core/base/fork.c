/* What a fork leaves to the child. */
#include "core/base/base.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
bool cgl_fork_done;


/* In the child.  Other threads may have held any lock, and are gone. */
static void fork_child(void) {
  cgl_fork_done = true;
  cgl_captures_leave_parent();
  cgl_objects_leave_parent();
  cgl_context_leave_parent();
}


static void fork_register(void) {
  pthread_atfork(NULL, NULL, fork_child);
}


void cgl_fork_watch(void) {
  pthread_once(&once, fork_register);
}
