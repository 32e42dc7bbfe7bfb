/* What the C headers give that neither NVRTC nor the device header has:
   fixed-width integers, limits, constants.  It stands in front of every
   source, for both targets, because those headers are left out of it. */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
#define __CGRAPHLUA__ 1
/* as nvcc has them */
#ifndef CUDART_VERSION
#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif
#ifndef CUDA_VERSION
#define CUDA_VERSION CUDART_VERSION
#endif
#ifndef NULL
#define NULL 0
#endif
#ifndef __CUDACC_RTC__
#define offsetof(type, member) __builtin_offsetof(type, member)
#elif __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ > 1201
#define offsetof(type, member) __INTADDR__(&((type *)0)->member)
#else
#define offsetof(type, member) ((unsigned long)&((type *)0)->member)
#endif

#define INT8_C(n) n
#define INT16_C(n) n
#define INT32_C(n) n
#define INT64_C(n) n##l
#define INTMAX_C(n) n##l
#define UINT8_C(n) n
#define UINT16_C(n) n
#define UINT32_C(n) n##u
#define UINT64_C(n) n##ul
#define UINTMAX_C(n) n##ul
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
#define SIZE_MAX 18446744073709551615ul
#define CHAR_BIT 8
#define SCHAR_MIN INT8_MIN
#define SCHAR_MAX INT8_MAX
#define UCHAR_MAX UINT8_MAX
#define SHRT_MIN INT16_MIN
#define SHRT_MAX INT16_MAX
#define USHRT_MAX UINT16_MAX
#define INT_MIN INT32_MIN
#define INT_MAX INT32_MAX
#define UINT_MAX UINT32_MAX
#define LONG_MIN (-9223372036854775807l - 1)
#define LONG_MAX 9223372036854775807l
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MIN INT64_MIN
#define LLONG_MAX INT64_MAX
#define ULLONG_MAX UINT64_MAX
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16

#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef HUGE_VAL
#define HUGE_VAL ((double)INFINITY)
#endif
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_MAX_NORMAL_F FLT_MAX
#define CUDART_NEG_ZERO_F (-0.0f)
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
#define CUDART_SQRT_HALF_F 0.707106781f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_THIRD_F 0.333333333f
#define CUDART_PIO4_F 0.785398163f
#define CUDART_PIO2_F 1.570796327f
#define CUDART_3PIO4_F 2.356194490f
#define CUDART_2_OVER_PI_F 0.636619772f
#define CUDART_SQRT_2_OVER_PI_F 0.797884561f
#define CUDART_PI_F 3.141592654f
#define CUDART_L2E_F 1.442695041f
#define CUDART_L2T_F 3.321928094f
#define CUDART_LG2_F 0.301029996f
#define CUDART_LGE_F 0.434294482f
#define CUDART_LN2_F 0.693147181f
#define CUDART_LNT_F 2.302585093f
#define CUDART_LNPI_F 1.144729886f
#define CUDART_INF HUGE_VAL
#define CUDART_NAN ((double)NAN)
#define CUDART_NEG_ZERO (-0.0)
#define CUDART_ZERO 0.0
#define CUDART_ONE 1.0
#define CUDART_SQRT_TWO M_SQRT2
#define CUDART_SQRT_HALF M_SQRT1_2
#define CUDART_THIRD 3.3333333333333333e-1
#define CUDART_PIO4 M_PI_4
#define CUDART_PIO2 M_PI_2
#define CUDART_3PIO4 2.3561944901923448
#define CUDART_2_OVER_PI M_2_PI
#define CUDART_PI M_PI
#define CUDART_L2E M_LOG2E
#define CUDART_LN2 M_LN2
#define CUDART_LNT M_LN10
