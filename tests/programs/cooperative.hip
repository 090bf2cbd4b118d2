// A cooperative launch whose work-groups wait for each other; one that cannot be resident is refused.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

__device__ void grid_barrier(unsigned *arrived, unsigned round)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < round * gridDim.x)
            __builtin_amdgcn_s_sleep(1);
    }
    __syncthreads();
}

__global__ void relay(unsigned *data, unsigned *arrived, unsigned rounds)
{
    for (unsigned r = 1; r <= rounds; r++) {
        unsigned left = data[(r - 1) * gridDim.x + (blockIdx.x + gridDim.x - 1) % gridDim.x];
        if (threadIdx.x == 0)
            data[r * gridDim.x + blockIdx.x] = left + 1;
        grid_barrier(arrived, r);
    }
}

int main()
{
    unsigned groups = 6, rounds = 5;
    std::vector<unsigned> data((rounds + 1) * groups, 0);
    for (unsigned g = 0; g < groups; g++)
        data[g] = 100 * g;
    unsigned *device, *arrived;
    int fit;
    CHECK(hipMalloc(&device, data.size() * sizeof(unsigned)));
    CHECK(hipMalloc(&arrived, sizeof(unsigned)));
    CHECK(hipMemcpy(device, data.data(), data.size() * sizeof(unsigned), hipMemcpyHostToDevice));
    CHECK(hipMemset(arrived, 0, sizeof(unsigned)));
    void *args[] = {&device, &arrived, &rounds};
    CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void *>(relay), dim3(groups), dim3(64), args, 0, nullptr));
    CHECK(hipMemcpy(data.data(), device, data.size() * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned g = 0; g < groups; g++)
        REQUIRE(data[rounds * groups + g] == 100 * ((g + groups - rounds % groups) % groups) + rounds);
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&fit, relay, 64, 0));
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    REQUIRE(fit > 0 && properties.cooperativeLaunch && properties.multiProcessorCount > 0);
    unsigned too_many = fit * properties.multiProcessorCount + 1;
    REQUIRE(hipLaunchCooperativeKernel(reinterpret_cast<void *>(relay), dim3(too_many), dim3(64), args, 0, nullptr) ==
            hipErrorCooperativeLaunchTooLarge);
    return passed();
}
