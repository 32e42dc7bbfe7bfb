/* Kernel arguments: the script's values, checked against the declared
 * parameters.
 */
#include "core/base/half.h"
#include "core/kernel/kernel.h"
#include "core/memory/memory.h"
#include "core/random/random.h"

#include <math.h>
#include <string.h>


static const cgl_parameter *kernel_parameter(const cgl_kernel *kernel,
                                             size_t index) {
  const cgl_signature *signature = kernel->signature;
  return signature && index < signature->nparameters
             ? &signature->parameters[index]
             : NULL;
}


static const char *arg_given(const cgl_arg *arg) {
  switch (arg->kind) {
  case CGL_ARG_BUFFER:
    return "a buffer";
  case CGL_ARG_PINNED:
    return "pinned memory";
  case CGL_ARG_NULL:
    return "a null pointer";
  case CGL_ARG_ADDRESS:
    return "an address";
  case CGL_ARG_INT:
  case CGL_ARG_UINT:
    return "an integer";
  case CGL_ARG_NUMBER:
    return "a number";
  case CGL_ARG_BOOL:
    return "a boolean";
  case CGL_ARG_BYTES:
    return "bytes";
  case CGL_ARG_GENERATOR:
    return "a generator";
  case CGL_ARG_SAME:
    break;
  }
  return "nothing";
}


static cgl_status fail_type(const cgl_kernel *kernel, size_t index,
                            const cgl_arg *arg, const char *wanted,
                            const char *operation) {
  const cgl_parameter *p = kernel_parameter(kernel, index);
  cgl_fail(CGL_ERROR_ARGUMENT_TYPE, operation,
           "argument %zu of %s (%s %s) wants %s, not %s", index + 1,
           kernel->name, p ? p->type : "", p ? p->name : "", wanted,
           arg_given(arg));
  return cgl_fail_hint("kernel:parameters tells what %s takes", kernel->name);
}


static cgl_status fail_number(const cgl_kernel *kernel, size_t index,
                              const cgl_arg *arg, const char *wanted,
                              const char *operation) {
  fail_type(kernel, index, arg, wanted, operation);
  if (arg->kind == CGL_ARG_BYTES)
    cgl_fail_hint("turn text into a number first; only structs go as bytes");
  return CGL_ERROR_ARGUMENT_TYPE;
}


/* ---- pointers ---- */

/* Whether a pointer parameter accepts elements of a type: its own type, signed
   or not; a pointer to bytes or to an unknown type accepts any. */
static bool element_fits(const cgl_parameter *p, cgl_type type) {
  static const cgl_kind kinds[CGL_TYPE_COUNT] = {
      [CGL_TYPE_float] = CGL_KIND_FLOAT,
      [CGL_TYPE_double] = CGL_KIND_DOUBLE,
      [CGL_TYPE_int8] = CGL_KIND_INT8,
      [CGL_TYPE_uint8] = CGL_KIND_INT8,
      [CGL_TYPE_int16] = CGL_KIND_INT16,
      [CGL_TYPE_uint16] = CGL_KIND_INT16,
      [CGL_TYPE_int32] = CGL_KIND_INT32,
      [CGL_TYPE_uint32] = CGL_KIND_INT32,
      [CGL_TYPE_int64] = CGL_KIND_INT64,
      [CGL_TYPE_uint64] = CGL_KIND_INT64,
      [CGL_TYPE_half] = CGL_KIND_HALF,
      [CGL_TYPE_bfloat16] = CGL_KIND_BFLOAT16,
      [CGL_TYPE_bool] = CGL_KIND_INT8,
  };
  switch (p->kind) {
  case CGL_KIND_BOOL:
  case CGL_KIND_INT8:
  case CGL_KIND_UINT8:
  case CGL_KIND_VOID:
  case CGL_KIND_UNKNOWN:
  case CGL_KIND_STRUCT:
  case CGL_KIND_PHILOX:
    return true;
  case CGL_KIND_UINT16:
    return kinds[type] == CGL_KIND_INT16;
  case CGL_KIND_UINT32:
    return kinds[type] == CGL_KIND_INT32;
  case CGL_KIND_UINT64:
    return kinds[type] == CGL_KIND_INT64;
  default:
    return kinds[type] == p->kind;
  }
}


static cgl_status pack_pointer(const cgl_kernel *kernel, size_t index,
                               const cgl_arg *arg, const char *operation,
                               void *out) {
  const cgl_parameter *p = kernel_parameter(kernel, index);
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
    fail_type(kernel, index, arg, "a buffer", operation);
    cgl_fail_hint("numbers go by value; a pointer parameter takes a buffer or "
                  "pinned memory");
    return CGL_ERROR_ARGUMENT_TYPE;
  }
  if (object && object->context != kernel->object.context) {
    cgl_fail(CGL_ERROR_WRONG_DEVICE, operation,
             "argument %zu of %s is on device %s, the kernel on %s", index + 1,
             kernel->name, object->context->info.device,
             kernel->object.context->info.device);
    return cgl_fail_hint("copy the data to the kernel's device first");
  }
  if (p && type != CGL_TYPE_COUNT && p->pointer == 1 &&
      !element_fits(p, type)) {
    cgl_fail(CGL_ERROR_ARGUMENT_TYPE, operation,
             "argument %zu of %s (%s %s) is a buffer of %s", index + 1,
             kernel->name, p->type, p->name, cgl_type_name(type));
    return cgl_fail_hint("make the buffer with the kernel's element type");
  }
  memcpy(out, &address, sizeof address);
  return CGL_OK;
}


