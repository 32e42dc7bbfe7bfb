/* The fault filling: forwards every row to another table and makes the k-th
   call fail. */
#include "driver/table.h"

#include <stdatomic.h>
#include <string.h>

static const cgl_driver *wrapped;
static cgl_driver table;
static atomic_uint_fast64_t calls, target;
static atomic_int target_code;
static _Atomic(const char *) hit;

/* These give something back: they do it whatever they answer. */
static const char *const releasing[] = {
    "cuDevicePrimaryCtxRelease",
    "cuMemFree",
    "cuMemFreeHost",
    "cuMemHostUnregister",
    "cuMemFreeAsync",
    "cuMemPoolDestroy",
    "cuMemAddressFree",
    "cuMemRelease",
    "cuMemUnmap",
    "cuStreamDestroy",
    "cuEventDestroy",

    "cuGraphDestroy",
    "cuGraphDestroyNode",
    "cuUserObjectRelease",
    "cuGraphExecDestroy",
    "cuModuleUnload",
};


static bool is_releasing(const char *name) {
  for (size_t i = 0; i < sizeof releasing / sizeof *releasing; i++)
    if (!strcmp(releasing[i], name))
      return true;
  return false;
}


/* Counts a call; true when it is the one to fail. */
static bool call_fails(const char *name) {
  if (!strncmp(name, "cuGetError", 10))
    return false;
  uint64_t call = atomic_fetch_add(&calls, 1) + 1;
  if (call != atomic_load(&target))
    return false;
  atomic_store(&hit, name);
  return true;
}


#define X(name, version, parameters, arguments) \
  static CUresult fault_##name parameters {     \
    if (!call_fails(#name))                     \
      return wrapped->name arguments;           \
    if (is_releasing(#name))                    \
      wrapped->name arguments;                  \
    return atomic_load(&target_code);           \
  }
CGL_DRIVER_ROWS(X)
#undef X


const cgl_driver *cgl_driver_fault(const cgl_driver *inner) {
  if (wrapped && wrapped != inner)
    return inner;
  if (wrapped)
    return &table;
  wrapped = inner;
  table = *inner;
#define X(name, version, parameters, arguments) table.name = fault_##name;
  CGL_DRIVER_ROWS(X)
#undef X
  return &table;
}


void cgl_fault_arm(uint64_t call, CUresult code) {
  atomic_store(&target, 0);
  atomic_store(&calls, 0);
  atomic_store(&hit, NULL);
  atomic_store(&target_code, code);
  atomic_store(&target, call);
}


uint64_t cgl_fault_calls(void) {
  return atomic_load(&calls);
}


const char *cgl_fault_hit(void) {
  return atomic_load(&hit);
}
