/* The issue door. */
#include "core/record/recording_private.h"

#include <string.h>


cgl_status cgl_issue_begin(cgl_issue *issue, cgl_stream *stream,
                           const cgl_object *owner, const char *operation,
                           cgl_room room) {
  cgl_context *context = stream->object.context;
  cgl_recording *recording =
      stream->capture ? stream->capture->recording : NULL;
  *issue = (cgl_issue){
      .stream = stream, .recording = recording, .operation = operation};
  cgl_status status = CGL_OK;
  if (owner && owner->context != context)
    status = cgl_object_check_device(owner, &stream->object, operation);
  if (!status && recording)
    status = cgl_capture_check_open(stream, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  return status || !recording ? status
                              : cgl_issue_reserve(recording, &room, operation);
}


unsigned char *cgl_issue_values(const cgl_issue *issue) {
  cgl_recording *recording = issue->recording;
  if (!recording)
    return NULL;
  /* The host device reads arguments where they lie. */
  recording->nvalues = (recording->nvalues + 15) & ~(size_t)15;
  return recording->values + recording->nvalues;
}


void cgl_issue_use(cgl_issue *issue, cgl_object *object,
                   cgl_allocation *allocation, const cgl_range *range) {
  cgl_recording *recording = issue->recording;
  if (!recording)
    return;
  if (!range || !range->planned)
    cgl_record_keep(recording, object, issue->stream->capture->underway.serial);
  if (!range)
    return;
  cgl_range *noted = &recording->ranges[recording->nranges + issue->nranges++];
  *noted = *range;
  noted->allocation =
      allocation ? cgl_record_add_allocation(recording, allocation) : 0;
}


void cgl_issue_body(cgl_issue *issue, cgl_recording *body) {
  cgl_recording *recording = issue->recording;
  if (!recording)
    return;
  size_t i = 0;
  while (i < recording->nbodies && recording->bodies[i] != body)
    i++;
  if (i == recording->nbodies)
    recording->bodies[recording->nbodies++] = cgl_record_retain(body);
  issue->body = (uint32_t)i + 1;
  issue->nbodies = 1;
}


void cgl_issue_bodies(cgl_issue *issue, cgl_recording *const *bodies,
                      size_t n) {
  cgl_recording *recording = issue->recording;
  issue->body = (uint32_t)recording->nbodies + 1;
  issue->nbodies = (uint32_t)n;
  for (size_t i = 0; i < n; i++)
    recording->bodies[recording->nbodies++] = cgl_record_retain(bodies[i]);
}


static cgl_op *record_append(cgl_recording *recording, const cgl_note *note) {
  static const cgl_launch none;
  cgl_op *op = &recording->ops[recording->nops++];
  op->kind = note->kind;
  op->name = note->name;
  op->site = cgl_site_here;
  op->object = note->object;
  op->function = note->function;
  op->fills = note->fills;
  op->handle = note->handle;
  op->off = op->stale = false;
  op->launch = note->launch ? *note->launch : none;
  op->ranges = recording->nranges;
  op->values = recording->nvalues;
  op->nvalues = (uint32_t)note->nvalues;
  op->scope = recording->scope;
  if (note->values && note->nvalues)
    memcpy(recording->values + recording->nvalues, note->values, note->nvalues);
  recording->nvalues += note->nvalues;
  op->nranges = op->body = op->nbodies = 0;
  return op;
}


CUgraphNode cgl_issue_end(cgl_issue *issue, const cgl_note *note) {
  cgl_stream *stream = issue->stream;
  cgl_recording *recording = issue->recording;
  if (!recording) {
    if (note->kind == CGL_OP_KERNEL)
      cgl_launches_add(note->name);
    return NULL;
  }
  cgl_capture *capture = stream->capture;
  cgl_op *op = record_append(recording, note);
  op->node = capture->watched ? cgl_capture_last_node(stream) : NULL;
  op->priority = stream->priority;
  op->nranges = issue->nranges;
  op->body = issue->body;
  op->nbodies = issue->nbodies;
  recording->nranges += issue->nranges;
  stream->issued = capture->noted = recording->nops;
  capture->latest = op->site;
  return op->node;
}


void cgl_issue_note_node(cgl_recording *recording, const cgl_note *note,
                         CUgraphNode node) {
  recording->nvalues = (recording->nvalues + 15) & ~(size_t)15;
  cgl_op *op = record_append(recording, note);
  op->node = node;
  op->priority = 0;
  op->scope = NULL;
}


CUgraphNode cgl_issue_latest_node(const cgl_stream *stream) {
  cgl_recording *recording = stream->capture->recording;
  cgl_op *op = &recording->ops[recording->nops - 1];
  if (!op->node)
    op->node = cgl_capture_last_node(stream);
  return op->node;
}
