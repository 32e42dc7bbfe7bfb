#include "compile/frontend/lex.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
  const char *at, *end;
  int line;
  bool first, space; /* flags of the token to come */
} reader;


void cgl_tokens_add(cgl_tokens *tokens, cgl_token token) {
  if (tokens->failed)
    return;
  if (tokens->count == tokens->room) {
    size_t room = tokens->room ? tokens->room * 2 : 256;
    cgl_token *at = realloc(tokens->at, room * sizeof *at);
    if (!at) {
      tokens->failed = true;
      return;
    }
    tokens->at = at;
    tokens->room = room;
  }
  tokens->at[tokens->count++] = token;
}


void cgl_tokens_free(cgl_tokens *tokens) {
  free(tokens->at);
  memset(tokens, 0, sizeof *tokens);
}


bool cgl_token_is(const cgl_token *token, const char *word) {
  size_t n = strlen(word);
  return token->length == n && memcmp(token->text, word, n) == 0;
}


bool cgl_token_is_of(const cgl_token *token, const char *const *words) {
  while (*words && !cgl_token_is(token, *words))
    words++;
  return *words;
}


bool cgl_token_is_assignment(const cgl_token *t) {
  return cgl_token_is_any(t, "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
                          "^=", "<<=", ">>=", "++", "--");
}


bool cgl_token_same(const cgl_token *a, const cgl_token *b) {
  return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}


static bool is_letter(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || (c & 0x80);
}


static bool is_digit(int c) {
  return c >= '0' && c <= '9';
}


static int peek_char(const reader *r, size_t ahead) {
  return (size_t)(r->end - r->at) > ahead ? (unsigned char)r->at[ahead] : 0;
}


/* Skips white space, comments and continued line ends. */
static void skip_space(reader *r) {
  while (r->at < r->end) {
    int c = peek_char(r, 0);
    if (c == '\n') {
      r->line++;
      r->first = true;
      r->at++;
    } else if (c == '\\' && peek_char(r, 1) == '\n') {
      r->line++;
      r->at += 2;
    } else if (c == '\\' && peek_char(r, 1) == '\r' &&
               peek_char(r, 2) == '\n') {
      r->line++;
      r->at += 3;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      r->at++;
    } else if (c == '/' && peek_char(r, 1) == '/') {
      while (r->at < r->end && *r->at != '\n') {
        if (*r->at == '\\' && peek_char(r, 1) == '\n') {
          r->line++;
          r->at++;
        }
        r->at++;
      }
    } else if (c == '/' && peek_char(r, 1) == '*') {
      r->at += 2;
      while (r->at < r->end && !(*r->at == '*' && peek_char(r, 1) == '/')) {
        r->line += *r->at == '\n';
        r->at++;
      }
      r->at += r->end - r->at < 2 ? r->end - r->at : 2;
    } else
      return;
    r->space = true;
  }
}


/* From the opening quote to past the closing one; an end of line ends it
   too, so that a stray quote does not swallow the file. */
static void skip_quoted(reader *r) {
  char quote = *r->at++;
  while (r->at < r->end && *r->at != quote) {
    if (*r->at == '\n')
      return;
    if (*r->at == '\\' && r->end - r->at > 1) {
      r->at++;
      r->line += *r->at == '\n';
    }
    r->at++;
  }
  if (r->at < r->end)
    r->at++;
}


/* From the quote of R"tag( to past )tag". */
static void skip_raw(reader *r) {
  const char *tag = ++r->at;
  while (r->at < r->end && *r->at != '(' && r->at - tag < 17)
    r->at++;
  size_t n = (size_t)(r->at - tag);
  while (r->at < r->end) {
    if (*r->at == ')' && (size_t)(r->end - r->at) > n + 1 &&
        memcmp(r->at + 1, tag, n) == 0 && r->at[n + 1] == '"') {
      r->at += n + 2;
      return;
    }
    r->line += *r->at == '\n';
    r->at++;
  }
}


