/* Virtual memory as pools use it: many small handles in one range of
   addresses, moved about; runs of several at once. */
#include "driver/conformance/ask.h"

#include <stdio.h>
#include <string.h>

#define PAGE ((size_t)2 << 20)

enum { MANY = 64 };

static CUstream s;
static char host[64];
static CUmemAllocationProp prop;
static CUmemAccessDesc access;
static CUdeviceptr va, q;
static CUmemGenericAllocationHandle h[MANY];


/* Addresses for `pages`, and as many handles of a page each. */
static void begin(int pages) {
  prop = device_prop();
  access = (CUmemAccessDesc){prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  s = NS();
  cu->cuMemAddressReserve(&va, MANY * PAGE, 0, 0, 0);
  for (int i = 0; i < pages; i++)
    cu->cuMemCreate(&h[i], PAGE, &prop, 0);
}


/* The first `pages` handles side by side, from the start. */
static void map_run(int pages) {
  for (int i = 0; i < pages; i++)
    cu->cuMemMap(va + i * PAGE, PAGE, 0, h[i], 0);
}


/* A page, and behind it a handle of two. */
static CUmemGenericAllocationHandle map_two(void) {
  CUmemGenericAllocationHandle two = 0;
  cu->cuMemCreate(&two, 2 * PAGE, &prop, 0);
  cu->cuMemMap(va, PAGE, 0, h[0], 0);
  cu->cuMemMap(va + PAGE, 2 * PAGE, 0, two, 0);
  return two;
}


/* What lies at the start of a page; -1: it cannot be read. */
static long at(int page) {
  host[0] = 99;
  return cu->cuMemcpyDtoH(host, va + page * PAGE, 1) ? -1 : host[0];
}


static void note_pages(int from, int end) {
  for (int i = from; i < end; i++) {
    char what[24];
    snprintf(what, sizeof what, "page %d", i);
    num(what, at(i));
  }
}


/* Fills each of the pages with its number. */
static void number_pages(int pages) {
  for (int i = 0; i < pages; i++)
    cu->cuMemsetD8(va + i * PAGE, (unsigned char)(i + 1), PAGE);
  cu->cuCtxSynchronize(); /* other streams do not wait for these fills */
}


/* ---- one range of many handles ---- */

static void many(void) {
  CUdeviceptr start = 0;
  size_t size = 0;
  begin(MANY);
  map_run(MANY);
  S(cuMemSetAccess(va, MANY * PAGE, &access, 1));
  S(cuMemsetD8Async(va, 5, MANY * PAGE, s));
  S(cuStreamSynchronize(s));
  num("first", at(0));
  num("middle", at(MANY / 2));
  num("last", at(MANY - 1));
  S(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                          va + 7 * PAGE));
  num("start of the reservation", start == va);
  S(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                          va + 7 * PAGE));
  num("size", (long)size);
  S(cuMemUnmap(va, MANY * PAGE));
  S(cuMemUnmap(va, MANY * PAGE));
}


static void copied(void) {
  begin(8);
  map_run(8);
  cu->cuMemSetAccess(va, 8 * PAGE, &access, 1);
  number_pages(8);
  S(cuMemcpyDtoD(va + 4 * PAGE, va, 4 * PAGE));
  note_pages(4, 8);
  S(cuMemcpyDtoDAsync(va + PAGE / 2, va + 4 * PAGE, 3 * PAGE, s));
  S(cuMemcpyDtoHAsync(host, va + 2 * PAGE + PAGE / 2 - 32, 64, s));
  S(cuStreamSynchronize(s));
  num("before", host[0]);
  num("after", host[63]);
}


