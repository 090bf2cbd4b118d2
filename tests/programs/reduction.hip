// Sum of integers: a tree in LDS for each work-group, whose strides conflict, then one that does not.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

constexpr int BLOCK = 256;

extern "C" __global__ void reduce_interleaved(const unsigned *in, unsigned *out)
{
    __shared__ unsigned part[BLOCK];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * BLOCK + t];
    __syncthreads();
    for (unsigned s = 1; s < BLOCK; s *= 2) {
        unsigned at = 2 * s * t;
        if (at < BLOCK)
            part[at] += part[at + s];
        __syncthreads();
    }
    if (t == 0)
        atomicAdd(out, part[0]);
}

extern "C" __global__ void reduce_sequential(const unsigned *in, unsigned *out)
{
    __shared__ unsigned part[BLOCK];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * BLOCK + t];
    __syncthreads();
    for (unsigned s = BLOCK / 2; s > 0; s /= 2) {
        if (t < s)
            part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0)
        atomicAdd(out, part[0]);
}

int main()
{
    const int groups = 8, count = groups * BLOCK;
    std::vector<unsigned> in(count);
    unsigned expected = 0, *din, *dout;
    for (int i = 0; i < count; i++)
        expected += in[i] = 2654435761u * i;
    CHECK(hipMalloc(&din, count * sizeof(unsigned)));
    CHECK(hipMalloc(&dout, 2 * sizeof(unsigned)));
    CHECK(hipMemcpy(din, in.data(), count * sizeof(unsigned), hipMemcpyHostToDevice));
    CHECK(hipMemset(dout, 0, 2 * sizeof(unsigned)));
    reduce_interleaved<<<groups, BLOCK>>>(din, dout);
    reduce_sequential<<<groups, BLOCK>>>(din, dout + 1);
    unsigned sums[2];
    CHECK(hipMemcpy(sums, dout, sizeof sums, hipMemcpyDeviceToHost));
    REQUIRE(sums[0] == expected && sums[1] == expected);
    return passed();
}
