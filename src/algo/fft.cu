// What is beside the library of a transform.  T is float or double.

#define AT (((i64)blockIdx.y << 30) + \
            (int)(blockIdx.x * blockDim.x + threadIdx.x))

extern "C" __global__ void scale(void *x, T by, i64 n) {
  const i64 i = AT;
  if (i < n) ((T *)x)[i] *= by;
}

#ifdef __CGRAPHLUA_HOST__
// A plan of FFTW, as algo/fft.h has it: bytes for the core, which would look
// for addresses of its own in a struct.
struct plan {
  void (*execute)(void *plan, void *in, void *out);
  void *plans[2];
};

// One thread.  FFTW writes to the input only of a transform that may.
extern "C" __global__ void transform(const unsigned char *call, const void *in, void *out) {
  const plan *p = (const plan *)call;
  p->execute(p->plans[(((u64)in | (u64)out) & 63) != 0], (void *)in, out);
}
extern "C" __global__ void transform_in_place(const unsigned char *call, void *x) {
  const plan *p = (const plan *)call;
  p->execute(p->plans[((u64)x & 63) != 0], x, x);
}
extern "C" __global__ void transform_over(const unsigned char *call, void *in, void *out) {
  const plan *p = (const plan *)call;
  p->execute(p->plans[(((u64)in | (u64)out) & 63) != 0], in, out);
}
#endif
