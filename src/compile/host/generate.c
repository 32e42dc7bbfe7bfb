/* The C++ file that a script's kernels become. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/device/device_text.h"
#include "compile/frontend/program.h"
#include "compile/host/host.h"
#include "compile/loops/loops.h"

#define DYNAMIC_SHARED 232448 /* bytes, what sm_90 allows a block */


void cgl_host_device_text(cgl_text *out) {
  cgl_text_put(out, cgl_text_kernel_abi);
  cgl_text_put(out, cgl_text_device);
  cgl_host_put_functions(NULL, out);
  cgl_text_put(out, cgl_text_device_math);
  cgl_text_put(out, cgl_text_device_division);
  cgl_text_put(out, cgl_text_device_int);
  cgl_text_put(out, cgl_text_device_video);
  cgl_text_put(out, cgl_text_device_half);
  cgl_text_put(out, cgl_text_prelude);
  cgl_text_put(out, cgl_text_device_random);
  cgl_text_put(out, cgl_text_device_complex);
  cgl_text_put(out, cgl_text_device_groups);
  cgl_text_put(out, cgl_text_device_sums);
  cgl_text_put(out, cgl_text_device_run);
  cgl_text_put(out, cgl_text_device_loops);
}


/* Does the source name one of the words, or a longer one? */
static bool names_any(const cgl_job *job, const char *const *words) {
  const cgl_source *s = job->source;
  for (const char *const *w = words; *w; w++)
    if (cgl_program_contains(job->program, *w) ||
        memmem(s->text, s->length, *w, strlen(*w)))
      return true;
  return cgl_program_is_partial(job->program);
}


/* Parts of the device header are left out when the source names
   no word of theirs: half the time of a small kernel's compile is its header.
 */
static void add_header(const cgl_job *job, cgl_text *out) {
  static const char *const warp[] = {"_sync", "__activemask", "__syncwarp",
                                     "__syncthreads_", NULL};
  static const char *const atomics[] = {"atomic", NULL};
  static const char *const half[] = {"half", "bfloat16", NULL};
  static const char *const integers[] = {
      "2int",  "2uint",  "2ll",     "2ull",     "2float_", "2double_",
      "_rn",   "_rz",    "_ru",     "_rd",      "__popc",  "__clz",
      "__ffs", "__brev", "__byte_", "mulhi",    "64hi",    "mul24",
      "sad",   "hadd",   "__dp",    "__funnel", "__fns",   NULL};
  static const char *const video[] = {
      "__vadd", "__vsub",  "__vabs", "__vmax", "__vmin", "__vcmp", "__vset",
      "__vavg", "__vhadd", "__vneg", "__vsad", "__vi",   NULL};
  static const char *const divisions[] = {"/", "%", NULL};
  static const char *const vectors[] = {"char", "short", "long", NULL};
  static const struct {
    const char *macro;
    const char *const *words;
  } parts[] = {{"CGL_WITH_WARP", warp},
               {"CGL_WITH_ATOMICS", atomics},
               {"CGL_WITH_HALF", half},
               {"CGL_WITH_INTEGERS", integers},
               {"CGL_WITH_VECTORS", vectors}};
  bool all = cgl_program_is_partial(job->program);
  const bool groups = cgl_program_has_groups(job->program);
  bool has_half = all, has_integers = all;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    const bool found =
        names_any(job, parts[i].words) ||
        (groups && (parts[i].words == warp || parts[i].words == integers));
    if (found)
      cgl_text_print(out, "#define %s 1\n", parts[i].macro);
    has_half |= found && parts[i].words == half;
    has_integers |= found && parts[i].words == integers;
  }
  cgl_text_put(out, cgl_text_prelude);
  cgl_text_put(out, cgl_text_kernel_abi);
  cgl_text_put(out, cgl_text_device);
  cgl_host_put_functions(job, out);
  cgl_text_put(out, cgl_text_device_math);
  if (names_any(job, divisions))
    cgl_text_put(out, cgl_text_device_division);
  if (has_integers)
    cgl_text_put(out, cgl_text_device_int);
  if (names_any(job, video))
    cgl_text_put(out, cgl_text_device_video);
  if (has_half)
    cgl_text_put(out, cgl_text_device_half);
  if (all || cgl_program_contains(job->program, "cgl_philox"))
    cgl_text_put(out, cgl_text_device_random);
  if (cgl_program_is_complex(job->program))
    cgl_text_put(out, cgl_text_device_complex);
  if (cgl_program_has_groups(job->program))
    cgl_text_put(out, cgl_text_device_groups);
  if (job->program->nsums) {
    cgl_text_put(out, "#define CGL_WITH_SUMS 1\n");
    cgl_text_put(out, cgl_text_device_sums);
  }
  cgl_text_put(out, cgl_text_device_run);
  if (!cgl_host_is_split(job))
    cgl_text_put(out, "#define CGL_UNSWITCHED 1\n");
  bool loops = all || cgl_program_contains(job->program, "_sync");
  for (size_t i = 0; i < job->image->nsignatures; i++)
    loops |=
        job->image->signatures[i].loops || job->image->signatures[i].strips;
  if (loops)
    cgl_text_put(out, cgl_text_device_loops);
  cgl_host_ask(out);
}


