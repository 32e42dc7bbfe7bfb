/* Parameters: made, set and read. */
#include "core/param/param.h"

#include <stdlib.h>
#include <string.h>


static void param_destroy(cgl_object *object) {
  cgl_param *param = (cgl_param *)object;
  cgl_object *followed = atomic_load(&param->followed);
  if (followed)
    cgl_object_release(followed);
  free(param->fields);
  free(param);
}


CGL_OBJECT_KIND(param, .light = true, .destroy = param_destroy)


/* ---- values ---- */

static size_t param_words(const cgl_param *param) {
  return (param->bytes + 7) / 8;
}


/* `rest` bytes, or a word when there are more. */
static inline void word_copy(void *to, const void *from, size_t rest) {
  if (rest >= 8)
    memcpy(to, from, 8);
  else if (rest == 4)
    memcpy(to, from, 4); /* no call */
  else
    memcpy(to, from, rest);
}


/* The writers exclude one another. */
static void param_write(cgl_param *param, const void *values) {
  const unsigned before =
      atomic_load_explicit(&param->sequence, memory_order_relaxed);
  atomic_store_explicit(&param->sequence, before + 1, memory_order_relaxed);
  for (size_t i = 0; i < param_words(param); i++) {
    uint64_t word = 0;
    word_copy(&word, (const char *)values + 8 * i, param->bytes - 8 * i);
    atomic_store_explicit(&param->words[i], word, memory_order_release);
  }
  atomic_store_explicit(&param->sequence, before + 2, memory_order_release);
}


/* Reads again what was written meanwhile. */
void cgl_param_get(const cgl_param *param, void *values) {
  unsigned before, after;
  do {
    before = atomic_load_explicit(&param->sequence, memory_order_acquire);
    for (size_t i = 0; i < param_words(param); i++) {
      const uint64_t word =
          atomic_load_explicit(&param->words[i], memory_order_acquire);
      word_copy((char *)values + 8 * i, &word, param->bytes - 8 * i);
    }
    after = atomic_load_explicit(&param->sequence, memory_order_relaxed);
  } while (before != after || before % 2);
}


cgl_status cgl_param_create(cgl_context *context, cgl_type type, size_t count,
                            const void *values, const char *name,
                            cgl_param **out) {
  static const char operation[] = "param";
  static const size_t sizes[] = {
#define X(name, bytes, number, lanes) (bytes),
      CGL_TYPES(X)
#undef X
  };
  const size_t size = (unsigned)type < CGL_TYPE_COUNT ? sizes[type] : 0;
  if (!size || !count || count > CGL_PARAM_MOST / size) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "a parameter of %zu elements of %zu bytes: it has 1 to %d bytes",
             count, size, CGL_PARAM_MOST);
    return cgl_fail_hint("keep what is larger in a buffer");
  }
  const size_t words = (count * size + 7) / 8;
  const size_t length = name ? strlen(name) : 0;
  cgl_param *param = calloc(1, sizeof *param + 8 * words + length + 1);
  if (!param)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for a parameter");
  param->name = memcpy(&param->words[words], name ? name : "", length);
  param->type = type;
  param->count = count;
  param->bytes = count * size;
  param_write(param, values);
  cgl_object_init(&param->object, &param_kind, context);
  *out = param;
  return CGL_OK;
}


cgl_type cgl_param_type(const cgl_param *param) {
  return param->type;
}


size_t cgl_param_count(const cgl_param *param) {
  return param->count;
}


const char *cgl_param_name(const cgl_param *param) {
  return param->name;
}


/* ---- fields ---- */

cgl_status cgl_param_set_fields(cgl_param *param, const cgl_field_info *fields,
                                size_t n, const char *operation) {
  cgl_field_info *own = malloc(n * sizeof *own);
  if (!own)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for %zu fields of a parameter", n);
  for (size_t i = 0; i < n; i++) {
    own[i] = fields[i];
    own[i].type = cgl_intern(fields[i].type);
    own[i].name = cgl_intern(fields[i].name);
  }
  param->fields = own;
  param->nfields = n;
  return CGL_OK;
}


size_t cgl_param_field_count(const cgl_param *param) {
  return param->nfields;
}


cgl_status cgl_param_field(const cgl_param *param, size_t field,
                           cgl_field_info *info) {
  if (field >= param->nfields) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "param:fields",
             "the parameter has %zu fields", param->nfields);
    return cgl_fail_hint("they are numbered from 0");
  }
  *info = param->fields[field];
  return CGL_OK;
}


/* ---- watches ---- */

/* While the watch is on the parameter's list. */
void cgl_param_watch_again(cgl_param_watch *watch) {
  if (atomic_exchange(&watch->queued, true))
    return;
  watch->changed = atomic_load_explicit(watch->changes, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(watch->changes, &watch->changed, watch))
    ;
}


/* A child of a fork is refused before the latch, which it may have inherited
   taken. */
cgl_status cgl_param_set(cgl_param *param, const void *values) {
  cgl_status status = cgl_context_enter(param->object.context, "param:set");
  if (status)
    return status;
  cgl_latch_take(&param->latch);
  const bool follows = cgl_param_follows(param);
  if (!follows)
    param_write(param, values);
  for (cgl_param_watch *w = follows ? NULL : param->watches; w; w = w->next)
    cgl_param_watch_again(w);
  cgl_latch_drop(&param->latch);
  if (!follows)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "param:set",
           "the parameter%s%s follows a buffer", *param->name ? " " : "",
           param->name);
  return cgl_fail_hint("write to the buffer, or end it with param:follow(nil)");
}


/* ---- what is followed ---- */

cgl_object *cgl_param_retain_followed(cgl_param *param) {
  cgl_latch_take(&param->latch);
  cgl_object *followed = atomic_load(&param->followed);
  if (followed)
    cgl_object_retain(followed);
  cgl_latch_drop(&param->latch);
  return followed;
}


void cgl_param_set_followed(cgl_param *param, cgl_object *followed) {
  if (followed)
    cgl_object_retain(followed);
  cgl_latch_take(&param->latch);
  cgl_object *before = atomic_exchange(&param->followed, followed);
  cgl_latch_drop(&param->latch);
  if (before)
    cgl_object_release(before);
}


void cgl_param_watch_begin(cgl_param_watch *watch, cgl_param *param,
                           cgl_param_changes *changes) {
  *watch = (cgl_param_watch){.param = param, .changes = changes};
  cgl_latch_take(&param->latch);
  watch->next = param->watches;
  if (watch->next)
    watch->next->last = watch;
  param->watches = watch;
  cgl_param_watch_again(watch);
  cgl_latch_drop(&param->latch);
}


void cgl_param_watch_end(cgl_param_watch *watch) {
  cgl_param *param = watch->param;
  cgl_latch_take(&param->latch);
  if (watch->last)
    watch->last->next = watch->next;
  else
    param->watches = watch->next;
  if (watch->next)
    watch->next->last = watch->last;
  cgl_latch_drop(&param->latch);
}


cgl_param_watch *cgl_param_take(cgl_param_changes *changes) {
  return atomic_exchange(changes, NULL);
}


cgl_param_watch *cgl_param_take_next(cgl_param_watch *watch) {
  cgl_param_watch *next = watch->changed;
  atomic_store(&watch->queued, false);
  return next;
}
