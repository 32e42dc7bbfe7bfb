/* Kernel arguments: what a script passes against what the source declares. */
#include "compile/base/base.h"
#include "core/base/half.h"
#include "core/kernel/kernel.h"
#include "core/memory/memory.h"
#include "core/random/random.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>


cgl_status cgl_arg_refuse(cgl_status status, const cgl_kernel *kernel,
                          size_t index, const char *operation,
                          const char *format, ...) {
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  char parameter[200] = "", text[400];
  va_list args;
  va_start(args, format);
  cgl_format_into(text, sizeof text, format, args);
  va_end(args);
  if (p)
    snprintf(parameter, sizeof parameter, " (%s %s)", p->type, p->name);
  return cgl_fail(status, operation, "argument %zu of %s%s %s", index + 1,
                  kernel->name, parameter, text);
}


static cgl_status refuse_type(const cgl_kernel *kernel, size_t index,
                              const cgl_arg *arg, const char *wanted,
                              const char *operation) {
  static const char *const given[] = {
      [CGL_ARG_BUFFER] = "a buffer",     [CGL_ARG_PINNED] = "pinned memory",
      [CGL_ARG_NULL] = "a null pointer", [CGL_ARG_ADDRESS] = "an address",
      [CGL_ARG_INT] = "an integer",      [CGL_ARG_UINT] = "an integer",
      [CGL_ARG_NUMBER] = "a number",     [CGL_ARG_BOOL] = "a boolean",
      [CGL_ARG_BYTES] = "bytes",         [CGL_ARG_GENERATOR] = "a generator",
      [CGL_ARG_SAME] = "nothing",        [CGL_ARG_PARAM] = "a parameter",
  };
  cgl_arg_refuse(CGL_ERROR_ARGUMENT_TYPE, kernel, index, operation,
                 "wants %s, not %s", wanted, given[arg->kind]);
  if (arg->kind == CGL_ARG_BYTES)
    return cgl_fail_hint("turn text into a number first; only structs go as "
                         "bytes");
  return cgl_fail_hint("kernel:parameters tells what %s takes", kernel->name);
}


/* ---- pointers ---- */

/* What a pointer parameter accepts: its own element type, either sign of it,
   a vector's numbers one by one, and raw bytes or unknown types whatever they
   are. */
static bool element_fits(const cgl_parameter *p, cgl_type type) {
#define T(name) (1u << CGL_TYPE_##name)
  static const unsigned fits[CGL_KIND_COUNT] = {
      [CGL_KIND_INT16] = T(int16) | T(uint16),
      [CGL_KIND_UINT16] = T(int16) | T(uint16),
      [CGL_KIND_INT32] = T(int32) | T(uint32),
      [CGL_KIND_UINT32] = T(int32) | T(uint32),
      [CGL_KIND_INT64] = T(int64) | T(uint64),
      [CGL_KIND_UINT64] = T(int64) | T(uint64),
      [CGL_KIND_HALF] = T(half),
      [CGL_KIND_BFLOAT16] = T(bfloat16),
      [CGL_KIND_FLOAT] = T(float),
      [CGL_KIND_DOUBLE] = T(double),
  };
#undef T
  const cgl_type number = cgl_type_number(type);
  const int lanes = cgl_type_lanes(type);
  if (!fits[p->kind] && (p->lanes <= 1 || lanes == 1))
    return true;
  return (lanes == 1 || lanes == p->lanes) &&
         (fits[p->kind] ? fits[p->kind] >> number & 1
                        : cgl_type_bytes(number) == 1);
}


