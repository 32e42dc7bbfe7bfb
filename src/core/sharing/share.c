/* What captures use of their pool, and which graphs fill and spoil it. */
#include "core/sharing/sharing.h"
#include "core/sharing/cell.h"
#include "core/record/order.h"

#include <stdlib.h>
#include <string.h>


cgl_sharing *cgl_sharing_new(void) {
  static atomic_uint_fast64_t next_id = 1;
  cgl_sharing *sharing = calloc(1, sizeof *sharing);
  if (!sharing)
    return NULL;
  pthread_mutex_init(&sharing->turns, NULL);
  sharing->id = atomic_fetch_add(&next_id, 1);
  return sharing;
}


void cgl_sharing_free(cgl_sharing *sharing) {
  while (sharing->cells) {
    cgl_cell *cell = sharing->cells;
    sharing->cells = cell->next;
    cgl_cell_free(cell);
  }
  cgl_clock_release(sharing->last);
  pthread_mutex_destroy(&sharing->turns);
  free(sharing);
}


void cgl_sharing_count(cgl_sharing *sharing, cgl_pool_stats *stats) {
  stats->ordered = atomic_load(&sharing->ordered);
  stats->refused = atomic_load(&sharing->refused);
  stats->executables = atomic_load(&sharing->executables);
}


atomic_bool cgl_sharing_any;


void cgl_sharing_begin(cgl_pool *pool) {
  cgl_sharing *sharing = pool->sharing;
  if (atomic_load(&pool->shared))
    return;
  pthread_mutex_lock(&sharing->turns);
  /* Of a private pool's replays the stream alone was noted. */
  if (sharing->last) {
    sharing->tick = cgl_clock_now(sharing->last);
    sharing->wait = cgl_context_next_wait(pool->object.context);
  }
  atomic_store(&cgl_sharing_any, true);
  atomic_store(&pool->shared, true);
  pthread_mutex_unlock(&sharing->turns);
}


uint64_t cgl_sharing_made(cgl_pool *pool) {
  pthread_mutex_lock(&pool->sharing->turns);
  uint64_t made = pool->sharing->made;
  pthread_mutex_unlock(&pool->sharing->turns);
  return made;
}


void cgl_sharing_undo(cgl_pool *pool, uint64_t made, uint64_t number) {
  cgl_sharing *sharing = pool->sharing;
  pthread_mutex_lock(&sharing->turns);
  for (cgl_share *share = sharing->shares; share; share = share->next)
    if (share->number > made && !share->undone) {
      share->undone = true;
      share->undone_at = cgl_site_here;
    }
  for (cgl_cell *cell = sharing->cells, *next; cell; cell = next) {
    next = cell->next;
    if (!cell->buffer || cell->buffer->block->number <= number)
      continue;
    cell->buffer->cell = NULL;
    cell->buffer = NULL;
    cgl_cell_drop(sharing, cell);
  }
  pthread_mutex_unlock(&sharing->turns);
}


/* ---- noting ---- */

/* The use of an allocation in the recording, where there is room for one. */
static cgl_use *use_of(cgl_recording *recording, uint32_t *slot,
                       uint64_t number) {
  if (*slot < recording->nuses && recording->uses[*slot].number == number)
    return &recording->uses[*slot];
  *slot = (uint32_t)recording->nuses;
  cgl_use *use = &recording->uses[recording->nuses++];
  memset(use, 0, sizeof *use);
  use->number = number;
  use->first = recording->nops - 1;
  return use;
}


/* How an operation uses the bytes of an allocation. */
typedef struct manner {
  bool reads, writes, whole;
} manner;

static manner manner_of(const cgl_recording *recording, const cgl_op *op,
                        CUdeviceptr address, size_t bytes) {
  manner how = {false, false, false};
  const cgl_range *range = &recording->ranges[op->ranges];
  for (uint32_t i = 0; i < op->nranges; i++, range++) {
    if (!cgl_range_meets(range, address, bytes))
      continue;
    how.reads |= !range->write;
    how.writes |= range->write;
    how.whole |= range->write && range->address <= address &&
                 range->address + range->bytes >= address + bytes;
  }
  return how;
}


/* What the capture needs of the allocation is known. */
static bool is_settled(const cgl_use *use) {
  return use->filled || use->reads || use->updates;
}


