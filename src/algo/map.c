/* An element-wise kernel from an expression.
   The expression is read word by word: only what is listed here reaches the
   compiler, and every input is renamed, so that the text of a script can do
   nothing but compute a value. */
#include "algo/algo.h"
#include "core/base/error.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_ROOM = 64 };

static const char operation[] = "algo.map";

/* Functions of reals, which kernels have with m_ in front. */
static const char functions[] =
    " acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf "
    "erfc exp exp10 exp2 expm1 fabs floor fma fmod hypot isfinite isinf isnan "
    "log log10 log1p log2 pow rint round rsqrt sin sinh sqrt tan tanh trunc ";
/* Others, and what the kernel has in their place. */
static const char *const other_words[][2] = {
    {"abs", "absolute"}, {"max", "greatest"}, {"min", "least"},
    {"i", "i"},          {"bool", "bool"},    {"double", "double"},
    {"float", "float"},  {"int", "int"},      {"true", "true"},
    {"false", "false"}};

typedef struct map_call {
  const cgl_algo_input *inputs;
  size_t ninputs;
  cgl_buffer *out;
  bool whole;       /* all buffers hold whole numbers */
  const char *real; /* what reals are computed as */
} map_call;


/* Writes what the kernel has for a word that is no input; false: not known. */
static bool word_find(const char *word, char found[WORD_ROOM + 2]) {
  for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++)
    if (!strcmp(word, other_words[i][0])) {
      snprintf(found, WORD_ROOM + 2, "%s", other_words[i][1]);
      return true;
    }
  char spaced[WORD_ROOM + 2];
  snprintf(spaced, sizeof spaced, " %s ", word);
  snprintf(found, WORD_ROOM + 2, "m_%s", word);
  return strstr(functions, spaced);
}


static bool is_name(const char *text) {
  const size_t length = strlen(text);
  if (!length || length >= WORD_ROOM || isdigit((unsigned char)*text))
    return false;
  for (const char *c = text; *c; c++)
    if (!isalnum((unsigned char)*c) && *c != '_')
      return false;
  return true;
}


/* ---- the expression ---- */

static cgl_status word_write(FILE *text, const map_call *call, const char *at,
                             size_t length) {
  char word[WORD_ROOM] = "";
  memcpy(word, at, length < WORD_ROOM ? length : WORD_ROOM - 1);
  for (size_t i = 0; i < call->ninputs; i++)
    if (!strcmp(call->inputs[i].name, word)) {
      fprintf(text, "v_%s ", word);
      return CGL_OK;
    }
  char found[WORD_ROOM + 2];
  if (!word_find(word, found)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the expression has '%s', which is neither an input nor a "
             "function",
             word);
    return cgl_fail_hint("give its value among the inputs");
  }
  fprintf(text, "%s ", found);
  return CGL_OK;
}


/* The length of the number at `at`; *real: it has a fraction or an exponent. */
static size_t number_length(const char *at, bool *real) {
  size_t n = strspn(at, "0123456789");
  *real = at[n] == '.';
  if (*real)
    n += 1 + strspn(at + n + 1, "0123456789");
  if (at[n] == 'e' || at[n] == 'E') {
    const size_t sign = at[n + 1] == '+' || at[n + 1] == '-';
    const size_t digits = strspn(at + n + 1 + sign, "0123456789");
    n += digits ? 1 + sign + digits : 0;
    *real = *real || digits;
  }
  return n;
}


static cgl_status expression_refuse(const char *expression, const char *at) {
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           *at ? "the expression \"%s\" has a '%c' that is not taken"
               : "the expression \"%s\" ends too early",
           expression, *at);
  return cgl_fail_hint("it has numbers, inputs, functions and the operators of "
                       "C without assignments: \"a * x + y\"");
}


