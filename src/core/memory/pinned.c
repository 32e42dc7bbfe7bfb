/* Page-locked host memory: blocks of a pool whose memory cuMemHostAlloc gives.
   The host reads and writes it without asking a stream, so a block that was
   freed serves again only when the device was waited for; what a capture
   copies from or to is kept by its graph and not freed. */
#include "core/record/record.h"
#include "core/memory/memory.h"

#include <stdlib.h>
#include <string.h>


/* Legal for the captures of others, and for this thread's: what they use is
   kept, and not among it. */
static int host_allocate(void *context_, uint64_t *address, size_t bytes,
                         void *custream) {
  (void)custream;
  cgl_context *context = context_;
  void *data = NULL;
  cgl_relaxed relaxed = cgl_relax(context);
  CUresult result = context->driver->cuMemHostAlloc(&data, bytes, 0);
  cgl_unrelax(context, relaxed);
  *address = (uint64_t)(uintptr_t)data;
  return result;
}


static void host_release(void *context_, uint64_t address, size_t bytes) {
  (void)bytes;
  cgl_context *context = context_;
  cgl_relaxed relaxed = cgl_relax(context);
  context->driver->cuMemFreeHost((void *)(uintptr_t)address);
  cgl_unrelax(context, relaxed);
}


cgl_status cgl_pool_create_pinned(cgl_context *context, cgl_pool **out) {
  cgl_allocator allocator = {host_allocate, host_release, NULL, context};
  cgl_pool_desc desc = {.allocator = &allocator};
  return cgl_pool_create_own(context, &desc, out);
}


cgl_status cgl_pinned_create(cgl_context *context, cgl_type type, size_t count,
                             cgl_pinned **out) {
  static const char operation[] = "pinned";
  /* Nobody's: it finds what is settled. */
  cgl_stream nobody = {.serial = CGL_NOBODY - 1};
  cgl_status status = cgl_check_elements(type, count, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  if (status)
    return status;
  cgl_pinned *pinned = calloc(1, sizeof *pinned);
  if (!pinned)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for pinned memory");
  size_t bytes = count * cgl_type_bytes(type);
  status = cgl_pool_alloc(context->pinned, &nobody, bytes ? bytes : 1,
                          operation, &pinned->block);
  if (status) {
    free(pinned);
    return status;
  }
  pinned->data = (void *)(uintptr_t)cgl_block_address(pinned->block, bytes);
  memset(pinned->data, 0, bytes);
  pinned->type = type;
  pinned->count = count;
  pinned->life.made = cgl_site_here;
  cgl_object_init(&pinned->object, CGL_OBJECT_pinned, context);
  *out = pinned;
  return CGL_OK;
}


void cgl_pinned_destroy(cgl_pinned *pinned) {
  cgl_pool_free(pinned->block, true); /* a copy in flight may still use it */
  free(pinned);
}


cgl_pool *cgl_context_pinned_pool(cgl_context *context) {
  return context->pinned;
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
