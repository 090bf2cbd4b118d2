// Calls to functions that are not inlined, two deep: the number of reduced fractions k/x, k = 1 .. 16.
#include "device.h"

__device__ __noinline__ u32 greatest_common_divisor(u32 a, u32 b) {
  while (b != 0) {
    u32 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

__device__ __noinline__ u32 reduced_fractions(u32 x) {
  u32 count = 0;
  ROLLED for (u32 k = 1; k <= 16; ++k)
    count += greatest_common_divisor(k, x) == 1;
  return count;
}

KERNEL void __launch_bounds__(256) device_call(u32 n, const u32 *in, u32 *out) {
  u32 i = global_x();
  if (i < n)
    out[i] = reduced_fractions(in[i]);
}
