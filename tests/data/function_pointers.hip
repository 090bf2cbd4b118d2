// Indirect calls: the data choose a function from a table in global memory, lane by lane.
#include "device.h"

typedef u32 (*Operation)(u32, u32);

__device__ u32 add(u32 a, u32 b) { return a + b; }
__device__ u32 multiply(u32 a, u32 b) { return a * b; }
__device__ u32 exclusive_or(u32 a, u32 b) { return a ^ b; }
__device__ u32 rotate(u32 a, u32 b) { return __builtin_rotateleft32(a, b); }

__device__ Operation operations[4] = {add, multiply, exclusive_or, rotate};

KERNEL void __launch_bounds__(256) function_pointers(u32 n, const u32 *choice, const u32 *a, const u32 *b, u32 *out) {
  u32 i = global_x();
  if (i < n)
    out[i] = operations[choice[i] & 3](a[i], b[i]);
}
