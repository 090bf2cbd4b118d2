// Graphs that change after they are ready to launch: parameters, whole graphs, nodes that are off, a child; and one that
// is ready before its own graph is gone.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

const int N = 64;

__global__ void add(int *data, int amount) { data[threadIdx.x] += amount; }

__global__ void repeat(int *data, int times)
{
    for (int i = 0; i < times; i++)
        data[threadIdx.x] = 2 * data[threadIdx.x] + i;
}

static hipKernelNodeParams launch(void *function, void **args)
{
    hipKernelNodeParams params = {};
    params.func = function;
    params.gridDim = dim3(1);
    params.blockDim = dim3(N);
    params.kernelParams = args;
    return params;
}

static int run(hipGraphExec_t executable, hipStream_t stream, int *data)
{
    std::vector<int> host(N);
    CHECK(hipMemset(data, 0, N * sizeof(int)));
    CHECK(hipGraphLaunch(executable, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipMemcpy(host.data(), data, N * sizeof(int), hipMemcpyDeviceToHost));
    for (int value : host)
        REQUIRE(value == host[0]);
    return host[0];
}

int main()
{
    int *data, one = 1, three = 3, five = 5;
    hipStream_t stream;
    hipGraph_t graph, other, parent;
    hipGraphNode_t plus, doubled, node, child;
    hipGraphExec_t executable, nested;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&data, N * sizeof(int)));
    void *add_one[] = {&data, &one}, *add_five[] = {&data, &five}, *thrice[] = {&data, &three}, *once[] = {&data, &one};
    CHECK(hipGraphCreate(&graph, 0));
    auto params = launch(reinterpret_cast<void *>(add), add_one);
    CHECK(hipGraphAddKernelNode(&plus, graph, nullptr, 0, &params));
    params = launch(reinterpret_cast<void *>(repeat), thrice);
    CHECK(hipGraphAddKernelNode(&doubled, graph, &plus, 1, &params));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    REQUIRE(run(executable, stream, data) == 12);

    params = launch(reinterpret_cast<void *>(add), add_five);
    CHECK(hipGraphExecKernelNodeSetParams(executable, plus, &params));
    REQUIRE(run(executable, stream, data) == 44);
    params = launch(reinterpret_cast<void *>(repeat), once); // another kernel in its place
    CHECK(hipGraphExecKernelNodeSetParams(executable, plus, &params));
    REQUIRE(run(executable, stream, data) == 4);
    CHECK(hipGraphNodeSetEnabled(executable, doubled, 0));
    REQUIRE(run(executable, stream, data) == 0);
    CHECK(hipGraphNodeSetEnabled(executable, doubled, 1));
    REQUIRE(run(executable, stream, data) == 4);

    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    add<<<1, N, 0, stream>>>(data, 7);
    add<<<1, N, 0, stream>>>(data, 2);
    CHECK(hipStreamEndCapture(stream, &other));
    hipGraphExecUpdateResult result;
    CHECK(hipGraphExecUpdate(executable, other, &node, &result));
    CHECK(hipGraphDestroy(other));
    REQUIRE(run(executable, stream, data) == 9);

    CHECK(hipGraphCreate(&parent, 0));
    CHECK(hipGraphAddChildGraphNode(&child, parent, nullptr, 0, graph));
    params = launch(reinterpret_cast<void *>(add), add_five);
    CHECK(hipGraphAddKernelNode(&node, parent, &child, 1, &params));
    CHECK(hipGraphInstantiate(&nested, parent, nullptr, nullptr, 0));
    CHECK(hipGraphDestroy(parent));
    CHECK(hipGraphDestroy(graph));
    REQUIRE(run(nested, stream, data) == 17);
    REQUIRE(run(executable, stream, data) == 9);
    CHECK(hipGraphExecDestroy(nested));
    CHECK(hipGraphExecDestroy(executable));
    REQUIRE(hipGetLastError() == hipSuccess);
    return passed();
}
