/* The few changes made to a kernel's text before a compiler sees it.  None
   moves a line. */
#include <string.h>

#include "backend.h"
#include "preprocess.h"

typedef struct edit {
  cgl_text *out;
  const char *done; /* the text up to here has been copied */
} edit;


static void copy_to(edit *e, const char *at) {
  cgl_text_add(e->out, e->done, (size_t)(at - e->done));
  e->done = at;
}


static const char *token_end(const cgl_token *t) {
  return t->text + t->length;
}


/* Leaves out the directive `at`..`at + count`, known include or not. */
static void drop_include(edit *e, const cgl_token *at, size_t count) {
  if (count < 3 || !cgl_token_is(&at[1], "include"))
    return;
  const char *name = at[2].text + 1, *end = token_end(&at[count - 1]);
  size_t n = at[2].kind == CGL_TOKEN_STRING
                 ? (at[2].length > 1 ? at[2].length - 2u : 0)
                 : (size_t)(end - name) - 1;
  if (!cgl_pp_is_known_header(name, n))
    return;
  copy_to(e, at->text);
  e->done = end;
}


/* extern __shared__ T name[]; -> extern __thread T name[] __asm__(...); all
   such arrays are one, as on a GPU. */
static void share_array(edit *e, const cgl_token *at, size_t count, size_t i) {
  size_t end = i, bracket = 0;
  while (end < count && !cgl_token_is(&at[end], ";") &&
         !cgl_token_is(&at[end], "{") && !cgl_token_is(&at[end], "#")) {
    if (cgl_token_is(&at[end], "]"))
      bracket = end;
    end++;
  }
  if (!bracket)
    return;
  size_t shared = i;
  while (!cgl_token_is(&at[shared], "__shared__"))
    shared++;
  copy_to(e, at[shared].text);
  cgl_text_put(e->out, "__thread");
  e->done = token_end(&at[shared]);
  copy_to(e, token_end(&at[bracket]));
  cgl_text_put(e->out, " __asm__(\"cgl_dynamic_shared\")");
}


void cgl_source_rewrite(const cgl_source *source, int host, cgl_text *out) {
  cgl_tokens row = {0};
  edit e = {.out = out, .done = source->text};
  cgl_lex(source->text, source->length, 1, &row);
  out->failed |= row.failed;
  for (size_t i = 0; i < row.count; i++) {
    const cgl_token *t = &row.at[i];
    if (t->text < e.done)
      continue;
    if (t->first && cgl_token_is(t, "#")) {
      size_t end = i + 1;
      while (end < row.count && !row.at[end].first)
        end++;
      drop_include(&e, t, end - i);
    } else if (host && cgl_token_is(t, "extern") && i + 1 < row.count &&
               cgl_token_is(&row.at[i + 1], "__shared__"))
      share_array(&e, row.at, row.count, i);
  }
  copy_to(&e, source->text + source->length);
  cgl_tokens_free(&row);
}
