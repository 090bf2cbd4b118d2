// Flat reads of memory that a copy has written, or, by its argument, of memory that nobody has; and of LDS.
#include "check.h"
#include <cstring>

__global__ void choose(const unsigned *in, unsigned *out)
{
    __shared__ unsigned part[256];
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x] = i;
    __syncthreads();
    const unsigned *from = threadIdx.x & 1 ? &part[255 - threadIdx.x] : &in[i];
    asm volatile("" : "+v"(from)); // so that nobody knows where it leads
    out[i] = *from;
}

int main(int argc, char **argv)
{
    const unsigned groups = 4, n = 256 * groups;
    unsigned *in, *out;
    std::vector<unsigned> data(n, 7), found(n);
    CHECK(hipMalloc(&in, n * sizeof(unsigned)));
    CHECK(hipMalloc(&out, n * sizeof(unsigned)));
    bool writes = argc < 2 || strcmp(argv[1], "unwritten");
    if (writes)
        CHECK(hipMemcpy(in, data.data(), n * sizeof(unsigned), hipMemcpyHostToDevice));
    choose<<<groups, 256>>>(in, out);
    CHECK(hipMemcpy(found.data(), out, n * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < n; i++)
        REQUIRE(i & 1 ? found[i] == i / 256 * 256 + 255 - i % 256 : !writes || found[i] == 7);
    return passed();
}
