/* The host device's functions, one per row of the driver table: host_<row>.
   host.c fills the table from the same list.  Each answers as a real driver
   does (spec/conformance) and takes host_lock itself. */
#ifndef CGL_HOST_ROWS_HOST_H
#define CGL_HOST_ROWS_HOST_H

#include "driver/table.h"

#define X(name, version, parameters, arguments) CUresult host_##name parameters;
CGL_DRIVER_ROWS(X)
#undef X

#endif
