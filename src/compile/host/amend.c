/* What the last compile shows to be wrong with how the compiler was asked. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/frontend/program.h"
#include "compile/host/host.h"


/* Does a line of a function's declarations name memory: an array, a struct,
   a union?  What the compiler could keep in registers is gone by then.  A
   pointer is not memory, and one to an array has the brackets in front of its
   name. */
static bool is_memory(const char *line) {
  if (strncmp(line, "  ", 2) || line[2] == ' ' || line[2] == '<')
    return false;
  line += 2;
  if (strncmp(line, "static ", 7) == 0 || strchr(line, '=') ||
      !strchr(line, ';'))
    return false;
  if (strstr(line, "];"))
    return true;
  if (strncmp(line, "const ", 6) == 0)
    line += 6;
  if (strncmp(line, "struct ", 7) && strncmp(line, "union ", 6) &&
      strncmp(line, "class ", 6))
    return false;
  const char *arguments_end = strrchr(line, '>'); /* of a template */
  return !strpbrk(arguments_end ? arguments_end : line, "*&");
}


/* Memory of a block that runs as loops: one for all threads, or one for each;
   its names are given by compile/loops. */
static bool is_block_memory(const char *line) {
  static const char *const names[] = {"cgl_s_", "cgl_v_",   "cgl_i_",
                                      "cgl_q_", "cgl_m_",   "cgl_k_",
                                      "cgl_g_", "cgl_alive"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strstr(line, names[i]))
      return true;
  return false;
}


static FILE *open_dump(const char *option) {
  return fopen(strchr(option, '=') + 1, "r");
}


static bool has_dump(const char *option) {
  return access(strchr(option, '=') + 1, F_OK) == 0;
}


/* The kernel that a function of the dump runs unordered, or `none`. */
static size_t loop_of(const char *function, size_t none) {
  static const char *const names[] = {"cgl_row<", "cgl_block<", "cgl_stride<",
                                      "cgl_loops_of_"};
  const char *loops = strstr(function, "::cgl_loops_"), *unscoped = function;
  if (loops && loops < function + strcspn(function, " ("))
    unscoped = loops + 2;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(unscoped, names[i], strlen(names[i])) == 0)
      return strtoul(unscoped + strlen(names[i]), NULL, 10);
  return none;
}


/* Instances of one template share their text, and so how its loop runs. */
static void set_ordered(cgl_host_job *h, size_t kernel) {
  const cgl_signature *all = h->job->image->signatures;
  h->ordered[kernel] = true;
  h->job->image->signatures[kernel].strips = false;
  for (size_t i = 0; i < h->job->image->nsignatures; i++)
    if (all[kernel].loop.start && all[i].loop.start == all[kernel].loop.start)
      h->ordered[i] = true;
}


/* The pragma that lets the compiler vectorise over threads says that their
   memory accesses are independent.  A local array that stays in memory is
   one array for the whole loop, and then the claim is false: gcc takes it at
   its word and mixes the threads' values (seen with gcc 12; `omp simd` does
   the same).  So the dump after scalar replacement, before any pass uses the
   claim, is read for such arrays, and the kernels that have them are built
   again in order.  Returns how many. */
static size_t find_memory(cgl_host_job *h) {
  const cgl_image *image = h->job->image;
  FILE *file = open_dump(h->dumps[0]);
  char line[1024];
  size_t found = 0, kernel = image->nsignatures;
  bool body = false; /* past the function's declarations */
  /* Without any dump no pass ran that uses the claim. */
  if (!file && !has_dump(h->dumps[1]))
    return 0;
  if (!file) {
    for (size_t i = 0; i < image->nsignatures; i++)
      found += !h->ordered[i] && !(cgl_host_mode(h, i) & CGL_HOST_BARRIERS);
    memset(h->ordered, true, image->nsignatures);
    return found;
  }
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, ";; Function ", 12) == 0) {
      kernel = loop_of(line + 12, image->nsignatures);
      body = false;
    }
    body |= strncmp(line, "  <bb ", 6) == 0;
    if (kernel < image->nsignatures && !h->ordered[kernel] &&
        !is_block_memory(line) &&
        (body ? !!strstr(line, "{CLOBBER") : is_memory(line))) {
      found++;
      set_ordered(h, kernel);
    }
  }
  fclose(file);
  return found;
}


/* A place that is 0 or 1 by a comparison, as in a[i > 1], may be taken for the
   mask that the comparison is in vectors, in which true is -1 (seen with gcc
   12): the vectorizer then takes lanes of a mask for places.  Masks have no
   lanes to it otherwise. */
