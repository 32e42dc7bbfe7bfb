/* Copies and fills. */
#include "core/copy/copy.h"

#include <stdlib.h>

#include "core/copy/copies_text.h"
#include "core/module/module.h"


/* ---- the kernels ---- */

typedef enum copy_kernel { KERNEL_COPY, KERNEL_FILL } copy_kernel;

/* Fills come by the bytes of an element. */
static const cgl_own_kernel kernels[] = {
    {"copy", "-DCOPY", 0},     {"fill", "-DFILL", 1},
    {"fill", "-DFILL=3", 2},   {"fill", "-DFILL=6", 3},
    {"fill", "-DFILL=12", 4},  {"fill", "-DFILL=16", 5},
    {"fill", "-DFILL=24", 6},  {"fill", "-DFILL=32", 7},
    {"fill", "-DFROM=1", 8},   {"fill", "-DFROM=2", 9},
    {"fill", "-DFROM=3", 10},  {"fill", "-DFROM=4", 11},
    {"fill", "-DFROM=6", 12},  {"fill", "-DFROM=8", 13},
    {"fill", "-DFROM=12", 14}, {"fill", "-DFROM=16", 15},
    {"fill", "-DFROM=24", 16}, {"fill", "-DFROM=32", 17}};
const cgl_own cgl_copy_own = {CGL_PART_COPY, cgl_text_copies, kernels,
                              sizeof kernels / sizeof *kernels};

/* As in copies.cu. */
enum { BLOCK = 256, LINE = 128, BLOCK_BYTES = 16 * BLOCK };


cgl_launch cgl_copy_launch(size_t bytes) {
  const size_t blocks = (bytes + LINE - 1 + BLOCK_BYTES - 1) / BLOCK_BYTES;
  return (cgl_launch){{(uint32_t)blocks, 1, 1}, {BLOCK, 1, 1}, 0};
}


cgl_status cgl_copy_predicated(cgl_context *context, cgl_op_kind kind,
                               const char *operation, CUfunction *kernel,
                               const char **why) {
  return cgl_module_own_predicated(
      context, &cgl_copy_own, kind == CGL_OP_MEMCPY ? KERNEL_COPY : KERNEL_FILL,
      operation, kernel, why);
}


/* Launches the kernel of a copy or a fill. */
static CUresult kernel_launch(const cgl_driver *driver, CUfunction function,
                              CUstream stream, cgl_element *element,
                              const char **entry) {
  void *params[] = {&element->to, &element->what, &element->count};
  const cgl_launch launch = cgl_copy_launch(element->count);
  *entry = "cuLaunchKernel";
  return driver->cuLaunchKernel(function, launch.grid[0], 1, 1, BLOCK, 1, 1, 0,
                                stream, params, NULL);
}


/* ---- operations ---- */

/* Begins a copy or a fill of `buffer`, of the stream's device. */
static cgl_status copy_begin(cgl_issue *issue, cgl_buffer *buffer,
                             cgl_stream *stream, const char *operation) {
  const cgl_room room = {.ranges = 2,
                         .values = sizeof(cgl_element) + 16,
                         .kept = 3,
                         .uses = 1,
                         .late = true};
  return cgl_issue_begin(issue, stream, &buffer->object, operation, &room);
}


/* Notes a copy or a fill. */
static void copy_end(cgl_issue *issue, cgl_op_kind kind, CUfunction function,
                     const cgl_element *element) {
  const cgl_note note = {.kind = kind,
                         .name = issue->operation,
                         .function = function,
                         .nvalues = sizeof *element};
  if (!issue->recording)
    return;
  memcpy(cgl_issue_values(issue), element, sizeof *element);
  cgl_issue_end(issue, &note);
}


/* ---- copies ---- */

/* A copy node of the driver (580, H200) moves all that memory can only when its
   addresses are multiples of a line and its size is one of a page and not
   large; else two thirds of it, and a fifth between addresses that are an odd
   number of bytes apart.  The kernel is as fast at any address and size. */
enum {
  NODE_LINE = 128,
  NODE_PAGE = 4096,
  NODE_MOST = 256 << 20,
  KERNEL_LEAST = 64 << 10 /* smaller copies are faster by a node */
};