/* Writes the expression as C++, checked. */
static cgl_status expression_write(FILE *text, const map_call *call,
                                   const char *expression) {
  static const char *const pairs[] = {"==", "<=", ">=", "!=", "&&",
                                      "||", "<<", ">>", NULL};
  int depth = 0;
  const char *at = expression;
  while (*at) {
    size_t length = 1, pair = 0;
    bool real = false;
    if (isalpha((unsigned char)*at) || *at == '_') {
      while (isalnum((unsigned char)at[length]) || at[length] == '_')
        length++;
      cgl_status status = word_write(text, call, at, length);
      if (status)
        return status;
    } else if (isdigit((unsigned char)*at) ||
               (*at == '.' && isdigit((unsigned char)at[1]))) {
      length = number_length(at, &real);
      if (isalnum((unsigned char)at[length]) || at[length] == '_' ||
          at[length] == '.')
        return expression_refuse(expression, at + length);
      fprintf(text, "%.*s%s ", (int)length, at,
              real && *call->real == 'f' ? "f" : "");
    } else if (!isspace((unsigned char)*at)) {
      while (pairs[pair] && strncmp(at, pairs[pair], 2) != 0)
        pair++;
      length = pairs[pair] ? 2 : 1;
      depth += (*at == '(') - (*at == ')');
      if (depth < 0 || (length == 1 && !strchr("+-*/%(),<>!&|^~?:", *at)))
        return expression_refuse(expression, at);
      fprintf(text, "%.*s ", (int)length, at);
    }
    at += length;
  }
  return depth ? expression_refuse(expression, at) : CGL_OK;
}


/* ---- the inputs ---- */

static const char *input_type(const map_call *call, const cgl_arg *value) {
  switch (value->kind) {
  case CGL_ARG_INT:
    return "i64";
  case CGL_ARG_UINT:
    return "u64";
  case CGL_ARG_BOOL:
    return "bool";
  case CGL_ARG_NUMBER:
    return call->whole && value->number == floor(value->number) &&
                   fabs(value->number) <= 0x1p53
               ? "i64"
               : call->real;
  default:
    return NULL;
  }
}


static cgl_status input_check(const map_call *call,
                              const cgl_algo_input *input) {
  char shape[CGL_ALGO_SHAPE_ROOM], wanted[CGL_ALGO_SHAPE_ROOM];
  char found[WORD_ROOM + 2];
  const cgl_buffer *x = input->value.buffer;
  if (!is_name(input->name) || word_find(input->name, found)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "an input cannot have the name '%s'", input->name);
    return cgl_fail_hint("a name has letters, digits and _, and is no "
                         "function's and not i");
  }
  if (input->value.kind != CGL_ARG_BUFFER) {
    if (input_type(call, &input->value))
      return CGL_OK;
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "input '%s' is neither a buffer nor a number", input->name);
    return cgl_fail_hint("give a buffer, a number or a boolean");
  }
  cgl_status status = cgl_algo_check_number(x, operation);
  if (status)
    return status;
  if (cgl_buffer_count(x) != 1 &&
      cgl_buffer_count(x) != cgl_buffer_count(call->out)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "input '%s' is %s, and the result %s", input->name,
             cgl_algo_shape_text(x, shape),
             cgl_algo_shape_text(call->out, wanted));
    return cgl_fail_hint("an input has as many elements as the result, or one");
  }
  bool same;
  if (cgl_buffer_overlap(x, call->out, &same) &&
      (!same || cgl_buffer_count(x) != cgl_buffer_count(call->out) ||
       cgl_buffer_type(x) != cgl_buffer_type(call->out))) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "input '%s' overlaps the result", input->name);
    return cgl_fail_hint("write to another buffer, or to the input itself");
  }
  return CGL_OK;
}


static cgl_status call_check(map_call *call) {
  cgl_type type = cgl_buffer_type(call->out);
  call->whole = cgl_algo_is_whole(type);
  bool doubles = type == CGL_TYPE_double;
  for (size_t i = 0; i < call->ninputs; i++)
    if (call->inputs[i].value.kind == CGL_ARG_BUFFER) {
      type = cgl_buffer_type(call->inputs[i].value.buffer);
      call->whole = call->whole && cgl_algo_is_whole(type);
      doubles = doubles || type == CGL_TYPE_double;
    }
  call->real = doubles || call->whole ? "double" : "float";
  if (call->ninputs > CGL_ALGO_MAX_INPUTS) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "%zu inputs were given, and %d are possible", call->ninputs,
             CGL_ALGO_MAX_INPUTS);
    return cgl_fail_hint("compute a part of the expression first");
  }
  cgl_status status = cgl_algo_check_number(call->out, operation);
  for (size_t i = 0; i < call->ninputs && !status; i++)
    status = input_check(call, &call->inputs[i]);
  return status;
}


