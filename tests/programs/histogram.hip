// Histogram: LDS atomics for each work-group, then global atomics.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

constexpr int BINS = 64;

__global__ void histogram(const unsigned char *data, int n, unsigned *bins)
{
    __shared__ unsigned mine[BINS];
    if (threadIdx.x < BINS)
        mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i] % BINS], 1u);
    __syncthreads();
    if (threadIdx.x < BINS)
        atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

int main()
{
    const int n = 5000;
    std::vector<unsigned char> data(n);
    std::vector<unsigned> expected(BINS, 0), bins(BINS);
    for (int i = 0; i < n; i++) {
        data[i] = (unsigned char)(i * i / 7);
        expected[data[i] % BINS]++;
    }
    unsigned char *ddata;
    unsigned *dbins;
    CHECK(hipMalloc(&ddata, n));
    CHECK(hipMalloc(&dbins, BINS * sizeof(unsigned)));
    CHECK(hipMemcpy(ddata, data.data(), n, hipMemcpyHostToDevice));
    CHECK(hipMemset(dbins, 0, BINS * sizeof(unsigned)));
    histogram<<<3, 128>>>(ddata, n, dbins);
    CHECK(hipMemcpy(bins.data(), dbins, BINS * sizeof(unsigned), hipMemcpyDeviceToHost));
    REQUIRE(bins == expected);
    return passed();
}