/* Bytes from which a kernel may copy faster than a node. */
static size_t kernel_least(const cgl_context *context) {
  const char *wish = getenv("CGRAPHLUA_COPY_KERNEL"); /* for tests */
  return wish ? strtoull(wish, NULL, 10) : context->driver->slow_copy_bytes;
}


/* The kernel for a captured copy on the device; NULL: a copy node does as well,
   or nothing compiles a kernel. */
static CUfunction copy_kernel_for(cgl_context *context,
                                  const cgl_element *element,
                                  const char *operation) {
  const bool node_is_fast = !((element->to | element->what) % NODE_LINE) &&
                            !(element->count % NODE_PAGE) &&
                            element->count <= NODE_MOST;
  return element->count < KERNEL_LEAST || node_is_fast ||
                 element->count < kernel_least(context)
             ? NULL
             : cgl_module_try_own_kernel(context, &cgl_copy_own, KERNEL_COPY,
                                         operation);
}


/* The driver's call for a copy, as copy_all has its arguments. */
static CUresult copy_issue(const cgl_driver *driver, CUfunction function,
                           CUstream stream, cgl_element *element,
                           const char **entry) {
  void *const to = (void *)(uintptr_t)element->to;
  const void *const from = (const void *)(uintptr_t)element->what;
  if (function)
    return kernel_launch(driver, function, stream, element, entry);
  if (element->pinned == 1) {
    *entry = "cuMemcpyDtoHAsync";
    return driver->cuMemcpyDtoHAsync(to, element->what, element->count, stream);
  }
  if (element->pinned == 2) {
    *entry = "cuMemcpyHtoDAsync";
    return driver->cuMemcpyHtoDAsync(element->to, from, element->count, stream);
  }
  *entry = "cuMemcpyDtoDAsync";
  return driver->cuMemcpyDtoDAsync(element->to, element->what, element->count,
                                   stream);
}


/* A copy between two buffers, or between one (the other is NULL) and pinned
   memory of as many elements. */
static cgl_status copy_all(cgl_buffer *to, cgl_buffer *from, cgl_pinned *pinned,
                           cgl_stream *stream, const char *operation) {
  cgl_buffer *buffer = to ? to : from;
  cgl_context *context = stream->object.context;
  const char *entry;
  cgl_issue issue;
  cgl_status status = copy_begin(&issue, buffer, stream, operation);
  if (!status && to)
    status = cgl_buffer_check_use(to, CGL_USE_WRITE, stream, operation);
  if (!status && from)
    status = cgl_buffer_check_use(from, CGL_USE_READ, stream, operation);
  if (status || !buffer->count)
    return status;
  cgl_element element = {.to = to ? to->address : (uintptr_t)pinned->data,
                         .what = from ? from->address : (uintptr_t)pinned->data,
                         .count = cgl_buffer_bytes(buffer),
                         .type = (uint8_t)buffer->type,
                         .pinned = (uint8_t)(!to     ? 1
                                             : !from ? 2
                                                     : 0)};
  CUfunction function = NULL;
  if (issue.recording && !pinned)
    function = copy_kernel_for(context, &element, operation);
  if (!cgl_issue_is_late(&issue)) {
    CUresult result =
        copy_issue(context->driver, function, stream->handle, &element, &entry);
    status = cgl_issue_taken(&issue, result, entry);
  }
  if (status)
    return status;
  if (to)
    cgl_buffer_use(to, &issue, true, 0);
  else
    cgl_pinned_use(pinned, &issue, true, 0);
  if (from)
    cgl_buffer_use(from, &issue, false, 1);
  else
    cgl_pinned_use(pinned, &issue, false, 1);
  copy_end(&issue, CGL_OP_MEMCPY, function, &element);
  return CGL_OK;
}


static cgl_status copy_check_pair(cgl_type to, size_t to_count, cgl_type from,
                                  size_t from_count, const char *operation) {
  if (to == from && to_count == from_count)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "cannot copy %zu elements of %s into %zu of %s", from_count,
           cgl_type_name(from), to_count, cgl_type_name(to));
  return cgl_fail_hint("use a view of the part that is to be copied");
}