/* Whether the kernel reads the input through the result's own pointer. */
static bool input_is_out(const map_call *call, const cgl_arg *value) {
  return value->kind == CGL_ARG_BUFFER &&
         cgl_buffer_overlap(value->buffer, call->out, NULL);
}


/* ---- the kernel ---- */

/* The parameters, or what the inputs are in VALUE, or what they are in the
   function of the expression. */
static void inputs_write(FILE *text, const map_call *call, int part) {
  for (size_t i = 0; i < call->ninputs; i++) {
    const cgl_arg *value = &call->inputs[i].value;
    const char *name = call->inputs[i].name;
    const bool buffer = value->kind == CGL_ARG_BUFFER;
    const char *type = buffer
                           ? cgl_algo_type_text(cgl_buffer_type(value->buffer))
                           : input_type(call, value);
    const char *at = buffer && cgl_buffer_count(value->buffer) == 1 ? "0" : "j";
    if (part == 0 && !input_is_out(call, value))
      fprintf(text, buffer ? "const %s *APART in_%s, " : "%s in_%s, ", type,
              name);
    else if (part == 1 && input_is_out(call, value))
      fprintf(text, "get(out[j]), ");
    else if (part == 1)
      fprintf(text, buffer ? "get(in_%s[%s]), " : "in_%s, ", name, at);
    else if (part == 2)
      fprintf(text, "const number<%s>::type v_%s, ", type, name);
  }
}


static cgl_status definitions_write(FILE *text, const map_call *call,
                                    const char *expression) {
  fprintf(text, "\n#define OUT %s\n#define PARAMETERS ",
          cgl_algo_type_text(cgl_buffer_type(call->out)));
  inputs_write(text, call, 0);
  fprintf(text, "\n#define VALUE(j) value(");
  inputs_write(text, call, 1);
  fprintf(text, "j)\nINSIDE OUT value(");
  inputs_write(text, call, 2);
  fprintf(text, "const i64 i) {\nreturn put<OUT>::of(");
  cgl_status status = expression_write(text, call, expression);
  fprintf(text, ");\n}\n");
  return status;
}


static cgl_status map_launch(const map_call *call, cgl_kernel *kernel,
                             cgl_stream *stream) {
  const uint64_t count = cgl_buffer_count(call->out);
  const cgl_launch launch =
      cgl_algo_rows(count, cgl_algo_has_threads(kernel) ? 4 * CGL_ALGO_BLOCK
                                                        : CGL_ALGO_BLOCK);
  cgl_arg args[CGL_ALGO_MAX_INPUTS + 2];
  size_t n = 0;
  for (size_t i = 0; i < call->ninputs; i++)
    if (!input_is_out(call, &call->inputs[i].value))
      args[n++] = call->inputs[i].value;
  args[n++] = cgl_algo_memory(call->out);
  args[n++] = cgl_algo_whole(count);
  return cgl_kernel_launch(kernel, stream, &launch, args, n);
}


cgl_status cgl_algo_map(cgl_algo *algo, cgl_stream *stream,
                        const char *expression, const cgl_algo_input *inputs,
                        size_t ninputs, cgl_buffer *out) {
  map_call call = {.inputs = inputs, .ninputs = ninputs, .out = out};
  cgl_kernel *kernel = NULL;
  char *definitions = NULL;
  size_t bytes;
  cgl_status status = call_check(&call);
  if (status)
    return status;
  FILE *text = open_memstream(&definitions, &bytes);
  if (text)
    status = definitions_write(text, &call, expression);
  if (!text || fclose(text))
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a kernel");
  if (!status && cgl_buffer_count(out)) {
    status = cgl_algo_kernel(algo, CGL_ALGO_map, "map", definitions, operation,
                             &kernel);
    if (status == CGL_ERROR_COMPILE)
      cgl_fail_hint("look at the expression \"%s\" and at the types of its "
                    "inputs",
                    expression);
    if (!status)
      status = map_launch(&call, kernel, stream);
  }
  free(definitions);
  return status;
}