bool cgl_host_is_split(const cgl_job *job) {
  bool split = job->image->nsignatures > 0;
  for (size_t i = 0; i < job->image->nsignatures; i++)
    split &= job->image->signatures[i].loops ||
             job->image->signatures[i].strips ||
             (job->image->signatures[i].features & CGL_USES_BARRIER);
  return split;
}


int cgl_host_mode(const cgl_host_job *h, size_t which) {
  unsigned features = h->job->image->signatures[which].features;
  if (h->job->image->signatures[which].loops)
    return CGL_HOST_LOOPS;
  if (features & CGL_USES_BARRIER)
    return CGL_HOST_BARRIERS;
  if (h->job->image->signatures[which].loop.start && !h->ordered[which])
    return CGL_HOST_STRIDE;
  if (h->job->image->signatures[which].strips)
    return CGL_HOST_FLAT | CGL_HOST_STRIPS;
  return (features & (CGL_USES_SHARED | CGL_NEEDS_THREADS) ? 0
                                                           : CGL_HOST_FLAT) |
         (h->ordered[which] ? CGL_HOST_ORDERED
          : cgl_program_adds_rows(h->job->program,
                                  h->job->image->signatures[which].declared)
              ? CGL_HOST_ROWS
          : h->job->image->signatures[which].nends ? CGL_HOST_ENDS
                                                   : 0);
}


/* The N of all `blockIdx.x * N` in a kernel without barriers and shared memory;
   0 when there is none, or not one alone. */
static long block_width(const cgl_job *job, const cgl_signature *s) {
  const cgl_chunk *c = &job->program->chunks[s->declared->chunk];
  long width = 0;
  if (s->features & (CGL_USES_BARRIER | CGL_USES_SHARED))
    return 0;
  for (size_t i = 0; i < c->count; i++) {
    if (!cgl_token_is_axis(c->at, c->count, i, "blockIdx"))
      continue;
    const cgl_token *number = NULL;
    if (i + 4 < c->count && cgl_token_is(&c->at[i + 3], "*"))
      number = &c->at[i + 4];
    else if (i > 1 && cgl_token_is(&c->at[i - 1], "*"))
      number = &c->at[i - 2];
    long n = number && number->kind == CGL_TOKEN_NUMBER
                 ? strtol(number->text, NULL, 0)
                 : 0;
    if (n < 1 || n > 1024 || (width && n != width))
      return 0;
    width = n;
  }
  return width;
}


/* What runs a block of kernel i as loops, or a strip of its threads, or the
   reason why it cannot. */
static int write_loops(const cgl_host_job *h, size_t i, bool strips,
                       cgl_text *out, const char **why, int *line) {
  const cgl_job *job = h->job;
  const cgl_signature *s = &job->image->signatures[i];
  cgl_loops_style style = {.id = i,
                           .file = job->source->file,
                           .ordered = h->ordered[i],
                           .strips = strips,
                           .strided =
                               !strips && !(s->features & CGL_USES_BARRIER),
                           .indexed = !block_width(job, s)};
  return cgl_loops_write(job->program, s, &style, &job->image->arena, out, why,
                         line);
}


