/* Kernels that add up a row of memory whose ends are in memory, too:
     for (int k = row[i]; k < row[i + 1]; k++) sum += value[k] * x[column[k]];
   Such rows are short, mostly.  Additions of floats stay in order, so vectors
   gain nothing, and what they leave over at a row's end takes longer than the
   row. */
#include "compile/frontend/program.h"


/* Is the name declared with a value from memory: `int end = row[i + 1];`? */
static bool is_loaded(const cgl_token *at, size_t count,
                      const cgl_token *name) {
  for (size_t i = 1; i + 1 < count; i++)
    if (at[i].kind == CGL_TOKEN_NAME && cgl_token_same(&at[i], name) &&
        cgl_token_is(&at[i + 1], "=") &&
        (at[i - 1].kind == CGL_TOKEN_NAME || cgl_token_is(&at[i - 1], ","))) {
      for (size_t k = i + 2; k < count && !cgl_token_is_any(&at[k], ";", ",");
           k++)
        if (cgl_token_is(&at[k], "["))
          return true;
      return false;
    }
  return false;
}


/* Is what ends the loop with the header at `open` read from memory? */
static bool ends_by_memory(const cgl_token *at, size_t count, size_t open) {
  const size_t close = cgl_tokens_close(at, count, open) - 1;
  size_t from = open + 1;
  while (from < close && !cgl_token_is(&at[from], ";"))
    from++;
  for (size_t i = from + 1; i < close && !cgl_token_is(&at[i], ";"); i++)
    if (cgl_token_is(&at[i], "[") ||
        (at[i].kind == CGL_TOKEN_NAME && is_loaded(at, count, &at[i])))
      return true;
  return false;
}


/* Is the name declared as a float or a double? */
static bool is_float(const cgl_token *at, size_t count, const cgl_token *name) {
  for (size_t i = 1; i < count; i++)
    if (at[i].kind == CGL_TOKEN_NAME && cgl_token_same(&at[i], name))
      return cgl_token_is_any(&at[i - 1], "float", "double");
  return false;
}


bool cgl_program_adds_rows(const cgl_program *p, const cgl_declared *kernel) {
  const cgl_token *at = p->chunks[kernel->chunk].at;
  const size_t count = p->chunks[kernel->chunk].count;
  size_t loops = 0, begin = 0;
  bool adds = false;
  for (size_t i = 0; i + 1 < count; i++)
    if (cgl_token_is_any(&at[i], "for", "while", "do")) {
      begin = i + 1;
      loops++;
    }
  if (loops != 1 || !cgl_token_is(&at[begin - 1], "for") ||
      !ends_by_memory(at, count, begin))
    return false;
  size_t i = cgl_tokens_close(at, count, begin);
  const size_t end = i < count && cgl_token_is(&at[i], "{")
                         ? cgl_tokens_close(at, count, i)
                         : 0;
  for (; end ? i < end : i < count && !cgl_token_is(&at[i], ";"); i++) {
    if (at[i].kind != CGL_TOKEN_NAME || i + 1 >= count)
      continue;
    if (cgl_token_is(&at[i + 1], "(") && !cgl_token_is_any(&at[i], "__ldg"))
      return false; /* a function, which may be worth a vector */
    adds |= cgl_token_is(&at[i + 1], "+=") && is_float(at, count, &at[i]);
    if (cgl_token_is(&at[i + 1], "[")) {
      const size_t next = cgl_tokens_close(at, count, i + 1);
      if (next < count && cgl_token_is_any(&at[next], "=", "+="))
        return false; /* so may be a row that is written */
    }
  }
  return adds;
}
