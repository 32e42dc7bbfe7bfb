/* Copies and fills of rows and planes: pitches, offsets, ends, nothing. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s;
static CUdeviceptr q; /* 64 KiB */
static char host[4096];


static void begin(void) {
  s = NS();
  cu->cuMemAlloc(&q, 65536);
  cu->cuMemsetD8(q, 0, 65536);
  cu->cuCtxSynchronize(); /* the stream does not wait for it */
  for (size_t i = 0; i < sizeof host; i++)
    host[i] = (char)(i % 64);
}


/* 4 rows of 8 bytes from host memory of pitch 16 to the device's of 32. */
static CUDA_MEMCPY2D rows(void) {
  CUDA_MEMCPY2D c;
  memset(&c, 0, sizeof c);
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = host;
  c.srcPitch = 16;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = q;
  c.dstPitch = 32;
  c.WidthInBytes = 8;
  c.Height = 4;
  return c;
}


/* 2 planes of 3 rows of 8 bytes within the device. */
static CUDA_MEMCPY3D planes(void) {
  CUDA_MEMCPY3D c;
  memset(&c, 0, sizeof c);
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = q;
  c.srcPitch = 16;
  c.srcHeight = 4;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = q + 32768;
  c.dstPitch = 32;
  c.dstHeight = 8;
  c.WidthInBytes = 8;
  c.Height = 3;
  c.Depth = 2;
  return c;
}


static long byte_at(CUdeviceptr p) {
  char c = -1;
  cu->cuMemcpyDtoH(&c, p, 1);
  return c;
}


static void row_copy(void) {
  CUDA_MEMCPY2D c;
  begin();
  c = rows();
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamSynchronize(s));
  num("first", byte_at(q + 1));
  num("last", byte_at(q + 3 * 32 + 7));
  num("beside it", byte_at(q + 3 * 32 + 8));
  c.srcXInBytes = 2;
  c.srcY = 1;
  c.dstXInBytes = 4;
  c.dstY = 2;
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamSynchronize(s));
  num("first", byte_at(q + 2 * 32 + 4));
  num("before it", byte_at(q + 2 * 32 + 3));
  num("last", byte_at(q + 5 * 32 + 11));
}


static void row_pitches(void) {
  CUDA_MEMCPY2D c;
  begin();
  c = rows();
  c.srcPitch = 4;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.dstPitch = 7;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.srcPitch = c.dstPitch = 8;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.srcXInBytes = 12;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.Height = 1;
  c.srcPitch = 4;
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamSynchronize(s));
}


static void row_default_pitch(void) {
  CUDA_MEMCPY2D c;
  begin();
  c = rows();
  c.srcPitch = c.dstPitch = 0;
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamSynchronize(s));
  num("second row", byte_at(q + 8));
}


static void row_nothing(void) {
  CUDA_MEMCPY2D c;
  begin();
  c = rows();
  c.WidthInBytes = 0;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.Height = 0;
  S(cuMemcpy2DAsync(&c, s));
  c.srcHost = NULL;
  c.dstDevice = 0;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.WidthInBytes = 0;
  c.srcPitch = 0;
  c.dstMemoryType = 9;
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamSynchronize(s));
}


static void row_null(void) {
  CUDA_MEMCPY2D c;
  begin();
  c = rows();
  c.srcHost = NULL;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.dstDevice = 0;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = 0;
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamSynchronize(s));
}


static void row_types(void) {
  CUDA_MEMCPY2D c;
  begin();
  c = rows();
  c.srcMemoryType = 0;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.srcMemoryType = 9;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  c.srcDevice = (CUdeviceptr)(size_t)host;
  c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  S(cuMemcpy2DAsync(&c, s));
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamSynchronize(s));
  num("last", byte_at(q + 3 * 32 + 7));
}


static void row_past_the_end(void) {
  CUDA_MEMCPY2D c;
  begin();
  c = rows();
  c.Height = 1 << 20;
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = d;
  c.srcPitch = c.dstPitch = 1 << 10;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.dstY = 1 << 26;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.dstPitch = (size_t)1 << 40;
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamSynchronize(s));
}


