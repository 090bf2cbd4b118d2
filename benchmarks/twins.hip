// Kernels of twins.py that are no samples: gathers, neighbours, trees in LDS, atomics on global memory.
#include "device.h"

KERNEL void __launch_bounds__(256) gather(const u32 *places, const float *in, float *out) {
  out[global_x()] = in[places[global_x()]];
}

KERNEL void __launch_bounds__(256) scatter(u32 n, const float *in, float *out) {
  out[global_x() * 2654435769u & (n - 1)] = in[global_x()];
}

// A sparse matrix, 16 numbers in each row; those that are the first of their rows come first, then the second ones.
KERNEL void __launch_bounds__(256) spmv(u32 rows, const u32 *columns, const float *numbers, const float *x, float *y) {
  float sum = 0;
  for (u32 k = 0; k < 16; ++k)
    sum = __builtin_fmaf(numbers[k * rows + global_x()], x[columns[k * rows + global_x()]], sum);
  y[global_x()] = sum;
}

// The same, row by row: `starts` are the sixteenths where each row starts, and where the last one ends.
KERNEL void __launch_bounds__(256) spmv_rows(const u32 *starts, const u32 *columns, const float *numbers,
                                             const float *x, float *y) {
  u32 row = global_x();
  float sum = 0;
  for (u32 k = starts[row] * 16; k < starts[row + 1] * 16; ++k)
    sum = __builtin_fmaf(numbers[k], x[columns[k]], sum);
  y[row] = sum;
}

// Sums of five, of the square that has no edges.
KERNEL void __launch_bounds__(256) stencil(u32 width, const float *in, float *out) {
  u32 x = global_x() + 1, y = group_y() * block_y() + thread_y() + 1;
  if (x < width - 1 && y < width - 1) {
    const float *at = in + y * width + x;
    out[y * width + x] = 0.2f * (*at + at[-1] + at[1] + *(at - width) + at[width]);
  }
}

// The same, by way of a tile in LDS.
KERNEL void __launch_bounds__(256) stencil_tiled(u32 width, const float *in, float *out) {
  __shared__ float tile[18][18];
  u32 left = group_x() * 16, top = group_y() * 16, t = thread_y() * 16 + thread_x();
  for (u32 i = t; i < 18 * 18; i += 256) {
    u32 x = left + i % 18, y = top + i / 18;
    tile[i / 18][i % 18] = x < width && y < width ? in[y * width + x] : 0;
  }
  sync_threads();
  u32 x = thread_x() + 1, y = thread_y() + 1;
  if (left + x < width - 1 && top + y < width - 1)
    out[(top + y) * width + left + x] =
        0.2f * (tile[y][x] + tile[y][x - 1] + tile[y][x + 1] + tile[y - 1][x] + tile[y + 1][x]);
}

// Sums of 256 work-items, 16 numbers each, by a tree in LDS.
KERNEL void __launch_bounds__(256) tree(const u32 *in, u32 *sums) {
  __shared__ u32 partial[256];
  u32 t = thread_x(), sum = 0;
  for (u32 k = 0; k < 16; ++k)
    sum += in[(group_x() * 16 + k) * 256 + t];
  partial[t] = sum;
  for (u32 half = 128; half > 0; half /= 2) {
    sync_threads();
    if (t < half)
      partial[t] += partial[t + half];
  }
  if (t == 0)
    sums[group_x()] = partial[0];
}

// How often there is each number, shifted: one global atomic for each.
KERNEL void __launch_bounds__(256) count(u32 shift, const u32 *values, u32 *bins) {
  atomic_add(&bins[values[global_x()] >> shift], 1);
}
