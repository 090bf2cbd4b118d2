// Inclusive prefix sum: Hillis-Steele in each block with dynamic LDS, then the blocks' sums are added.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

__global__ void scan_block(const int *in, int *out, int *sums)
{
    extern __shared__ int buffer[];
    int t = threadIdx.x, n = blockDim.x, from = 0;
    buffer[t] = in[blockIdx.x * n + t];
    __syncthreads();
    for (int step = 1; step < n; step *= 2) {
        int to = n - from;
        buffer[to + t] = buffer[from + t] + (t >= step ? buffer[from + t - step] : 0);
        from = to;
        __syncthreads();
    }
    out[blockIdx.x * n + t] = buffer[from + t];
    if (t == n - 1)
        sums[blockIdx.x] = buffer[from + t];
}

__global__ void add_sums(int *out, const int *sums)
{
    int before = 0;
    for (unsigned b = 0; b < blockIdx.x; b++)
        before += sums[b];
    out[blockIdx.x * blockDim.x + threadIdx.x] += before;
}

int main()
{
    const int block = 128, groups = 6, count = block * groups;
    std::vector<int> in(count), out(count);
    for (int i = 0; i < count; i++)
        in[i] = (i * 37) % 101 - 50;
    int *din, *dout, *sums;
    CHECK(hipMalloc(&din, count * sizeof(int)));
    CHECK(hipMalloc(&dout, count * sizeof(int)));
    CHECK(hipMalloc(&sums, groups * sizeof(int)));
    CHECK(hipMemcpy(din, in.data(), count * sizeof(int), hipMemcpyHostToDevice));
    scan_block<<<groups, block, 2 * block * sizeof(int)>>>(din, dout, sums);
    add_sums<<<groups, block>>>(dout, sums);
    CHECK(hipMemcpy(out.data(), dout, count * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0, sum = 0; i < count; i++)
        REQUIRE(out[i] == (sum += in[i]));
    return passed();
}
