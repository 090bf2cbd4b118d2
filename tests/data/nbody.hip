// Accelerations of n bodies (x, y, z, mass), all pairs: float maths with a reciprocal square root.
#include "device.h"

struct alignas(16) Body { float x, y, z, mass; };

KERNEL void __launch_bounds__(256) nbody(u32 n, float softening, const Body *__restrict__ bodies, Body *__restrict__ accelerations) {
  u32 i = global_x();
  if (i >= n)
    return;
  Body me = bodies[i];
  float ax = 0, ay = 0, az = 0;
  for (u32 j = 0; j < n; ++j) {
    float dx = bodies[j].x - me.x, dy = bodies[j].y - me.y, dz = bodies[j].z - me.z;
    float inverse = __builtin_amdgcn_rsqf(dx * dx + dy * dy + dz * dz + softening);
    float pull = bodies[j].mass * inverse * inverse * inverse;
    ax += dx * pull;
    ay += dy * pull;
    az += dz * pull;
  }
  accelerations[i] = {ax, ay, az, me.mass};
}