/* A graph's fill over a run, while its pages are replaced beneath it. */
static void replaced_under_a_graph(void) {
  CUgraph g = NULL;
  CUgraphExec e = NULL;
  begin(4);
  for (int i = 0; i < 2; i++)
    cu->cuMemMap(va + i * PAGE, PAGE, 0, h[i], 0);
  cu->cuMemSetAccess(va, 2 * PAGE, &access, 1);
  cu->cuStreamBeginCapture(s, TL);
  S(cuMemsetD8Async(va + PAGE - 32, 8, 64, s));
  S(cuStreamEndCapture(s, &g));
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  S(cuMemUnmap(va, 2 * PAGE));
  S(cuMemMap(va, PAGE, 0, h[2], 0));
  S(cuMemMap(va + PAGE, PAGE, 0, h[3], 0));
  S(cuMemSetAccess(va, 2 * PAGE, &access, 1));
  number_pages(2);
  S(cuGraphLaunch(e, s));
  S(cuMemcpyDtoHAsync(host, va + PAGE - 32, 64, s));
  S(cuStreamSynchronize(s));
  num("before", host[31]);
  num("after", host[32]);
  note_pages(0, 2);
}


/* ---- unmapping ---- */

static void unmap_runs(void) {
  begin(8);
  map_run(8);
  cu->cuMemSetAccess(va, 8 * PAGE, &access, 1);
  number_pages(8);
  S(cuMemUnmap(va + 2 * PAGE, 3 * PAGE));
  note_pages(0, 2);
  note_pages(5, 8);
  S(cuMemUnmap(va + PAGE, 6 * PAGE)); /* over the hole */
  num("page 0", at(0));
  num("page 7", at(7));
  S(cuMemMap(va + 3 * PAGE, PAGE, 0, h[2], 0));
  S(cuMemSetAccess(va + 3 * PAGE, PAGE, &access, 1));
  num("kept what it held", at(3));
}


/* A handle of two pages in the middle of a run. */
static void unmap_across(void) {
  begin(4);
  CUmemGenericAllocationHandle two = map_two();
  cu->cuMemMap(va + 3 * PAGE, PAGE, 0, h[1], 0);
  cu->cuMemSetAccess(va, 4 * PAGE, &access, 1);
  number_pages(4);
  S(cuMemUnmap(va, 2 * PAGE));
  S(cuMemUnmap(va + 2 * PAGE, 2 * PAGE));
  S(cuMemUnmap(va + PAGE, PAGE));
  note_pages(0, 4);
  S(cuMemUnmap(va, 3 * PAGE));
  num("page 3", at(3));
  S(cuMemMap(va, 2 * PAGE, 0, two, 0));
  S(cuMemSetAccess(va, 2 * PAGE, &access, 1));
  note_pages(0, 2);
}


static void moved(void) {
  begin(4);
  map_run(4);
  cu->cuMemSetAccess(va, 4 * PAGE, &access, 1);
  number_pages(4);
  S(cuMemUnmap(va, 4 * PAGE));
  for (int i = 0; i < 4; i++)
    cu->cuMemMap(va + (10 - i) * PAGE, PAGE, 0, h[i], 0);
  S(cuMemSetAccess(va + 7 * PAGE, 4 * PAGE, &access, 1));
  note_pages(7, 11);
}


/* ---- one handle at two places ---- */

static void twice(void) {
  begin(1);
  S(cuMemMap(va, PAGE, 0, h[0], 0));
  S(cuMemMap(va + PAGE, PAGE, 0, h[0], 0));
  S(cuMemMap(va + 5 * PAGE, PAGE, 0, h[0], 0));
  S(cuMemSetAccess(va, 2 * PAGE, &access, 1));
  S(cuMemSetAccess(va + 5 * PAGE, PAGE, &access, 1));
  S(cuMemsetD8(va, 6, PAGE));
  num("beside", at(1));
  num("elsewhere", at(5));
  S(cuMemUnmap(va, PAGE));
  num("beside", at(1));
  S(cuMemRelease(h[0]));
  S(cuMemsetD8(va + PAGE, 7, PAGE));
  num("elsewhere", at(5));
  S(cuMemUnmap(va + PAGE, PAGE));
  num("elsewhere", at(5));
  S(cuMemUnmap(va + 5 * PAGE, PAGE));
}


/* ---- access ---- */

