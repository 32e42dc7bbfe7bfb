/* Shares: the uses of a captured graph, its inputs, and its group. */
#include "core/sharing/cell_private.h"

#include <stdlib.h>
#include <string.h>

atomic_bool cgl_sharing_any;


/* ---- cells ---- */

static void cell_free(cgl_cell *cell) {
  if (cell)
    free(cell->writers);
  free(cell);
}


/* Room for so many more shares; false without memory. */
static bool cell_reserve(cgl_cell *cell, size_t more) {
  if (cell->nwriters + more <= cell->size)
    return true;
  const size_t size = 2 * (cell->nwriters + more);
  struct cgl_writer *writers = realloc(cell->writers, size * sizeof *writers);
  if (!writers)
    return false;
  cell->writers = writers;
  cell->size = size;
  return true;
}


bool cgl_share_overlaps(const cgl_allocation *a, const cgl_allocation *b) {
  return a->address < b->address + b->bytes &&
         b->address < a->address + a->bytes;
}


/* Adds what is in the memory after the replays so far of a share. */
static void content_add(cgl_content *content, const struct cgl_writer *writer) {
  const cgl_share *share = writer->share;
  if (writer->fills && share->filled > content->filled)
    content->filled = share->filled;
  if (!writer->fills && share->replay > content->overwritten) {
    content->overwritten = share->replay;
    content->overwritten_by = share->begun;
    content->by_script = false;
  }
}


/* The share ends; what its replays did stays. */
static void cell_remove(cgl_cell *cell, const cgl_share *share) {
  for (size_t i = 0; i < cell->nwriters; i++)
    if (cell->writers[i].share == share) {
      content_add(&cell->content, &cell->writers[i]);
      cell->writers[i] = cell->writers[--cell->nwriters];
      return;
    }
}


cgl_content cgl_share_cell_content(const cgl_cell *cell) {
  cgl_content content = cell->content;
  for (size_t i = 0; i < cell->nwriters; i++)
    content_add(&content, &cell->writers[i]);
  return content;
}


/* ---- sharings ---- */

void cgl_sharing_init(cgl_sharing *sharing, cgl_object *owner, bool strict) {
  pthread_mutex_init(&sharing->lock, NULL);
  sharing->owner = owner;
  sharing->strict = strict;
}


void cgl_sharing_clear(cgl_sharing *sharing) {
  while (sharing->cells) {
    cgl_cell *cell = sharing->cells;
    sharing->cells = cell->next;
    cell_free(cell);
  }
  cgl_clock_release(sharing->last);
  pthread_mutex_destroy(&sharing->lock);
}


void cgl_sharing_begin(cgl_sharing *sharing) {
  if (atomic_load(&sharing->shared))
    return;
  pthread_mutex_lock(&sharing->lock);
  /* Replays of a private pool noted their stream only. */
  if (sharing->last) {
    sharing->tick = cgl_clock_now(sharing->last);
    sharing->wait = cgl_context_next_wait(sharing->owner->context);
  }
  atomic_store(&cgl_sharing_any, true);
  atomic_store(&sharing->shared, true);
  pthread_mutex_unlock(&sharing->lock);
}


void cgl_sharing_undo(cgl_sharing *sharing, uint64_t made, uint64_t number) {
  pthread_mutex_lock(&sharing->lock);
  for (cgl_share *share = sharing->shares; share; share = share->next)
    if (share->number > made && !share->undone) {
      share->undone = true;
      share->undone_at = cgl_site_here;
    }
  for (cgl_cell *cell = sharing->cells, *next; cell; cell = next) {
    next = cell->next;
    if (!cell->holder || cell->block <= number)
      continue;
    *cell->holder = NULL;
    cell->holder = NULL;
    cgl_share_cell_drop(sharing, cell);
  }
  pthread_mutex_unlock(&sharing->lock);
}


/* ---- uses ---- */

/* Operation `index`, or what it has inside, uses the allocation as `from` says.
 */
static void use_add(cgl_use *use, const cgl_use *from, size_t index) {
  if (!use->filled && !use->reads && !use->updates) {
    use->reads = from->reads;
    use->updates = from->updates;
    use->read = from->read;
  }
  if (from->writes) {
    use->writes = true;
    use->wrote = from->wrote;
  }
  use->filled |= from->filled;
  use->first = use->first < index ? use->first : index;
  use->last = index;
}


/* What the ranges of an operation from `first` on do to that range's
   allocation. */
