/* The driver's calls about the device: its name, size and attributes. */
#include "driver/host/calls/calls.h"
#include "driver/host/run/run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LAST_ATTRIBUTE = 148 }; /* that 13.0 knows */


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


CUresult host_cuDeviceGetName(char *name, int len, CUdevice dev) {
  if (!name || len < 1)
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(check_device(dev));
  char model[80] = "";
  read_model(model, sizeof model);
  unsigned cores = host_worker_count();
  snprintf(name, (size_t)len, "Host device (%u core%s%s%s)", cores,
           cores == 1 ? "" : "s", *model ? ", " : "", model);
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
static int device_attribute(CUdevice_attribute attrib) {
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
  *pi = device_attribute(attrib);
  return CUDA_SUCCESS;
}
