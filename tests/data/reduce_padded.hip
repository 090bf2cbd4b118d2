// As reduce_strided, with a word of padding after every 32 words.
#include "device.h"

__device__ inline u32 padded(u32 index) { return index + index / 32; }

KERNEL void __launch_bounds__(256) reduce_padded(const u32 *in, u32 *sums) {
  __shared__ u32 partial[256 + 8];
  u32 t = thread_x();
  partial[padded(t)] = in[group_x() * 256 + t];
  ROLLED for (u32 step = 1; step < 256; step *= 2) {
    sync_threads();
    u32 at = 2 * step * t;
    if (at < 256)
      partial[padded(at)] += partial[padded(at + step)];
  }
  if (t == 0)
    sums[group_x()] = partial[0];
}
