/* Copies and fills: checks against the known memory, the ways to issue them,
   and the moving of bytes.
   Host memory that the device was not told of is pageable: as on a GPU a copy
   from it has read it, and a copy to it is complete, when the call returns. */
#include "driver/host/memory/copy.h"
#include "driver/host/base/runtime.h"

#include <stdlib.h>
#include <string.h>

enum { STAGE_BYTES = 1 << 20, SPAN_BYTES = 256 << 10 };


/* ---- checks ---- */

/* May [address, address + bytes) be touched, as far as is known?  Memory that
   nobody told the device of is taken for the host's. */
typedef enum place {
  PLACE_BAD,
  PLACE_PAGEABLE,
  PLACE_PINNED,
  PLACE_DEVICE
} place;

static place place_of(uintptr_t address, size_t bytes) {
  const host_range *r = host_range_find(address);
  if (!r)
    return host_range_overlaps(address, bytes) ? PLACE_BAD : PLACE_PAGEABLE;
  if (r->dying || r->freed || bytes > r->bytes - (address - r->start))
    return PLACE_BAD;
  if (r->kind == HOST_RANGE_VIRTUAL &&
      !host_virtual_accessible(r, address, bytes))
    return PLACE_BAD;
  return r->kind == HOST_RANGE_PINNED || r->kind == HOST_RANGE_REGISTERED
             ? PLACE_PINNED
             : PLACE_DEVICE;
}


/* One side of a copy, with defaults filled in. */
typedef struct side {
  CUmemorytype type;
  uintptr_t base;
  size_t x, y, z, pitch, height;
} side;


/* Bytes from the base to the first and past the last byte of the box. */
static bool extent(const side *s, const CUDA_MEMCPY3D *c, size_t *first,
                   size_t *last) {
  size_t plane, end;
  if (__builtin_mul_overflow(s->pitch, s->height, &plane) ||
      __builtin_mul_overflow(plane, s->z, first) ||
      __builtin_add_overflow(*first, s->y * s->pitch + s->x, first) ||
      __builtin_mul_overflow(plane, c->Depth - 1, &end) ||
      __builtin_add_overflow(end, (c->Height - 1) * s->pitch + c->WidthInBytes,
                             &end))
    return false;
  return !__builtin_add_overflow(*first, end, last);
}


/* Checks a side and settles its type. */
static CUresult check_side(side *s, const CUDA_MEMCPY3D *c, place *where) {
  if (s->type != CU_MEMORYTYPE_HOST && s->type != CU_MEMORYTYPE_DEVICE &&
      s->type != CU_MEMORYTYPE_UNIFIED)
    return CUDA_ERROR_INVALID_VALUE;
  if (!s->pitch)
    s->pitch = s->x + c->WidthInBytes;
  if (!s->height)
    s->height = s->y + c->Height;
  if (!s->base || s->pitch - s->x < c->WidthInBytes || s->pitch < s->x ||
      (c->Depth > 1 && s->height < s->y + c->Height) ||
      c->Height > SIZE_MAX / s->pitch || s->y > SIZE_MAX / 2 / s->pitch)
    return CUDA_ERROR_INVALID_VALUE;
  size_t first, last;
  if (!extent(s, c, &first, &last) || s->base + last < s->base)
    return CUDA_ERROR_INVALID_VALUE;
  *where = place_of(s->base + first, last - first);
  if (*where == PLACE_BAD ||
      (*where == PLACE_PAGEABLE && s->type == CU_MEMORYTYPE_DEVICE))
    return CUDA_ERROR_INVALID_VALUE;
  if (s->type == CU_MEMORYTYPE_UNIFIED)
    s->type =
        *where == PLACE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  return CUDA_SUCCESS;
}


