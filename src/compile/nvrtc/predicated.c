/* Second forms of kernels (driver/predicate.h), made of PTX.
   Every entry gets a cgl_predicate behind its parameters, and begins with the
   test.  Its following form stands behind it (following.c).  A kernel that
   waits for the grids before it in its first instructions tests after that:
   they may write the word. */
#define _GNU_SOURCE
#include "compile/nvrtc/nvrtc.h"

#include <ctype.h>
#include <string.h>

/* Registers, and the parameter, have a % in their names: a name of the source,
   of a kernel for one, would crash the assembler. */

/* At the begin of the code.  A word that may be looked at early is on its way
   while the kernel waits.  Words are read as all other memory is, through the
   first cache: thousands of warps that ask the second for one word wait for
   each other. */
static const char begin_text[] =
    "\n\t.reg .b32 %cgl_now, %cgl_early;\n"
    "\t.reg .b64 %cgl_word;\n"
    "\t.reg .pred %cgl_looks;\n"
    "\tld.param.u64 %cgl_word, [%cgl_predicate];\n"
    "\tld.param.u32 %cgl_early, [%cgl_predicate+28];\n"
    "\tcvta.to.global.u64 %cgl_word, %cgl_word;\n"
    "\tsetp.ne.u32 %cgl_looks, %cgl_early, 0;\n"
    "\tmov.u32 %cgl_now, 0;\n"
    "\t@%cgl_looks ld.global.u32 %cgl_now, [%cgl_word];\n";

static const char test_text[] =
    "\n\t{\n"
    "\t.reg .pred %cgl_runs, %cgl_valued, %cgl_counted, %cgl_first;\n"
    "\t.reg .b32 %cgl_turn, %cgl_value, %cgl_number, %cgl_x;\n"
    "\t.reg .b64 %cgl_at, %cgl_ran;\n"
    "\tld.param.u64 %cgl_at, [%cgl_predicate+8];\n"
    "\tld.param.u64 %cgl_ran, [%cgl_predicate+16];\n"
    "\tld.param.u32 %cgl_turn, [%cgl_predicate+24];\n"
    "\tsetp.ne.u64 %cgl_valued, %cgl_at, 0;\n"
    "\tsetp.ne.u64 %cgl_counted, %cgl_ran, 0;\n"
    "\tmov.u32 %cgl_value, 1;\n"
    "\tcvta.to.global.u64 %cgl_at, %cgl_at;\n"
    "\tcvta.to.global.u64 %cgl_ran, %cgl_ran;\n"
    "\t@%cgl_valued ld.global.u32 %cgl_value, [%cgl_at];\n"
    "\tsetp.gt.u32 %cgl_runs, %cgl_now, %cgl_turn;\n"
    "\t@!%cgl_runs ld.global.u32 %cgl_now, [%cgl_word];\n"
    "\tsetp.gt.u32 %cgl_runs, %cgl_now, %cgl_turn;\n"
    "\tsetp.ne.and.u32 %cgl_runs, %cgl_value, 0, %cgl_runs;\n"
    "\t@!%cgl_runs ret;\n"
    /* All threads have looked before one changes the value. */
    "\t@%cgl_valued bar.sync 0;\n"
    "\t@!%cgl_counted bra $cgl_asked;\n"
    "\tmov.u32 %cgl_number, %tid.x;\n"
    "\tmov.u32 %cgl_x, %tid.y;\n\tor.b32 %cgl_number, %cgl_number, %cgl_x;\n"
    "\tmov.u32 %cgl_x, %tid.z;\n\tor.b32 %cgl_number, %cgl_number, %cgl_x;\n"
    "\tmov.u32 %cgl_x, %ctaid.x;\n\tor.b32 %cgl_number, %cgl_number, %cgl_x;\n"
    "\tmov.u32 %cgl_x, %ctaid.y;\n\tor.b32 %cgl_number, %cgl_number, %cgl_x;\n"
    "\tmov.u32 %cgl_x, %ctaid.z;\n\tor.b32 %cgl_number, %cgl_number, %cgl_x;\n"
    "\tsetp.eq.u32 %cgl_first, %cgl_number, 0;\n"
    "\tadd.u32 %cgl_turn, %cgl_turn, 1;\n"
    "\t@%cgl_first st.volatile.global.u32 [%cgl_ran], %cgl_turn;\n"
    "$cgl_asked:\n"
    "\t}\n";