static void access_runs(void) {
  begin(6);
  map_run(6);
  S(cuMemSetAccess(va + 2 * PAGE, 2 * PAGE, &access, 1));
  S(cuMemSetAccess(va, 6 * PAGE, &access, 1)); /* part of it again */
  number_pages(6);
  note_pages(0, 6);
  cu->cuMemUnmap(va + 3 * PAGE, PAGE);
  S(cuMemSetAccess(va, 6 * PAGE, &access, 1)); /* over a hole */
  S(cuMemMap(va + 3 * PAGE, PAGE, 0, h[3], 0));
  S(cuMemSetAccess(va + 2 * PAGE, 3 * PAGE, &access, 1));
  note_pages(2, 5);
}


static void access_of_a_part(void) {
  begin(2);
  map_two();
  S(cuMemSetAccess(va, 2 * PAGE, &access, 1));
  S(cuMemSetAccess(va + PAGE, PAGE, &access, 1));
  S(cuMemSetAccess(va, 3 * PAGE, &access, 1));
  S(cuMemsetD8(va, 3, 3 * PAGE));
  num("page 2", at(2));
}


static void access_beside_holes(void) {
  begin(2);
  cu->cuMemMap(va + PAGE, PAGE, 0, h[0], 0);
  cu->cuMemMap(va + 2 * PAGE, PAGE, 0, h[1], 0);
  S(cuMemSetAccess(va, 3 * PAGE, &access, 1));
  S(cuMemSetAccess(va + PAGE, 3 * PAGE, &access, 1));
  S(cuMemSetAccess(va, 4 * PAGE, &access, 1));
  S(cuMemSetAccess(va + PAGE, 2 * PAGE, &access, 1));
  num("page 1", at(1) >= 0);
}


/* What lies before and after a hole. */
static void access_over_a_hole(void) {
  begin(2);
  cu->cuMemMap(va, PAGE, 0, h[0], 0);
  cu->cuMemMap(va + 2 * PAGE, PAGE, 0, h[1], 0);
  S(cuMemSetAccess(va, 3 * PAGE, &access, 1));
  num("page 0", at(0) >= 0);
  num("page 2", at(2) >= 0);
}


/* ---- beside work in flight ---- */

/* Whether the calls return while work of a stream is still underway. */
static void in_flight(void) {
  CUmemGenericAllocationHandle more = 0;
  begin(4);
  map_run(3);
  cu->cuMemSetAccess(va, 3 * PAGE, &access, 1);
  cu->cuMemAlloc(&q, 64);
  cu->cuStreamSynchronize(s);
  sleep_on();
  cu->cuLaunchHostFunc(s, doze, NULL);
  cu->cuMemsetD8Async(va, 4, PAGE, s);
  S(cuMemCreate(&more, PAGE, &prop, 0));
  S(cuStreamQuery(s));
  S(cuMemMap(va + 3 * PAGE, PAGE, 0, h[3], 0));
  S(cuStreamQuery(s));
  S(cuMemSetAccess(va + 3 * PAGE, PAGE, &access, 1));
  S(cuStreamQuery(s));
  S(cuMemUnmap(va + PAGE, 2 * PAGE));
  S(cuStreamQuery(s));
  S(cuMemRelease(h[1]));
  S(cuStreamQuery(s));
  wake();
  S(cuStreamSynchronize(s));
  num("page 0", at(0));
}


static const question questions[] = {
    {"mappings: sixty-four handles are one range", many},
    {"mappings: copies over runs of handles", copied},
    {"mappings: handles replaced under an executable graph",
     replaced_under_a_graph},
    {"mappings: several handles unmapped at once, over a hole, mapped again",
     unmap_runs},
    {"mappings: unmapped across a handle of two pages", unmap_across},
    {"mappings: handles in another order elsewhere", moved},
    {"mappings: one handle at three places", twice},
    {"mappings: access to runs, again, over a hole", access_runs},
    {"mappings: access to a part of a handle", access_of_a_part},
    {"mappings: access from a hole, to a hole", access_beside_holes},
    {"mappings: made and undone while a stream works", in_flight},
};

static const question alone[] = {
    {"mappings: access over a hole alone", access_over_a_hole},
};


void ask_mappings(void) {
  row_list(questions, sizeof questions / sizeof *questions);
  row_list_alone(alone, sizeof alone / sizeof *alone);
}
