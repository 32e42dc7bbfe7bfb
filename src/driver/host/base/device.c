/* The device itself: its name, size and attributes. */
#include "driver/host/base/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAST_ATTRIBUTE = 148 }; /* that 13.0 knows */

static struct {
  size_t memory;
  bool tight;
  char name[128];
  char complaint[200];
} device;

static pthread_once_t once = PTHREAD_ONCE_INIT;


/* "12", "64M", "1.5G"; 0 when it is not a size. */
static size_t parse_size(const char *text) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  if (end == text || errno || !(value > 0))
    return 0;
  switch (*end) {
  case 'k':
  case 'K':
    value *= 1024.0;
    end++;
    break;
  case 'm':
  case 'M':
    value *= 1024.0 * 1024;
    end++;
    break;
  case 'g':
  case 'G':
    value *= 1024.0 * 1024 * 1024;
    end++;
    break;
  case 't':
  case 'T':
    value *= 1024.0 * 1024 * 1024 * 1024;
    end++;
    break;
  case '\0':
    break;
  default:
    return 0;
  }
  if (*end)
    return 0;
  return value < 0x1p62 ? (size_t)value : (size_t)1 << 62;
}


/* Two variables at most: their texts are cut, not the sentence. */
static void complain(const char *variable, const char *text,
                     const char *wanted) {
  size_t used = strlen(device.complaint);
  snprintf(device.complaint + used, sizeof device.complaint - used,
           "%s$%s is '%.20s', not %s, and is ignored", used ? "; " : "",
           variable, text, wanted);
}


static void read_model(char *model, size_t size) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  while (file && fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    if (!colon || strncmp(line, "model name", 10))
      continue;
    colon += strspn(colon, ": \t");
    colon[strcspn(colon, "\n")] = '\0';
    snprintf(model, size, "%s", colon);
    break;
  }
  if (file)
    fclose(file);
}


static void set_up(void) {
  const char *text = getenv("CGRAPHLUA_HOST_MEMORY");
  device.memory = text ? parse_size(text) : 0;
  if (text && *text && !device.memory)
    complain("CGRAPHLUA_HOST_MEMORY", text, "a size such as 512M");
  if (!device.memory)
    device.memory =
        (size_t)sysconf(_SC_PHYS_PAGES) / 2 * (size_t)sysconf(_SC_PAGESIZE);
  text = getenv("CGRAPHLUA_HOST_GUARD");
  device.tight = text && strcmp(text, "0") && *text;
  text = getenv("CGRAPHLUA_HOST_THREADS");
  if (text && *text && !host_thread_wish(text))
    complain("CGRAPHLUA_HOST_THREADS", text, "a number of threads");
  char model[80] = "";
  read_model(model, sizeof model);
  unsigned cores = host_worker_count();
  snprintf(device.name, sizeof device.name, "Host device (%u core%s%s%s)",
           cores, cores == 1 ? "" : "s", *model ? ", " : "", model);
}


size_t host_device_memory(void) {
  pthread_once(&once, set_up);
  return device.memory;
}


const char *cgl_driver_host_complaint(void) {
  pthread_once(&once, set_up);
  return device.complaint;
}


bool host_guard_tight(void) {
  pthread_once(&once, set_up);
  return device.tight;
}


/* Preamble of calls that need no context. */
static CUresult check_device(CUdevice dev) {
  HOST_TRY(host_check_process());
  return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}


CUresult host_cuDriverGetVersion(int *driverVersion) {
  if (!driverVersion)
    return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = 13000;
  return CUDA_SUCCESS;
}


CUresult host_cuDeviceGet(CUdevice *dev, int ordinal) {
  if (!dev)
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(check_device(ordinal));
  *dev = 0;
  return CUDA_SUCCESS;
}


CUresult host_cuDeviceGetCount(int *count) {
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(check_device(0));
  *count = 1;
  return CUDA_SUCCESS;
}


CUresult host_cuDeviceGetName(char *name, int len, CUdevice dev) {
  if (!name || len < 1)
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(check_device(dev));
  host_device_memory();
  snprintf(name, (size_t)len, "%s", device.name);
  return CUDA_SUCCESS;
}


/* The same on every machine: it tells the kind of device, not the host. */
CUresult host_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) {
  if (!uuid)
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(check_device(dev));
  memcpy(uuid->bytes, "cgraphlua-host-0", sizeof uuid->bytes);
  return CUDA_SUCCESS;
}


CUresult host_cuDeviceTotalMem(size_t *bytes, CUdevice dev) {
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(check_device(dev));
  *bytes = host_device_memory();
  return CUDA_SUCCESS;
}


/* Where no attribute is listed the answer is 0: not supported. */
static int attribute(CUdevice_attribute attrib) {
  switch (attrib) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return 64;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    return 0x7fffffff;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    return 65535;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return HOST_SHARED_DEFAULT;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return HOST_SHARED_LIMIT;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    return 1000000; /* kHz; a nominal figure */
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return (int)host_worker_count();
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    return HOST_SM_THREADS;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: {
    long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 && bytes <= 0x7fffffff ? (int)bytes : 1 << 20;
  }
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return 9;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    return 1;
  default: /* cooperative launches too: no more than one block fits */
    return 0;
  }
}


CUresult host_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib,
                                   CUdevice dev) {
  if (!pi || attrib < 1 || attrib > LAST_ATTRIBUTE)
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(check_device(dev));
  *pi = attribute(attrib);
  return CUDA_SUCCESS;
}