static CUresult make_copy(host_op *op, const CUDA_MEMCPY3D *copy, place *from,
                          place *to) {
  CUDA_MEMCPY3D c = *copy;
  if (!c.WidthInBytes || !c.Height || !c.Depth)
    return CUDA_ERROR_INVALID_VALUE;
  side src = {c.srcMemoryType,
              c.srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)c.srcHost
                                                    : (uintptr_t)c.srcDevice,
              c.srcXInBytes,
              c.srcY,
              c.srcZ,
              c.srcPitch,
              c.srcHeight};
  side dst = {c.dstMemoryType,
              c.dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)c.dstHost
                                                    : (uintptr_t)c.dstDevice,
              c.dstXInBytes,
              c.dstY,
              c.dstZ,
              c.dstPitch,
              c.dstHeight};
  HOST_TRY(check_side(&src, &c, from));
  HOST_TRY(check_side(&dst, &c, to));
  bool src_host = src.type == CU_MEMORYTYPE_HOST;
  bool dst_host = dst.type == CU_MEMORYTYPE_HOST;
  c.srcMemoryType = src.type;
  c.srcHost = src_host ? (const void *)src.base : NULL;
  c.srcDevice = src_host ? 0 : src.base;
  c.srcPitch = src.pitch;
  c.srcHeight = src.height;
  c.dstMemoryType = dst.type;
  c.dstHost = dst_host ? (void *)dst.base : NULL;
  c.dstDevice = dst_host ? 0 : dst.base;
  c.dstPitch = dst.pitch;
  c.dstHeight = dst.height;
  c.srcArray = c.dstArray = NULL;
  c.reserved0 = c.reserved1 = NULL;
  *op = (host_op){.kind = HOST_OP_MEMCPY};
  op->memcpy = c;
  return CUDA_SUCCESS;
}


/* In a node, a side that was given by its address alone stays so. */
static void keep_unified(CUDA_MEMCPY3D *c, const CUDA_MEMCPY3D *given) {
  if (given->srcMemoryType == CU_MEMORYTYPE_UNIFIED) {
    c->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    c->srcHost = NULL;
    c->srcDevice = given->srcDevice;
  }
  if (given->dstMemoryType == CU_MEMORYTYPE_UNIFIED) {
    c->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    c->dstHost = NULL;
    c->dstDevice = given->dstDevice;
  }
}


CUresult host_memcpy_op_make(host_op *op, const CUDA_MEMCPY3D *copy) {
  place from, to;
  HOST_TRY(make_copy(op, copy, &from, &to));
  keep_unified(&op->memcpy, copy);
  return CUDA_SUCCESS;
}


/* In a capture the shape alone is checked, as the real one does: the memory
   may come later. */
static CUresult make_fill(host_op *op, const CUDA_MEMSET_NODE_PARAMS *set,
                          bool captured) {
  unsigned size = set->elementSize;
  if ((size != 1 && size != 2 && size != 4) || !set->width || !set->height ||
      set->dst % size || set->width > SIZE_MAX / 8)
    return CUDA_ERROR_INVALID_VALUE;
  size_t row = set->width * size;
  size_t pitch = set->height > 1 ? set->pitch : row;
  size_t bytes;
  if (pitch < row || pitch % size ||
      __builtin_mul_overflow(pitch, set->height - 1, &bytes) ||
      __builtin_add_overflow(bytes, row, &bytes))
    return CUDA_ERROR_INVALID_VALUE;
  place where = place_of((uintptr_t)set->dst, bytes);
  if (!captured && where != PLACE_DEVICE && where != PLACE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  *op = (host_op){.kind = HOST_OP_MEMSET};
  op->memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = set->dst,
                                            .pitch = set->pitch,
                                            .value = set->value,
                                            .elementSize = size,
                                            .width = set->width,
                                            .height = set->height,
                                            .ctx = host_context()};
  return CUDA_SUCCESS;
}


CUresult host_memset_op_make(host_op *op, const CUDA_MEMSET_NODE_PARAMS *set) {
  return make_fill(op, set, false);
}


/* ---- moving bytes ---- */

/* One parallel loop over rows, or over the spans of a single row. */
typedef struct mover {
  void (*move)(const struct mover *m, uint64_t first, uint64_t last);
  const CUDA_MEMCPY3D *copy;
  const CUDA_MEMSET_NODE_PARAMS_v2 *set;
  const char *from;
  char *to;
  atomic_int taken;
  host_fault fault;
} mover;

