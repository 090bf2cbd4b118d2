// One sum in each work-group of 256: a tree in LDS with a barrier at every level.
#include "device.h"

KERNEL void __launch_bounds__(256) reduce(const float *in, float *sums) {
  __shared__ float partial[256];
  u32 t = thread_x();
  partial[t] = in[group_x() * 256 + t];
  for (u32 half = 128; half > 0; half /= 2) {
    sync_threads();
    if (t < half)
      partial[t] += partial[t + half];
  }
  if (t == 0)
    sums[group_x()] = partial[0];
}
