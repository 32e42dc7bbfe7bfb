/* cgraphlua: capture, instantiate and replay CUDA graphs, on a GPU or on the
   host device, from C and (through the same core) from LuaJIT.
   Idea: objects are opaque and reference counted.  Work is asynchronous on
   streams.  An operation that is issued into a capturing stream becomes a
   graph node, and is noted in the graph's recording with its script line.
   Invariants: a call does all that it says, or returns a status and changes
   nothing; cgl_last_error has the reason.  The library never prints, exits or
   jumps.  A graph keeps alive what it uses.
   Pointers to objects, streams and results must not be NULL, unless the
   comment says that they may be; cgl_stream_default is the default stream.
   Units: bytes and elements as named, sizes in size_t, times in ms.
   doc/manual.md has the glossary. */
#ifndef CGRAPHLUA_H
#define CGRAPHLUA_H

/* What this header belongs to; cgl_version has what the library belongs to. */
#define CGL_VERSION "0.1.0"
#define CGL_VERSION_MAJOR 0
#define CGL_VERSION_MINOR 1
#define CGL_VERSION_PATCH 0

#include "cgraphlua/base.h"
#include "cgraphlua/context.h"
#include "cgraphlua/stream.h"
#include "cgraphlua/buffer.h"
#include "cgraphlua/pool.h"
#include "cgraphlua/param.h"
#include "cgraphlua/kernel.h"
#include "cgraphlua/call.h"
#include "cgraphlua/graph.h"
#include "cgraphlua/conditional.h"
#include "cgraphlua/generator.h"
#include "cgraphlua/algo.h"
#include "cgraphlua/blas.h"
#include "cgraphlua/fft.h"
#include "cgraphlua/file.h"
#include "cgraphlua/ranks.h"

#endif