typedef struct stretch {
  const mover *mover;
  uint64_t first, last;
} stretch;


static void run_stretch(void *argument) {
  const stretch *s = argument;
  s->mover->move(s->mover, s->first, s->last);
}


static void run_guarded(void *context, uint64_t first, uint64_t last) {
  mover *m = context;
  stretch s = {m, first, last};
  host_fault fault;
  if (!host_guard_run(run_stretch, &s, &fault) &&
      !atomic_exchange(&m->taken, 1))
    m->fault = fault;
}


static CUresult run_mover(mover *m, uint64_t count, uint64_t chunk,
                          host_cost *cost, const char *name) {
  host_parallel_for(count, chunk, run_guarded, m, cost);
  return atomic_load(&m->taken) ? host_fail_fault(name, &m->fault)
                                : CUDA_SUCCESS;
}


static void move_bytes(const mover *m, uint64_t first, uint64_t last) {
  memmove(m->to + first, m->from + first, last - first);
}


static void move_rows(const mover *m, uint64_t first, uint64_t last) {
  const CUDA_MEMCPY3D *c = m->copy;
  for (uint64_t i = first; i < last; i++) {
    size_t z = i / c->Height, y = i % c->Height;
    memmove(m->to + (z * c->dstHeight + y) * c->dstPitch,
            m->from + (z * c->srcHeight + y) * c->srcPitch, c->WidthInBytes);
  }
}


CUresult host_memcpy_run(const CUDA_MEMCPY3D *c) {
  static host_cost byte_cost;
  const char *from = c->srcMemoryType == CU_MEMORYTYPE_HOST
                         ? c->srcHost
                         : host_pointer(c->srcDevice);
  char *to = c->dstMemoryType == CU_MEMORYTYPE_HOST
                 ? c->dstHost
                 : host_pointer(c->dstDevice);
  mover m = {.copy = c};
  m.from =
      from + (c->srcZ * c->srcHeight + c->srcY) * c->srcPitch + c->srcXInBytes;
  m.to = to + (c->dstZ * c->dstHeight + c->dstY) * c->dstPitch + c->dstXInBytes;
  uint64_t rows = (uint64_t)c->Height * c->Depth;
  if (rows == 1) {
    m.move = move_bytes;
    return run_mover(&m, c->WidthInBytes, SPAN_BYTES, &byte_cost, "copy");
  }
  host_cost unknown = 0; /* rows are of any length */
  m.move = move_rows;
  return run_mover(&m, rows, 1 + SPAN_BYTES / c->WidthInBytes, &unknown,
                   "copy");
}


static void fill_row(char *to, unsigned value, unsigned size, size_t width) {
  if (size == 1) {
    memset(to, (int)(value & 0xff), width);
  } else if (size == 2) {
    uint16_t v = (uint16_t)value, *p = (uint16_t *)(void *)to;
    for (size_t i = 0; i < width; i++)
      p[i] = v;
  } else {
    uint32_t v = value, *p = (uint32_t *)(void *)to;
    for (size_t i = 0; i < width; i++)
      p[i] = v;
  }
}


static void fill_elements(const mover *m, uint64_t first, uint64_t last) {
  unsigned size = m->set->elementSize;
  fill_row(m->to + first * size, m->set->value, size, last - first);
}


static void fill_rows(const mover *m, uint64_t first, uint64_t last) {
  for (uint64_t y = first; y < last; y++)
    fill_row(m->to + y * m->set->pitch, m->set->value, m->set->elementSize,
             m->set->width);
}


CUresult host_memset_run(const CUDA_MEMSET_NODE_PARAMS_v2 *set) {
  static host_cost costs[3]; /* of an element, by its size */
  mover m = {.set = set, .to = host_pointer(set->dst)};
  if (set->height <= 1) {
    m.move = fill_elements;
    return run_mover(&m, set->width, SPAN_BYTES / set->elementSize,
                     &costs[set->elementSize / 2], "memset");
  }
  host_cost unknown = 0; /* rows are of any length */
  m.move = fill_rows;
  return run_mover(&m, set->height,
                   1 + SPAN_BYTES / (set->width * set->elementSize), &unknown,
                   "memset");
}