static cgl_use op_use(const cgl_op *op, const cgl_range *ranges, uint32_t first,
                      const cgl_allocation *memory, bool foreign) {
  /* A kernel may read what it writes; copies and fills never do. */
  const bool kernel = op->kind == CGL_OP_KERNEL && !op->fills;
  cgl_use use = {.read = op->site, .wrote = op->site};
  for (uint32_t i = first; i < op->nranges; i++) {
    const cgl_range *range = &ranges[i];
    if (range->allocation != ranges[first].allocation)
      continue;
    use.reads |= foreign && !range->write;
    use.writes |= range->write;
    use.filled |=
        range->write && !kernel && range->address <= memory->address &&
        range->address + range->bytes >= memory->address + memory->bytes;
  }
  use.updates = foreign && kernel && use.writes && !use.reads;
  return use;
}


/* What one operation does itself. */
static void share_add_op(cgl_share *share, const cgl_capture *capture,
                         const cgl_op *op, size_t index) {
  const cgl_recording *recording = capture->recording;
  const cgl_range *ranges = cgl_record_ranges(recording, op);
  for (uint32_t i = 0; i < op->nranges; i++) {
    const uint32_t number = ranges[i].allocation;
    bool seen = !number;
    for (uint32_t k = 0; k < i; k++)
      seen |= ranges[k].allocation == number;
    if (seen)
      continue;
    const cgl_allocation *memory = cgl_record_allocation(recording, number - 1);
    const cgl_use use =
        op_use(op, ranges, i, memory, memory->born != capture->underway.serial);
    use_add(&share->uses[number - 1], &use, index);
  }
}


/* The use of an allocation, from *slot on; a new one where there is none. */
static cgl_use *share_use(cgl_share *share, size_t *slot, const cgl_use *from,
                          size_t index) {
  for (size_t tries = 0; tries < share->nuses; tries++, ++*slot) {
    *slot = *slot < share->nuses ? *slot : 0;
    if (share->uses[*slot].memory.number == from->memory.number)
      return &share->uses[(*slot)++];
  }
  cgl_use *use = &share->uses[share->nuses++];
  *use = *from;
  use->first = index;
  use->filled = false;
  return use;
}


/* Adds the uses of a body in the same pool: they are the graph's own. */
static void share_add_body(cgl_share *share, const cgl_share *body,
                           size_t index) {
  size_t slot = 0;
  for (size_t i = 0; i < body->nuses; i++) {
    cgl_use from = body->uses[i];
    cgl_use *use = share_use(share, &slot, &from, index);
    /* What the body writes and does not need is there after it. */
    from.filled |= from.writes;
    use_add(use, &from, index);
  }
}


/* Sums up the recording; false without memory. */
static bool share_add_uses(cgl_share *share, const cgl_capture *capture) {
  const cgl_recording *recording = capture->recording, *body;
  const cgl_allocation *memory;
  size_t most = 0;
  for (size_t i = 0; cgl_record_allocation(recording, i); i++)
    most++;
  for (size_t i = 0; (body = cgl_record_body(recording, i)); i++)
    most += cgl_share_of(body)->nuses;
  if (most && !(share->uses = calloc(most, sizeof *share->uses)))
    return false;
  while ((memory = cgl_record_allocation(recording, share->nuses)))
    share->uses[share->nuses++] =
        (cgl_use){.memory = *memory, .first = SIZE_MAX};
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    share_add_op(share, capture, op, i);
    if (!op->body)
      continue;
    const cgl_share *inside =
        cgl_share_of(cgl_record_body(recording, op->body - 1));
    if (inside->sharing == share->sharing)
      share_add_body(share, inside, i);
  }
  return true;
}


/* ---- graphs inside graphs ---- */

cgl_status cgl_share_check_child(const cgl_share *share, cgl_stream *stream,
                                 const char *operation) {
  const cgl_capture *parent = stream->capture;
  if (!parent)
    return CGL_OK;
  const bool same =
      (const void *)parent->underway.pool == share->sharing->owner;
  for (size_t i = 0; same && i < share->nuses; i++) {
    const cgl_use *use = &share->uses[i];
    if (cgl_order_covers(stream, use->memory.address, use->memory.bytes))
      continue;
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph and the capture that began at %s share a pool, and "
             "what the graph uses at %s may be used by another branch of the "
             "capture at the same time",
             cgl_site_text(parent->underway.begun),
             cgl_site_text(use->writes ? use->wrote : use->read));
    return cgl_fail_hint("let this stream wait for the other branches first, "
                         "or capture the graph into a pool of its own");
  }
  cgl_sharing_begin(share->sharing);
  return CGL_OK;
}


