/* The kernels of a device: compiled at first use, found again. */
#include "algo/algo.h"
#include "algo/kernels_text.h"
#include "core/base/error.h"
#include "core/kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = CGL_BLAS_COUNT }; /* of one source */

static const char *const texts[] = {
#define X(name) [CGL_ALGO_##name] = cgl_text_##name,
    CGL_ALGO_SOURCES(X)
#undef X
};

/* A source that was compiled. */
typedef struct algo_module {
  cgl_algo_source source;
  char *definitions; /* owned */
  cgl_module *module;
  cgl_kernel *kernels[KERNELS]; /* those that were asked for */
} algo_module;

struct cgl_algo {
  cgl_context *context; /* retained */
  algo_module *modules;
  size_t count, room;
};


cgl_status cgl_algo_create(cgl_context *context, cgl_algo **out) {
  cgl_algo *algo = calloc(1, sizeof *algo);
  if (!algo)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "algo", "no memory for algorithms");
  algo->context = cgl_context_retain(context);
  *out = algo;
  return CGL_OK;
}


void cgl_algo_destroy(cgl_algo *algo) {
  if (!algo)
    return;
  for (size_t i = 0; i < algo->count; i++) {
    for (int k = 0; k < KERNELS; k++)
      cgl_kernel_release(algo->modules[i].kernels[k]);
    cgl_module_release(algo->modules[i].module);
    free(algo->modules[i].definitions);
  }
  free(algo->modules);
  cgl_context_release(algo->context);
  free(algo);
}


static cgl_status module_compile(cgl_algo *algo, cgl_algo_source source,
                                 const char *definitions, cgl_module **module,
                                 const char *operation) {
  const size_t room =
      strlen(cgl_text_types) + strlen(definitions) + strlen(texts[source]) + 1;
  char *whole = malloc(room);
  if (!whole)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a source");
  snprintf(whole, room, "%s%s%s", cgl_text_types, definitions, texts[source]);
  const cgl_module_desc desc = {
      .source = whole, .file = "cgraphlua", .line = 1};
  cgl_status status = cgl_module_create(algo->context, &desc, module);
  free(whole);
  return status;
}


/* The module, compiled if need be; NULL with a status. */
static algo_module *module_find(cgl_algo *algo, cgl_algo_source source,
                                const char *definitions, const char *operation,
                                cgl_status *status) {
  for (size_t i = 0; i < algo->count; i++)
    if (algo->modules[i].source == source &&
        !strcmp(algo->modules[i].definitions, definitions))
      return &algo->modules[i];
  if (algo->count == algo->room) {
    const size_t room = algo->room ? 2 * algo->room : 16;
    algo_module *modules = realloc(algo->modules, room * sizeof *modules);
    if (modules) {
      algo->modules = modules;
      algo->room = room;
    }
  }
  algo_module made = {.source = source, .definitions = strdup(definitions)};
  if (algo->count == algo->room || !made.definitions)
    *status =
        cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a kernel");
  else
    *status =
        module_compile(algo, source, definitions, &made.module, operation);
  if (*status) {
    free(made.definitions);
    return NULL;
  }
  algo->modules[algo->count] = made;
  return &algo->modules[algo->count++];
}


cgl_status cgl_algo_kernel(cgl_algo *algo, cgl_algo_source source,
                           const char *name, const char *definitions,
                           const char *operation, cgl_kernel **kernel) {
  cgl_status status = CGL_OK;
  algo_module *module =
      module_find(algo, source, definitions, operation, &status);
  for (int k = 0; module && k < KERNELS; k++) {
    cgl_kernel **place = &module->kernels[k];
    if (!*place && !(status = cgl_module_kernel(module->module, name, place)))
      (*place)->plain = true;
    if (status || !strcmp(cgl_kernel_name(*place), name)) {
      *kernel = *place;
      break;
    }
  }
  return status;
}