/* ---- issuing ---- */

/* Lets the op read a copy of its pageable source; false: no memory. */
static bool stage(host_op *op) {
  CUDA_MEMCPY3D *c = &op->memcpy;
  const char *from = (const char *)c->srcHost + c->srcXInBytes;
  void *copy = malloc(c->WidthInBytes);
  if (!copy)
    return false;
  memcpy(copy, from, c->WidthInBytes);
  c->reserved0 = copy;
  c->srcHost = copy;
  c->srcXInBytes = 0;
  return true;
}


/* Under host_lock: a copy on a stream, asynchronous as far as the kinds of
   memory allow. */
static CUresult copy_on(CUstream stream, const CUDA_MEMCPY3D *copy) {
  CUstream s;
  HOST_TRY(host_stream_open(stream, &s));
  if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
    return CUDA_SUCCESS;
  host_op op;
  place from, to;
  HOST_TRY(make_copy(&op, copy, &from, &to));
  if (s->capture) {
    keep_unified(&op.memcpy, copy);
    return host_submit(s, &op);
  }
  bool wait = to == PLACE_PAGEABLE;
  if (from == PLACE_PAGEABLE && !wait)
    wait = copy->Height > 1 || copy->Depth > 1 || copy->srcY || copy->srcZ ||
           copy->WidthInBytes > STAGE_BYTES || !stage(&op);
  HOST_TRY(host_submit(s, &op));
  return wait ? host_stream_wait(s) : CUDA_SUCCESS;
}


static CUresult copy_async(CUstream stream, const CUDA_MEMCPY3D *copy) {
  HOST_TRY(host_check_stream(stream));
  host_lock();
  CUresult result = copy_on(stream, copy);
  CUstream s = result == CUDA_SUCCESS ? host_stream_resolve(stream) : NULL;
  host_unlock_and_wait(s ? host_stream_full(s) : NULL);
  return result;
}


/* The synchronous calls: on the legacy stream, even while it cannot be seen
   to; a capture in a blocking stream forbids them. */
static CUresult copy_sync(const CUDA_MEMCPY3D *copy) {
  HOST_TRY(host_check());
  host_lock();
  CUresult result = copy_on(CU_STREAM_LEGACY, copy);
  if (result == CUDA_SUCCESS)
    result = host_stream_wait(host_stream_resolve(CU_STREAM_LEGACY));
  host_unlock();
  return result;
}


static CUDA_MEMCPY3D flat(CUmemorytype dst_type, CUdeviceptr dst,
                          CUmemorytype src_type, CUdeviceptr src,
                          size_t bytes) {
  return (CUDA_MEMCPY3D){.srcMemoryType = src_type,
                         .srcHost = host_pointer(src),
                         .srcDevice = src,
                         .dstMemoryType = dst_type,
                         .dstHost = host_pointer(dst),
                         .dstDevice = dst,
                         .WidthInBytes = bytes,
                         .Height = 1,
                         .Depth = 1};
}


static CUDA_MEMCPY3D to_device(CUdeviceptr dst, const void *src, size_t bytes) {
  return flat(CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_HOST,
              (CUdeviceptr)(uintptr_t)src, bytes);
}


static CUDA_MEMCPY3D to_host(void *dst, CUdeviceptr src, size_t bytes) {
  return flat(CU_MEMORYTYPE_HOST, (CUdeviceptr)(uintptr_t)dst,
              CU_MEMORYTYPE_DEVICE, src, bytes);
}


CUresult host_cuMemcpyHtoD(CUdeviceptr dstDevice, const void *srcHost,
                           size_t ByteCount) {
  CUDA_MEMCPY3D c = to_device(dstDevice, srcHost, ByteCount);
  return copy_sync(&c);
}


CUresult host_cuMemcpyDtoH(void *dstHost, CUdeviceptr srcDevice,
                           size_t ByteCount) {
  CUDA_MEMCPY3D c = to_host(dstHost, srcDevice, ByteCount);
  return copy_sync(&c);
}


