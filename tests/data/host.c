// nbody.hip and matmul.hip for the host: what the emulator's speed is compared with.
//
//     clang-22 -O3 -march=native -ffast-math -shared -fPIC host.c -o libhost.so
//
// -ffast-math lets clang vectorise the sums and use reciprocal square roots, as the kernels do.

#include <math.h>

struct Body { float x, y, z, mass; };

void nbody(unsigned n, float softening, const struct Body *restrict bodies, struct Body *restrict accelerations) {
  for (unsigned i = 0; i < n; ++i) {
    struct Body me = bodies[i];
    float ax = 0, ay = 0, az = 0;
    for (unsigned j = 0; j < n; ++j) {
      float dx = bodies[j].x - me.x, dy = bodies[j].y - me.y, dz = bodies[j].z - me.z;
      float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening);
      float pull = bodies[j].mass * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    accelerations[i] = (struct Body){ax, ay, az, me.mass};
  }
}

void matmul(unsigned n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (unsigned row = 0; row < n; ++row) {
    for (unsigned column = 0; column < n; ++column)
      c[row * n + column] = 0;
    for (unsigned k = 0; k < n; ++k)
      for (unsigned column = 0; column < n; ++column)
        c[row * n + column] += a[row * n + k] * b[k * n + column];
  }
}
