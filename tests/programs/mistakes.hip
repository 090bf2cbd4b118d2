// Mistakes that results need not show: a missing barrier, one element too many, memory that nobody wrote.
#include "check.h"
#include <cstring>

__global__ void turned(const unsigned *in, unsigned *out, unsigned n, bool waits)
{
    __shared__ unsigned part[256];
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0;
    if (waits)
        __syncthreads();
    out[blockIdx.x * 256 + 255 - threadIdx.x] = part[255 - threadIdx.x];
}

__global__ void order(unsigned *place, unsigned *out)
{
    if (threadIdx.x == 0)
        out[atomicAdd(place, 1)] = blockIdx.x;
}

int main(int argc, char **argv)
{
    const char *mistake = argc > 1 ? argv[1] : "";
    unsigned groups = 4, n = 256 * groups, *in, *out, *place;
    std::vector<unsigned> data(n, 7);
    CHECK(hipMalloc(&in, n * sizeof(unsigned)));
    CHECK(hipMalloc(&out, n * sizeof(unsigned)));
    CHECK(hipMalloc(&place, sizeof(unsigned)));
    if (strcmp(mistake, "unwritten"))
        CHECK(hipMemcpy(in, data.data(), n * sizeof(unsigned), hipMemcpyHostToDevice));
    unsigned more = strcmp(mistake, "bounds") == 0;
    turned<<<groups + more, 256>>>(in, out, n + more, strcmp(mistake, "race") != 0);
    CHECK(hipDeviceSynchronize());
    if (strcmp(mistake, "order") == 0) {
        CHECK(hipMemset(place, 0, sizeof(unsigned)));
        order<<<groups, 64>>>(place, out);
        CHECK(hipMemcpy(data.data(), out, groups * sizeof(unsigned), hipMemcpyDeviceToHost));
        for (unsigned g = 0; g < groups; g++)
            printf("%u ", data[g]);
    }
    return passed();
}
