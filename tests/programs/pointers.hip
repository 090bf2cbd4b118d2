// Pointers to variables and functions of the program's own code, in other variables and in memory.
#include <hip/hip_runtime.h>
#include "check.h"

using Function = unsigned (*)(unsigned, unsigned);

__device__ unsigned add(unsigned a, unsigned b) { return a + b; }
__device__ unsigned multiply(unsigned a, unsigned b) { return a * b; }
__device__ unsigned either(unsigned a, unsigned b) { return a ^ b; }

__device__ unsigned total;
__device__ unsigned *where = &total; // the object's own relocation
__device__ Function table[3] = {add, multiply, either};
static __device__ unsigned hidden = 7; // the program has no name for it
__constant__ unsigned scale = 3;

__global__ void through(unsigned times)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < times; i++)
            *where += scale; // by the pointer
        total += hidden;     // and by its name
        hidden += 1;
    }
}

__global__ void publish(unsigned **address, Function *function)
{
    if (threadIdx.x == 0) {
        *address = &total;
        *function = multiply;
    }
}

__global__ void consume(unsigned **address, Function *function, unsigned *out)
{
    unsigned i = threadIdx.x;
    out[i] = table[i % 3](i, 5) + (*function)(i, 2);
    if (i == 0)
        **address += 100;
}

__global__ void count() { atomicAdd(&total, 1); }

int main()
{
    unsigned value = 0, *expected_address = nullptr, **address, *out, host[64];
    Function *function;
    CHECK(hipMalloc(&address, sizeof *address));
    CHECK(hipMalloc(&function, sizeof *function));
    CHECK(hipMalloc(&out, sizeof host));

    through<<<1, 64>>>(4);
    CHECK(hipMemcpyFromSymbol(&value, HIP_SYMBOL(total), sizeof value));
    REQUIRE(value == 4 * 3 + 7);
    through<<<1, 64>>>(1);
    CHECK(hipMemcpyFromSymbol(&value, HIP_SYMBOL(total), sizeof value));
    REQUIRE(value == 4 * 3 + 7 + 3 + 8);

    publish<<<1, 64>>>(address, function);
    unsigned *published;
    CHECK(hipMemcpy(&published, address, sizeof published, hipMemcpyDeviceToHost));
    CHECK(hipGetSymbolAddress((void **)&expected_address, HIP_SYMBOL(total)));
    REQUIRE(published == expected_address);

    consume<<<1, 64>>>(address, function, out);
    CHECK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < 64; i++)
        REQUIRE(host[i] == (i % 3 == 0 ? i + 5 : i % 3 == 1 ? i * 5 : (i ^ 5)) + i * 2);
    CHECK(hipMemcpyFromSymbol(&value, HIP_SYMBOL(total), sizeof value));
    REQUIRE(value == 130);

    hipStream_t streams[2];
    for (hipStream_t &stream : streams)
        CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (int i = 0; i < 8; i++)
        count<<<4, 64, 0, streams[i % 2]>>>();
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpyFromSymbol(&value, HIP_SYMBOL(total), sizeof value));
    REQUIRE(value == 130 + 8 * 4 * 64);
    return passed();
}
