/* Products of real matrices by cuBLASLt. */
#include "algo/cublaslt.h"
#include "core/base/error.h"

#include <stdlib.h>
#include <string.h>

/* Of cublasLt.h; part of the library's ABI since CUDA 11. */
enum {
  LAYOUT_BATCH = 5,
  LAYOUT_STRIDE = 6, /* cublasLtMatrixLayoutAttribute_t */
  CALL_POINTERS = 2,
  CALL_OP_A = 3,
  CALL_OP_B = 4, /* cublasLtMatmulDescAttributes_t */
  WANT_SCRATCH = 1,
  WANT_SUMS = 3,
  WANT_LEAST_A = 5,
  WANT_LEAST_B = 6,
  WANT_LEAST_C = 7,
  WANT_LEAST_D = 8,    /* cublasLtMatmulPreferenceAttributes_t */
  SUMS_IN_PLACE = 1,   /* parts of a sum are added in the result's type, */
  SUMS_IN_COMPUTED = 2 /* or in that of the computation:
                          cublasLtReductionScheme_t */
};

enum {
  KEPT = 64,   /* choices; a power of two */
  SHORT = 128, /* terms of a sum that is not worth several parts */
  LEAST = 256  /* bytes: more of an address do not matter to the library */
};

typedef struct heuristic { /* cublasLtMatmulHeuristicResult_t */
  uint64_t algorithm[8];
  size_t scratch;
  int status;
  float waves;
  int reserved[4];
} heuristic;

/* X(name of the member, symbol, arguments), all int: cublasStatus_t. */
#define FUNCTIONS(X)                                                           \
  X(matmul, "cublasLtMatmul",                                                  \
    (void *, void *, const void *, const void *, void *, const void *, void *, \
     const void *, const void *, void *, void *, void *, const uint64_t *,     \
     void *, size_t, void *))                                                  \
  X(choose, "cublasLtMatmulAlgoGetHeuristic",                                  \
    (void *, void *, void *, void *, void *, void *, void *, int, heuristic *, \
     int *))                                                                   \
  X(call_create, "cublasLtMatmulDescCreate", (void **, int, int))              \
  X(call_set, "cublasLtMatmulDescSetAttribute",                                \
    (void *, int, const void *, size_t))                                       \
  X(call_destroy, "cublasLtMatmulDescDestroy", (void *))                       \
  X(layout_create, "cublasLtMatrixLayoutCreate",                               \
    (void **, int, uint64_t, uint64_t, int64_t))                               \
  X(layout_set, "cublasLtMatrixLayoutSetAttribute",                            \
    (void *, int, const void *, size_t))                                       \
  X(layout_destroy, "cublasLtMatrixLayoutDestroy", (void *))                   \
  X(want_create, "cublasLtMatmulPreferenceCreate", (void **))                  \
  X(want_set, "cublasLtMatmulPreferenceSetAttribute",                          \
    (void *, int, const void *, size_t))                                       \
  X(want_destroy, "cublasLtMatmulPreferenceDestroy", (void *))

typedef struct cublaslt_table {
#define X(name, symbol, arguments) int(*name) arguments;
  FUNCTIONS(X)
#undef X
} cublaslt_table;

static const char *const symbols[] = {
#define X(name, symbol, arguments) symbol,
    FUNCTIONS(X)
#undef X
        NULL};

static cublaslt_table table;

typedef struct lt_choice {
  cgl_algo_product_key key;
  bool made, none; /* none: the library has no kernel for the key */
  void *call, *a, *b, *c;
  uint64_t algorithm[8];
} lt_choice;

struct cgl_algo_cublaslt {
  void *handle;
  size_t scratch;
  lt_choice kept[KEPT]; /* each at the place that its key names */
};


static void choice_drop(lt_choice *choice) {
  if (choice->call)
    table.call_destroy(choice->call);
  void *const layouts[] = {choice->a, choice->b, choice->c};
  for (int i = 0; i < 3; i++)
    if (layouts[i])
      table.layout_destroy(layouts[i]);
  memset(choice, 0, sizeof *choice);
}


static int layout_make(const cgl_algo_product_key *key, int64_t rows,
                       int64_t columns, int64_t row, int64_t matrix,
                       void **out) {
  const int32_t batch = (int32_t)key->batch;
  int code = table.layout_create(out, (int)key->type, (uint64_t)rows,
                                 (uint64_t)columns, row);
  if (code || batch == 1)
    return code;
  code = table.layout_set(*out, LAYOUT_BATCH, &batch, sizeof batch);
  return code ? code
              : table.layout_set(*out, LAYOUT_STRIDE, &matrix, sizeof matrix);
}


