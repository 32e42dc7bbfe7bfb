// Calls of OpenBLAS, for the host device: a block of one thread calls one of its
// functions, on a part of the result.  T is the element type; `function` is
// where the address of the C function is.  Of COMPLEX numbers there is gemm
// alone, which takes alpha and beta through pointers.

typedef struct job {
  double alpha, beta;
  i64 m, n, k;
  i64 first_a, first_b, first_c;
  i64 row_a, row_b, row_c;
  i64 matrix_a, matrix_b, matrix_c;
  i64 part_m, part_n;  // of the result, for a block
  int transpose_a, transpose_b;  // 2: the conjugate
  int upper, right, unit;
} job;

#define ROWS 101
#define TURN(how) (111 + (how))
#define HALF(upper) ((upper) ? 121 : 122)
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define ALPHA (alpha ? *alpha : scalar(j.alpha))
#define BETA (beta ? *beta : scalar(j.beta))

#ifdef COMPLEX
typedef const T *given;
INSIDE T scalar(double x) {
  T z;
  z.x = x;
  z.y = 0;
  return z;
}
#define GIVE(x) (&(x))
#else
typedef T given;
INSIDE T scalar(double x) { return (T)x; }
#define GIVE(x) (x)
#endif

#define CALL(type) ((type *)*(const u64 *)function)

#define PARTS(whole, part) (((whole) + (part)-1) / (part))
// The block's part of m and n, from m0 and n0 on, m1 and n1 long.
#define PART                                                  \
  const i64 parts_n = PARTS(j.n, j.part_n);                   \
  const i64 parts = PARTS(j.m, j.part_m) * parts_n;           \
  const i64 batch = blockIdx.x / parts;                       \
  const i64 m0 = blockIdx.x % parts / parts_n * j.part_m;     \
  const i64 n0 = blockIdx.x % parts % parts_n * j.part_n;     \
  const int m1 = (int)SMALLER(j.part_m, j.m - m0);            \
  const int n1 = (int)SMALLER(j.part_n, j.n - n0);

typedef void gemm_call(int, int, int, int, int, int, given, const T *, int,
                       const T *, int, given, T *, int);

extern "C" __global__ void gemm(const unsigned char *function, job j,
                                const T *a, const T *b, T *c, const T *alpha,
                                const T *beta) {
  PART
  const T times = ALPHA, keep = BETA;
  a += j.first_a + batch * j.matrix_a + m0 * (j.transpose_a ? 1 : j.row_a);
  b += j.first_b + batch * j.matrix_b + n0 * (j.transpose_b ? j.row_b : 1);
  c += j.first_c + batch * j.matrix_c + m0 * j.row_c + n0;
  CALL(gemm_call)(ROWS, TURN(j.transpose_a), TURN(j.transpose_b), m1, n1,
                  (int)j.k, GIVE(times), a, (int)j.row_a, b, (int)j.row_b,
                  GIVE(keep), c, (int)j.row_c);
}

#ifndef COMPLEX

typedef void gemv_call(int, int, int, int, T, const T *, int, const T *, int, T,
                       T *, int);
typedef void ger_call(int, int, int, T, const T *, int, const T *, int, T *,
                      int);
typedef void syrk_call(int, int, int, int, int, T, const T *, int, T, T *, int);
typedef void trsm_call(int, int, int, int, int, int, int, T, const T *, int,
                       T *, int);
typedef void axpy_call(int, T, const T *, int, T *, int);
typedef void scal_call(int, T, T *, int);
typedef T dot_call(int, const T *, int, const T *, int);
typedef T nrm2_call(int, const T *, int);

extern "C" __global__ void gemv(const unsigned char *function, job j,
                                const T *a, const T *b, T *c, const T *alpha,
                                const T *beta) {
  PART
  const int k = (int)j.k;
  const bool turn = j.transpose_a;
  CALL(gemv_call)(ROWS, TURN(turn), turn ? k : n1, turn ? n1 : k,
                            ALPHA, a + n0 * (turn ? 1 : j.row_a), (int)j.row_a,
                            b, 1, BETA, c + n0, 1);
}

extern "C" __global__ void ger(const unsigned char *function, job j,
                               const T *a, const T *b, T *c, const T *alpha,
                               const T *beta) {
  PART
  CALL(ger_call)(ROWS, m1, n1, ALPHA, a + m0, 1, b + n0, 1,
                           c + m0 * j.row_c + n0, (int)j.row_c);
}

extern "C" __global__ void syrk(const unsigned char *function, job j,
                                const T *a, const T *b, T *c, const T *alpha,
                                const T *beta) {
  CALL(syrk_call)(ROWS, HALF(j.upper), TURN(j.transpose_a), (int)j.n,
                            (int)j.k, ALPHA, a, (int)j.row_a, BETA, c,
                            (int)j.row_c);
}

extern "C" __global__ void trsm(const unsigned char *function, job j,
                                const T *a, const T *b, T *c, const T *alpha,
                                const T *beta) {
  PART
  CALL(trsm_call)(ROWS, j.right ? 142 : 141, HALF(j.upper),
                            TURN(j.transpose_a), j.unit ? 132 : 131, m1, n1,
                            ALPHA, a, (int)j.row_a, c + m0 * j.row_c + n0,
                            (int)j.row_c);
}

extern "C" __global__ void axpy(const unsigned char *function, job j,
                                const T *a, const T *b, T *c, const T *alpha,
                                const T *beta) {
  PART
  CALL(axpy_call)(n1, ALPHA, a + n0, 1, c + n0, 1);
}

extern "C" __global__ void scal(const unsigned char *function, job j,
                                const T *a, const T *b, T *c, const T *alpha,
                                const T *beta) {
  PART
  CALL(scal_call)(n1, ALPHA, c + n0, 1);
}

extern "C" __global__ void dot(const unsigned char *function, job j,
                               const T *a, const T *b, T *c, const T *alpha,
                               const T *beta) {
  *c = CALL(dot_call)((int)j.n, a, 1, b, 1);
}

extern "C" __global__ void nrm2(const unsigned char *function, job j,
                                const T *a, const T *b, T *c, const T *alpha,
                                const T *beta) {
  *c = CALL(nrm2_call)((int)j.n, a, 1);
}

#endif