void cgl_share_note(cgl_graph *graph, const cgl_op *op) {
  cgl_recording *recording = &graph->recording;
  for (size_t i = 0; i < recording->ntouched; i++) {
    cgl_buffer *buffer = recording->touched[i];
    size_t bytes = cgl_buffer_bytes(buffer);
    cgl_use *use = use_of(recording, &buffer->use, buffer->number);
    manner how = manner_of(recording, op, buffer->address, bytes);
    bool kernel = op->kind == CGL_OP_KERNEL && !op->fills;
    use->address = buffer->address;
    use->bytes = bytes;
    use->made = buffer->life.made;
    use->last = recording->nops - 1;
    /* A kernel may read what it writes; copies and fills never do. */
    if (buffer->born != graph->serial && !is_settled(use) &&
        (how.reads || (kernel && how.writes))) {
      use->reads = how.reads;
      use->updates = !how.reads;
      use->read = op->site;
    }
    use->filled |= how.whole && !kernel;
    if (how.writes) {
      use->writes = true;
      use->wrote = op->site;
    }
  }
  recording->ntouched = 0;
}


/* ---- graphs inside graphs ---- */

static bool overlap(const cgl_use *a, const cgl_use *b) {
  return a->address < b->address + b->bytes &&
         b->address < a->address + a->bytes;
}


static cgl_status refuse_child(const cgl_graph *parent, const cgl_use *use,
                               const char *operation) {
  cgl_fail(CGL_ERROR_ORDER, operation,
           "the graph and the capture that began at %s share a pool, and what "
           "the graph uses at %s may be used by another branch of the capture "
           "at the same time",
           cgl_site_text(parent->begun),
           cgl_site_text(use->writes ? use->wrote : use->read));
  return cgl_fail_hint("let this stream wait for the other branches first, or "
                       "capture the graph into a pool of its own");
}


cgl_status cgl_share_check_child(cgl_graph *graph, cgl_stream *stream,
                                 const char *operation) {
  const cgl_graph *parent = stream->capture;
  const cgl_share *share = graph->share;
  size_t nuses = share ? share->nuses : 0;
  if (!parent || !share)
    return CGL_OK;
  if (share->pool == parent->pool)
    for (size_t i = 0; i < nuses; i++)
      if (!cgl_capture_covers_range(stream, share->uses[i].address,
                                    share->uses[i].bytes))
        return refuse_child(parent, &share->uses[i], operation);
  if (!cgl_recording_reserve_uses(&stream->capture->recording, nuses + 1,
                                  share->ngroup + 1))
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to note what the graph uses");
  cgl_sharing_begin(share->pool);
  return CGL_OK;
}


/* The uses of a child in the parent's pool are the parent's own. */
static void fold_uses(const cgl_share *share, cgl_graph *parent) {
  cgl_recording *recording = &parent->recording;
  size_t known = recording->nuses;
  uint32_t slot = 0;
  for (size_t i = 0; i < share->nuses; i++) {
    const cgl_use *from = &share->uses[i];
    /* The same graph again: its uses lie side by side. */
    size_t tries = 0;
    for (; tries < known; tries++, slot++) {
      slot = slot < known ? slot : 0;
      if (recording->uses[slot].number == from->number)
        break;
    }
    if (tries == known)
      slot = UINT32_MAX;
    cgl_use *use = use_of(recording, &slot, from->number);
    cgl_use was = *use;
    if (tries == known) {
      *use = *from;
      use->first = recording->nops - 1;
    } else if (!is_settled(&was)) {
      use->reads = from->reads;
      use->updates = from->updates;
      use->read = from->read;
    }
    if (from->writes) {
      use->writes = true;
      use->wrote = from->wrote;
    }
    /* What the child writes and does not need is there after it. */
    use->filled = was.filled | from->filled | from->writes;
    use->last = recording->nops - 1;
    slot++;
  }
}


void cgl_share_note_child(cgl_graph *graph, cgl_graph *parent) {
  cgl_recording *recording = &parent->recording;
  cgl_share *share = graph->share;
  if (!share)
    return;
  recording->children = true;
  if (share->pool == parent->pool)
    fold_uses(share, parent);
  for (size_t i = 0; i < share->ngroup; i++) {
    cgl_share *member = share->group[i];
    bool known = member->pool == parent->pool;
    for (size_t k = 0; k < recording->nshares; k++)
      known |= recording->shares[k] == member;
    if (known)
      continue;
    atomic_fetch_add(&member->references, 1);
    recording->shares[recording->nshares++] = member;
  }
}


/* ---- shares ---- */

/* What a share does to an allocation in the end: fills it, when its last write
   there is to it or to an older one, spoils it, when to a younger one that got
   the memory afterwards, or neither. */
static void effect_on(const cgl_share *share, const cgl_cell *cell, bool *fills,
                      bool *spoils) {
  bool older = false;
  *fills = *spoils = false;
  for (size_t i = 0; i < share->nuses; i++) {
    const cgl_use *use = &share->uses[i];
    if (!use->writes || !cgl_cell_overlaps(cell, use->address, use->bytes))
      continue;
    *fills |= use->number == cell->number;
    *spoils |= use->number > cell->number;
    older |= use->number < cell->number;
  }
  *fills &= !*spoils;
  *spoils |= older && !*fills;
}


