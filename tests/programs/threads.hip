// Threads that launch at the same time, each on a stream of its own, and some of them a kernel of their own.
// argv[1] is `host`: a kernel that waits for what the host does after it has launched it.
#include <hip/hip_runtime.h>
#include <cstring>
#include <thread>
#include <vector>
#include "check.h"

__global__ void fill(int *to, int value) { to[blockIdx.x * blockDim.x + threadIdx.x] = value; }

__global__ void raise(int *data, int times)
{
    for (int i = 0; i < times; i++)
        data[blockIdx.x * blockDim.x + threadIdx.x] += i;
}

static void work(int number)
{
    const int n = 256;
    int *data;
    std::vector<int> host(n);
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&data, n * sizeof(int)));
    for (int round = 0; round < 4; round++) {
        fill<<<n / 64, 64, 0, stream>>>(data, 10 * number + round);
        if (number % 2)
            raise<<<n / 64, 64, 0, stream>>>(data, number);
        CHECK(hipMemcpyAsync(host.data(), data, n * sizeof(int), hipMemcpyDeviceToHost, stream));
        CHECK(hipStreamSynchronize(stream));
        int expected = 10 * number + round + (number % 2 ? number * (number - 1) / 2 : 0);
        for (int i = 0; i < n; i++)
            REQUIRE(host[i] == expected);
    }
    CHECK(hipFree(data));
    CHECK(hipStreamDestroy(stream));
}

__global__ void wait_for_host(volatile int *flag)
{
    while (*flag == 0)
        __builtin_amdgcn_s_sleep(1);
    *flag = 2;
}

static void signal_a_kernel()
{
    volatile int *flag;
    CHECK(hipHostMalloc((void **)&flag, sizeof(int), 0));
    *flag = 0;
    wait_for_host<<<1, 1>>>(flag);
    *flag = 1;
    CHECK(hipDeviceSynchronize());
    REQUIRE(*flag == 2);
}

int main(int argc, char **argv)
{
    if (argc > 1 && std::strcmp(argv[1], "host") == 0)
        signal_a_kernel();
    std::vector<std::thread> threads;
    for (int number = 0; number < 6; number++)
        threads.emplace_back(work, number);
    for (auto &thread : threads)
        thread.join();
    CHECK(hipDeviceReset()); // and once more, with everything new
    work(1);
    return passed();
}
