// Streams, events with times, waits between streams, host functions, pinned memory, threads that launch at once.
#include <hip/hip_runtime.h>
#include <atomic>
#include <thread>
#include <vector>
#include "check.h"

__global__ void scale(float *data, int n, float factor)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] *= factor;
}

__global__ void spin(unsigned *data, unsigned rounds)
{
    unsigned x = threadIdx.x + 1;
    for (unsigned i = 0; i < rounds; i++)
        x = x * 1664525u + 1013904223u;
    data[threadIdx.x] = x;
}

static std::atomic<int> calls;
static void called(void *data) { calls += *static_cast<int *>(data); }

static void one_thread(int index)
{
    const int n = 512;
    std::vector<float> host(n, float(index));
    float *device;
    hipStream_t stream;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipMalloc(&device, n * sizeof(float)));
    CHECK(hipMemcpyAsync(device, host.data(), n * sizeof(float), hipMemcpyHostToDevice, stream));
    for (int k = 0; k < 5; k++)
        scale<<<2, 256, 0, stream>>>(device, n, 2.0f);
    CHECK(hipMemcpyAsync(host.data(), device, n * sizeof(float), hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
    for (float x : host)
        REQUIRE(x == 32.0f * index);
    CHECK(hipStreamDestroy(stream));
    CHECK(hipFree(device));
}

int main()
{
    const int n = 1000;
    float *host, *device;
    unsigned *other;
    hipStream_t a, b;
    hipEvent_t start, stop, never;
    CHECK(hipHostMalloc(reinterpret_cast<void **>(&host), n * sizeof(float), 0));
    CHECK(hipMalloc(&device, n * sizeof(float)));
    CHECK(hipMalloc(&other, 64 * sizeof(unsigned)));
    CHECK(hipStreamCreate(&a));
    CHECK(hipStreamCreate(&b));
    CHECK(hipEventCreate(&start));
    CHECK(hipEventCreate(&stop));
    CHECK(hipEventCreate(&never));
    for (int i = 0; i < n; i++)
        host[i] = float(i);
    CHECK(hipEventRecord(start, a));
    CHECK(hipMemcpyAsync(device, host, n * sizeof(float), hipMemcpyHostToDevice, a));
    scale<<<4, 256, 0, a>>>(device, n, 3.0f);
    spin<<<1, 64, 0, a>>>(other, 20000);
    CHECK(hipEventRecord(stop, a));
    CHECK(hipStreamWaitEvent(b, stop, 0));
    scale<<<4, 256, 0, b>>>(device, n, 2.0f);
    int seven = 7;
    CHECK(hipLaunchHostFunc(b, called, &seven));
    CHECK(hipMemcpyAsync(host, device, n * sizeof(float), hipMemcpyDeviceToHost, b));
    CHECK(hipStreamSynchronize(b));
    REQUIRE(calls == 7);
    for (int i = 0; i < n; i++)
        REQUIRE(host[i] == 6.0f * i);
    float milliseconds = -1;
    CHECK(hipEventSynchronize(stop));
    CHECK(hipEventQuery(stop));
    CHECK(hipEventElapsedTime(&milliseconds, start, stop));
    REQUIRE(milliseconds > 0 && milliseconds < 60000);
    REQUIRE(hipEventElapsedTime(&milliseconds, start, never) == hipErrorInvalidHandle);
    CHECK(hipStreamQuery(a));

    std::vector<std::thread> threads;
    for (int i = 1; i <= 4; i++)
        threads.emplace_back(one_thread, i);
    for (auto &thread : threads)
        thread.join();
    CHECK(hipEventDestroy(start));
    CHECK(hipEventDestroy(stop));
    CHECK(hipEventDestroy(never));
    CHECK(hipStreamDestroy(a));
    CHECK(hipStreamDestroy(b));
    CHECK(hipHostFree(host));
    return passed();
}
