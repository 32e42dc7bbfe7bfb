// What bench/algo.lua holds a GPU against: CUB's device-wide functions, called
// as C++ calls them, on the default stream, with their scratch allocated
// before.
//   nvcc -O3 -arch=native -shared -Xcompiler -fPIC algo_floor.cu -o FLOOR.so
#include <cub/cub.cuh>

namespace {

// Calls a function of CUB with its scratch, which grows at a first call.
template <class Call> void with_scratch(Call call) {
  static void *scratch;
  static size_t room;
  size_t size = 0;
  call(nullptr, size);
  if (size > room) {
    cudaFree(scratch);
    if (cudaMalloc(&scratch, size) != cudaSuccess)
      abort();
    room = size;
  }
  if (call(scratch, size) != cudaSuccess)
    abort();
}

} // namespace

extern "C" {

#define FLOOR_OF(T, type, Total)                                            \
  void floor_sum_##type(const T *x, Total *out, long n) {                   \
    with_scratch([=](void *scratch, size_t &size) {                         \
      return cub::DeviceReduce::Sum(scratch, size, x, out, n);              \
    });                                                                     \
  }                                                                         \
  void floor_min_##type(const T *x, T *out, long n) {                       \
    with_scratch([=](void *scratch, size_t &size) {                         \
      return cub::DeviceReduce::Min(scratch, size, x, out, n);              \
    });                                                                     \
  }                                                                         \
  void floor_scan_##type(const T *x, T *out, long n) {                      \
    with_scratch([=](void *scratch, size_t &size) {                         \
      return cub::DeviceScan::InclusiveSum(scratch, size, x, out, n);       \
    });                                                                     \
  }                                                                         \
  void floor_sort_##type(const T *x, T *out, long n) {                      \
    with_scratch([=](void *scratch, size_t &size) {                         \
      return cub::DeviceRadixSort::SortKeys(scratch, size, x, out, n);      \
    });                                                                     \
  }                                                                         \
  void floor_pairs_##type(const T *x, T *out, const int *values,            \
                          int *out_values, long n) {                        \
    with_scratch([=](void *scratch, size_t &size) {                         \
      return cub::DeviceRadixSort::SortPairs(scratch, size, x, out, values, \
                                             out_values, n);                \
    });                                                                     \
  }
FLOOR_OF(float, float, float)
FLOOR_OF(double, double, double)
FLOOR_OF(int, int32, long)

void floor_wait(void) {
  cudaDeviceSynchronize();
}
}
