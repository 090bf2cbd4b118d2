// c = a * b for square row-major matrices of n = 16 * k rows, 16 x 16 tiles in LDS.
#include "device.h"

KERNEL void __launch_bounds__(256) matmul(u32 n, const float *a, const float *b, float *c) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  u32 tx = thread_x(), ty = thread_y();
  u32 row = group_y() * 16 + ty, column = group_x() * 16 + tx;
  float sum = 0;
  for (u32 k = 0; k < n; k += 16) {
    tile_a[ty][tx] = a[row * n + k + tx];
    tile_b[ty][tx] = b[(k + ty) * n + column];
    sync_threads();
    for (u32 j = 0; j < 16; ++j)
      sum += tile_a[ty][j] * tile_b[j][tx];
    sync_threads();
  }
  c[row * n + column] = sum;
}