static cgl_status pack_pointer(const cgl_kernel *kernel, size_t index,
                               const cgl_arg *arg, const char *operation,
                               void *out) {
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  CUdeviceptr address = 0;
  cgl_object *object = NULL;
  cgl_type type = CGL_TYPE_COUNT;
  cgl_status status = CGL_OK;
  switch (arg->kind) {
  case CGL_ARG_NULL:
    break;
  case CGL_ARG_ADDRESS:
    address = arg->address;
    break;
  case CGL_ARG_BUFFER:
    address = arg->buffer->address;
    object = &arg->buffer->object;
    type = arg->buffer->type;
    status = cgl_buffer_check(arg->buffer, operation);
    if (status)
      return status;
    break;
  case CGL_ARG_PINNED:
    address = (CUdeviceptr)(uintptr_t)arg->pinned->data;
    object = &arg->pinned->object;
    type = arg->pinned->type;
    break;
  default:
    refuse_type(kernel, index, arg, "a buffer", operation);
    return cgl_fail_hint("numbers go by value; a pointer parameter takes a "
                         "buffer or pinned memory");
  }
  if (object && object->context != kernel->object.context) {
    cgl_arg_refuse(CGL_ERROR_WRONG_DEVICE, kernel, index, operation,
                   "is on device %s, the kernel on %s",
                   object->context->info.device,
                   kernel->object.context->info.device);
    return cgl_fail_hint("copy the data to the kernel's device first");
  }
  if (p && type != CGL_TYPE_COUNT && p->pointer == 1 &&
      !element_fits(p, type)) {
    cgl_arg_refuse(CGL_ERROR_ARGUMENT_TYPE, kernel, index, operation,
                   "is a buffer of %s", cgl_type_name(type));
    return cgl_fail_hint("make the buffer with the kernel's element type");
  }
  memcpy(out, &address, sizeof address);
  return CGL_OK;
}


/* ---- numbers ---- */

/* A script's number that fits: nearly every argument.  False leaves it to the
   exact way, which also says what is wrong. */
static bool pack_whole_number(double number, size_t size, bool is_signed,
                              void *out) {
  double limit = 9007199254740992.0;
  if (size < 8)
    limit = (double)(UINT64_C(1) << (8 * size - is_signed));
  if (!(number >= (is_signed ? -limit : 0) && number < limit))
    return false;
  int64_t value = (int64_t)number;
  if ((double)value != number)
    return false;
  if (size == 4)
    memcpy(out, &value, 4);
  else
    memcpy(out, &value, size);
  return true;
}


static cgl_status pack_integer(const cgl_kernel *kernel, size_t index,
                               const cgl_arg *arg, size_t size, bool is_signed,
                               const char *operation, void *out) {
  if (arg->kind == CGL_ARG_NUMBER &&
      pack_whole_number(arg->number, size, is_signed, out))
    return CGL_OK;
  const __int128 low = is_signed ? -((__int128)1 << (8 * size - 1)) : 0;
  const __int128 high = low + ((__int128)1 << (8 * size)) - 1;
  __int128 value;
  switch (arg->kind) {
  case CGL_ARG_INT:
    value = arg->i;
    break;
  case CGL_ARG_UINT:
    value = arg->u;
    break;
  case CGL_ARG_BOOL:
    value = arg->boolean;
    break;
  case CGL_ARG_NUMBER:
    if (fabs(arg->number) <= 9007199254740992.0 &&
        arg->number == floor(arg->number)) {
      value = (__int128)arg->number;
      break;
    }
    cgl_arg_refuse(CGL_ERROR_ARGUMENT_RANGE, kernel, index, operation,
                   "is %.17g; it wants a whole number within 2^53, up to "
                   "which every one is exact",
                   arg->number);
    return cgl_fail_hint("round it, or pass 64-bit integers as int64_t cdata");
  default:
    return refuse_type(kernel, index, arg, "a whole number", operation);
  }
  if (value < low || value > high) {
    cgl_arg_refuse(CGL_ERROR_ARGUMENT_RANGE, kernel, index, operation,
                   "is %.17g, outside %.17g..%.17g", (double)value, (double)low,
                   (double)high);
    return cgl_fail_hint("pass a value that fits, or widen the parameter's "
                         "type");
  }
  unsigned __int128 bits = (unsigned __int128)value;
  memcpy(out, &bits, size);
  return CGL_OK;
}


