// One sum in each work-group of 256: a tree in LDS whose active work-items are neighbours, and their words ever further apart.
#include "device.h"

KERNEL void __launch_bounds__(256) reduce_strided(const u32 *in, u32 *sums) {
  __shared__ u32 partial[256];
  u32 t = thread_x();
  partial[t] = in[group_x() * 256 + t];
  ROLLED for (u32 step = 1; step < 256; step *= 2) {
    sync_threads();
    u32 at = 2 * step * t;
    if (at < 256)
      partial[at] += partial[at + step];
  }
  if (t == 0)
    sums[group_x()] = partial[0];
}