/* Under `turns`: notes the share with the cell, where there is room. */
static void join(cgl_cell *cell, cgl_share *share) {
  bool fills, spoils;
  effect_on(share, cell, &fills, &spoils);
  if (fills)
    cell->producers[cell->nproducers++] = share;
  if (spoils)
    cell->spoilers[cell->nspoilers++] = share;
}


cgl_cell *cgl_cell_get(cgl_sharing *sharing, const cgl_use *use) {
  size_t nshares = 0;
  cgl_cell *cell = sharing->cells;
  while (cell && cell->number != use->number)
    cell = cell->next;
  if (cell)
    return cell;
  for (cgl_share *share = sharing->shares; share; share = share->next)
    nshares++;
  cell = calloc(1, sizeof *cell);
  if (!cell || !cgl_cell_reserve(cell, nshares)) {
    cgl_cell_free(cell);
    return NULL;
  }
  cell->number = use->number;
  cell->address = use->address;
  cell->bytes = use->bytes;
  cell->made = use->made;
  for (cgl_share *share = sharing->shares; share; share = share->next)
    join(cell, share);
  cell->next = sharing->cells;
  sharing->cells = cell;
  return cell;
}


void cgl_cell_drop(cgl_sharing *sharing, cgl_cell *cell) {
  if (cell->inputs || cell->buffer)
    return;
  cgl_cell **link = &sharing->cells;
  while (*link != cell)
    link = &(*link)->next;
  *link = cell->next;
  cgl_cell_free(cell);
}


/* Under `turns`: the cells that the share reads, all or none. */
static bool take_inputs(cgl_sharing *sharing, cgl_share *share) {
  size_t wanted = 0;
  for (size_t i = 0; i < share->nuses; i++)
    wanted += share->uses[i].reads || share->uses[i].updates;
  if (wanted && !(share->inputs = calloc(wanted, sizeof *share->inputs)))
    return false;
  for (size_t i = 0; i < share->nuses; i++) {
    const cgl_use *use = &share->uses[i];
    if (!use->reads && !use->updates)
      continue;
    cgl_cell *cell = cgl_cell_get(sharing, use);
    if (!cell)
      return false;
    cell->inputs++;
    share->inputs[share->ninputs++] =
        (struct cgl_input){cell, use->read, !use->reads};
  }
  for (cgl_cell *cell = sharing->cells; cell; cell = cell->next)
    if (!cgl_cell_reserve(cell, 1))
      return false;
  return true;
}


static void leave_inputs(cgl_sharing *sharing, cgl_share *share) {
  while (share->ninputs) {
    cgl_cell *cell = share->inputs[--share->ninputs].cell;
    cell->inputs--;
    cgl_cell_drop(sharing, cell);
  }
  free(share->inputs);
}


/* What no cell and no list knows (any more). */
static void discard(cgl_share *share) {
  for (size_t i = 0; i < share->ngroup; i++)
    if (share->group[i] != share)
      cgl_share_release(share->group[i]);
  free(share->group);
  free(share->uses);
  cgl_pool_release(share->pool);
  free(share);
}


static int by_pool(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)(*(cgl_share *const *)a)->pool;
  uintptr_t y = (uintptr_t)(*(cgl_share *const *)b)->pool;
  return x < y ? -1 : x > y;
}


/* What the capture used of its pool; the room stays with the recording. */
static bool copy_uses(cgl_share *share, const cgl_recording *recording) {
  const size_t bytes = recording->nuses * sizeof *share->uses;
  share->nuses = recording->nuses;
  share->uses = bytes ? malloc(bytes) : NULL;
  if (share->uses)
    memcpy(share->uses, recording->uses, bytes);
  return share->uses || !bytes;
}


/* The share and those of graphs inside, which it takes from the recording. */
static bool make_group(cgl_share *share, cgl_recording *recording) {
  share->group = malloc((recording->nshares + 1) * sizeof *share->group);
  if (!share->group)
    return false;
  for (size_t i = 0; i < recording->nshares; i++)
    share->group[share->ngroup++] = recording->shares[i];
  recording->nshares = 0;
  share->group[share->ngroup++] = share;
  qsort(share->group, share->ngroup, sizeof *share->group, by_pool);
  return true;
}


/* Whether operation `before` is reached back from `after` over the edges;
   `seen` has a byte for each operation. */