/* ---- shares ---- */

/* Under the lock, where there is room: notes with the cell whether the share
   fills it in the end, because it writes to it and to no younger allocation
   that got the memory afterwards, or overwrites it.  True: it overwrites. */
static bool cell_add_share(cgl_cell *cell, cgl_share *share) {
  bool fills = false, younger = false, older = false;
  for (size_t i = 0; i < share->nuses; i++) {
    const cgl_use *use = &share->uses[i];
    if (!use->writes || !cgl_share_overlaps(&cell->memory, &use->memory))
      continue;
    fills |= use->memory.number == cell->memory.number;
    younger |= use->memory.number > cell->memory.number;
    older |= use->memory.number < cell->memory.number;
  }
  fills &= !younger;
  if (fills || younger || older)
    cell->writers[cell->nwriters++] = (struct cgl_writer){share, fills};
  return !fills && (younger || older);
}


cgl_cell *cgl_share_cell_get(cgl_sharing *sharing,
                             const cgl_allocation *allocation) {
  size_t nshares = 0;
  cgl_cell *cell = sharing->cells;
  while (cell && cell->memory.number != allocation->number)
    cell = cell->next;
  if (cell)
    return cell;
  for (cgl_share *share = sharing->shares; share; share = share->next)
    nshares++;
  cell = calloc(1, sizeof *cell);
  if (!cell || !cell_reserve(cell, nshares)) {
    cell_free(cell);
    return NULL;
  }
  cell->memory = *allocation;
  for (cgl_share *share = sharing->shares; share; share = share->next)
    cell_add_share(cell, share);
  cell->next = sharing->cells;
  sharing->cells = cell;
  return cell;
}


void cgl_share_cell_drop(cgl_sharing *sharing, cgl_cell *cell) {
  if (cell->inputs || cell->holder)
    return;
  cgl_cell **link = &sharing->cells;
  while (*link != cell)
    link = &(*link)->next;
  *link = cell->next;
  cell_free(cell);
}


/* Under the lock: the cells that the share reads; false without memory. */
static bool share_take_inputs(cgl_sharing *sharing, cgl_share *share) {
  size_t wanted = 0;
  for (size_t i = 0; i < share->nuses; i++)
    wanted += share->uses[i].reads || share->uses[i].updates;
  if (wanted && !(share->inputs = calloc(wanted, sizeof *share->inputs)))
    return false;
  for (size_t i = 0; i < share->nuses; i++) {
    const cgl_use *use = &share->uses[i];
    if (!use->reads && !use->updates)
      continue;
    cgl_cell *cell = cgl_share_cell_get(sharing, &use->memory);
    if (!cell)
      return false;
    cell->inputs++;
    share->inputs[share->ninputs++] =
        (struct cgl_input){cell, use->read, !use->reads};
  }
  for (cgl_cell *cell = sharing->cells; cell; cell = cell->next)
    if (!cell_reserve(cell, 1))
      return false;
  return true;
}


static void share_destroy(cgl_object *object) {
  cgl_share *share = (cgl_share *)object;
  cgl_sharing *sharing = share->sharing;
  pthread_mutex_lock(&sharing->lock);
  cgl_share **link = &sharing->shares;
  while (*link && *link != share)
    link = &(*link)->next;
  if (*link)
    *link = share->next;
  for (cgl_cell *cell = sharing->cells; cell; cell = cell->next)
    cell_remove(cell, share);
  while (share->ninputs) {
    cgl_cell *cell = share->inputs[--share->ninputs].cell;
    cell->inputs--;
    cgl_share_cell_drop(sharing, cell);
  }
  pthread_mutex_unlock(&sharing->lock);
  for (size_t i = 0; i < share->ngroup; i++)
    if (share->group[i] != share)
      cgl_object_release(&share->group[i]->object);
  free(share->group);
  free(share->inputs);
  free(share->uses);
  cgl_object_release(sharing->owner);
  free(share);
}


static const cgl_object_kind share_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .light = true,
    .destroy = share_destroy,
};


static int share_compare(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)(*(cgl_share *const *)a)->sharing;
  uintptr_t y = (uintptr_t)(*(cgl_share *const *)b)->sharing;
  return x < y ? -1 : x > y;
}