static cgl_status pack_real(const cgl_kernel *kernel, size_t index,
                            const cgl_arg *arg, cgl_kind kind,
                            const char *operation, void *out) {
  double number;
  if (arg->kind == CGL_ARG_NUMBER)
    number = arg->number;
  else if (arg->kind == CGL_ARG_INT)
    number = (double)arg->i;
  else if (arg->kind == CGL_ARG_UINT)
    number = (double)arg->u;
  else
    return refuse_type(kernel, index, arg, "a number", operation);
  float single = (float)number;
  if (kind == CGL_KIND_DOUBLE)
    memcpy(out, &number, sizeof number);
  else if (kind == CGL_KIND_FLOAT)
    memcpy(out, &single, sizeof single);
  else {
    uint16_t half =
        kind == CGL_KIND_HALF ? cgl_half_of(number) : cgl_bfloat16_of(number);
    memcpy(out, &half, sizeof half);
  }
  return CGL_OK;
}


static cgl_status pack_bytes(const cgl_kernel *kernel, size_t index,
                             const cgl_arg *arg, const char *operation,
                             void *out) {
  size_t size = kernel->sizes[index];
  if (arg->kind == CGL_ARG_BYTES && arg->bytes.size == size) {
    memcpy(out, arg->bytes.data, size);
    return CGL_OK;
  }
  if (arg->kind == CGL_ARG_BYTES) {
    cgl_arg_refuse(CGL_ERROR_ARGUMENT_TYPE, kernel, index, operation,
                   "is %zu bytes, the parameter %zu", arg->bytes.size, size);
    return cgl_fail_hint("declare the struct alike in the script and in the "
                         "source, padding included");
  }
  refuse_type(kernel, index, arg, "its bytes", operation);
  return cgl_fail_hint("pass a struct as cdata or as a string of %zu bytes",
                       size);
}


/* Without a signature only the size is known: a buffer fits eight bytes, and
   a bare number could be anything. */
static cgl_status pack_unknown(const cgl_kernel *kernel, size_t index,
                               const cgl_arg *arg, const char *operation,
                               void *out) {
  bool pointer = arg->kind == CGL_ARG_BUFFER || arg->kind == CGL_ARG_PINNED ||
                 arg->kind == CGL_ARG_NULL || arg->kind == CGL_ARG_ADDRESS;
  if (pointer && kernel->sizes[index] == sizeof(CUdeviceptr))
    return pack_pointer(kernel, index, arg, operation, out);
  return pack_bytes(kernel, index, arg, operation, out);
}


/* Only checked: which number a launch gets, the launch knows. */
static cgl_status arg_check_generator(const cgl_kernel *kernel, size_t index,
                                      const cgl_arg *arg,
                                      const char *operation) {
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  bool takes = p ? p->kind == CGL_KIND_PHILOX && !p->pointer
                 : kernel->sizes[index] == sizeof(cgl_philox);
  if (takes && arg->kind != CGL_ARG_GENERATOR) {
    refuse_type(kernel, index, arg, "a generator", operation);
    return cgl_fail_hint("pass what cg.generator or cg.default_generator "
                         "returned");
  }
  if (!takes) {
    cgl_arg_refuse(CGL_ERROR_ARGUMENT_TYPE, kernel, index, operation,
                   "is a generator");
    return cgl_fail_hint("only a cgl_philox parameter takes a generator");
  }
  return cgl_object_check_device(&kernel->object, &arg->generator->object,
                                 operation);
}


/* Of the very type, so that no value that it is set to can be refused later.
   A struct, and what a kernel without a signature takes, is bytes: uint8. */
