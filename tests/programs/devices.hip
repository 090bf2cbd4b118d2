// As many devices as there are: each with its own streams, code and variables; copies between them, and threads.
#include <hip/hip_runtime.h>
#include <cstring>
#include <thread>
#include <vector>
#include "check.h"

const int N = 128;

__device__ int offset;

__global__ void fill(int *data, int value) { data[threadIdx.x] = value + offset + threadIdx.x; }
__global__ void add(int *to, const int *from) { to[threadIdx.x] += from[threadIdx.x]; }

static void one_thread(int device, int **result)
{
    int current = -1, *data;
    CHECK(hipGetDevice(&current));
    REQUIRE(current == 0); // every thread begins with the first
    CHECK(hipSetDevice(device));
    CHECK(hipMalloc(&data, N * sizeof(int)));
    for (int k = 0; k < 4; k++)
        fill<<<1, N>>>(data, 1000 * device + k);
    CHECK(hipDeviceSynchronize());
    CHECK(hipGetDevice(&current));
    REQUIRE(current == device);
    *result = data;
}

static void check(const int *data, int value)
{
    std::vector<int> host(N);
    CHECK(hipMemcpy(host.data(), data, N * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        REQUIRE(host[i] == value + i);
}

int main()
{
    int count = 0, device = -1;
    CHECK(hipGetDeviceCount(&count));
    REQUIRE(count >= 1 && hipSetDevice(count) == hipErrorInvalidDevice && hipGetLastError() == hipErrorInvalidDevice);
    std::vector<hipStream_t> streams(count);
    std::vector<int *> data(count), results(count);
    for (int d = 0; d < count; d++) {
        int at, value = 10 * d;
        char id[32];
        hipPointerAttribute_t attributes;
        CHECK(hipSetDevice(d));
        CHECK(hipStreamCreate(&streams[d]));
        CHECK(hipMalloc(&data[d], N * sizeof(int)));
        CHECK(hipMemcpyToSymbol(offset, &value, sizeof value, 0, hipMemcpyHostToDevice));
        CHECK(hipPointerGetAttributes(&attributes, data[d]));
        REQUIRE(attributes.device == d);
        CHECK(hipDeviceGetPCIBusId(id, sizeof id, d));
        CHECK(hipDeviceGetByPCIBusId(&at, id));
        REQUIRE(at == d);
    }
    for (int d = 0; d < count; d++) { // since HIP 7 a stream's device must be the current one
        CHECK(hipSetDevice(d));
        fill<<<1, N, 0, streams[d]>>>(data[d], 100 * d);
    }
    CHECK(hipSetDevice(0));
    for (int d = 0; d < count; d++) {
        CHECK(hipStreamSynchronize(streams[d]));
        check(data[d], 110 * d);
    }
    std::vector<std::thread> threads;
    for (int d = 0; d < count; d++)
        threads.emplace_back(one_thread, d, &results[d]);
    for (auto &thread : threads)
        thread.join();
    for (int d = 0; d < count; d++)
        check(results[d], 1010 * d + 3);

    int last = count - 1, can = -1;
    CHECK(hipMemcpyPeer(results[0], 0, data[last], last, N * sizeof(int)));
    check(results[0], 110 * last);
    REQUIRE(hipMemcpyPeer(results[0], 0, data[0], count, 4) == hipErrorInvalidDevice);
    CHECK(hipDeviceCanAccessPeer(&can, 0, last));
    REQUIRE(can == (last != 0));
    if (can) {
        CHECK(hipSetDevice(last));
        CHECK(hipDeviceEnablePeerAccess(0, 0));
        REQUIRE(hipDeviceEnablePeerAccess(0, 0) == hipErrorPeerAccessAlreadyEnabled);
        hipEvent_t event;
        CHECK(hipSetDevice(0));
        CHECK(hipEventCreate(&event)); // of the device whose streams it is recorded on
        fill<<<1, N, 0, streams[0]>>>(data[0], 5);
        CHECK(hipEventRecord(event, streams[0]));
        CHECK(hipSetDevice(last));
        CHECK(hipStreamWaitEvent(streams[last], event, 0));
        fill<<<1, N, 0, streams[last]>>>(data[last], 7 - 10 * last);
        add<<<1, N, 0, streams[last]>>>(data[0], data[0]); // the other device's memory
        CHECK(hipStreamSynchronize(streams[last]));
        std::vector<int> host(N);
        CHECK(hipMemcpy(host.data(), data[0], N * sizeof(int), hipMemcpyDeviceToHost));
        REQUIRE(host[3] == 2 * (5 + 3));
        CHECK(hipDeviceDisablePeerAccess(0));
        REQUIRE(hipDeviceDisablePeerAccess(0) == hipErrorPeerAccessNotEnabled);
    }
    size_t free_first, free_last, total;
    CHECK(hipSetDevice(0));
    CHECK(hipMemGetInfo(&free_first, &total));
    CHECK(hipSetDevice(last));
    int *more;
    CHECK(hipMalloc(&more, 64 << 20)); // ROCr has what is less than 2 MiB already
    CHECK(hipMemGetInfo(&free_last, &total));
    CHECK(hipSetDevice(0));
    size_t free_now;
    CHECK(hipMemGetInfo(&free_now, &total));
    REQUIRE(count == 1 ? free_now < free_first : free_now == free_first && free_last < total);
    CHECK(hipFree(more));
    CHECK(hipGetDevice(&device));
    REQUIRE(device == 0);
    for (int d = 0; d < count; d++) {
        CHECK(hipFree(data[d]));
        CHECK(hipFree(results[d]));
        CHECK(hipStreamDestroy(streams[d]));
    }
    return passed();
}
