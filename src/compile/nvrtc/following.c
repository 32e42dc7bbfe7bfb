/* Following forms of kernels (driver/predicate.h), made of PTX.
   Every load of a small parameter that is no pointer becomes two, at the begin
   of the code: that of the parameter, and, where the words have an address, one
   from there.  What stood in the load's place takes the value from a register.
   So all threads have the value before the kernel does anything, and a kernel
   that waits for the grids before it waits first. */
#define _GNU_SOURCE
#include "compile/nvrtc/nvrtc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "driver/predicate.h"

enum { MOST_PARAMS = 256, MOST_LANES = 8 };

/* A piece of the PTX. */
typedef struct piece {
  const char *at;
  size_t length;
} piece;

typedef struct param {
  piece name;
  size_t bytes;
  bool never; /* read from an address: it is a pointer, or large */
  bool read;  /* has an address and a predicate by now */
} param;

typedef struct following {
  const cgl_ptx_entry *entry;
  param params[MOST_PARAMS];
  size_t nparams, nloads;
  bool waits;           /* for the grids before it */
  bool launches;        /* those behind it, before it waits */
  cgl_text begin, body; /* at the begin of the code, and the code */
} following;

/* ld.param.TYPE {REGISTERS}, [PARAMETER+OFFSET]; */
typedef struct load {
  piece type;                                     /* ".v2.f32" */
  piece registers[MOST_LANES], kinds[MOST_LANES]; /* "%f1", ".f32" */
  size_t nregisters, param;
  piece offset; /* "+4", or nothing */
} load;


/* ---- reading ---- */

const char *cgl_ptx_skip_space(const char *at) {
  while (isspace((unsigned char)*at))
    at++;
  return at;
}


bool cgl_ptx_begins_with(const char *at, const char *word) {
  return !strncmp(at, word, strlen(word));
}


/* Past the end of a quoted text or a comment that begins here; else `at`. */
static const char *skip_inert(const char *at) {
  const char *end = at;
  if (*at == '"')
    end = strchr(at + 1, '"');
  else if (cgl_ptx_begins_with(at, "//"))
    end = strchr(at, '\n');
  else
    return at;
  return end ? end + 1 : at + strlen(at);
}


const char *cgl_ptx_find_either(const char *at, char a, char b) {
  while (*at && *at != a && *at != b) {
    const char *after = skip_inert(at);
    at = after == at ? at + 1 : after;
  }
  return at;
}


/* Of a name of a register, a parameter or a label. */
static bool is_name(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}


static piece name_at(const char *at) {
  piece name = {at, 0};
  while (is_name(at[name.length]))
    name.length++;
  return name;
}


static bool piece_is(piece a, piece b) {
  return a.length == b.length && !memcmp(a.at, b.at, a.length);
}


/* Past the kernel's name. */
static const char *name_end(const cgl_ptx_entry *entry) {
  const char *end = entry->open;
  while (isspace((unsigned char)end[-1]))
    end--;
  return end;
}


/* Where the line with the kernel's name begins; the module's head may stand
   before it. */
static const char *line_begin(const cgl_ptx_entry *entry) {
  const char *at = name_end(entry);
  while (at > entry->begin && at[-1] != '\n')
    at--;
  return at;
}


/* "24" of "f3[24]", with the name before it; a number has at most 8 bytes. */
static bool param_read(const char *at, const char *end, param *p) {
  *p = (param){.bytes = 8};
  while (end > at && isspace((unsigned char)end[-1]))
    end--;
  if (end > at && end[-1] == ']') {
    while (end > at && *end != '[')
      end--;
    p->bytes = strtoull(end + 1, NULL, 10);
  }
  p->name.at = end;
  while (p->name.at > at && is_name(p->name.at[-1]))
    p->name.at--;
  p->name.length = (size_t)(end - p->name.at);
  return p->name.length;
}


/* The signature of the kernel; NULL: it is not known. */
static const cgl_signature *signature_find(const following *f,
                                           const cgl_image *image) {
  const char *end = name_end(f->entry), *begin = end;
  while (is_name(begin[-1]))
    begin--;
  const piece name = {begin, (size_t)(end - begin)};
  for (size_t i = 0; image && i < image->nsignatures; i++) {
    const cgl_signature *s = &image->signatures[i];
    if (s->lowered && piece_is(name, (piece){s->lowered, strlen(s->lowered)}))
      return s;
  }
  return NULL;
}


static void params_judge(following *f, const cgl_signature *s) {
  for (size_t i = 0; i < f->nparams; i++) {
    const cgl_parameter *p =
        s && s->nparameters == f->nparams ? &s->parameters[i] : NULL;
    f->params[i].never = f->params[i].bytes > CGL_FOLLOWING_MOST ||
                         (p && (p->pointer || p->kind == CGL_KIND_PHILOX));
  }
}


