// As transpose, with a word of padding after each row of the tile.
#include "device.h"

KERNEL void __launch_bounds__(256) transpose_padded(u32 n, const u32 *in, u32 *out) {
  __shared__ u32 tile[32][33];
  u32 tx = thread_x(), ty = thread_y(), row = group_y() * 32, column = group_x() * 32;
  ROLLED for (u32 k = ty; k < 32; k += 8)
    tile[k][tx] = in[(row + k) * n + column + tx];
  sync_threads();
  ROLLED for (u32 k = ty; k < 32; k += 8)
    out[(column + k) * n + row + tx] = tile[tx][k];
}
