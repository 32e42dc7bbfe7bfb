/* Elementary functions in plain loops, compiled with -ffast-math: the compiler
   calls libmvec's. */
#include <math.h>

#define LOOP(name, T, e)                                                     \
  void floor_##name(const T *restrict x, T *restrict y, int n);              \
  void floor_##name(const T *restrict x, T *restrict y, int n) {             \
    _Pragma("omp parallel for simd schedule(static)") for (int i = 0; i < n; \
                                                           i++) y[i] = e;    \
  }
LOOP(expf, float, expf(x[i]))
LOOP(logf, float, logf(x[i]))
LOOP(erff, float, erff(x[i]))
LOOP(tanhf, float, tanhf(x[i]))
LOOP(sinf, float, sinf(x[i]))
LOOP(tanf, float, tanf(x[i]))
LOOP(asinf, float, asinf(x[i]))
LOOP(atan2f, float, atan2f(x[i], 2.2f))
LOOP(sinhf, float, sinhf(x[i]))
LOOP(erfcf, float, erfcf(x[i]))
LOOP(cbrtf, float, cbrtf(x[i]))
LOOP(hypotf, float, hypotf(x[i], 2.2f))
LOOP(powf, float, powf(x[i], 2.2f))
LOOP(exp, double, exp(x[i]))
LOOP(log, double, log(x[i]))
LOOP(erf, double, erf(x[i]))
LOOP(sin, double, sin(x[i]))
LOOP(atan2, double, atan2(x[i], 2.2))
LOOP(tanh, double, tanh(x[i]))
LOOP(cbrt, double, cbrt(x[i]))
LOOP(pow, double, pow(x[i], 2.2))