/* ---- numbers ---- */

/* The argument as a whole number; false when it is not a whole number. */
static bool arg_whole(const cgl_arg *arg, __int128 *value) {
  switch (arg->kind) {
  case CGL_ARG_INT:
    *value = arg->i;
    return true;
  case CGL_ARG_UINT:
    *value = arg->u;
    return true;
  case CGL_ARG_BOOL:
    *value = arg->boolean;
    return true;
  case CGL_ARG_NUMBER:
    if (!(fabs(arg->number) <= 9007199254740992.0) ||
        arg->number != floor(arg->number))
      return false;
    *value = (__int128)arg->number;
    return true;
  default:
    return false;
  }
}


/* The usual case: a script's number that fits.  False: the caller checks again,
   exactly, and reports the failure. */
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
  const cgl_parameter *p = kernel_parameter(kernel, index);
  __int128 value, low = 0, high = ((__int128)1 << (8 * size)) - 1;
  if (is_signed) {
    low = -((__int128)1 << (8 * size - 1));
    high = -low - 1;
  }
  if (arg->kind != CGL_ARG_INT && arg->kind != CGL_ARG_UINT &&
      arg->kind != CGL_ARG_NUMBER && arg->kind != CGL_ARG_BOOL)
    return fail_number(kernel, index, arg, "a whole number", operation);
  if (!arg_whole(arg, &value)) {
    cgl_fail(CGL_ERROR_ARGUMENT_RANGE, operation,
             "argument %zu of %s (%s %s) is %.17g; it wants a whole number "
             "within 2^53, up to which every one is exact",
             index + 1, kernel->name, p->type, p->name, arg->number);
    return cgl_fail_hint("round it, or pass 64-bit integers as int64_t cdata");
  }
  if (value < low || value > high) {
    cgl_fail(CGL_ERROR_ARGUMENT_RANGE, operation,
             "argument %zu of %s (%s %s) is %.17g, outside %.17g..%.17g",
             index + 1, kernel->name, p->type, p->name, (double)value,
             (double)low, (double)high);
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
    return fail_number(kernel, index, arg, "a number", operation);
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
    cgl_fail(CGL_ERROR_ARGUMENT_TYPE, operation,
             "argument %zu of %s is %zu bytes, the parameter %zu", index + 1,
             kernel->name, arg->bytes.size, size);
    return cgl_fail_hint("declare the struct alike in the script and in the "
                         "source, padding included");
  }
  fail_type(kernel, index, arg, "its bytes", operation);
  return cgl_fail_hint("pass a struct as cdata or as a string of %zu bytes",
                       size);
}


/* Without a signature only the size is known: a buffer fits eight bytes, and
   the type of a number is unknown. */
static cgl_status pack_unknown(const cgl_kernel *kernel, size_t index,
                               const cgl_arg *arg, const char *operation,
                               void *out) {
  bool pointer = arg->kind == CGL_ARG_BUFFER || arg->kind == CGL_ARG_PINNED ||
                 arg->kind == CGL_ARG_NULL || arg->kind == CGL_ARG_ADDRESS;
  if (pointer && kernel->sizes[index] == sizeof(CUdeviceptr))
    return pack_pointer(kernel, index, arg, operation, out);
  return pack_bytes(kernel, index, arg, operation, out);
}


/* Checks only: the launch takes the number. */
static cgl_status arg_check_generator(const cgl_kernel *kernel, size_t index,
                                      const cgl_arg *arg,
                                      const char *operation) {
  const cgl_parameter *p = kernel_parameter(kernel, index);
  bool takes = p ? p->kind == CGL_KIND_PHILOX && !p->pointer
                 : kernel->sizes[index] == sizeof(cgl_philox);
  if (takes && arg->kind != CGL_ARG_GENERATOR) {
    fail_type(kernel, index, arg, "a generator", operation);
    return cgl_fail_hint("pass what cg.generator or cg.default_generator "
                         "returned");
  }
  if (!takes) {
    cgl_fail(CGL_ERROR_ARGUMENT_TYPE, operation,
             "argument %zu of %s (%s %s) is a generator", index + 1,
             kernel->name, p ? p->type : "", p ? p->name : "");
    return cgl_fail_hint("only a cgl_philox parameter takes a generator");
  }
  return cgl_object_check_device(&kernel->object, &arg->generator->object,
                                 operation);
}


cgl_status cgl_arg_pack(const cgl_kernel *kernel, size_t index,
                        const cgl_arg *arg, const char *operation, void *out) {
  const cgl_parameter *p = kernel_parameter(kernel, index);
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
  case CGL_KIND_BOOL:
    return pack_integer(kernel, index, arg, 1, false, operation, out);
  case CGL_KIND_INT8:
  case CGL_KIND_INT16:
  case CGL_KIND_INT32:
  case CGL_KIND_INT64:
    return pack_integer(kernel, index, arg, cgl_kind_size(p->kind), true,
                        operation, out);
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
