// Jacobi iteration of a Laplace problem until the residual is small: the host decides after every step.
#include <hip/hip_runtime.h>
#include <utility>
#include <vector>
#include "check.h"

constexpr int N = 34;

__global__ void jacobi(const float *in, float *out, int *changed)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= N - 1 || y >= N - 1)
        return;
    float value = 0.25f * (in[y * N + x - 1] + in[y * N + x + 1] + in[(y - 1) * N + x] + in[(y + 1) * N + x]);
    out[y * N + x] = value;
    if (__builtin_fabsf(value - in[y * N + x]) > 1e-2f)
        *changed = 1;
}

int main()
{
    std::vector<float> grid(N * N, 0.0f);
    for (int i = 0; i < N; i++)
        grid[i] = 100.0f;
    float *from, *to;
    int *changed, steps = 0, flag;
    CHECK(hipMalloc(&from, N * N * sizeof(float)));
    CHECK(hipMalloc(&to, N * N * sizeof(float)));
    CHECK(hipMalloc(&changed, sizeof(int)));
    CHECK(hipMemcpy(from, grid.data(), N * N * sizeof(float), hipMemcpyHostToDevice));
    CHECK(hipMemcpy(to, from, N * N * sizeof(float), hipMemcpyDeviceToDevice));
    std::vector<float> host = grid, next = grid;
    do {
        CHECK(hipMemset(changed, 0, sizeof(int)));
        jacobi<<<dim3(2, 4), dim3(16, 8)>>>(from, to, changed);
        CHECK(hipMemcpy(&flag, changed, sizeof(int), hipMemcpyDeviceToHost));
        std::swap(from, to);
        for (int y = 1; y < N - 1; y++)
            for (int x = 1; x < N - 1; x++)
                next[y * N + x] = 0.25f * (host[y * N + x - 1] + host[y * N + x + 1] + host[(y - 1) * N + x] + host[(y + 1) * N + x]);
        std::swap(host, next);
        steps++;
    } while (flag && steps < 150);
    CHECK(hipMemcpy(grid.data(), from, N * N * sizeof(float), hipMemcpyDeviceToHost));
    for (int i = 0; i < N * N; i++)
        REQUIRE(grid[i] - host[i] < 1e-3f && host[i] - grid[i] < 1e-3f);
    return passed();
}
