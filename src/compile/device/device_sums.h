/* Sums that no thread reads, gathered: what a worker adds to a place is added
   up in a table of its own and put there when the entry is wanted for another
   place, or when the worker has run its blocks.  Additions to few places need
   no locked operation each, and do not move the places from core to core.
   compile/frontend/sums.c says which they are.
   Invariant: the table is empty when no kernel runs; what one that was ended
   by an error left in it is forgotten. */
enum { cgl_most_sums = 512 };
struct cgl_sum {
  unsigned long place; /* its address, with the highest bit for 8 bytes; or 0 */
  unsigned long sum;
};
static __thread struct {
  struct cgl_sum all[cgl_most_sums];
  unsigned short used[cgl_most_sums];
  unsigned count;  /* of those that are used */
  unsigned misses; /* additions to places that had no entry */
} cgl_sums;

template <class T> constexpr bool cgl_is_summed = false;
template <> constexpr bool cgl_is_summed<int> = true;
template <> constexpr bool cgl_is_summed<unsigned> = true;
template <> constexpr bool cgl_is_summed<unsigned long long> = true;

CGL_INLINE void cgl_put_sum(const cgl_sum *s) {
  enum { high = 63 };
  if (s->place >> high)
    atomicAdd((unsigned long long *)(s->place & ~(1ul << high)),
              (unsigned long long)s->sum);
  else
    atomicAdd((unsigned *)s->place, (unsigned)s->sum);
}
static __attribute__((noinline, unused)) void
cgl_begin_sum(cgl_sum *s, unsigned long place, unsigned long v) {
  if (s->place)
    cgl_put_sum(s);
  else
    cgl_sums.used[cgl_sums.count++] = (unsigned short)(s - cgl_sums.all);
  s->place = place;
  s->sum = v;
}
/* One of eight places that find their entry taken gets it, so that additions
   all over memory cost little more than the locked operation. */
template <class T, class V>
CGL_INLINE void cgl_sum_atomicAdd(T *p, const V given) {
  if constexpr (cgl_is_summed<T>) {
    const unsigned long at = (unsigned long)p;
    const unsigned long place = at | (unsigned long)(sizeof(T) == 8) << 63;
    const unsigned long v = (unsigned long)(T)given;
    cgl_sum *s = &cgl_sums.all[at / 4 % cgl_most_sums];
    if (s->place == place)
      s->sum += v;
    else if (s->place && ++cgl_sums.misses % 8)
      atomicAdd(p, (T)given);
    else
      cgl_begin_sum(s, place, v);
    __asm__ volatile("" ::: "memory"); /* threads are not independent here */
  } else
    atomicAdd(p, given);
}

static void cgl_forget_sums() {
  for (; cgl_sums.count; cgl_sums.count--)
    cgl_sums.all[cgl_sums.used[cgl_sums.count - 1]].place = 0;
}
static __attribute__((noinline)) void cgl_put_sums() {
  for (unsigned i = 0; i < cgl_sums.count; i++)
    cgl_put_sum(&cgl_sums.all[cgl_sums.used[i]]);
  cgl_forget_sums();
}
