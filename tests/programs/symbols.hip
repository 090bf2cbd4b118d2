// Device variables: copies to and from symbols, their addresses and sizes, constant memory.
#include <hip/hip_runtime.h>
#include "check.h"

__constant__ float coefficients[4];
__device__ float result[64];
__device__ int counter = 3;

__global__ void polynomial()
{
    float x = float(threadIdx.x);
    result[threadIdx.x] = coefficients[0] + x * (coefficients[1] + x * (coefficients[2] + x * coefficients[3]));
    if (threadIdx.x == 0)
        counter += 1;
}

int main()
{
    const float host[4] = {1, -2, 0.5f, 0.25f};
    float out[64];
    int count = 0;
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(coefficients), host, sizeof host));
    polynomial<<<1, 64>>>();
    polynomial<<<1, 64>>>();
    CHECK(hipMemcpyFromSymbol(out, HIP_SYMBOL(result), sizeof out));
    CHECK(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), sizeof count));
    REQUIRE(count == 5);
    for (int i = 0; i < 64; i++)
        REQUIRE(out[i] == host[0] + i * (host[1] + i * (host[2] + i * host[3])));
    void *address;
    size_t bytes;
    CHECK(hipGetSymbolAddress(&address, HIP_SYMBOL(result)));
    CHECK(hipGetSymbolSize(&bytes, HIP_SYMBOL(result)));
    REQUIRE(bytes == sizeof out);
    CHECK(hipMemset(address, 0, bytes));
    CHECK(hipMemcpyFromSymbol(out, HIP_SYMBOL(result), sizeof(float), 5 * sizeof(float)));
    REQUIRE(out[0] == 0);
    REQUIRE(hipMemcpyFromSymbol(out, HIP_SYMBOL(counter), 100) == hipErrorInvalidValue);
    REQUIRE(hipMemcpyFromSymbol(out, &count, 4) == hipErrorInvalidSymbol);
    return passed();
}