/* What the library is asked, but for what may be chosen. */
static int choice_describe(lt_choice *choice) {
  const cgl_algo_product_key *key = &choice->key;
  const int32_t sets[][2] = {{CALL_POINTERS, (int32_t)key->from_device},
                             {CALL_OP_A, (int32_t)key->op_a},
                             {CALL_OP_B, (int32_t)key->op_b}};
  int code =
      table.call_create(&choice->call, (int)key->compute, (int)key->scale);
  for (size_t i = 0; !code && i < sizeof sets / sizeof *sets; i++)
    code = table.call_set(choice->call, sets[i][0], &sets[i][1],
                          sizeof sets[i][1]);
  if (!code)
    code = layout_make(key, key->op_a ? key->k : key->m,
                       key->op_a ? key->m : key->k, key->row_a, key->matrix_a,
                       &choice->a);
  if (!code)
    code = layout_make(key, key->op_b ? key->n : key->k,
                       key->op_b ? key->k : key->n, key->row_b, key->matrix_b,
                       &choice->b);
  return code ? code
              : layout_make(key, key->m, key->n, key->row_c, key->matrix_c,
                            &choice->c);
}


/* Where the result has fewer bits than the sum, parts of a sum are not added in
   it.  Of short sums the library would make parts, too, whose second kernel
   takes longer than what they save. */
static int choice_find(const cgl_algo_cublaslt *lt, lt_choice *choice,
                       void *want) {
  const cgl_algo_product_key *key = &choice->key;
  const uint32_t sums =
      key->k <= SHORT
          ? 0
          : SUMS_IN_COMPUTED | (key->type == key->scale ? SUMS_IN_PLACE : 0);
  const uint32_t sets[][2] = {{WANT_SUMS, sums},
                              {WANT_LEAST_A, (uint32_t)key->least_a},
                              {WANT_LEAST_B, (uint32_t)key->least_b},
                              {WANT_LEAST_C, (uint32_t)key->least_c},
                              {WANT_LEAST_D, (uint32_t)key->least_c}};
  int code =
      table.want_set(want, WANT_SCRATCH, &lt->scratch, sizeof lt->scratch);
  for (size_t i = 0; !code && i < sizeof sets / sizeof *sets; i++)
    code =
        table.want_set(want, (int)sets[i][0], &sets[i][1], sizeof sets[i][1]);
  if (code)
    return code;
  heuristic found = {0}; /* stays so where nothing is chosen */
  int count = 0;
  choice->none = table.choose(lt->handle, choice->call, choice->a, choice->b,
                              choice->c, choice->c, want, 1, &found, &count) ||
                 !count || found.status;
  memcpy(choice->algorithm, found.algorithm, sizeof choice->algorithm);
  return 0;
}


static int choice_make(const cgl_algo_cublaslt *lt, lt_choice *choice) {
  void *want = NULL;
  int code = choice_describe(choice);
  if (!code)
    code = table.want_create(&want);
  if (!code)
    code = choice_find(lt, choice, want);
  if (want)
    table.want_destroy(want);
  choice->made = !code;
  return code;
}


/* Words mixed by multiplication; all of them reach the upper bits. */
static size_t key_place(const cgl_algo_product_key *key) {
  const int64_t *words = (const int64_t *)key;
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof *key / sizeof *words; i++)
    hash =
        (hash ^ (uint64_t)words[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
  return (size_t)(hash >> 32) & (KEPT - 1);
}


static int64_t least_of(const void *address) {
  const uintptr_t bits = (uintptr_t)address | LEAST;
  return (int64_t)(bits & -bits);
}


int cgl_algo_cublaslt_issue(cgl_algo_cublaslt *lt, cgl_algo_product *product,
                            void *custream) {
  cgl_algo_product_key *key = &product->key;
  key->least_a = least_of(product->a);
  key->least_b = least_of(product->b);
  key->least_c = least_of(product->c);
  lt_choice *kept = &lt->kept[key_place(key)];
  if (!kept->made || memcmp(&kept->key, key, sizeof *key) != 0) {
    choice_drop(kept);
    kept->key = *key;
    const int code = choice_make(lt, kept);
    if (code)
      return code;
  }
  if (kept->none)
    return CGL_ALGO_NO_CHOICE;
  return table.matmul(lt->handle, kept->call, product->alpha, product->a,
                      kept->a, product->b, kept->b, product->beta, product->c,
                      kept->c, product->c, kept->c, kept->algorithm,
                      product->scratch, lt->scratch, custream);
}


cgl_status cgl_algo_cublaslt_open(const cgl_algo_library *cublas, void *handle,
                                  size_t scratch, cgl_algo_cublaslt **out) {
  cgl_algo_library library = *cublas;
  library.title = "cuBLASLt";
  library.symbols = symbols;
  cgl_status status = cgl_algo_library_open(&library, (void **)&table, "blas");
  if (status)
    return status;
  cgl_algo_cublaslt *lt = calloc(1, sizeof *lt);
  if (!lt)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "blas", "no memory for a library");
  lt->handle = handle;
  lt->scratch = scratch;
  *out = lt;
  return CGL_OK;
}


void cgl_algo_cublaslt_close(cgl_algo_cublaslt *lt) {
  if (!lt)
    return;
  for (size_t i = 0; i < KEPT; i++)
    choice_drop(&lt->kept[i]);
  free(lt);
}