cgl_status cgl_buffer_copy(cgl_buffer *to, cgl_buffer *from,
                           cgl_stream *stream) {
  static const char operation[] = "buffer:copy";
  cgl_status status =
      copy_check_pair(to->type, to->count, from->type, from->count, operation);
  if (status)
    return status;
  return to->object.context == from->object.context
             ? copy_all(to, from, NULL, stream, operation)
             : cgl_buffer_copy_across(to, from, stream, operation);
}


cgl_status cgl_buffer_copy_pinned(cgl_buffer *to, cgl_pinned *from,
                                  cgl_stream *stream) {
  static const char operation[] = "buffer:copy";
  cgl_status status =
      copy_check_pair(to->type, to->count, from->type, from->count, operation);
  return status ? status : copy_all(to, NULL, from, stream, operation);
}


cgl_status cgl_pinned_copy(cgl_pinned *to, cgl_buffer *from,
                           cgl_stream *stream) {
  static const char operation[] = "pinned:copy";
  cgl_status status =
      copy_check_pair(to->type, to->count, from->type, from->count, operation);
  return status ? status : copy_all(NULL, from, to, stream, operation);
}


/* ---- fills ---- */

/* An element that is no repeated word: each of its words, or bytes, is a row of
   a matrix that is as wide as the element, which the driver fills slowly. */
static CUresult fill_columns(const cgl_driver *driver, CUstream stream,
                             const cgl_element *element, const char **entry) {
  const size_t bytes = cgl_type_bytes((cgl_type)element->type);
  const bool words = bytes % 4 == 0;
  CUresult result = CUDA_SUCCESS;
  *entry = words ? "cuMemsetD2D32Async" : "cuMemsetD2D8Async";
  for (size_t at = 0; at < bytes && !result; at += words ? 4 : 1) {
    uint32_t word;
    memcpy(&word, element->value + at, sizeof word);
    result =
        words
            ? driver->cuMemsetD2D32Async(element->to + at, bytes, word, 1,
                                         element->count / bytes, stream)
            : driver->cuMemsetD2D8Async(element->to + at, bytes, (uint8_t)word,
                                        1, element->count / bytes, stream);
  }
  return result;
}


static CUresult fill_issue(const cgl_driver *driver, CUfunction function,
                           CUstream stream, cgl_element *element,
                           const char **entry) {
  const size_t bytes = element->count, size = cgl_copy_word_bytes(element);
  const uint32_t value = cgl_copy_word(element);
  if (function)
    return kernel_launch(driver, function, stream, element, entry);
  if (!cgl_copy_is_word(element))
    return fill_columns(driver, stream, element, entry);
  if (size == 4) {
    *entry = "cuMemsetD32Async";
    return driver->cuMemsetD32Async(element->to, value, bytes / 4, stream);
  }
  if (size == 2) {
    *entry = "cuMemsetD16Async";
    return driver->cuMemsetD16Async(element->to, (uint16_t)value, bytes / 2,
                                    stream);
  }
  *entry = "cuMemsetD8Async";
  return driver->cuMemsetD8Async(element->to, (uint8_t)value, bytes, stream);
}


size_t cgl_copy_fill_kernel(cgl_type type, bool follows) {
  static const size_t kernel_of[2][CGL_MAX_ELEMENT_BYTES + 1] = {
      {[8] = KERNEL_FILL,
       [3] = 2,
       [6] = 3,
       [12] = 4,
       [16] = 5,
       [24] = 6,
       [32] = 7},
      {[1] = 8,
       [2] = 9,
       [3] = 10,
       [4] = 11,
       [6] = 12,
       [8] = 13,
       [12] = 14,
       [16] = 15,
       [24] = 16,
       [32] = 17}};
  return kernel_of[follows][cgl_type_bytes(type)];
}


bool cgl_copy_kernel_reads(size_t index) {
  return index == KERNEL_COPY || strstr(kernels[index].option, "FROM");
}


/* The kernel of a fill that the driver cannot do at once, or could not with
   another value of the parameter; in a capture there is no other way. */