static bool precedes(const cgl_recording *recording, size_t before,
                     size_t after, unsigned char *seen, size_t *stack) {
  size_t depth = 0;
  memset(seen, 0, recording->nops);
  stack[depth++] = after;
  while (depth) {
    size_t op = stack[--depth];
    if (op == before)
      return true;
    for (size_t i = recording->first[op]; i < recording->first[op + 1]; i++) {
      size_t from = recording->edges[i];
      if (from == SIZE_MAX || seen[from])
        continue;
      seen[from] = 1;
      stack[depth++] = from;
    }
  }
  return false;
}


static cgl_status refuse_overwritten(const cgl_use *own, const cgl_use *other,
                                     const char *operation) {
  cgl_fail(CGL_ERROR_ORDER, operation,
           "a graph replayed in the capture overwrites (%s) a buffer, made at "
           "%s, that the capture uses afterwards or at the same time: they "
           "share a pool",
           cgl_site_text(other->wrote), cgl_site_text(own->made));
  return cgl_fail_hint("capture the two into pools of their own, or replay the "
                       "graph after the last use of the buffer");
}


/* Whether what `other` writes comes between the first use and the last, or at
   the same time, or before what has to be there already.  What one operation
   does is in order: a graph inside was checked itself. */
static bool overwrites(const cgl_recording *recording, const cgl_use *other,
                       const cgl_use *own, unsigned char *seen, size_t *stack) {
  if (other == own || !other->writes || other->first >= own->last ||
      !overlap(own, other))
    return false;
  return own->reads || own->updates || other->last > own->first ||
         !precedes(recording, other->last, own->first, seen, stack);
}


/* Refuses memory that a graph inside the capture writes to while another
   allocation has it in use. */
static cgl_status check_children(cgl_graph *graph, const char *operation) {
  const cgl_recording *recording = &graph->recording;
  if (!recording->children)
    return CGL_OK;
  CUresult result = cgl_recording_learn_edges(graph);
  if (result)
    return cgl_fail_driver(graph->object.context, result, operation,
                           "cuGraphGetEdges");
  unsigned char *seen = malloc(recording->nops + 1);
  size_t *stack = malloc((recording->nops + 1) * sizeof *stack);
  cgl_status status = CGL_OK;
  if (!seen || !stack)
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                      "no memory to check the graphs in the capture");
  for (size_t i = 0; i < recording->nuses && !status; i++)
    for (size_t k = 0; k < recording->nuses && !status; k++) {
      const cgl_use *own = &recording->uses[i], *other = &recording->uses[k];
      if (overwrites(recording, other, own, seen, stack))
        status = refuse_overwritten(own, other, operation);
    }
  free(seen);
  free(stack);
  return status;
}


/* NULL without memory. */
static cgl_share *new_share(cgl_graph *graph) {
  cgl_share *share = calloc(1, sizeof *share);
  if (!share)
    return NULL;
  atomic_init(&share->references, 1);
  share->pool = cgl_pool_retain(graph->pool);
  share->begun = graph->begun;
  if (copy_uses(share, &graph->recording) &&
      make_group(share, &graph->recording))
    return share;
  discard(share);
  return NULL;
}


/* Puts the share among those of its pool; false without memory. */
static bool enter(cgl_share *share) {
  cgl_sharing *sharing = share->pool->sharing;
  pthread_mutex_lock(&sharing->turns);
  bool taken = take_inputs(sharing, share);
  if (taken) {
    for (cgl_cell *cell = sharing->cells; cell; cell = cell->next)
      join(cell, share);
    for (size_t i = 0; i < share->ninputs; i++)
      share->spoils_itself |= cgl_cell_spoiled_by(share->inputs[i].cell, share);
    share->number = ++sharing->made;
    share->next = sharing->shares;
    sharing->shares = share;
  } else
    leave_inputs(sharing, share);
  pthread_mutex_unlock(&sharing->turns);
  return taken;
}


cgl_status cgl_share_make(cgl_graph *graph, const char *operation) {
  cgl_status status = check_children(graph, operation);
  if (status)
    return status;
  cgl_share *share = new_share(graph);
  if (!share || !enter(share)) {
    if (share)
      discard(share);
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to note what the graph shares");
  }
  graph->recording.nuses = 0;
  graph->share = share;
  graph->stamped = NULL;
  return CGL_OK;
}


void cgl_share_release(cgl_share *share) {
  if (!share || atomic_fetch_sub(&share->references, 1) != 1)
    return;
  cgl_sharing *sharing = share->pool->sharing;
  pthread_mutex_lock(&sharing->turns);
  cgl_share **link = &sharing->shares;
  while (*link != share)
    link = &(*link)->next;
  *link = share->next;
  for (cgl_cell *cell = sharing->cells; cell; cell = cell->next)
    cgl_cell_part(cell, share);
  leave_inputs(sharing, share);
  pthread_mutex_unlock(&sharing->turns);
  discard(share);
}
