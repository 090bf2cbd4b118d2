// Each work-group of 256 sorts 512 keys of its own in LDS, ascending; a barrier after every step.
#include "device.h"

KERNEL void __launch_bounds__(256) bitonic_sort(u32 *keys) {
  __shared__ u32 local[512];
  u32 t = thread_x();
  u32 *mine = keys + group_x() * 512;
  local[t] = mine[t];
  local[t + 256] = mine[t + 256];
  ROLLED for (u32 size = 2; size <= 512; size *= 2) {
    ROLLED for (u32 stride = size / 2; stride > 0; stride /= 2) {
      sync_threads();
      u32 low = 2 * t - (t & (stride - 1)), high = low + stride;
      bool ascending = (low & size) == 0;
      u32 a = local[low], b = local[high];
      if ((a > b) == ascending) {
        local[low] = b;
        local[high] = a;
      }
    }
  }
  sync_threads();
  mine[t] = local[t];
  mine[t + 256] = local[t + 256];
}