CUresult host_cuMemcpyDtoD(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                           size_t ByteCount) {
  CUDA_MEMCPY3D c = flat(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
                         srcDevice, ByteCount);
  return copy_sync(&c);
}


CUresult host_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
                            CUstream hStream) {
  CUDA_MEMCPY3D c =
      flat(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src, ByteCount);
  return copy_async(hStream, &c);
}


CUresult host_cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void *srcHost,
                                size_t ByteCount, CUstream hStream) {
  CUDA_MEMCPY3D c = to_device(dstDevice, srcHost, ByteCount);
  return copy_async(hStream, &c);
}


CUresult host_cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr srcDevice,
                                size_t ByteCount, CUstream hStream) {
  CUDA_MEMCPY3D c = to_host(dstHost, srcDevice, ByteCount);
  return copy_async(hStream, &c);
}


CUresult host_cuMemcpyDtoDAsync(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                                size_t ByteCount, CUstream hStream) {
  CUDA_MEMCPY3D c = flat(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
                         srcDevice, ByteCount);
  return copy_async(hStream, &c);
}


CUresult host_cuMemcpy2DAsync(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
  if (!pCopy)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D c = {.srcXInBytes = pCopy->srcXInBytes,
                     .srcY = pCopy->srcY,
                     .srcMemoryType = pCopy->srcMemoryType,
                     .srcHost = pCopy->srcHost,
                     .srcDevice = pCopy->srcDevice,
                     .srcPitch = pCopy->srcPitch,
                     .dstXInBytes = pCopy->dstXInBytes,
                     .dstY = pCopy->dstY,
                     .dstMemoryType = pCopy->dstMemoryType,
                     .dstHost = pCopy->dstHost,
                     .dstDevice = pCopy->dstDevice,
                     .dstPitch = pCopy->dstPitch,
                     .WidthInBytes = pCopy->WidthInBytes,
                     .Height = pCopy->Height,
                     .Depth = 1};
  return copy_async(hStream, &c);
}


CUresult host_cuMemcpy3DAsync(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
  if (!pCopy)
    return CUDA_ERROR_INVALID_VALUE;
  return copy_async(hStream, pCopy);
}


/* ---- fills ---- */

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value,
                     unsigned size, size_t width, size_t height,
                     CUstream stream, bool sync) {
  HOST_TRY(sync ? host_check() : host_check_callback_stream(stream));
  CUDA_MEMSET_NODE_PARAMS set = {dst, pitch, value, size, width, height};
  host_op op;
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(stream, &s);
  if (result == CUDA_SUCCESS && width && height) {
    result = make_fill(&op, &set, s->capture != NULL);
    if (result == CUDA_SUCCESS)
      result = host_submit(s, &op);
    if (result == CUDA_SUCCESS && sync)
      result = host_stream_wait(s);
  }
  host_unlock_and_wait(result == CUDA_SUCCESS ? host_stream_full(s) : NULL);
  return result;
}


CUresult host_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
                              CUstream hStream) {
  return fill(dstDevice, 0, uc, 1, N, 1, hStream, false);
}


CUresult host_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us,
                               size_t N, CUstream hStream) {
  return fill(dstDevice, 0, us, 2, N, 1, hStream, false);
}


CUresult host_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
                               CUstream hStream) {
  return fill(dstDevice, 0, ui, 4, N, 1, hStream, false);
}


CUresult host_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch,
                                 unsigned int ui, size_t Width, size_t Height,
                                 CUstream hStream) {
  return fill(dstDevice, dstPitch, ui, 4, Width, Height, hStream, false);
}


CUresult host_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch,
                                unsigned char uc, size_t Width, size_t Height,
                                CUstream hStream) {
  return fill(dstDevice, dstPitch, uc, 1, Width, Height, hStream, false);
}


CUresult host_cuMemsetD8(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill(dstDevice, 0, uc, 1, N, 1, CU_STREAM_LEGACY, true);
}


CUresult host_cuMemsetD32(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill(dstDevice, 0, ui, 4, N, 1, CU_STREAM_LEGACY, true);
}
