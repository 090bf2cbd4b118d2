// Waves that race: what each thread, or each turn, leaves is printed as one number for each kernel, which the order of
// waves decides, and nothing else.
#include <hip/hip_runtime.h>
#include <vector>
#include "../check.h"

constexpr int THREADS = 256, WORDS = 4096;

__global__ void retries(unsigned *p)
{
    unsigned turns = 0, old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, __float_as_uint(__uint_as_float(old) + 1.0f), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        turns++;
    p[64 + threadIdx.x] = turns;
}

__global__ void tickets(unsigned *p)
{
#pragma clang loop unroll(disable)
    for (unsigned i = 0; i < 70; i++)
        if (threadIdx.x % 64 == 0)
            p[64 + __atomic_fetch_add(p, 1u, __ATOMIC_RELAXED)] = threadIdx.x + i;
}

__global__ void lost_updates(unsigned *p)
{
#pragma clang loop unroll(disable)
    for (unsigned i = 0; i < 90; i++)
        __atomic_store_n(p, __atomic_load_n(p, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    p[64 + threadIdx.x] = __atomic_load_n(p, __ATOMIC_RELAXED);
}

int main()
{
    unsigned *data;
    std::vector<unsigned> words(WORDS);
    CHECK(hipMalloc(&data, WORDS * sizeof *data));
    for (void (*kernel)(unsigned *) : {retries, tickets, lost_updates}) {
        CHECK(hipMemset(data, 0, WORDS * sizeof *data));
        kernel<<<1, THREADS>>>(data);
        CHECK(hipMemcpy(words.data(), data, WORDS * sizeof *data, hipMemcpyDeviceToHost));
        unsigned number = 0;
        for (unsigned word : words)
            number = number * 1664525u + word + 1013904223u;
        std::printf("%u\n", number);
    }
    return passed();
}
