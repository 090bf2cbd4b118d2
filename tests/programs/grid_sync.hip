// Cooperative groups' grid sync, as AMD's own device library does it: each round reads what other work-groups wrote in
// the round before.
// Linked with ROCm's device library.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"
#if __has_include(<hip/hip_cooperative_groups.h>)
#include <hip/hip_cooperative_groups.h>
static __device__ bool valid() { return cooperative_groups::this_grid().is_valid(); }
static __device__ void sync() { cooperative_groups::this_grid().sync(); }
#else // what that header calls
static __device__ bool valid() { return __ockl_grid_is_valid(); }
static __device__ void sync() { __ockl_grid_sync(); }
#endif

// From two planes of a ring: every element becomes the sum of its neighbours, modulo a prime.
__global__ void smooth(unsigned *data, unsigned n, unsigned rounds, int *is_valid)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        *is_valid = valid();
    for (unsigned r = 0; r < rounds; r++) {
        const unsigned *from = data + (r & 1) * n;
        unsigned *to = data + (~r & 1) * n;
        to[i] = (from[(i + 1) % n] + from[(i + n - 1) % n]) % 65521;
        sync();
    }
}

__global__ void ask(int *is_valid) { *is_valid = valid(); }

static std::vector<unsigned> expected(std::vector<unsigned> data, unsigned rounds)
{
    unsigned n = data.size();
    for (unsigned r = 0; r < rounds; r++) {
        std::vector<unsigned> next(n);
        for (unsigned i = 0; i < n; i++)
            next[i] = (data[(i + 1) % n] + data[(i + n - 1) % n]) % 65521;
        data = next;
    }
    return data;
}

static void run(unsigned groups, unsigned block, unsigned rounds)
{
    unsigned n = groups * block, *device;
    std::vector<unsigned> data(n);
    for (unsigned i = 0; i < n; i++)
        data[i] = i * i + 7;
    int is_valid = 0, *flag;
    CHECK(hipMalloc(&device, 2 * n * sizeof(unsigned)));
    CHECK(hipMalloc(&flag, sizeof(int)));
    CHECK(hipMemcpy(device, data.data(), n * sizeof(unsigned), hipMemcpyHostToDevice));
    void *args[] = {&device, &n, &rounds, &flag};
    CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void *>(smooth), dim3(groups), dim3(block), args, 0, nullptr));
    auto want = expected(data, rounds);
    CHECK(hipMemcpy(data.data(), device + (rounds & 1) * n, n * sizeof(unsigned), hipMemcpyDeviceToHost));
    CHECK(hipMemcpy(&is_valid, flag, sizeof(int), hipMemcpyDeviceToHost));
    REQUIRE(is_valid && data == want);
    ask<<<1, 1>>>(flag);
    CHECK(hipMemcpy(&is_valid, flag, sizeof(int), hipMemcpyDeviceToHost));
    REQUIRE(!is_valid);
    CHECK(hipFree(device));
    CHECK(hipFree(flag));
}

int main()
{
    run(1, 64, 3);
    run(7, 256, 6);
    run(100, 64, 4);
    return passed();
}