static cgl_status fill_find_kernel(const cgl_issue *issue,
                                   const cgl_element *element,
                                   const cgl_param *param,
                                   CUfunction *function) {
  cgl_context *context = issue->stream->object.context;
  const size_t kernel =
      cgl_copy_fill_kernel((cgl_type)element->type, element->follows);
  *function = NULL;
  if (element->follows)
    return cgl_module_own_kernel(context, &cgl_copy_own, kernel,
                                 issue->operation, function);
  if (cgl_copy_is_word(element) &&
      !(param && issue->recording && param->bytes == 8))
    return CGL_OK;
  if (issue->recording)
    return cgl_module_own_kernel(context, &cgl_copy_own, kernel,
                                 issue->operation, function);
  *function = cgl_module_try_own_kernel(context, &cgl_copy_own, kernel,
                                        issue->operation);
  return CGL_OK;
}


/* The value is that of a buffer which the parameter follows. */
static cgl_status fill_check_followed(cgl_buffer *buffer, cgl_buffer *followed,
                                      const cgl_param *param,
                                      cgl_stream *stream,
                                      const char *operation) {
  const cgl_range range = {.address = buffer->address,
                           .bytes = cgl_buffer_bytes(buffer)};
  if (!cgl_record_ranges_touch(&range, 1, followed->address,
                               cgl_buffer_bytes(followed), false))
    return cgl_buffer_check_followed(followed, param, stream, operation);
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "the fill would write to the buffer that the parameter%s%s follows",
           *param->name ? " " : "", param->name);
  return cgl_fail_hint("fill views of what is around it, or follow another "
                       "buffer");
}


/* `param`: what the value is of, or NULL; `followed`: what that follows, or
   NULL. */
static cgl_status fill_all(cgl_buffer *buffer, cgl_stream *stream,
                           const void *value, cgl_param *param,
                           cgl_buffer *followed) {
  static const char operation[] = "buffer:fill";
  cgl_element element = {.to = buffer->address,
                         .count = cgl_buffer_bytes(buffer),
                         .type = (uint8_t)buffer->type,
                         .follows = followed != NULL};
  if (followed)
    element.what = followed->address;
  else
    memcpy(element.value, value, cgl_type_bytes(buffer->type));
  cgl_issue issue;
  cgl_status status = copy_begin(&issue, buffer, stream, operation);
  if (!status)
    status = cgl_buffer_check_use(buffer, CGL_USE_WRITE, stream, operation);
  if (!status && followed)
    status = fill_check_followed(buffer, followed, param, stream, operation);
  if (status || !buffer->count)
    return status;
  CUfunction function;
  status = fill_find_kernel(&issue, &element, param, &function);
  if (status)
    return status;
  if (!cgl_issue_is_late(&issue)) {
    const char *entry;
    CUresult result = fill_issue(cgl_driver_of(buffer), function,
                                 stream->handle, &element, &entry);
    status = cgl_issue_taken(&issue, result, entry);
  }
  if (status)
    return status;
  cgl_buffer_use(buffer, &issue, true, 0);
  if (followed)
    cgl_buffer_use(followed, &issue, false, 1);
  if (param)
    cgl_issue_use_param(&issue,
                        &(cgl_param_use){.param = param,
                                         .offset = offsetof(cgl_element, what),
                                         .repeats = 1,
                                         .follows = followed != NULL});
  copy_end(&issue, CGL_OP_MEMSET, function, &element);
  return CGL_OK;
}


cgl_status cgl_buffer_fill(cgl_buffer *buffer, cgl_stream *stream,
                           const void *value) {
  return fill_all(buffer, stream, value, NULL, NULL);
}


cgl_status cgl_buffer_fill_param(cgl_buffer *buffer, cgl_stream *stream,
                                 cgl_param *param) {
  uint64_t value;
  const bool fits = param->type == buffer->type && param->count == 1;
  cgl_buffer *followed = fits ? cgl_param_followed(param) : NULL;
  if (followed) {
    cgl_status status = fill_all(buffer, stream, NULL, param, followed);
    cgl_buffer_release(followed);
    return status;
  }
  if (fits && param->bytes <= sizeof value) {
    cgl_param_get(param, &value);
    return fill_all(buffer, stream, &value, param, NULL);
  }
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "buffer:fill",
           "a parameter of %zu %s cannot fill a buffer of %s", param->count,
           cgl_type_name(param->type), cgl_type_name(buffer->type));
  return cgl_fail_hint(param->bytes > sizeof value
                           ? "a parameter of up to 8 bytes fills; launch a "
                             "kernel for larger ones"
                           : "make the parameter with the buffer's element "
                             "type");
}
