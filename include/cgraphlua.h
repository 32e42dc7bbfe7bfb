/* cgraphlua: capture, instantiate and replay CUDA graphs, on a GPU or on the
   host device, from C and (through the same core) from LuaJIT.
   Idea: objects are reference counted and opaque; work is asynchronous on
   streams; whatever is issued into a capturing stream becomes a graph node
   and is noted in the graph's recording together with the script line.
   Invariants: a call either does all it says or returns a status and leaves
   the state as it was (and the reason in cgl_last_error); the library never
   prints, exits or jumps; what a graph uses stays alive as long as the graph.
   Objects and places for results are never NULL where nothing says that they
   may be; a stream neither: cgl_stream_default is the default stream.
   Units are bytes and elements as named; sizes are size_t; times are ms. */
#ifndef CGRAPHLUA_H
#define CGRAPHLUA_H

#define CGL_VERSION "0.1.0"

#include "cgraphlua/base.h"
#include "cgraphlua/context.h"
#include "cgraphlua/stream.h"
#include "cgraphlua/buffer.h"
#include "cgraphlua/pool.h"
#include "cgraphlua/kernel.h"
#include "cgraphlua/graph.h"
#include "cgraphlua/generator.h"

#endif
