/* Events: the fence of the last record, by name. */
#include "driver/host/stream/stream.h"

#include <stdlib.h>


void host_event_retain(CUevent event) {
  if (event)
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}


void host_event_release(CUevent event) {
  if (!event ||
      atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) != 1)
    return;
  host_fence_release(event->fence);
  free(event->deps);
  free(event);
}


CUevent host_event_new(unsigned flags) {
  CUevent event = calloc(1, sizeof *event);
  if (!event || !host_handle_add(HOST_HANDLE_EVENT, event)) {
    free(event);
    return NULL;
  }
  atomic_init(&event->refs, 1);
  event->flags = flags;
  return event;
}


void host_event_destroy(CUevent event) {
  host_capture_forget_event(event);
  host_handle_remove(HOST_HANDLE_EVENT, event);
  host_event_release(event);
}


static void destroy_handle(void *handle) {
  host_event_destroy(handle);
}


void host_event_reset(void) {
  host_handle_each(HOST_HANDLE_EVENT, destroy_handle);
}
