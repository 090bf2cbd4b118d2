// 64 bins: LDS atomics in each work-group, then one global atomic for each bin that has counts.
#include "device.h"

KERNEL void __launch_bounds__(256) histogram(u32 n, const u32 *values, u32 *bins) {
  __shared__ u32 local[64];
  u32 t = thread_x();
  if (t < 64)
    local[t] = 0;
  sync_threads();
  u32 stride = __builtin_amdgcn_grid_size_x();
  for (u32 i = global_x(); i < n; i += stride)
    atomic_add_shared(&local[values[i] % 64], 1);
  sync_threads();
  if (t < 64 && local[t] != 0)
    atomic_add(&bins[t], local[t]);
}