/* A kernel without barriers runs in strips when it knows its threads along x by
   their place in the grid alone, and else as loops over a block when it has a
   loop that the threads of a row take together. */
static int choose_plain(cgl_host_job *h, size_t i) {
  cgl_signature *s = &h->job->image->signatures[i];
  cgl_text text = {0};
  const char *why;
  int line;
  if (s->features & CGL_USES_SHARED || !(s->features & CGL_USES_INDEX) ||
      s->loop.start || h->ordered[i])
    return 0;
  int status = s->features & CGL_NEEDS_THREADS
                   ? 1
                   : write_loops(h, i, true, &text, &why, &line);
  s->strips = status == 0;
  if (status == 1)
    status = write_loops(h, i, false, &text, &why, &line);
  s->loops = status == 0 && !s->strips;
  cgl_text_free(&text);
  return status;
}


static bool are_alike(const cgl_signature *a, const cgl_signature *b) {
  bool alike = a->nends == b->nends;
  for (size_t i = 0; alike && i < a->nends; i++)
    alike = a->ends[i].open == b->ends[i].open &&
            a->ends[i].leaves == b->ends[i].leaves;
  return alike;
}


/* Instances of one text may have other ends in it, as their types are others;
   it is written for the first that has any. */
static void drop_unlike_ends(cgl_image *image) {
  for (size_t i = 0; i < image->nsignatures; i++)
    for (size_t k = i + 1; k < image->nsignatures; k++) {
      const cgl_signature *a = &image->signatures[i];
      cgl_signature *b = &image->signatures[k];
      bool shared = false;
      for (size_t j = 0; j < a->nends * b->nends; j++)
        shared |= a->ends[j % a->nends].open == b->ends[j / a->nends].open;
      if (shared && !are_alike(a, b))
        b->nends = 0;
    }
}


int cgl_host_choose_loops(cgl_host_job *h) {
  const char *asked = getenv("CGRAPHLUA_HOST_KERNELS");
  bool fibers = asked && strcmp(asked, "fibers") == 0;
  bool plain = asked && strcmp(asked, "plain") == 0;
  bool partial = cgl_program_is_partial(h->job->program);
  int status = 0;
  for (size_t i = 0; i < h->job->image->nsignatures && status >= 0; i++) {
    cgl_signature *s = &h->job->image->signatures[i];
    cgl_text text = {0};
    if (fibers || plain)
      s->nends = 0;
    const char *why = fibers           ? "$CGRAPHLUA_HOST_KERNELS asks for them"
                      : partial        ? "an included file was not found"
                      : s->specialised ? "a template with a specialisation"
                      : s->features & CGL_USES_GROUPS ? "cooperative groups"
                                                      : NULL;
    int line = s->line;
    if (!(s->features & CGL_USES_BARRIER)) {
      if (!why && !plain)
        status = choose_plain(h, i);
      continue;
    }
    if (!why)
      status = write_loops(h, i, false, &text, &why, &line);
    s->loops = !why;
    if (why) {
      s->fibers = why;
      s->fibers_line = line - h->job->source->line;
    }
    cgl_text_free(&text);
  }
  drop_unlike_ends(h->job->image);
  return status < 0 ? -1 : 0;
}


/* Names of the loops that do not begin with cgl_, and may be macros of the
   source.  What the loops have of the source is expanded already. */
static const char *const loop_names[] = {"run", "x", "y", "z"};


static void add_loops(const cgl_host_job *h, cgl_text *out) {
  const size_t names = sizeof loop_names / sizeof *loop_names;
  for (size_t i = 0; i < names; i++)
    cgl_text_print(out, "#pragma push_macro(\"%s\")\n#undef %s\n",
                   loop_names[i], loop_names[i]);
  for (size_t i = 0; i < h->job->image->nsignatures; i++) {
    const char *why;
    int line;
    const cgl_signature *s = &h->job->image->signatures[i];
    if (s->loops || s->strips)
      out->failed |= write_loops(h, i, s->strips, out, &why, &line) != 0;
  }
  for (size_t i = 0; i < names; i++)
    cgl_text_print(out, "#pragma pop_macro(\"%s\")\n", loop_names[i]);
}


