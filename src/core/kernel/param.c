/* Parameters that are made for what a kernel takes. */
#include "core/kernel/kernel.h"
#include "core/memory/memory.h"

#include <stdlib.h>
#include <string.h>

static const char making[] = "kernel:param";


/* ---- fields ---- */

cgl_status cgl_kernel_give_fields(const cgl_kernel *kernel, size_t index,
                                  cgl_param *param, const char *operation) {
  const size_t n = cgl_kernel_field_count(kernel, index);
  if (!n || param->nfields || kernel->sizes[index] != param->bytes)
    return CGL_OK;
  cgl_field_info *fields = malloc(n * sizeof *fields);
  if (!fields)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for %zu fields of a parameter", n);
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < n && !status; i++)
    status = cgl_kernel_field(kernel, index, i, &fields[i]);
  if (!status)
    status = cgl_param_set_fields(param, fields, n, operation);
  free(fields);
  return status;
}


static bool field_is_alike(const cgl_field_info *a, const cgl_field_info *b) {
  return !strcmp(a->name, b->name) && a->element == b->element &&
         a->lanes == b->lanes && a->pointer == b->pointer &&
         a->offset == b->offset && a->bytes == b->bytes &&
         a->ndims == b->ndims && a->nested == b->nested &&
         !memcmp(a->extents, b->extents, sizeof a->extents);
}


bool cgl_kernel_fields_fit(const cgl_kernel *kernel, size_t index,
                           const cgl_param *param) {
  const size_t n = cgl_kernel_field_count(kernel, index);
  bool fit = !n || !param->nfields || n == param->nfields;
  cgl_field_info info;
  for (size_t i = 0; i < n && i < param->nfields && fit; i++)
    fit = !cgl_kernel_field(kernel, index, i, &info) &&
          field_is_alike(&info, &param->fields[i]);
  return fit;
}


/* ---- made ---- */

/* The type and the count of a parameter that stands for parameter `index`. */
static cgl_type param_find_type(const cgl_kernel *kernel, size_t index,
                                size_t *count) {
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  const size_t bytes = kernel->sizes[index];
  const cgl_type number = p ? cgl_kernel_element(p->kind) : CGL_TYPE_COUNT;
  const cgl_type named = p ? cgl_type_from_name(p->type) : CGL_TYPE_COUNT;
  const cgl_type type =
      number == CGL_TYPE_COUNT ? CGL_TYPE_uint8
      : number == cgl_type_number(named) && bytes == cgl_type_bytes(named)
          ? named
          : number;
  *count = bytes / cgl_type_bytes(type);
  return type;
}


cgl_status cgl_kernel_param_create(const cgl_kernel *kernel, size_t index,
                                   const cgl_arg *value, const char *name,
                                   cgl_param **out) {
  unsigned char bytes[CGL_MAX_PARAM_BYTES] = {0};
  cgl_param_info info = {.name = ""};
  cgl_param *param = NULL;
  cgl_status status = cgl_kernel_param(kernel, index, &info);
  if (status)
    return status;
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  const bool number = p ? !p->pointer && p->kind != CGL_KIND_PHILOX
                        : value->kind == CGL_ARG_BYTES;
  if (!number) {
    cgl_arg_refuse(CGL_ERROR_INVALID_ARGUMENT, kernel, index, making,
                   "is no number and no struct");
    return cgl_fail_hint(p ? "memory is exchanged as an input: cg.input"
                           : "pass the bytes that the kernel takes");
  }
  status = cgl_arg_pack(kernel, index, value, making, bytes);
  if (status)
    return status;
  size_t count;
  const cgl_type type = param_find_type(kernel, index, &count);
  if (!name)
    name = info.name;
  status = cgl_param_create(kernel->object.context, type, count, bytes, name,
                            &param);
  if (!status)
    status = cgl_kernel_give_fields(kernel, index, param, making);
  if (status)
    cgl_param_release(param);
  else
    *out = param;
  return status;
}
