// Fast Walsh-Hadamard transform in LDS; applied twice it gives the input times its length.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

constexpr int N = 512;

__global__ void walsh(float *data)
{
    __shared__ float s[N];
    int t = threadIdx.x;
    float *mine = data + blockIdx.x * N;
    s[t] = mine[t];
    s[t + N / 2] = mine[t + N / 2];
    for (int stride = N / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        int low = t & (stride - 1), a = 2 * t - low, b = a + stride;
        float x = s[a], y = s[b];
        s[a] = x + y;
        s[b] = x - y;
    }
    __syncthreads();
    mine[t] = s[t];
    mine[t + N / 2] = s[t + N / 2];
}

int main()
{
    const int groups = 4, count = groups * N;
    std::vector<float> in(count), out(count);
    for (int i = 0; i < count; i++)
        in[i] = float((i * 29) % 17 - 8);
    float *device;
    CHECK(hipMalloc(&device, count * sizeof(float)));
    CHECK(hipMemcpy(device, in.data(), count * sizeof(float), hipMemcpyHostToDevice));
    walsh<<<groups, N / 2>>>(device);
    walsh<<<groups, N / 2>>>(device);
    CHECK(hipMemcpy(out.data(), device, count * sizeof(float), hipMemcpyDeviceToHost));
    for (int i = 0; i < count; i++)
        REQUIRE(out[i] == N * in[i]);
    return passed();
}
