/* What copies and fills may touch, as far as the device knows. */
#include "driver/host/memory/memory.h"


static host_place place_of(uintptr_t address, size_t bytes) {
  const host_range *r = host_range_find(address);
  if (!r)
    return host_range_overlaps(address, bytes) ? HOST_PLACE_BAD
                                               : HOST_PLACE_PAGEABLE;
  if (r->dying || r->freed || bytes > r->bytes - (address - r->start))
    return HOST_PLACE_BAD;
  if (r->kind == HOST_RANGE_VIRTUAL &&
      !host_virtual_accessible(r, address, bytes))
    return HOST_PLACE_BAD;
  return r->kind == HOST_RANGE_PINNED || r->kind == HOST_RANGE_REGISTERED
             ? HOST_PLACE_PINNED
             : HOST_PLACE_DEVICE;
}


/* One side of a copy, with defaults filled in. */
typedef struct side {
  CUmemorytype type;
  uintptr_t base;
  size_t x, y, z, pitch, height;
} side;


/* Bytes from the base to the first and past the last byte of the box. */
static bool side_extent(const side *s, const CUDA_MEMCPY3D *c, size_t *first,
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


/* Checks a side and decides its type. */
static CUresult check_side(side *s, const CUDA_MEMCPY3D *c, host_place *where) {
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
  if (!side_extent(s, c, &first, &last) || s->base + last < s->base)
    return CUDA_ERROR_INVALID_VALUE;
  *where = place_of(s->base + first, last - first);
  if (*where == HOST_PLACE_BAD ||
      (*where == HOST_PLACE_PAGEABLE && s->type == CU_MEMORYTYPE_DEVICE))
    return CUDA_ERROR_INVALID_VALUE;
  if (s->type == CU_MEMORYTYPE_UNIFIED)
    s->type =
        *where == HOST_PLACE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  return CUDA_SUCCESS;
}


CUresult host_copy_make(host_op *op, const CUDA_MEMCPY3D *copy,
                        host_place *from, host_place *to) {
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


CUresult host_copy_make_node(host_op *op, const CUDA_MEMCPY3D *copy) {
  host_place from, to;
  HOST_TRY(host_copy_make(op, copy, &from, &to));
  keep_unified(&op->memcpy, copy);
  return CUDA_SUCCESS;
}


CUresult host_fill_make(host_op *op, const CUDA_MEMSET_NODE_PARAMS *set,
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
  host_place where = place_of((uintptr_t)set->dst, bytes);
  if (!captured && where != HOST_PLACE_DEVICE && where != HOST_PLACE_PINNED)
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
