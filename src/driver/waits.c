/* Whether waits are given up: the process's own word. */
#include "driver/waits.h"

_Atomic int cgl_driver_waits;