/* Lists the share and, once each, the graphs of other pools inside it. */
static bool share_make_group(cgl_share *share, const cgl_recording *recording) {
  const cgl_recording *inside;
  size_t most = 1;
  for (size_t i = 0; (inside = cgl_record_body(recording, i)); i++)
    most += cgl_share_of(inside)->ngroup;
  share->group = malloc(most * sizeof *share->group);
  if (!share->group)
    return false;
  for (size_t i = 0; (inside = cgl_record_body(recording, i)); i++) {
    const cgl_share *body = cgl_share_of(inside);
    for (size_t k = 0; k < body->ngroup; k++) {
      cgl_share *member = body->group[k];
      bool known = member->sharing == share->sharing;
      for (size_t m = 0; m < share->ngroup; m++)
        known |= share->group[m] == member;
      if (known)
        continue;
      cgl_object_retain(&member->object);
      share->group[share->ngroup++] = member;
    }
  }
  share->group[share->ngroup++] = share;
  qsort(share->group, share->ngroup, sizeof *share->group, share_compare);
  return true;
}


static cgl_status refuse_overwritten(const cgl_use *own, const cgl_use *other,
                                     const char *operation) {
  cgl_fail(CGL_ERROR_ORDER, operation,
           "a graph replayed in the capture overwrites (%s) a buffer, made at "
           "%s, that the capture uses afterwards or at the same time: they "
           "share a pool",
           cgl_site_text(other->wrote), cgl_site_text(own->memory.made));
  return cgl_fail_hint("capture the two into pools of their own, or replay the "
                       "graph after the last use of the buffer");
}


/* Whether a write of `other` may come between the first and the last use of
   `own`, or before it when `own` needs earlier content.  The uses of one
   operation are in order: a graph inside was checked itself. */
static bool use_is_overwritten(const cgl_use *own, const cgl_use *other,
                               const cgl_recording *recording,
                               unsigned char *reached) {
  if (other == own || !other->writes || other->first >= own->last ||
      !cgl_share_overlaps(&own->memory, &other->memory))
    return false;
  return own->reads || own->updates || other->last > own->first ||
         !cgl_order_precedes(recording, reached, other->last, own->first);
}


/* Refuses a graph inside the capture that writes to memory while another
   allocation uses it. */
static cgl_status share_check_bodies(const cgl_share *share,
                                     cgl_recording *recording, CUgraph graph,
                                     const char *operation) {
  if (!cgl_record_body(recording, 0))
    return CGL_OK;
  CUresult result = cgl_record_learn_edges(recording, graph);
  if (result)
    return cgl_fail_driver(share->object.context, result, operation,
                           "cuGraphGetEdges");
  unsigned char *reached = malloc(cgl_record_count(recording));
  if (!reached)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to check the graphs in the capture");
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < share->nuses && !status; i++)
    for (size_t k = 0; k < share->nuses && !status; k++)
      if (use_is_overwritten(&share->uses[i], &share->uses[k], recording,
                             reached))
        status =
            refuse_overwritten(&share->uses[i], &share->uses[k], operation);
  free(reached);
  return status;
}


/* Adds the share to its pool; false without memory. */
static bool share_add_to_pool(cgl_share *share) {
  cgl_sharing *sharing = share->sharing;
  pthread_mutex_lock(&sharing->lock);
  bool entered = share_take_inputs(sharing, share);
  if (entered) {
    for (cgl_cell *cell = sharing->cells; cell; cell = cell->next)
      if (cell_add_share(cell, share))
        for (size_t i = 0; i < share->ninputs; i++)
          share->overwrites_itself |= share->inputs[i].cell == cell;
    share->number = ++sharing->made;
    share->next = sharing->shares;
    sharing->shares = share;
  }
  pthread_mutex_unlock(&sharing->lock);
  return entered;
}


cgl_status cgl_share_make(cgl_sharing *sharing, const cgl_capture *capture,
                          CUgraph graph, const char *operation) {
  cgl_recording *recording = capture->recording;
  cgl_status status = CGL_OK;
  cgl_share *share = calloc(1, sizeof *share);
  bool made = share;
  if (made) {
    cgl_object_init(&share->object, &share_kind, sharing->owner->context);
    cgl_object_retain(sharing->owner);
    share->sharing = sharing;
    share->begun = capture->underway.begun;
    made = share_add_uses(share, capture) && share_make_group(share, recording);
  }
  if (made)
    status = share_check_bodies(share, recording, graph, operation);
  if (!status && !(made && share_add_to_pool(share)))
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                      "no memory to note what the graph shares");
  if (!status)
    cgl_record_set_summary(recording, &share->object);
  else if (share)
    cgl_object_release(&share->object);
  return status;
}