static void row_captured(void) {
  CUDA_MEMCPY2D c;
  CUDA_MEMCPY3D seen;
  CUgraph g = NULL;
  CUgraphExec e = NULL;
  CUgraphNode n = NULL;
  size_t one = 1;
  begin();
  c = rows();
  c.dstXInBytes = 4;
  c.dstY = 1;
  cu->cuStreamBeginCapture(s, TL);
  S(cuMemcpy2DAsync(&c, s));
  S(cuStreamEndCapture(s, &g));
  cu->cuGraphGetNodes(g, &n, &one);
  memset(&seen, 0, sizeof seen);
  S(cuGraphMemcpyNodeGetParams(n, &seen));
  num("width", (long)seen.WidthInBytes);
  num("height", (long)seen.Height);
  num("depth", (long)seen.Depth);
  num("pitches", (long)(seen.srcPitch * 100 + seen.dstPitch));
  num("place", (long)(seen.dstXInBytes * 100 + seen.dstY));
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  num("last", byte_at(q + 4 * 32 + 11));
}


static void row_captured_bad(void) {
  CUDA_MEMCPY2D c;
  CUgraph g = NULL;
  begin();
  cu->cuStreamBeginCapture(s, TL);
  c = rows();
  c.WidthInBytes = 0;
  S(cuMemcpy2DAsync(&c, s));
  c = rows();
  c.srcPitch = 4;
  S(cuMemcpy2DAsync(&c, s));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


static void plane_copy(void) {
  CUDA_MEMCPY3D c;
  begin();
  cu->cuMemcpyHtoD(q, host, sizeof host);
  c = planes();
  S(cuMemcpy3DAsync(&c, s));
  S(cuStreamSynchronize(s));
  num("second row", byte_at(q + 32768 + 32));
  num("second plane", byte_at(q + 32768 + 8 * 32));
  num("last", byte_at(q + 32768 + 10 * 32 + 7));
  num("beside it", byte_at(q + 32768 + 10 * 32 + 8));
  c.srcZ = 1;
  c.dstZ = 3;
  c.srcY = 1;
  c.dstXInBytes = 16;
  S(cuMemcpy3DAsync(&c, s));
  S(cuStreamSynchronize(s));
  num("first", byte_at(q + 32768 + 24 * 32 + 16));
  num("last", byte_at(q + 32768 + 34 * 32 + 23));
}


static void plane_bad(void) {
  CUDA_MEMCPY3D c;
  begin();
  c = planes();
  c.srcHeight = 2;
  S(cuMemcpy3DAsync(&c, s));
  c = planes();
  c.srcY = 2;
  S(cuMemcpy3DAsync(&c, s));
  c = planes();
  c.dstPitch = 4;
  S(cuMemcpy3DAsync(&c, s));
  c = planes();
  c.srcLOD = 1;
  S(cuMemcpy3DAsync(&c, s));
  c = planes();
  c.Depth = 1 << 20;
  c.srcHeight = c.dstHeight = 1 << 10;
  S(cuMemcpy3DAsync(&c, s));
  c = planes();
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  S(cuMemcpy3DAsync(&c, s));
  S(cuStreamSynchronize(s));
}


static void plane_nothing(void) {
  CUDA_MEMCPY3D c;
  begin();
  c = planes();
  c.Depth = 0;
  S(cuMemcpy3DAsync(&c, s));
  c = planes();
  c.Height = 0;
  S(cuMemcpy3DAsync(&c, s));
  c = planes();
  c.WidthInBytes = 0;
  S(cuMemcpy3DAsync(&c, s));
  S(cuStreamSynchronize(s));
}


static void plane_defaults(void) {
  CUDA_MEMCPY3D c;
  begin();
  cu->cuMemcpyHtoD(q, host, sizeof host);
  c = planes();
  c.srcPitch = c.srcHeight = c.dstPitch = c.dstHeight = 0;
  S(cuMemcpy3DAsync(&c, s));
  S(cuStreamSynchronize(s));
  num("second row", byte_at(q + 32768 + 8));
  num("second plane", byte_at(q + 32768 + 24));
}


static void no_description(void) {
  s = NS();
  S(cuMemcpy2DAsync(0, s));
  S(cuMemcpy3DAsync(0, s));
}


/* ---- fills ---- */

static void fill_rows(void) {
  begin();
  S(cuMemsetD2D8Async(q, 64, 5, 8, 3, s));
  S(cuMemsetD2D32Async(q + 16, 64, 0x07070707, 2, 2, s));
  S(cuStreamSynchronize(s));
  num("first", byte_at(q));
  num("last", byte_at(q + 2 * 64 + 7));
  num("beside it", byte_at(q + 2 * 64 + 8));
  num("of words", byte_at(q + 64 + 23));
  num("below them", byte_at(q + 2 * 64 + 16));
}


static void fill_bad(void) {
  begin();
  S(cuMemsetD2D8Async(q, 4, 5, 8, 3, s));
  S(cuMemsetD2D8Async(q, 4, 5, 8, 1, s));
  S(cuMemsetD2D8Async(q, 0, 5, 8, 1, s));
  S(cuMemsetD2D32Async(q, 30, 5, 2, 3, s));
  S(cuMemsetD2D32Async(q + 2, 32, 5, 2, 3, s));
  S(cuMemsetD16Async(q + 1, 5, 2, s));
  S(cuMemsetD2D8Async(q, (size_t)1 << 40, 5, 8, 3, s));
  S(cuMemsetD8Async(0, 5, 8, s));
  S(cuStreamSynchronize(s));
}


static void fill_nothing(void) {
  begin();
  S(cuMemsetD2D8Async(q, 64, 5, 0, 3, s));
  S(cuMemsetD2D8Async(q, 64, 5, 8, 0, s));
  S(cuMemsetD2D32Async(0, 64, 5, 0, 0, s));
  S(cuMemsetD16Async(q + 1, 5, 0, s));
  S(cuMemsetD8Async(0, 5, 0, s));
  S(cuStreamSynchronize(s));
}


static void fill_captured_bad(void) {
  CUgraph g = NULL;
  begin();
  cu->cuStreamBeginCapture(s, TL);
  S(cuMemsetD2D8Async(q, 64, 5, 0, 3, s));
  S(cuMemsetD2D8Async(q, 4, 5, 8, 3, s));
  num("status", st(s));
  S(cuMemsetD16Async(q + 1, 5, 2, s));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


static const question questions[] = {
    {"rows: copied, then at offsets", row_copy},
    {"rows: pitch less than the width, as much, less with the offset, one row",
     row_pitches},
    {"rows: no pitch given", row_default_pitch},
    {"rows: no width, no height, with null, with a bad type", row_nothing},
    {"rows: from and to null", row_null},
    {"rows: types of memory", row_types},
    {"rows: captured", row_captured},
    {"rows: captured: nothing, a bad pitch", row_captured_bad},
    {"planes: copied, then at offsets", plane_copy},
    {"planes: no depth, no height, no width", plane_nothing},
    {"planes: no pitch and height given", plane_defaults},
    {"fills of rows", fill_rows},
    {"fills of nothing", fill_nothing},
    {"fills captured: nothing, a bad pitch, alignment", fill_captured_bad},
};


/* A driver that took these would lose the context. */
static const question alone[] = {
    {"rows: past the end", row_past_the_end},
    {"planes: height, row, pitch, level, depth, array", plane_bad},
    {"fills of rows: pitch, one row, alignment, past the end, null", fill_bad},
    {"rows and planes: no description", no_description},
};


void ask_planes(void) {
  row_list(questions, sizeof questions / sizeof *questions);
  row_list_alone(alone, sizeof alone / sizeof *alone);
}