/* The largest number up to CGL_MOST_FEW below which a place may be too near an
   edge: 2 of `x < 2 || x > w - 3`; 1 when there is none, and 0 when nothing
   is compared with a number, is one less than another, or is left to a function
   of the source.  The headers of loops ask for other things. */
static long edge_width(const cgl_job *job, const cgl_signature *s) {
  const cgl_chunk *c = &job->program->chunks[s->declared->chunk];
  long width = 0;
  for (size_t i = 1; i + 1 < c->count; i++) {
    const cgl_token *t = &c->at[i];
    size_t chunk;
    if (cgl_token_is(t, "for"))
      i = cgl_tokens_close(c->at, c->count, i + 1) - 1;
    if (!width &&
        (cgl_token_is_any(t, "!", "==", "!=", "?") ||
         (cgl_token_is_any(t, "-", "<", "<=", ">", ">=") &&
          (t[1].kind == CGL_TOKEN_NUMBER || t[-1].kind == CGL_TOKEN_NUMBER)) ||
         (t->kind == CGL_TOKEN_NAME && i > 1 &&
          cgl_reach_chunk(job->program, t, 0, &chunk) &&
          chunk != s->declared->chunk)))
      width = 1;
    if (c->at[i - 1].kind != CGL_TOKEN_NAME ||
        c->at[i + 1].kind != CGL_TOKEN_NUMBER ||
        !cgl_token_is_any(t, "<", "<=", ">", ">="))
      continue;
    char *end;
    const long n =
        strtol(c->at[i + 1].text, &end, 0) + cgl_token_is_any(t, "<=", ">");
    if (n > width && n <= CGL_MOST_FEW &&
        end == c->at[i + 1].text + c->at[i + 1].length)
      width = n;
  }
  return width;
}


/* One row per kernel; an error in it points at the kernel's own line. */
static void add_exports(const cgl_host_job *h, cgl_text *out) {
  const cgl_job *job = h->job;
  const cgl_image *image = job->image;
  const char *file = job->source->file;
  cgl_text_put(out, "\n#line 1 \"cgraphlua\"\n");
  if (cgl_program_contains(job->program, "__shared__"))
    cgl_text_print(out,
                   "extern \"C\" { __thread char cgl_dynamic_shared[%d] "
                   "__attribute__((__aligned__(128))); }\n",
                   DYNAMIC_SHARED);
  add_loops(h, out);
  if (image->nsignatures)
    cgl_text_put(out, "static const cgl_host_kernel cgl_kernels[] = {\n");
  for (size_t i = 0; i < image->nsignatures; i++) {
    const cgl_signature *s = &image->signatures[i];
    const char *name = *s->name == '&' ? s->name + 1 : s->name;
    cgl_text_print(out, "#line %d \"", s->line);
    cgl_text_quote(out, file);
    cgl_text_print(out, "\"\ncgl_export<%zu, (%s), %d", i, name,
                   cgl_host_mode(h, i));
    if (s->loops || s->strips)
      cgl_text_print(out, ", %scgl_loops_%zu", s->declared->scope, i);
    else
      cgl_text_print(out, ", void, %ld, %ld", block_width(job, s),
                     edge_width(job, s));
    cgl_text_put(out, ">(\"");
    cgl_text_quote(out, s->lowered);
    cgl_text_print(out, "\", %u),\n", s->max_threads ? s->max_threads : 1024u);
  }
  cgl_text_put(out, image->nsignatures ? "};\n" : "");
  cgl_text_put(out, "#line 1 \"cgraphlua\"\n");
  if (image->nvariables)
    cgl_text_put(out, "static const cgl_host_global cgl_globals[] = {\n");
  for (size_t i = 0; i < image->nvariables; i++)
    cgl_text_print(out, "{\"%s\", (void *)&%s, sizeof(%s)},\n",
                   image->variables[i].name, image->variables[i].name,
                   image->variables[i].name);
  cgl_text_put(out, image->nvariables ? "};\n" : "");
  cgl_text_print(
      out,
      "extern \"C\" __attribute__((__visibility__(\"default\"), "
      "__externally_visible__, __used__)) "
      "const cgl_host_module cgl_exported "
      "__asm__(\""
      "cgl_host_module"
      "\");\n"
      "const cgl_host_module cgl_exported = {CGL_HOST_ABI, %zu, "
      "%s, %zu, %s, cgl_init};\n",
      image->nsignatures, image->nsignatures ? "cgl_kernels" : "nullptr",
      image->nvariables, image->nvariables ? "cgl_globals" : "nullptr");
  cgl_host_add_questions(image, out); /* last: it undefines macros */
}


