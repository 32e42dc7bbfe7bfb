/* CUDA C as a row of tokens.
   The reader never fails on its input: a byte it does not know is a token of
   its own, an unterminated string or comment ends where the text ends.
   Tokens point into the text they were read from, which must outlive them;
   comments and white space leave only flags behind.
   Invariant: tokens are in text order, each has length > 0, the text between
   two tokens is white space or a comment. */
#ifndef CGL_COMPILE_LEX_H
#define CGL_COMPILE_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cgl_token_kind {
  CGL_TOKEN_NAME,      /* identifier or keyword */
  CGL_TOKEN_NUMBER,    /* preprocessing number */
  CGL_TOKEN_STRING,    /* any string literal, prefix and quotes included */
  CGL_TOKEN_CHARACTER, /* character literal */
  CGL_TOKEN_PUNCT      /* operator or any other byte */
} cgl_token_kind;

typedef struct cgl_token {
  const char *text; /* not NUL-terminated */
  uint32_t length;  /* bytes */
  int line;         /* line in the script */
  uint8_t kind;     /* cgl_token_kind */
  bool first;       /* first on its (continued) line */
  bool space;       /* white space or a comment stands before it */
  bool shut;        /* a macro name that must not expand again */
} cgl_token;

typedef struct cgl_tokens {
  cgl_token *at;
  size_t count, room;
  bool failed; /* an allocation failed; the row is then incomplete */
} cgl_tokens;

/* Appends the tokens of `text`, whose first line has number `line`. */
void cgl_lex(const char *text, size_t length, int line, cgl_tokens *out);

/* Appends one token. */
void cgl_tokens_add(cgl_tokens *tokens, cgl_token token);

/* Frees the row, not the text. */
void cgl_tokens_free(cgl_tokens *tokens);

/* True when the token is spelled exactly `word`. */
bool cgl_token_is(const cgl_token *token, const char *word);

/* True when it is spelled like one of the words, a row that ends with NULL;
   the macro takes the words themselves. */
bool cgl_token_is_of(const cgl_token *token, const char *const *words);
#define cgl_token_is_any(token, ...) \
  cgl_token_is_of(token, (const char *const[]){__VA_ARGS__, NULL})

/* True for `=` and its like, `++` and `--`. */
bool cgl_token_is_assignment(const cgl_token *token);

/* True when both tokens are spelled alike. */
bool cgl_token_same(const cgl_token *a, const cgl_token *b);

#endif