static bool params_read(following *f) {
  const char *at = f->entry->open + 1;
  bool read = cgl_ptx_skip_space(at) != f->entry->close;
  while (read && at < f->entry->close && f->nparams < MOST_PARAMS) {
    const char *end = cgl_ptx_find_either(at, ',', ')');
    read = param_read(at, end, &f->params[f->nparams++]);
    at = end + 1;
  }
  return read && at > f->entry->close;
}


/* Whether the statement names a parameter that may be read from an address. */
static bool statement_names(const following *f, const char *at,
                            const char *end) {
  while (at < end) {
    const piece name = name_at(at);
    for (size_t i = 0; i < f->nparams && name.length; i++)
      if (!f->params[i].never && piece_is(name, f->params[i].name))
        return true;
    at = name.length ? at + name.length
                     : skip_inert(at) + (skip_inert(at) == at);
  }
  return false;
}


/* ".f32" for %f1, where the body declares %f<9>, or %f1. */
static piece register_kind(const following *f, piece name) {
  static const char word[] = ".reg";
  const char *at = f->entry->body, *end = f->entry->end;
  while ((at = memmem(at, (size_t)(end - at), word, sizeof word - 1))) {
    const piece dot = {cgl_ptx_skip_space(at + sizeof word - 1), 1};
    const piece kind = {dot.at, 1 + name_at(dot.at + 1).length};
    for (at = kind.at + kind.length; *at != ';' && at < end; at++) {
      const piece declared = name_at(at);
      const char *rest = name.at + declared.length;
      if (!declared.length)
        continue;
      at += declared.length;
      bool fits = *dot.at == '.' && declared.length <= name.length &&
                  !memcmp(declared.at, name.at, declared.length);
      if (*at != '<')
        fits = fits && declared.length == name.length;
      for (; fits && rest < name.at + name.length; rest++)
        fits = isdigit((unsigned char)*rest);
      if (fits)
        return kind;
      while (*at != ',' && *at != ';' && at < end)
        at++;
      at -= *at == ';';
    }
  }
  return (piece){NULL, 0};
}


/* The names between braces, or the one name; NULL: that is no such thing. */
static const char *registers_read(const following *f, const char *at, load *l) {
  const bool many = *at == '{';
  at += many;
  do {
    at = cgl_ptx_skip_space(at);
    const piece name = name_at(at);
    if (!name.length || l->nregisters == MOST_LANES)
      return NULL;
    const piece kind = register_kind(f, name);
    if (!kind.at)
      return NULL;
    l->registers[l->nregisters] = name;
    l->kinds[l->nregisters++] = kind;
    at = cgl_ptx_skip_space(at + name.length);
  } while (many && *at++ == ',');
  return many && at[-1] != '}' ? NULL : cgl_ptx_skip_space(at);
}


static bool load_read(const following *f, const char *at, load *l) {
  static const char word[] = "ld.param", kind[] = "::entry";
  *l = (load){.nregisters = 0};
  if (!cgl_ptx_begins_with(at, word))
    return false;
  at += sizeof word - 1;
  if (cgl_ptx_begins_with(at, kind))
    at += sizeof kind - 1;
  l->type.at = at;
  while (*at == '.')
    at += 1 + name_at(at + 1).length;
  l->type.length = (size_t)(at - l->type.at);
  at = registers_read(f, cgl_ptx_skip_space(at), l);
  if (!at || *at != ',')
    return false;
  at = cgl_ptx_skip_space(at + 1);
  if (*at != '[')
    return false;
  const piece name = name_at(at + 1);
  while (l->param < f->nparams && !piece_is(name, f->params[l->param].name))
    l->param++;
  at = l->offset.at = at + 1 + name.length;
  while (*at == '+' || isdigit((unsigned char)*at))
    at++;
  l->offset.length = (size_t)(at - l->offset.at);
  return l->type.length && l->param < f->nparams && *at == ']' &&
         *cgl_ptx_skip_space(at + 1) == ';';
}


/* ---- writing ---- */

/* Bits of a register: 16 of .b16, 32 of .f16x2. */
static int kind_bits(piece kind) {
  size_t i = 0;
  while (i < kind.length && !isdigit((unsigned char)kind.at[i]))
    i++;
  const int bits = atoi(kind.at + i);
  return memchr(kind.at, 'x', kind.length) ? 2 * bits : bits;
}


/* Whether, and where, a parameter is read from an address. */
static void write_address(following *f, size_t index) {
  const int i = (int)index;
  if (!f->params[index].read)
    cgl_text_print(&f->begin,
                   "\t.reg .b64 %%cgl_a%d;\n\t.reg .pred %%cgl_p%d;\n"
                   "\tld.param.u64 %%cgl_a%d, [%%cgl_following+%d];\n"
                   "\tsetp.ne.u64 %%cgl_p%d, %%cgl_a%d, 0;\n"
                   "\tcvta.to.global.u64 %%cgl_a%d, %%cgl_a%d;\n",
                   i, i, i, 8 * (i + 1), i, i, i, i);
  f->params[index].read = true;
}


