// Kernels that allocate: each lane a list in the device's heap, that another kernel reads and frees.
// Linked with ROCm's device library.
#include <hip/hip_runtime.h>
#include "../check.h"

extern "C" __device__ void *__ockl_dm_alloc(unsigned long bytes);
extern "C" __device__ void __ockl_dm_dealloc(unsigned long address);

__global__ void fill(unsigned **lists)
{
    unsigned lane = threadIdx.x, *list = static_cast<unsigned *>(__ockl_dm_alloc((lane + 1) * sizeof(unsigned)));
    for (unsigned i = 0; list && i <= lane; i++)
        list[i] = lane * i;
    lists[lane] = list;
}

__global__ void add_up(unsigned **lists, unsigned *sums)
{
    unsigned lane = threadIdx.x, sum = 0, *list = lists[lane];
    for (unsigned i = 0; list && i <= lane; i++)
        sum += list[i];
    sums[lane] = list ? sum : ~0u;
    __ockl_dm_dealloc(reinterpret_cast<unsigned long>(list));
}

int main()
{
    const unsigned n = 64;
    unsigned **lists, *sums, host[n];
    CHECK(hipMalloc(&lists, n * sizeof *lists));
    CHECK(hipMalloc(&sums, sizeof host));
    for (int i = 0; i < 2; i++) {
        fill<<<1, n>>>(lists);
        add_up<<<1, n>>>(lists, sums);
        CHECK(hipMemcpy(host, sums, sizeof host, hipMemcpyDeviceToHost));
        for (unsigned lane = 0; lane < n; lane++)
            REQUIRE(host[lane] == lane * (lane * (lane + 1) / 2));
    }
    return passed();
}
