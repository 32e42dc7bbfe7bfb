/* Device memory: pools of blocks, the buffers that hold them, and pinned
   host memory.
   Idea: a pool takes segments from the driver's virtual-memory calls, which
   are legal in every capture mode, and hands out blocks of them in stream
   order.  A freed block may be used again at once on the stream that owned
   it if no other stream used it, and by anybody after the device has been
   waited for (cgl_context_waited).  Scratch is what a capture allocated and
   is free: replays still write to it, so while a graph holds the pool only
   captures into the pool may have it, the one that freed it on the stream
   that owned it, and a capture may have other memory only when the device was
   waited for, because nobody knows where its replays will run.
   Invariants (cgl_pool_is_valid): the blocks of a segment, in address order,
   cover it without gap or overlap; every free block is in exactly one bin;
   allocated bytes = sum of live blocks; a live block keeps its pool. */
#ifndef CGL_CORE_MEMORY_H
#define CGL_CORE_MEMORY_H

#include "core/core.h"

#define CGL_POOL_BINS 48

typedef struct cgl_block {
  struct cgl_segment *segment;
  size_t offset, bytes;          /* inside the segment; whole units of 512 */
  struct cgl_block *prev, *next; /* neighbours by address */
  struct cgl_block *bin_prev, *bin_next; /* in a bin, when free */
  bool free;
  uint64_t stream;     /* serial of the owner: allocated there; 0: anybody's,
                          UINT64_MAX: nobody's until then */
  uint64_t free_after; /* when free: the wait that makes it anybody's */
  uint64_t number;     /* when live: of the allocation, unique in the pool */
  size_t requested;    /* when live: bytes */
  cgl_site site;       /* when live: of the allocation */
  bool captured;       /* when live: allocated by a capture into the pool;
                          when free: scratch, that captures may have */
  uint64_t capture;    /* when scratch: serial of the capture that freed it */
} cgl_block;

typedef struct cgl_segment {
  cgl_pool *pool;
  CUdeviceptr base; /* of the mapping */
  size_t bytes;     /* mapped */
  size_t reserved;  /* address space, at least `bytes` */
  CUmemGenericAllocationHandle handle;
  uint64_t opened; /* other devices that may reach it, a bit each */
  cgl_block *first;
  struct cgl_segment *next;
} cgl_segment;

struct cgl_pool {
  cgl_object object;
  pthread_mutex_t lock; /* guards everything below */
  cgl_segment *segments;
  cgl_block *bins[CGL_POOL_BINS]; /* free blocks by log2 of their units */
  size_t granularity;             /* of the driver's memory, bytes */
  size_t pending;                 /* free bytes that are nobody's yet */
  bool guard; /* every block's end lies against unmapped memory */
  atomic_uint_fast64_t used; /* the wait that covers the last replay */
  atomic_int captures; /* whose graphs live: their replays use the scratch */
  atomic_uint_fast64_t capturing; /* serial of the capture underway, or 0 */
  cgl_pool_stats stats;
};

/* The pool of a context; does not keep the context alive. */
cgl_status cgl_pool_create_default(cgl_context *context, cgl_pool **pool);
/* A block of at least `bytes` (> 0) for work on `stream`; retains the pool. */
cgl_status cgl_pool_alloc(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                          const char *operation, cgl_block **block);
/* Takes the block back; `wide`: streams other than the owner used it. */
void cgl_pool_free(cgl_block *block, bool wide);
/* The device has been waited for: what was pending is anybody's now. */
void cgl_pool_settle(cgl_pool *pool);
/* Where `bytes` of the block begin: at its start, or, in a guarded pool, so
   that they end where the mapping does. */
CUdeviceptr cgl_block_address(const cgl_block *block, size_t bytes);
/* Lets `device`, another one of the same driver, reach the block's segment.
   cuMemSetAccess */
CUresult cgl_block_open_to(cgl_block *block, CUdevice device);
/* Checks the invariants; under the lock or single-threaded. */
bool cgl_pool_is_valid(const cgl_pool *pool);

struct cgl_buffer {
  cgl_object object;
  cgl_block *block;   /* owned; NULL: a view, a global, borrowed, or empty */
  cgl_buffer *base;   /* retained: what a view looks at */
  cgl_module *module; /* retained: whose global it is */
  CUdeviceptr address;
  cgl_type type;
  size_t count;
  int ndims;
  size_t shape[CGL_MAX_DIMS];
  atomic_bool wide; /* used by a stream other than the block's owner */
};

/* Notes that work on `stream` uses the buffer's memory. */
void cgl_buffer_touch(cgl_buffer *buffer, const cgl_stream *stream);
/* A view of memory that `module` owns. */
cgl_status cgl_buffer_of_module(cgl_module *module, CUdeviceptr address,
                                cgl_type type, size_t count,
                                cgl_buffer **buffer);

/* peer.c: the copy of cgl_buffer_copy when the buffers are on two devices. */
cgl_status cgl_copy_across(cgl_buffer *to, cgl_buffer *from, cgl_stream *stream,
                           const char *operation);

struct cgl_pinned {
  cgl_object object;
  void *data;
  cgl_type type;
  size_t count;
};

#endif