static const char *find_word(const char *at, const char *end,
                             const char *word) {
  return memmem(at, (size_t)(end - at), word, strlen(word));
}


/* Past the brace that closes the one at `at`. */
static const char *skip_block(const char *at) {
  int depth = 0;
  do {
    depth += *at == '{' ? 1 : -1;
    at = cgl_ptx_find_either(at + 1, '{', '}');
  } while (*at && (depth > 1 || *at == '{'));
  return *at ? at + 1 : at;
}


/* Whether a declaration is of a variable that the compiler made for itself, and
   nothing writes: texts, and tables of functions of its library. */
static bool variable_is_own(const char *at, const char *end) {
  static const char *const names[] = {"$str", "__unnamed_", "__cudart_"};
  const char *name = at;
  for (; at < end && *at != '=' && *at != '[' && *at != ';'; at++)
    if (isspace((unsigned char)*at))
      name = at + 1;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (cgl_ptx_begins_with(name, names[i]))
      return true;
  return false;
}


/* Where the test stands in a body that begins at `at`. */
static const char *find_test(const char *at) {
  static const char wait[] = "griddepcontrol.wait;";
  const char *begin = at;
  while (*at && *at != '}') {
    const char *line = cgl_ptx_skip_space(at), *end = strchr(line, '\n');
    const char *found = end ? find_word(line, end, wait) : NULL;
    if (!end)
      break;
    if (found && *line != '/')
      return found + strlen(wait);
    if (*line == '@' || *line == '$' || *line == '{' || *line == '}' ||
        cgl_ptx_begins_with(line, "bra") || cgl_ptx_begins_with(line, "call") ||
        cgl_ptx_begins_with(line, "ret"))
      break;
    at = end;
  }
  return begin;
}


/* Writes both forms of the entry that begins at `at`; where it ends. */
static const char *write_entry(const char *at, const cgl_image *image,
                               cgl_text *out) {
  const char *open = cgl_ptx_find_either(at, '(', '{');
  const char *close = cgl_ptx_find_either(open, ')', '{');
  const char *body = cgl_ptx_find_either(close, '{', '{');
  if (*open != '(' || *close != ')' || !*body)
    return at + strlen(at);
  const bool none = cgl_ptx_skip_space(open + 1) == close;
  const char *behind = find_test(body + 1), *end = skip_block(body);
  cgl_text_add(out, at, (size_t)(close - at));
  cgl_text_print(out, "%s\n\t.param .align 8 .b8 %%cgl_predicate[32]\n",
                 none ? "" : ",");
  cgl_text_add(out, close, (size_t)(body + 1 - close));
  cgl_text_put(out, begin_text);
  cgl_text_add(out, body + 1, (size_t)(behind - body - 1));
  cgl_text_put(out, test_text);
  cgl_text_add(out, behind, (size_t)(end - behind));
  cgl_nvrtc_follow(&(cgl_ptx_entry){at, open, close, body, end}, image, out);
  return end;
}


bool cgl_nvrtc_predicate(const char *ptx, const cgl_image *image,
                         cgl_text *out) {
  for (const char *at = ptx; *at;) {
    const char *end = cgl_ptx_find_either(at, ';', '{');
    if (find_word(at, end, ".entry ")) {
      at = write_entry(at, image, out);
      continue;
    }
    if (!find_word(at, end, ".func") &&
        (find_word(at, end, ".global ") || find_word(at, end, ".const ")) &&
        !variable_is_own(at, end))
      return false;
    end = *end == '{' ? skip_block(end) : *end ? end + 1 : end;
    cgl_text_add(out, at, (size_t)(end - at));
    at = end;
  }
  return true;
}