/* -D and -U as directives: on the command line they would reach into the
   device header, whose names are not the user's to change. */
static void add_defines(const cgl_source *s, cgl_text *out) {
  for (size_t i = 0; i < s->noptions; i++) {
    const char *option = s->options[i];
    if (strncmp(option, "-D", 2) && strncmp(option, "-U", 2))
      continue;
    const char *name = option + 2;
    if (!*name && i + 1 < s->noptions)
      name = s->options[++i];
    size_t n = strcspn(name, "=");
    cgl_text_put(out, option[1] == 'D' ? "#define " : "#undef ");
    cgl_text_add(out, name, n);
    if (option[1] == 'D')
      cgl_text_print(out, " %s", name[n] ? name + n + 1 : "1");
    cgl_text_put(out, "\n");
  }
  cgl_text_put(out, "#ifdef NDEBUG\n#undef assert\n"
                    "#define assert(e) ((void)0)\n#endif\n");
}


/* The script's text, with kernels that run as loops rewritten. */
static void add_source(const cgl_host_job *h, cgl_text *out) {
  const cgl_image *image = h->job->image;
  size_t nends = 0;
  for (size_t i = 0; i < image->nsignatures; i++)
    nends += image->signatures[i].nends;
  cgl_changes c = {
      .loops = calloc(image->nsignatures + 1, sizeof *c.loops),
      .ends = calloc(nends + 1, sizeof *c.ends),
  };
  out->failed |= !c.loops || !c.ends;
  for (size_t i = 0; !out->failed && i < image->nsignatures; i++) {
    const cgl_signature *s = &image->signatures[i];
    const int mode = cgl_host_mode(h, i);
    if (mode == CGL_HOST_STRIDE)
      c.loops[c.nloops++] = &s->loop;
    for (size_t k = 0; mode & CGL_HOST_ENDS && k < s->nends; k++)
      c.ends[c.nends++] = &s->ends[k];
  }
  if (!out->failed)
    cgl_source_rewrite(h->job->source, true, &c, h->job->program, out);
  free(c.loops);
  free(c.ends);
}


void cgl_host_generate(const cgl_host_job *h, cgl_text *out) {
  const cgl_job *job = h->job;
  cgl_text_put(out, "#line 1 \"cgraphlua\"\n");
  add_header(job, out);
  cgl_source_put_own_types(job->program, out);
  add_defines(job->source, out);
  cgl_text_print(out, "#line %d \"", job->source->line);
  cgl_text_quote(out, job->source->file);
  cgl_text_put(out, "\"\n");
  add_source(h, out);
  add_exports(h, out);
}


void cgl_host_macros(cgl_text *out) {
  cgl_text_put(out, cgl_text_prelude);
}


const char *cgl_host_outline(const cgl_job *job, cgl_text *out) {
  static const char *const words[] = {
      "__device__",   "__host__",          "__global__",
      "__constant__", "__managed__",       "__grid_constant__",
      "__shared__",   "__forceinline__",   "__inline_hint__",
      "__noinline__", "__launch_bounds__", "__cluster_dims__",
      "__maxnreg__",  "__align__",         "__builtin_align__",
      "assert"};
  static const char mark[] = "cgl_script_begins";
  add_header(job, out);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    cgl_text_print(out, "\n#undef %s\n#define %s %s\n", words[i], words[i],
                   words[i]);
  cgl_source_put_own_types(job->program, out);
  add_defines(job->source, out);
  cgl_text_print(out, "%s\n#line %d \"", mark, job->source->line);
  cgl_text_quote(out, job->source->file);
  cgl_text_put(out, "\"\n");
  cgl_source_rewrite(job->source, false, NULL, NULL, out);
  cgl_text_put(out, "\n");
  return mark;
}
