/* The host filling of the driver table, and the enquiries that need nothing
   but the lists. */
#include "driver/host/calls/calls.h"
#include "driver/host/memory/memory.h"
#include "driver/host/stream/stream.h"

#include <string.h>

static CUresult set_kernel_deadline(double seconds) {
  HOST_TRY(host_check_opened());
  if (!(seconds >= 0 && seconds <= HOST_MAX_SECONDS))
    return CUDA_ERROR_INVALID_VALUE;
  return host_watch_set(seconds);
}


static CUresult abort_device(void) {
  HOST_TRY(host_check_opened());
  if (!host_context_is_active())
    return CUDA_ERROR_INVALID_CONTEXT;
  host_watch_abort();
  return CUDA_SUCCESS;
}


/* Under host_lock. */
static CUresult isolated_open(CUstream stream) {
  return host_handle_live(HOST_HANDLE_STREAM, stream)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}


static CUresult isolate_stream(CUstream stream, double seconds) {
  HOST_TRY(host_check_object());
  if (!(seconds >= 0 && seconds <= HOST_MAX_SECONDS))
    return CUDA_ERROR_INVALID_VALUE;
  const double ns = seconds * 1e9;
  host_lock();
  CUresult result = isolated_open(stream);
  if (result == CUDA_SUCCESS)
    result = host_stream_isolate(stream, ns > 0 && ns < 1 ? 1 : (uint64_t)ns);
  return host_unlock_with(result);
}


static CUresult change_isolated(CUstream stream, void (*change)(CUstream)) {
  HOST_TRY(host_check_object());
  host_lock();
  CUresult result = isolated_open(stream);
  if (result == CUDA_SUCCESS)
    change(stream);
  return host_unlock_with(result);
}


static CUresult abort_stream(CUstream stream) {
  return change_isolated(stream, host_stream_abort);
}


static CUresult renew_stream(CUstream stream) {
  return change_isolated(stream, host_stream_renew);
}


static const cgl_driver table = {
#define X(name, version, parameters, arguments) .name = host_##name,
    CGL_DRIVER_ROWS(X)
#undef X
        .name = "host",
    .image_format = CGL_IMAGE_HOST,
    .slow_copy_bytes = SIZE_MAX,
    .version = 13000,
    .failure_text = host_fail_text,
    .set_kernel_deadline = set_kernel_deadline,
    .abort_device = abort_device,
    .isolate_stream = isolate_stream,
    .abort_stream = abort_stream,
    .renew_stream = renew_stream,
};


const cgl_driver *cgl_driver_host(void) {
  return &table;
}


const char *cgl_driver_host_complaint(void) {
  return host_device_complaint();
}


static CUresult error_text(CUresult error, bool by_name, const char **out) {
  if (!out)
    return CUDA_ERROR_INVALID_VALUE;
  switch (error) {
#define X(name, code, text)        \
  case code:                       \
    *out = by_name ? #name : text; \
    return CUDA_SUCCESS;
    CGL_CUDA_ERRORS(X)
#undef X
  default:
    *out = NULL;
    return CUDA_ERROR_INVALID_VALUE;
  }
}


CUresult host_cuGetErrorName(CUresult error, const char **pStr) {
  return error_text(error, true, pStr);
}


CUresult host_cuGetErrorString(CUresult error, const char **pStr) {
  return error_text(error, false, pStr);
}


typedef void (*any_function)(void);

static const struct {
  const char *name;
  int version;
  any_function function;
} rows[] = {
#define X(name, version, parameters, arguments) \
  {#name, version, (any_function)host_##name},
    CGL_DRIVER_ROWS(X)
#undef X
};


CUresult host_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
                               cuuint64_t flags,
                               CUdriverProcAddressQueryResult *symbolStatus) {
  if (!symbol || !pfn || flags > 2 || cudaVersion > table.version)
    return CUDA_ERROR_INVALID_VALUE;
  int status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *pfn = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].name, symbol))
      continue;
    status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    if (cudaVersion >= rows[i].version) {
      status = CU_GET_PROC_ADDRESS_SUCCESS;
      memcpy(pfn, &rows[i].function, sizeof *pfn);
    }
  }
  if (symbolStatus)
    *symbolStatus = status;
  return CUDA_SUCCESS;
}


int64_t cgl_host_live(const char *kind) {
  static const struct {
    const char *name;
    host_handle_kind kind;
  } kinds[] = {
      {"streams", HOST_HANDLE_STREAM}, {"events", HOST_HANDLE_EVENT},
      {"graphs", HOST_HANDLE_GRAPH},   {"executables", HOST_HANDLE_EXEC},
      {"modules", HOST_HANDLE_MODULE}, {"pools", HOST_HANDLE_MEMPOOL}};
  int64_t n = -1;
  host_lock();
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i].name, kind))
      n = host_handle_count(kinds[i].kind);
  if (!strcmp(kind, "allocations"))
    n = host_memory_allocations() + host_handle_count(HOST_HANDLE_PHYSICAL);
  if (!strcmp(kind, "bytes"))
    n = (int64_t)host_memory_used();
  return host_unlock_with(n);
}
