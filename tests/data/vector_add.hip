// c = a + b, one element in each work-item, no tail: n is the number of work-items.
#include "device.h"

KERNEL void __launch_bounds__(256) vector_add(const float *a, const float *b, float *c) {
  u32 i = global_x();
  c[i] = a[i] + b[i];
}
