/* Copies and fills as they run on a worker.  Both take checked, resolved
   parameters (host_memcpy_op_make, host_memset_op_make), go over several
   workers when that pays, and answer ILLEGAL_ADDRESS, made sticky, when the
   memory has gone meanwhile. */
#ifndef CGL_HOST_COPY_H
#define CGL_HOST_COPY_H

#include "driver/host/base/base.h"

CUresult host_memcpy_run(const CUDA_MEMCPY3D *copy);
CUresult host_memset_run(const CUDA_MEMSET_NODE_PARAMS_v2 *set);

#endif
