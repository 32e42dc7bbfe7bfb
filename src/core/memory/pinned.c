/* Page-locked host memory: blocks of a pool whose memory cuMemHostAlloc gives.
   The host reads and writes it outside stream order, so a freed block serves
   again only after a wait for the device.  A graph keeps the pinned memory that
   its capture used. */
#include "core/memory/memory.h"

#include <stdlib.h>
#include <string.h>


/* Legal while captures are underway: their graphs keep the pinned memory that
   they use, so it is not freed here. */
static int pinned_allocate(void *context_, uint64_t *address, size_t bytes,
                           void *custream) {
  (void)custream;
  cgl_context *context = context_;
  void *data = NULL;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  CUresult result = context->driver->cuMemHostAlloc(&data, bytes, 0);
  cgl_captures_unrelax(context, relaxed);
  *address = (uint64_t)(uintptr_t)data;
  return result;
}


static void pinned_release_memory(void *context_, uint64_t address,
                                  size_t bytes) {
  (void)bytes;
  cgl_context *context = context_;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  context->driver->cuMemFreeHost((void *)(uintptr_t)address);
  cgl_captures_unrelax(context, relaxed);
}


/* ---- the part of a context ---- */

static void memory_part_end(cgl_context *context, cgl_part *part_) {
  cgl_memory_part *part = (cgl_memory_part *)part_;
  if (part->pinned)
    cgl_pool_destroy_own(part->pinned);
  if (part->link)
    context->driver->cuStreamDestroy(part->link);
  if (part->spare)
    context->driver->cuMemFree(part->spare);
  free(part);
}


cgl_memory_part *cgl_memory_part_of(cgl_context *context,
                                    const char *operation) {
  return (cgl_memory_part *)cgl_context_make_part(
      context, CGL_PART_MEMORY, sizeof(cgl_memory_part),
      (cgl_part){.end = memory_part_end}, operation);
}


CUdeviceptr cgl_memory_spare(cgl_context *context, const char *operation) {
  cgl_memory_part *part = cgl_memory_part_of(context, operation);
  if (!part || part->spare)
    return part ? part->spare : 0;
  CUdeviceptr made = 0, before = 0;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  CUresult result = context->driver->cuMemAlloc(&made, sizeof(uint64_t));
  /* Another thread may have made the word meanwhile. */
  if (!result && !atomic_compare_exchange_strong(&part->spare, &before, made))
    context->driver->cuMemFree(made);
  cgl_captures_unrelax(context, relaxed);
  cgl_fail_driver(context, result, operation, "cuMemAlloc");
  return part->spare;
}


cgl_pool *cgl_context_pinned_pool(cgl_context *context) {
  static const char operation[] = "pinned";
  cgl_memory_part *part = cgl_memory_part_of(context, operation);
  cgl_pool *pool = part ? part->pinned : NULL, *before = NULL;
  cgl_allocator allocator = {pinned_allocate, pinned_release_memory, NULL,
                             context};
  cgl_pool_desc desc = {.allocator = &allocator};
  if (pool || !part || !cgl_pools_of(context, operation) ||
      cgl_pool_create_own(context, &desc, true, &pool))
    return pool;
  /* Another thread may have made the pool meanwhile. */
  if (atomic_compare_exchange_strong(&part->pinned, &before, pool))
    return pool;
  cgl_pool_destroy_own(pool);
  return before;
}


/* ---- pinned memory ---- */

static void pinned_destroy(cgl_object *object) {
  cgl_pinned *pinned = (cgl_pinned *)object;
  cgl_pool_free(pinned->block, true); /* a copy in flight may still use it */
  free(pinned);
}


static bool pinned_extent(const cgl_object *object, uint64_t *address,
                          size_t *bytes) {
  const cgl_pinned *pinned = (const cgl_pinned *)object;
  *address = (uintptr_t)pinned->data;
  *bytes = pinned->count * cgl_type_bytes(pinned->type);
  return true;
}


const cgl_object_kind cgl_pinned_kind = {
    .number = CGL_OBJECT_pinned,
    .light = true,
    .destroy = pinned_destroy,
    .extent = pinned_extent,
};

CGL_OBJECT_REFERENCES(pinned)


cgl_status cgl_pinned_create(cgl_context *context, cgl_type type, size_t count,
                             cgl_pinned **out) {
  static const char operation[] = "pinned";
  /* Not a stream: finds blocks that any work may use. */
  cgl_stream unordered = {.serial = CGL_NO_STREAM - 1};
  cgl_status status = cgl_memory_check_elements(type, count, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  if (status)
    return status;
  cgl_pool *pool = cgl_context_pinned_pool(context);
  if (!pool)
    return cgl_last_error()->code;
  cgl_pinned *pinned = calloc(1, sizeof *pinned);
  if (!pinned)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for pinned memory");
  size_t bytes = count * cgl_type_bytes(type);
  status = cgl_pool_alloc(pool, &unordered, bytes ? bytes : 1, operation,
                          &pinned->block);
  if (status) {
    free(pinned);
    return status;
  }
  pinned->data = (void *)(uintptr_t)cgl_block_address(pinned->block, bytes);
  memset(pinned->data, 0, bytes);
  pinned->type = type;
  pinned->count = count;
  pinned->life.made = cgl_site_here;
  cgl_object_init(&pinned->object, &cgl_pinned_kind, context);
  *out = pinned;
  return CGL_OK;
}


void *cgl_pinned_data(const cgl_pinned *pinned) {
  return pinned->data;
}


cgl_type cgl_pinned_type(const cgl_pinned *pinned) {
  return pinned->type;
}


size_t cgl_pinned_count(const cgl_pinned *pinned) {
  return pinned->count;
}
