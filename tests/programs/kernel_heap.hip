// Blocks that kernels allocate, each used within its bounds; or, by the program's argument, past them or once freed.
// Linked with ROCm's device library.
#include "check.h"
#include <cstring>

extern "C" __device__ void *__ockl_dm_alloc(size_t);
extern "C" __device__ void __ockl_dm_dealloc(size_t);

enum { WITHIN, BEYOND, BEFORE, ACROSS, FREED };

// One work-item of a wave makes the mistake; `words` of 4 bytes are asked for.
__global__ void used(unsigned *out, unsigned words, int mistake)
{
    auto block = (volatile unsigned *)__ockl_dm_alloc(4 * words);
    for (unsigned i = 0; i < words; i++)
        block[i] = threadIdx.x + i;
    unsigned sum = block[words - 1];
    bool wrong = threadIdx.x == 0;
    if (wrong && mistake == BEYOND)
        block[words] = 1;
    if (wrong && mistake == BEFORE)
        sum += block[-1];
    if (wrong && mistake == ACROSS)
        sum += *(volatile unsigned long long *)(block + words - 1) != 0;
    if (wrong && mistake == FREED)
        __ockl_dm_dealloc((size_t)block);
    if (wrong && mistake == FREED)
        sum += block[1];
    out[threadIdx.x] = sum;
    if (!wrong || mistake != FREED)
        __ockl_dm_dealloc((size_t)block);
}

int main(int argc, char **argv)
{
    const char *names[] = {"", "beyond", "before", "across", "freed"}, *given = argc > 1 ? argv[1] : "";
    unsigned *out, words = argc > 2 ? atoi(argv[2]) : 16, items = argc > 3 ? atoi(argv[3]) : 1;
    CHECK(hipMalloc(&out, 1024 * sizeof(unsigned)));
    for (int mistake = 0; mistake < 5; mistake++)
        if (strcmp(names[mistake], given) == 0)
            used<<<1, items>>>(out, words, mistake);
    CHECK(hipDeviceSynchronize());
    return passed();
}
