// Managed memory, a managed variable, and kernels that read mapped host memory.
#include <hip/hip_runtime.h>
#include "check.h"

__managed__ int total = 5;

__global__ void add_up(const int *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&total, data[i]);
}

int main()
{
    const int n = 300;
    int *managed, *mapped, *alias;
    REQUIRE(total == 5);
    CHECK(hipMallocManaged(reinterpret_cast<void **>(&managed), n * sizeof(int), hipMemAttachGlobal));
    CHECK(hipHostMalloc(reinterpret_cast<void **>(&mapped), n * sizeof(int), hipHostMallocMapped));
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&alias), mapped, 0));
    int expected = 5;
    for (int i = 0; i < n; i++) {
        managed[i] = i;
        mapped[i] = -2 * i + 7;
        expected += managed[i] + mapped[i];
    }
    add_up<<<2, 256>>>(managed, n);
    add_up<<<2, 256>>>(alias, n);
    CHECK(hipDeviceSynchronize());
    REQUIRE(total == expected);
    total = 1;
    add_up<<<1, 64>>>(managed, 4);
    CHECK(hipDeviceSynchronize());
    REQUIRE(total == 1 + 0 + 1 + 2 + 3);
    hipPointerAttribute_t attributes;
    CHECK(hipPointerGetAttributes(&attributes, managed));
    REQUIRE(attributes.isManaged && attributes.devicePointer == managed);
    CHECK(hipFree(managed));
    CHECK(hipHostFree(mapped));
    return passed();
}
