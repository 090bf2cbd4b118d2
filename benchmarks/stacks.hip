// What a stack costs: prints seconds of single steps as JSON. The time of the whole process is the caller's to take.
#include <hip/hip_runtime.h>
#include <chrono>
#include <vector>
#include "../tests/programs/check.h"

__global__ void empty() {}

static double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Step> static double each(int count, Step step)
{
    double start = now();
    for (int i = 0; i < count; i++)
        step();
    CHECK(hipDeviceSynchronize());
    return (now() - start) / count;
}

int main()
{
    const size_t small = 4096, large = 16 << 20;
    std::vector<char> host(large, 1);
    char *device;
    double start = now();
    CHECK(hipMalloc(&device, large));
    double first = now() - start;
    start = now();
    empty<<<1, 64>>>();
    CHECK(hipDeviceSynchronize());
    double launch = now() - start;
    double queued = each(500, [] { empty<<<1, 64>>>(); });
    double waited = each(100, [] { empty<<<1, 64>>>(); CHECK(hipDeviceSynchronize()); });
    double up = each(100, [&] { CHECK(hipMemcpy(device, host.data(), small, hipMemcpyHostToDevice)); });
    double down = each(100, [&] { CHECK(hipMemcpy(host.data(), device, small, hipMemcpyDeviceToHost)); });
    double much = each(5, [&] { CHECK(hipMemcpy(device, host.data(), large, hipMemcpyHostToDevice)); });
    std::printf("{\"first call\": %g, \"first launch\": %g, \"launch of many\": %g, \"launch and wait\": %g, "
                "\"copy of 4 KiB to the device\": %g, \"copy of 4 KiB back\": %g, \"copy of 16 MiB to the device\": %g}\n",
                first, launch, queued, waited, up, down, much);
    return 0;
}