static size_t punct_length(const reader *r) {
  static const char *const longer[] = {
      "<<=", ">>=", "...", "->*", "::", "->", "<<", ">>", "<=",
      ">=",  "==",  "!=",  "&&",  "||", "++", "--", "+=", "-=",
      "*=",  "/=",  "%=",  "&=",  "|=", "^=", "##",
  };
  for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) {
    size_t n = strlen(longer[i]);
    if ((size_t)(r->end - r->at) >= n && memcmp(r->at, longer[i], n) == 0)
      return n;
  }
  return 1;
}


/* A name, or the prefix of a string or character literal. */
static cgl_token_kind read_name(reader *r) {
  const char *start = r->at;
  while (is_letter(peek_char(r, 0)) || is_digit(peek_char(r, 0)))
    r->at++;
  size_t n = (size_t)(r->at - start);
  int quote = peek_char(r, 0);
  if ((quote != '"' && quote != '\'') || n > 3)
    return CGL_TOKEN_NAME;
  bool raw = start[n - 1] == 'R';
  size_t rest = n - (raw ? 1 : 0);
  bool known =
      rest == 0 ||
      (rest == 1 && (*start == 'L' || *start == 'u' || *start == 'U')) ||
      (rest == 2 && start[0] == 'u' && start[1] == '8');
  if (!known || (raw && quote != '"'))
    return CGL_TOKEN_NAME;
  if (raw)
    skip_raw(r);
  else
    skip_quoted(r);
  return quote == '"' ? CGL_TOKEN_STRING : CGL_TOKEN_CHARACTER;
}


static void skip_number(reader *r) {
  while (r->at < r->end) {
    int c = peek_char(r, 0), next = peek_char(r, 1);
    if ((c == 'e' || c == 'E' || c == 'p' || c == 'P') &&
        (next == '+' || next == '-'))
      r->at += 2;
    else if (c == '\'' && (is_letter(next) || is_digit(next)))
      r->at += 2;
    else if (is_letter(c) || is_digit(c) || c == '.')
      r->at++;
    else
      return;
  }
}


/* The operator that a word is, as `and` is; or the name itself. */
static void spell_operator(cgl_token *name) {
  static const char *const words[][2] = {
      {"and", "&&"},   {"or", "||"},     {"not", "!"},    {"bitand", "&"},
      {"bitor", "|"},  {"xor", "^"},     {"compl", "~"},  {"and_eq", "&="},
      {"or_eq", "|="}, {"xor_eq", "^="}, {"not_eq", "!="}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (cgl_token_is(name, words[i][0])) {
      name->kind = CGL_TOKEN_PUNCT;
      name->text = words[i][1];
      name->length = (uint32_t)strlen(name->text);
      return;
    }
}


void cgl_lex(const char *text, size_t length, int line, cgl_tokens *out) {
  reader r = {.at = text, .end = text + length, .line = line, .first = true};
  for (;;) {
    skip_space(&r);
    if (r.at >= r.end || out->failed)
      return;
    cgl_token token = {
        .text = r.at, .line = r.line, .first = r.first, .space = r.space};
    int c = peek_char(&r, 0);
    if (is_letter(c))
      token.kind = (uint8_t)read_name(&r);
    else if (is_digit(c) || (c == '.' && is_digit(peek_char(&r, 1)))) {
      token.kind = CGL_TOKEN_NUMBER;
      skip_number(&r);
    } else if (c == '"' || c == '\'') {
      token.kind = c == '"' ? CGL_TOKEN_STRING : CGL_TOKEN_CHARACTER;
      skip_quoted(&r);
    } else {
      token.kind = CGL_TOKEN_PUNCT;
      r.at += punct_length(&r);
    }
    size_t n = (size_t)(r.at - token.text);
    token.length = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    if (token.kind == CGL_TOKEN_NAME && n < 7)
      spell_operator(&token);
    cgl_tokens_add(out, token);
    r.first = r.space = false;
  }
}
