// Memory of many kinds, each used by kernels within its bounds; or, by its argument, past them or after it was freed.
#include "check.h"
#include <cstdlib>
#include <cstring>

__constant__ unsigned table[4] = {1, 2, 3, 4};
__device__ unsigned counters[4];
__managed__ unsigned shared_number;

__global__ void add(unsigned *to, const unsigned *from, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] += from[i] + table[i % 4];
    if (i == 0)
        counters[0] += shared_number;
}

static unsigned *host(size_t bytes)
{
    void *memory;
    CHECK(hipHostMalloc(&memory, bytes, 0));
    memset(memory, 0, bytes);
    return (unsigned *)memory;
}

int main(int argc, char **argv)
{
    const char *mistake = argc > 1 ? argv[1] : "";
    const unsigned n = 100;
    const size_t bytes = n * sizeof(unsigned);
    unsigned *plain, *managed, *ordered, *pinned = host(bytes), *variable, *constant;
    void *registered, *there;
    CHECK(hipMalloc(&plain, bytes));
    CHECK(hipMemset(plain, 0, bytes));
    CHECK(hipMallocManaged(&managed, bytes));
    memset(managed, 0, bytes);
    CHECK(hipMallocAsync((void **)&ordered, bytes, 0));
    CHECK(hipMemset(ordered, 0, bytes));
    if (posix_memalign(&registered, 4096, 4096))
        return 1;
    memset(registered, 0, 4096);
    CHECK(hipHostRegister(registered, 4096, 0));
    CHECK(hipHostGetDevicePointer(&there, registered, 0));
    CHECK(hipGetSymbolAddress((void **)&variable, HIP_SYMBOL(counters)));
    CHECK(hipGetSymbolAddress((void **)&constant, HIP_SYMBOL(table)));
    shared_number = 3;
    unsigned *all[] = {plain, managed, ordered, pinned, (unsigned *)there};
    for (unsigned *memory : all)
        add<<<1, 128>>>(memory, plain, n);
    add<<<1, 128>>>(&shared_number, variable, 1);
    if (strcmp(mistake, "bounds") == 0)
        add<<<1, 128>>>(plain, managed, n + 1);
    if (strcmp(mistake, "constant") == 0)
        add<<<1, 64>>>(constant, plain, 1);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(managed));
    if (strcmp(mistake, "freed") == 0)
        add<<<1, 64>>>(plain, managed + 2, 1);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFreeAsync(ordered, 0));
    CHECK(hipHostUnregister(registered));
    CHECK(hipHostFree(pinned));
    CHECK(hipFree(plain));
    return passed();
}