const char *cgl_algo_type_text(cgl_type type) {
  static const char *const names[CGL_TYPE_COUNT] = {
      [CGL_TYPE_float] = "float",      [CGL_TYPE_double] = "double",
      [CGL_TYPE_int8] = "signed char", [CGL_TYPE_uint8] = "unsigned char",
      [CGL_TYPE_int16] = "short",      [CGL_TYPE_uint16] = "unsigned short",
      [CGL_TYPE_int32] = "int",        [CGL_TYPE_uint32] = "unsigned",
      [CGL_TYPE_int64] = "long long",  [CGL_TYPE_uint64] = "unsigned long long",
      [CGL_TYPE_half] = "half_t",      [CGL_TYPE_bfloat16] = "bfloat16_t",
      [CGL_TYPE_bool] = "bool",
  };
  return names[type];
}


cgl_status cgl_algo_check_number(const cgl_buffer *buffer,
                                 const char *operation) {
  const cgl_type type = cgl_buffer_type(buffer);
  if (cgl_type_lanes(type) == 1)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "elements of %s have %d numbers each", cgl_type_name(type),
           cgl_type_lanes(type));
  return cgl_fail_hint("it takes elements that are numbers; a kernel of the "
                       "script's takes any");
}


bool cgl_algo_is_whole(cgl_type type) {
  return type != CGL_TYPE_float && type != CGL_TYPE_double &&
         type != CGL_TYPE_half && type != CGL_TYPE_bfloat16;
}


const char *cgl_algo_shape_text(const cgl_buffer *buffer,
                                char text[CGL_ALGO_SHAPE_ROOM]) {
  size_t extents[CGL_MAX_DIMS], at = 0;
  const int ndims = cgl_buffer_shape(buffer, extents);
  for (int d = 0; d < ndims; d++)
    at += (size_t)snprintf(text + at, CGL_ALGO_SHAPE_ROOM - at, "%s%zu",
                           d ? ", " : "{", extents[d]);
  snprintf(text + at, CGL_ALGO_SHAPE_ROOM - at, "} %s",
           cgl_type_name(cgl_buffer_type(buffer)));
  return text;
}


cgl_type cgl_algo_wide_type(cgl_type type) {
  switch (type) {
  case CGL_TYPE_uint8:
  case CGL_TYPE_uint16:
  case CGL_TYPE_uint32:
  case CGL_TYPE_uint64:
    return CGL_TYPE_uint64;
  default:
    return cgl_algo_is_whole(type) ? CGL_TYPE_int64 : type;
  }
}


const char *cgl_algo_worst_text(cgl_type type, bool small) {
  switch (type) {
  case CGL_TYPE_float:
    return small ? "__int_as_float(0x7f800000)" : "-__int_as_float(0x7f800000)";
  case CGL_TYPE_double:
    return small ? "__longlong_as_double(0x7ff0000000000000LL)"
                 : "-__longlong_as_double(0x7ff0000000000000LL)";
  case CGL_TYPE_bool:
    return small ? "1" : "0";
  case CGL_TYPE_int8:
    return small ? "127" : "-128";
  case CGL_TYPE_int16:
    return small ? "32767" : "-32768";
  case CGL_TYPE_int32:
    return small ? "0x7fffffff" : "(-0x7fffffff - 1)";
  case CGL_TYPE_int64:
    return small ? "0x7fffffffffffffffLL" : "(-0x7fffffffffffffffLL - 1)";
  case CGL_TYPE_uint8:
    return small ? "255" : "0";
  case CGL_TYPE_uint16:
    return small ? "65535" : "0";
  case CGL_TYPE_uint32:
    return small ? "0xffffffffu" : "0u";
  default:
    return small ? "0xffffffffffffffffull" : "0ull";
  }
}


cgl_launch cgl_algo_blocks(uint64_t blocks, uint32_t threads) {
  const uint64_t most = (UINT64_C(1) << 31) - 1;
  const uint64_t y = cgl_algo_divide_up(blocks, most);
  return (cgl_launch){
      .grid = {(uint32_t)cgl_algo_divide_up(blocks, y), (uint32_t)y},
      .block = {threads}};
}


cgl_launch cgl_algo_rows(uint64_t elements, uint64_t of_block) {
  const uint64_t row = UINT64_C(1) << 30;
  const uint64_t width = elements < row ? elements : row;
  return (cgl_launch){.grid = {(uint32_t)cgl_algo_divide_up(width, of_block),
                               (uint32_t)cgl_algo_divide_up(elements, row)},
                      .block = {CGL_ALGO_BLOCK}};
}