/* "{%cgl_v3_0, %cgl_v3_1}" */
static void write_registers(following *f, const load *l) {
  for (size_t i = 0; i < l->nregisters; i++)
    cgl_text_print(&f->begin, "%s%%cgl_v%zu_%zu",
                   i                   ? ", "
                   : l->nregisters > 1 ? "{"
                                       : "",
                   f->nloads, i);
  cgl_text_put(&f->begin, l->nregisters > 1 ? "}, [" : ", [");
}


static void write_load(following *f, const load *l) {
  const param *p = &f->params[l->param];
  const int type = (int)l->type.length, offset = (int)l->offset.length;
  for (size_t i = 0; i < l->nregisters; i++)
    cgl_text_print(&f->begin, "\t.reg %.*s %%cgl_v%zu_%zu;\n",
                   (int)l->kinds[i].length, l->kinds[i].at, f->nloads, i);
  write_address(f, l->param);
  cgl_text_print(&f->begin, "\tld.param%.*s ", type, l->type.at);
  write_registers(f, l);
  cgl_text_print(&f->begin, "%.*s%.*s];\n\t@%%cgl_p%zu ld.global%.*s ",
                 (int)p->name.length, p->name.at, offset, l->offset.at,
                 l->param, type, l->type.at);
  write_registers(f, l);
  cgl_text_print(&f->begin, "%%cgl_a%zu%.*s];\n", l->param, offset,
                 l->offset.at);
  for (size_t i = 0; i < l->nregisters; i++)
    cgl_text_print(&f->body, "%smov.b%d %.*s, %%cgl_v%zu_%zu;", i ? " " : "",
                   kind_bits(l->kinds[i]), (int)l->registers[i].length,
                   l->registers[i].at, f->nloads, i);
  f->nloads++;
}


/* Past the statement, the brace, the label or the line of a debugger's that
   begins here. */
static const char *statement_end(const char *at) {
  const piece name = name_at(at);
  const char *behind = cgl_ptx_skip_space(at + name.length);
  if (*at == '{' || *at == '}')
    return at + 1;
  if (name.length && behind[0] == ':' && behind[1] != ':')
    return behind + 1;
  if (cgl_ptx_begins_with(at, ".loc"))
    return at + strcspn(at, "\n");
  const char *end = cgl_ptx_find_either(at, ';', ';');
  return *end ? end + 1 : end;
}


static bool statement_has(const char *at, const char *end, const char *word) {
  return memmem(at, (size_t)(end - at), word, strlen(word));
}


/* Writes the body; false when a parameter is used as anything else. */
static bool body_write(following *f) {
  const char *at = f->entry->body + 1, *end = f->entry->end;
  load l;
  while (at < end) {
    const char *after =
        isspace((unsigned char)*at) ? cgl_ptx_skip_space(at) : skip_inert(at);
    if (after == at) {
      after = statement_end(at);
      f->launches |= !f->waits && statement_has(at, after, "launch_dependents");
      f->waits |= statement_has(at, after, "griddepcontrol.wait");
      if (statement_names(f, at, after)) {
        if (!load_read(f, at, &l))
          return false;
        write_load(f, &l);
        at = after;
      }
    }
    cgl_text_add(&f->body, at, (size_t)(after - at));
    at = after;
  }
  return true;
}


static void following_write(following *f, cgl_text *out) {
  const cgl_ptx_entry *e = f->entry;
  const char *line = line_begin(e);
  cgl_text_put(out, "\n");
  cgl_text_add(out, line, (size_t)(name_end(e) - line));
  cgl_text_put(out, CGL_FOLLOWING);
  cgl_text_add(out, e->open, (size_t)(e->close - e->open));
  cgl_text_print(out, ",\n\t.param .align 8 .b8 %%cgl_following[%zu]\n",
                 cgl_following_bytes(f->nparams));
  cgl_text_add(out, e->close, (size_t)(e->body + 1 - e->close));
  cgl_text_put(out, "\n");
  if (f->launches)
    cgl_text_put(out, "\tgriddepcontrol.launch_dependents;\n");
  if (f->waits)
    cgl_text_put(out, "\tgriddepcontrol.wait;\n");
  cgl_text_put(out, f->begin.data ? f->begin.data : "");
  cgl_text_put(out, "\t.reg .b64 %cgl_writes;\n\t.reg .pred %cgl_all;\n"
                    "\tld.param.u64 %cgl_writes, [%cgl_following];\n"
                    "\tsetp.ne.u64 %cgl_all, %cgl_writes, 0;\n"
                    "\t@%cgl_all bar.sync 0;\n");
  cgl_text_add(out, f->body.data, f->body.length);
}


void cgl_nvrtc_follow(const cgl_ptx_entry *entry, const cgl_image *image,
                      cgl_text *out) {
  following *f = calloc(1, sizeof *f);
  out->failed |= !f;
  if (!f)
    return;
  f->entry = entry;
  const bool read = params_read(f);
  params_judge(f, signature_find(f, image));
  if (read && body_write(f))
    following_write(f, out);
  out->failed |= f->begin.failed || f->body.failed;
  cgl_text_free(&f->begin);
  cgl_text_free(&f->body);
  free(f);
}
