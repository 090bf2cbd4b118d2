// Bitonic sort in global memory: one launch for each step, and launches that depend on each other.
#include <hip/hip_runtime.h>
#include <algorithm>
#include <vector>
#include "check.h"

__global__ void bitonic_step(unsigned *data, unsigned j, unsigned k)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;
    if (other <= i)
        return;
    bool up = (i & k) == 0;
    unsigned a = data[i], b = data[other];
    if ((a > b) == up) {
        data[i] = b;
        data[other] = a;
    }
}

int main()
{
    const unsigned count = 512;
    std::vector<unsigned> data(count), expected;
    for (unsigned i = 0; i < count; i++)
        data[i] = i * 2654435761u >> 7;
    expected = data;
    std::sort(expected.begin(), expected.end());
    unsigned *device;
    CHECK(hipMalloc(&device, count * sizeof(unsigned)));
    CHECK(hipMemcpy(device, data.data(), count * sizeof(unsigned), hipMemcpyHostToDevice));
    for (unsigned k = 2; k <= count; k *= 2)
        for (unsigned j = k / 2; j > 0; j /= 2)
            bitonic_step<<<count / 128, 128>>>(device, j, k);
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpy(data.data(), device, count * sizeof(unsigned), hipMemcpyDeviceToHost));
    REQUIRE(data == expected);
    return passed();
}
