/* Segments: which operations used the bytes of a graph last.
   Idea: the ends of all accesses cut memory into segments, each with its last
   writer and the readers since.  Where accesses reach over many segments, a
   tree stands over blocks of these, and an access inside a node is noted at the
   node alone: the latest operation of each lane (plan.h), because operations of
   a lane are ordered.  What a node has been told of bytes that were written
   since is not forgotten; the later writer comes after it anyway.
   Glossary.  access: bytes that an operation reads, or writes.  wants: the
   operations that the one at hand must come after.  inside: of a node that an
   access covers.
   Invariant: operations count from 1, 0 is none; an operation wants only those
   that accessed bytes that it accesses, one of the two writing. */
#ifndef CGL_GRAPH_SEGMENTS_H
#define CGL_GRAPH_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CGL_SEGMENTS_CHUNK = 8 }; /* lanes: rows have whole chunks */

typedef struct cgl_access {
  uint64_t from, to; /* addresses; once the segments are made, segments */
  bool write;
} cgl_access;

typedef struct cgl_wants {
  uint32_t *list, *mark; /* mark: by operation, the last that wanted it */
  size_t count;
} cgl_wants;

typedef struct cgl_segments {
  cgl_access *accesses;
  size_t naccesses, accesses_size;
  struct cgl_users {
    uint32_t writer, readers; /* readers: a list in `readers`, from 1 */
  } * list;
  struct cgl_reader {
    uint32_t op, next;
  } * readers;
  size_t nreaders, readers_size;
  size_t leaves;  /* of the tree, a power of two; 0: there is no tree */
  size_t stride;  /* of rows */
  uint32_t *rows; /* 4 a node: readers and writers of bytes in it, and inside */
  bool *noted;    /* by row: it has an operation */
  uint32_t *latest; /* a row: what an access wants of the tree */
} cgl_segments;

/* Room for one element more; false without memory. */
bool cgl_segments_grow(void **array, size_t count, size_t *size,
                       size_t element);

#define CGL_SEGMENTS_GROW(array, count, size) \
  cgl_segments_grow((void **)&(array), (count), &(size), sizeof *(array))

static inline void cgl_segments_want(cgl_wants *wants, uint32_t op,
                                     uint32_t of) {
  if (!op || wants->mark[op - 1] == of)
    return;
  wants->mark[op - 1] = of;
  wants->list[wants->count++] = op;
}

/* The latest of each lane.  Compilers make vectors of loops with a fixed
   count. */
static inline void cgl_segments_join(uint32_t *restrict row,
                                     const uint32_t *restrict other,
                                     size_t stride) {
  for (size_t l = 0; l < stride; l += CGL_SEGMENTS_CHUNK)
    for (size_t k = l; k < l + CGL_SEGMENTS_CHUNK; k++)
      row[k] = other[k] > row[k] ? other[k] : row[k];
}

/* Notes an access of some bytes; the caller frees in any case. */
bool cgl_segments_add(cgl_segments *s, uint64_t from, size_t bytes, bool write);
/* Makes the segments of all accesses, for rows of so many lanes. */
bool cgl_segments_make(cgl_segments *s, size_t stride);
/* Operation `op`, the next, makes the accesses `a` to `end`, and wants what was
   there.  Reads come first: what the operation reads, it does not read of
   itself. */
bool cgl_segments_use(cgl_segments *s, const cgl_access *a,
                      const cgl_access *end, uint32_t op, cgl_wants *wants);
/* The same operation was put into a lane. */
void cgl_segments_put(cgl_segments *s, const cgl_access *a,
                      const cgl_access *end, uint32_t op, uint32_t lane);
void cgl_segments_free(cgl_segments *s);

#endif
