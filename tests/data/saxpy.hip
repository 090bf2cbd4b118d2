// y = a * x + y, with a tail: lanes from n on do nothing.
#include "device.h"

KERNEL void __launch_bounds__(256) saxpy(u32 n, float a, const float *x, float *y) {
  u32 i = global_x();
  if (i < n)
    y[i] = a * x[i] + y[i];
}
