// Escape times of z = z * z + c: a loop that every lane leaves at its own time; tails in x and y.
#include "device.h"

// Without contraction into fused multiply-add, so that escape times can be checked exactly.
#pragma clang fp contract(off)

KERNEL void __launch_bounds__(256) mandelbrot(u32 width, u32 height, float left, float top, float step, u32 limit, u32 *times) {
  u32 x = global_x(), y = global_y();
  if (x >= width || y >= height)
    return;
  float cr = left + x * step, ci = top + y * step;
  float zr = 0, zi = 0;
  u32 time = 0;
  while (time < limit && zr * zr + zi * zi <= 4.0f) {
    float next = zr * zr - zi * zi + cr;
    zi = 2.0f * zr * zi + ci;
    zr = next;
    ++time;
  }
  times[y * width + x] = time;
}
