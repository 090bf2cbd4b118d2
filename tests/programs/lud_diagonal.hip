// LU decomposition of the blocks on the diagonal (after Rodinia's lud): one wave each, in LDS.
#include <hip/hip_runtime.h>
#include <cmath>
#include <vector>
#include "check.h"

constexpr int B = 16;

__global__ void lud_diagonal(float *matrix, int stride)
{
    __shared__ float s[B][B];
    float *block = matrix + blockIdx.x * B * (stride + 1);
    int t = threadIdx.x;
    for (int i = 0; i < B; i++)
        s[i][t] = block[i * stride + t];
    __syncthreads();
    for (int i = 0; i < B - 1; i++) {
        if (t > i) {
            for (int j = 0; j < i; j++)
                s[t][i] -= s[t][j] * s[j][i];
            s[t][i] /= s[i][i];
        }
        __syncthreads();
        if (t > i)
            for (int j = 0; j < i + 1; j++)
                s[i + 1][t] -= s[i + 1][j] * s[j][t];
        __syncthreads();
    }
    for (int i = 1; i < B; i++)
        block[i * stride + t] = s[i][t];
}

int main()
{
    const int blocks = 3, n = blocks * B;
    std::vector<float> a(n * n), lu(n * n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i * n + j] = i == j ? 40.0f + i : 1.0f / (1 + i + j);
    float *device;
    CHECK(hipMalloc(&device, n * n * sizeof(float)));
    CHECK(hipMemcpy(device, a.data(), n * n * sizeof(float), hipMemcpyHostToDevice));
    lud_diagonal<<<blocks, B>>>(device, n);
    CHECK(hipMemcpy(lu.data(), device, n * n * sizeof(float), hipMemcpyDeviceToHost));
    for (int b = 0; b < n; b += B)
        for (int i = 0; i < B; i++)
            for (int j = 0; j < B; j++) {
                double sum = 0;
                for (int k = 0; k <= (i < j ? i : j); k++)
                    sum += (k == i ? 1.0 : lu[(b + i) * n + b + k]) * lu[(b + k) * n + b + j];
                REQUIRE(std::fabs(sum - a[(b + i) * n + b + j]) < 1e-4);
            }
    return passed();
}