static cgl_status pack_param(const cgl_kernel *kernel, size_t index,
                             const cgl_arg *arg, const char *operation,
                             void *out) {
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  const cgl_param *param = arg->param;
  const cgl_type type = p ? cgl_kernel_element(p->kind) : CGL_TYPE_COUNT;
  const size_t lanes = p && p->lanes > 1 ? (size_t)p->lanes : 1;
  const size_t bytes = kernel->sizes[index];
  if (p && (p->pointer || p->kind == CGL_KIND_PHILOX))
    return refuse_type(kernel, index, arg,
                       p->pointer ? "a buffer" : "a generator", operation);
  const bool fits = type == CGL_TYPE_COUNT
                        ? param->type == CGL_TYPE_uint8
                        : type == cgl_type_number(param->type);
  if (fits && bytes == param->bytes &&
      !cgl_kernel_fields_fit(kernel, index, param)) {
    cgl_arg_refuse(CGL_ERROR_ARGUMENT_TYPE, kernel, index, operation,
                   "is a parameter of a struct with other fields");
    return cgl_fail_hint("make the parameter with kernel:param of a kernel "
                         "that takes this struct");
  }
  if (fits && bytes == param->bytes) {
    cgl_param_get(param, out);
    return CGL_OK;
  }
  cgl_arg_refuse(CGL_ERROR_ARGUMENT_TYPE, kernel, index, operation,
                 "is a parameter of %zu %s; %zu %s fit", param->count,
                 cgl_type_name(param->type),
                 type == CGL_TYPE_COUNT ? bytes : lanes,
                 cgl_type_name(type == CGL_TYPE_COUNT ? CGL_TYPE_uint8 : type));
  return cgl_fail_hint("make the parameter with the type that the kernel "
                       "declares");
}


cgl_status cgl_arg_pack(const cgl_kernel *kernel, size_t index,
                        const cgl_arg *arg, const char *operation, void *out) {
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  if (arg->kind == CGL_ARG_PARAM)
    return pack_param(kernel, index, arg, operation, out);
  if (arg->kind == CGL_ARG_GENERATOR ||
      (p && p->kind == CGL_KIND_PHILOX && !p->pointer))
    return arg_check_generator(kernel, index, arg, operation);
  if (!p)
    return pack_unknown(kernel, index, arg, operation, out);
  if (p->pointer)
    return pack_pointer(kernel, index, arg, operation, out);
  if (p->lanes > 1 || p->kind == CGL_KIND_STRUCT)
    return pack_bytes(kernel, index, arg, operation, out);
  switch (p->kind) {
  case CGL_KIND_INT8:
  case CGL_KIND_INT16:
  case CGL_KIND_INT32:
  case CGL_KIND_INT64:
    return pack_integer(kernel, index, arg, cgl_kind_size(p->kind), true,
                        operation, out);
  case CGL_KIND_BOOL:
  case CGL_KIND_UINT8:
  case CGL_KIND_UINT16:
  case CGL_KIND_UINT32:
  case CGL_KIND_UINT64:
    return pack_integer(kernel, index, arg, cgl_kind_size(p->kind), false,
                        operation, out);
  case CGL_KIND_HALF:
  case CGL_KIND_BFLOAT16:
  case CGL_KIND_FLOAT:
  case CGL_KIND_DOUBLE:
    return pack_real(kernel, index, arg, p->kind, operation, out);
  default:
    return pack_unknown(kernel, index, arg, operation, out);
  }
}


/* ---- memory ---- */

cgl_object *cgl_arg_memory(const cgl_arg *arg, CUdeviceptr *address,
                           size_t *bytes) {
  cgl_object *object = NULL;
  uint64_t at = 0;
  if (arg->kind == CGL_ARG_BUFFER)
    object = &arg->buffer->object;
  else if (arg->kind == CGL_ARG_PINNED)
    object = &arg->pinned->object;
  if (object && object->kind->extent(object, &at, bytes))
    *address = at;
  return object;
}