static bool takes_masks_for_places(const cgl_host_job *h) {
  FILE *file = open_dump(h->dumps[1]);
  char line[1024];
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file))
    found = strstr(line, "BIT_FIELD_REF <mask_") ||
            strstr(line, "VIEW_CONVERT_EXPR<<signed-boolean");
  if (file)
    fclose(file);
  return found;
}


/* Without vectors, from now on; whether that is new. */
static bool drop_vectors(cgl_host_job *h) {
  const bool had = !h->scalar;
  h->scalar = true;
  return had;
}


/* Does the compiler speak of the kernel as loops? */
static bool is_named(const cgl_host_job *h, size_t i) {
  char name[40];
  int n = snprintf(name, sizeof name, "cgl_loops_of_%zu", i);
  const char *at = h->said.data;
  while (at && (at = strstr(at, name)) && at[n] >= '0' && at[n] <= '9')
    at += n;
  return at != NULL;
}


/* Does it speak of an error in the kernel's lines?  What is written for loops
   may count as other lines, so only where no kernel is named. */
static bool is_placed(const cgl_host_job *h, size_t i) {
  const cgl_source *source = h->job->source;
  const cgl_signature *s = &h->job->image->signatures[i];
  const cgl_chunk *c = &h->job->program->chunks[s->declared->chunk];
  const size_t file = strlen(source->file);
  for (const char *at = h->said.data, *end; at && *at; at = end + (*end != 0)) {
    end = at + strcspn(at, "\n");
    if (strncmp(at, source->file, file) != 0 || at[file] != ':' ||
        !memmem(at, (size_t)(end - at), " error: ", 8))
      continue;
    const long line = strtol(at + file + 1, NULL, 10);
    if (line >= c->at->line && line <= c->at[c->count - 1].line)
      return true;
  }
  return false;
}


static bool has_said(const cgl_host_job *h, const char *words) {
  return h->said.data && strstr(h->said.data, words);
}


/* Was the compiler stopped at its limit? */
static bool took_long(const cgl_host_job *h) {
  return has_said(h, "CPU time limit");
}


static void drop_loops(cgl_host_job *h, size_t i) {
  cgl_signature *s = &h->job->image->signatures[i];
  s->loops = false;
  if (!(s->features & CGL_USES_BARRIER))
    return;
  s->fibers = took_long(h) ? "as loops its compile takes too long"
                           : "the compiler does not take it as loops";
  s->fibers_line = s->line - h->job->source->line;
}


/* Takes back what was written for the compiler: the kernels as loops that it
   names, or else all, and every grid-stride loop.  Returns how many. */
static size_t drop_all(cgl_host_job *h) {
  cgl_signature *all = h->job->image->signatures;
  size_t dropped = 0;
  for (int placed = 0; placed < 2 && !dropped; placed++)
    for (size_t i = 0; i < h->job->image->nsignatures; i++)
      if (all[i].loops && (placed ? is_placed(h, i) : is_named(h, i))) {
        drop_loops(h, i);
        dropped++;
      }
  if (dropped)
    return dropped;
  for (size_t i = 0; i < h->job->image->nsignatures; i++)
    if (cgl_host_mode(h, i) == CGL_HOST_STRIDE) {
      h->ordered[i] = true;
      dropped++;
    } else if (all[i].strips) {
      all[i].strips = false;
      dropped++;
    } else if (all[i].loops) {
      drop_loops(h, i);
      dropped++;
    } else if (all[i].nends) {
      all[i].nends = 0;
      dropped++;
    }
  return dropped;
}


bool cgl_host_amend(cgl_host_job *h, cgl_compile_status status) {
  if (status == CGL_COMPILE_OK) {
    if (h->cxx->clang)
      return false;
    const bool ordered = find_memory(h) > 0;
    return (takes_masks_for_places(h) && drop_vectors(h)) || ordered;
  }
  if (status != CGL_COMPILE_REFUSED)
    return false;
  if (has_said(h, "Killed signal")) /* for want of memory, in a full machine */
    h->job->unkept = true;
  if ((has_said(h, "internal compiler error") ||
       has_said(h, "relocation truncated")) &&
      drop_vectors(h))
    return true;
  if (took_long(h) && !h->guarded) {
    h->guarded = true;
    if (!cgl_host_is_split(h->job))
      return true;
  }
  /* Then for the columns of the messages. */
  return drop_all(h) || cgl_source_drop_fields(h->job->image);
}
