/* The host device's functions, one per row of the driver table: host_<row>.
   calls.c fills the table from the same list.  Each answers as a real driver
   does (spec/conformance) and takes host_lock itself. */
#ifndef CGL_HOST_CALLS_H
#define CGL_HOST_CALLS_H

#include "driver/table.h"

#define X(name, version, parameters, arguments) CUresult host_##name parameters;
CGL_DRIVER_ROWS(X)
#undef X

/* Live objects by kind, for tests: "streams", "events", "graphs",
   "executables", "modules", "pools", "allocations", "bytes".  -1: no such
   kind. */
int64_t cgl_host_live(const char *kind);

#endif
