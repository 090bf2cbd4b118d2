// A captured graph, replayed: launches, copies and fills on two streams that fork and join.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

__global__ void add(int *data, int amount) { data[threadIdx.x] += amount; }

int main()
{
    const int n = 64;
    int *x, *y;
    std::vector<int> host(n);
    hipStream_t a, b;
    hipEvent_t fork, join;
    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK(hipMalloc(&x, n * sizeof(int)));
    CHECK(hipMalloc(&y, n * sizeof(int)));
    CHECK(hipMemset(x, 0, n * sizeof(int)));
    CHECK(hipStreamCreate(&a));
    CHECK(hipStreamCreate(&b));
    CHECK(hipEventCreate(&fork));
    CHECK(hipEventCreate(&join));
    CHECK(hipStreamBeginCapture(a, hipStreamCaptureModeGlobal));
    add<<<1, n, 0, a>>>(x, 1);
    CHECK(hipEventRecord(fork, a));
    CHECK(hipStreamWaitEvent(b, fork, 0));
    CHECK(hipMemsetAsync(y, 0, n * sizeof(int), b));
    add<<<1, n, 0, b>>>(y, 5);
    CHECK(hipEventRecord(join, b));
    CHECK(hipStreamWaitEvent(a, join, 0));
    CHECK(hipMemcpyAsync(host.data(), x, n * sizeof(int), hipMemcpyDeviceToHost, a));
    CHECK(hipStreamEndCapture(a, &graph));
    CHECK(hipMemcpy(host.data(), x, n * sizeof(int), hipMemcpyDeviceToHost));
    REQUIRE(host[3] == 0);
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    CHECK(hipGraphDestroy(graph));
    for (int i = 1; i <= 3; i++) {
        CHECK(hipGraphLaunch(executable, a));
        CHECK(hipStreamSynchronize(a));
        REQUIRE(host[3] == i);
    }
    CHECK(hipMemcpy(host.data(), y, n * sizeof(int), hipMemcpyDeviceToHost));
    REQUIRE(host[63] == 5);
    add<<<1, n, 0, b>>>(y, 5);
    CHECK(hipMemcpy(host.data(), y, n * sizeof(int), hipMemcpyDeviceToHost));
    REQUIRE(host[0] == 10);
    CHECK(hipGraphExecDestroy(executable));
    return passed();
}
