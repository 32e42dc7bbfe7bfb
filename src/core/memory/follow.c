/* Parameters that follow a buffer: what they may follow, and its use. */
#include "core/memory/memory.h"
#include "driver/predicate.h"

static const char following[] = "param:follow";


static cgl_status follow_refuse(const cgl_param *param, const char *why,
                                const char *hint) {
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, following, "the parameter%s%s %s",
           *param->name ? " " : "", param->name, why);
  return cgl_fail_hint("%s", hint);
}


static cgl_status follow_check(const cgl_param *param,
                               const cgl_buffer *buffer) {
  if (param->nfields || param->bytes > CGL_FOLLOWING_MOST)
    return follow_refuse(param, "is a struct, or has more than 32 bytes",
                         "give the kernel the buffer, as a pointer");
  cgl_status status = cgl_buffer_check(buffer, following);
  if (status)
    return status;
  if (buffer->type != param->type || buffer->count != param->count) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, following,
             "the parameter%s%s has %zu %s, and the buffer %zu %s",
             *param->name ? " " : "", param->name, param->count,
             cgl_type_name(param->type), buffer->count,
             cgl_type_name(buffer->type));
    return cgl_fail_hint("follow a buffer of the parameter's type and count, a "
                         "view of another perhaps");
  }
  return buffer->address % cgl_following_alignment(param->bytes)
             ? follow_refuse(param,
                             "is read as a whole, and the buffer's address is "
                             "no multiple of what that takes",
                             "begin the view at a multiple of its count")
             : CGL_OK;
}


cgl_status cgl_param_follow(cgl_param *param, cgl_buffer *buffer) {
  cgl_status status = cgl_context_enter(param->object.context, following);
  if (!status && buffer)
    status = follow_check(param, buffer);
  if (!status)
    cgl_param_set_followed(param, buffer ? &buffer->object : NULL);
  return status;
}


cgl_buffer *cgl_param_followed(cgl_param *param) {
  return (cgl_buffer *)cgl_param_retain_followed(param);
}


cgl_status cgl_buffer_check_followed(cgl_buffer *buffer, const cgl_param *param,
                                     cgl_stream *stream,
                                     const char *operation) {
  const cgl_object *root = &cgl_buffer_root(buffer)->object;
  if (cgl_memory_is_over(root)) {
    cgl_fail(CGL_ERROR_RELEASED, operation,
             "the buffer that the parameter%s%s follows was released",
             *param->name ? " " : "", param->name);
    return cgl_fail_hint("let it follow another one, or end it with "
                         "param:follow(nil)");
  }
  cgl_status status =
      cgl_object_check_device(&buffer->object, &stream->object, operation);
  return status ? status
                : cgl_buffer_check_use(buffer, CGL_USE_READ, stream, operation);
}
