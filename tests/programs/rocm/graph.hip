// Streams, events and graphs as HIP 5.2 has them: a callback between launches, waiting for another stream, times; a
// captured graph whose two streams fork and join, and one that is put together from nodes, each replayed.
#include <hip/hip_runtime.h>
#include <vector>
#include "../check.h"

__global__ void add(int *data, int amount) { data[threadIdx.x] += amount; }

static int calls;

static void called(hipStream_t, hipError_t status, void *what) { calls += status == hipSuccess ? *static_cast<int *>(what) : -100; }

int main()
{
    const int n = 64;
    int *x, *y, *host, five = 5;
    hipStream_t a, b;
    hipEvent_t fork, join, start, stop;
    CHECK(hipMalloc(&x, n * sizeof(int)));
    CHECK(hipMalloc(&y, n * sizeof(int)));
    CHECK(hipHostMalloc(reinterpret_cast<void **>(&host), n * sizeof(int), 0));
    CHECK(hipMemset(x, 0, n * sizeof(int)));
    for (hipStream_t *stream : {&a, &b})
        CHECK(hipStreamCreate(stream));
    for (hipEvent_t *event : {&fork, &join, &start, &stop})
        CHECK(hipEventCreate(event));

    CHECK(hipEventRecord(start, a));
    add<<<1, n, 0, a>>>(x, 3);
    CHECK(hipStreamAddCallback(a, called, &five, 0));
    CHECK(hipEventRecord(stop, a));
    CHECK(hipStreamWaitEvent(b, stop, 0));
    CHECK(hipMemcpyAsync(host, x, n * sizeof(int), hipMemcpyDeviceToHost, b));
    CHECK(hipStreamSynchronize(b));
    REQUIRE(host[0] == 3 && calls == 5);
    float milliseconds = -1;
    CHECK(hipEventElapsedTime(&milliseconds, start, stop));
    REQUIRE(milliseconds > 0 && milliseconds < 60000);

    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK(hipStreamBeginCapture(a, hipStreamCaptureModeGlobal));
    add<<<1, n, 0, a>>>(x, 1);
    CHECK(hipEventRecord(fork, a));
    CHECK(hipStreamWaitEvent(b, fork, 0));
    CHECK(hipMemsetAsync(y, 0, n * sizeof(int), b));
    add<<<1, n, 0, b>>>(y, 5);
    CHECK(hipEventRecord(join, b));
    CHECK(hipStreamWaitEvent(a, join, 0));
    CHECK(hipMemcpyAsync(host, x, n * sizeof(int), hipMemcpyDeviceToHost, a));
    CHECK(hipStreamEndCapture(a, &graph));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int i = 1; i <= 3; i++) {
        CHECK(hipGraphLaunch(executable, a));
        CHECK(hipStreamSynchronize(a));
        REQUIRE(host[3] == 3 + i);
    }
    CHECK(hipMemcpy(host, y, n * sizeof(int), hipMemcpyDeviceToHost));
    REQUIRE(host[63] == 5);
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphDestroy(graph));

    hipGraphNode_t first, second, down;
    void *arguments[] = {&x, &five};
    hipKernelNodeParams params = {};
    params.func = reinterpret_cast<void *>(add);
    params.gridDim = dim3(1);
    params.blockDim = dim3(n);
    params.kernelParams = arguments;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddKernelNode(&first, graph, nullptr, 0, &params));
    CHECK(hipGraphAddKernelNode(&second, graph, &first, 1, &params));
    CHECK(hipGraphAddMemcpyNode1D(&down, graph, &second, 1, host, x, n * sizeof(int), hipMemcpyDeviceToHost));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int i = 1; i <= 2; i++) {
        CHECK(hipGraphLaunch(executable, a));
        CHECK(hipStreamSynchronize(a));
        REQUIRE(host[1] == 6 + 10 * i);
    }
    return passed();
}
