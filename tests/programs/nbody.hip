// All-pairs gravity, tiles of bodies in LDS, several steps that swap their buffers.
#include <hip/hip_runtime.h>
#include <cmath>
#include <utility>
#include <vector>
#include "check.h"

constexpr int BLOCK = 64;

__global__ void step(const float4 *in, float4 *velocity, float4 *out, int n, float dt)
{
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 me = in[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += BLOCK) {
        tile[threadIdx.x] = in[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < BLOCK; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float inverse = __builtin_amdgcn_rsqf(dx * dx + dy * dy + dz * dz + 0.01f);
            float f = tile[j].w * inverse * inverse * inverse;
            ax += f * dx;
            ay += f * dy;
            az += f * dz;
        }
        __syncthreads();
    }
    float4 v = velocity[i];
    v.x += ax * dt, v.y += ay * dt, v.z += az * dt;
    velocity[i] = v;
    me.x += v.x * dt, me.y += v.y * dt, me.z += v.z * dt;
    out[i] = me;
}

int main()
{
    const int n = 2 * BLOCK, steps = 3;
    const float dt = 0.01f;
    std::vector<float4> p(n), v(n), result(n);
    for (int i = 0; i < n; i++) {
        p[i] = make_float4(std::sin(1.0f * i), std::cos(2.0f * i), std::sin(3.0f * i), 1.0f + i % 3);
        v[i] = make_float4(0, 0, 0, 0);
    }
    float4 *from, *to, *dv;
    CHECK(hipMalloc(&from, n * sizeof(float4)));
    CHECK(hipMalloc(&to, n * sizeof(float4)));
    CHECK(hipMalloc(&dv, n * sizeof(float4)));
    CHECK(hipMemcpy(from, p.data(), n * sizeof(float4), hipMemcpyHostToDevice));
    CHECK(hipMemset(dv, 0, n * sizeof(float4)));
    for (int s = 0; s < steps; s++, std::swap(from, to))
        step<<<n / BLOCK, BLOCK>>>(from, dv, to, n, dt);
    CHECK(hipMemcpy(result.data(), from, n * sizeof(float4), hipMemcpyDeviceToHost));
    for (int s = 0; s < steps; s++) {
        std::vector<float4> next = p;
        for (int i = 0; i < n; i++) {
            double a[3] = {0, 0, 0};
            for (int j = 0; j < n; j++) {
                double d[3] = {p[j].x - p[i].x, p[j].y - p[i].y, p[j].z - p[i].z};
                double r = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01);
                for (int k = 0; k < 3; k++)
                    a[k] += p[j].w * d[k] / (r * r * r);
            }
            v[i].x += a[0] * dt, v[i].y += a[1] * dt, v[i].z += a[2] * dt;
            next[i].x += v[i].x * dt, next[i].y += v[i].y * dt, next[i].z += v[i].z * dt;
        }
        p = next;
    }
    for (int i = 0; i < n; i++)
        REQUIRE(std::fabs(result[i].x - p[i].x) + std::fabs(result[i].y - p[i].y) + std::fabs(result[i].z - p[i].z) < 1e-2f);
    return passed();
}
