// One kernel twice in a graph: with grids of several sizes, with one size, and with a node that is off. And memory of the
// device, which is as much afterwards as before.
#include <hip/hip_runtime.h>
#include "check.h"

const int SIZE = 64, GROUPS = 5;

__global__ void add(int *data, int amount) { data[blockIdx.x * blockDim.x + threadIdx.x] += amount; }

static hipKernelNodeParams launch(int groups, void **args)
{
    hipKernelNodeParams params = {};
    params.func = reinterpret_cast<void *>(add);
    params.gridDim = dim3(groups);
    params.blockDim = dim3(SIZE);
    params.kernelParams = args;
    return params;
}

int main()
{
    int *data, amount = 1, host[GROUPS * SIZE];
    void *args[] = {&data, &amount};
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipGraphNode_t first, second;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&data, sizeof host));
    CHECK(hipMemset(data, 0, sizeof host));
    CHECK(hipGraphCreate(&graph, 0));
    hipKernelNodeParams small = launch(2, args), large = launch(GROUPS, args);
    CHECK(hipGraphAddKernelNode(&first, graph, nullptr, 0, &small));
    CHECK(hipGraphAddKernelNode(&second, graph, &first, 1, &large));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    size_t before, after, all;
    CHECK(hipMemGetInfo(&before, &all));
    CHECK(hipGraphLaunch(executable, stream)); // 2 and GROUPS work-groups
    CHECK(hipGraphExecKernelNodeSetParams(executable, first, &large));
    CHECK(hipGraphLaunch(executable, stream)); // GROUPS twice
    CHECK(hipGraphNodeSetEnabled(executable, second, 0));
    CHECK(hipGraphExecKernelNodeSetParams(executable, first, &small));
    CHECK(hipGraphLaunch(executable, stream)); // 2
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipMemGetInfo(&after, &all));
    REQUIRE(before == after);
    CHECK(hipMemcpy(host, data, sizeof host, hipMemcpyDeviceToHost));
    for (int i = 0; i < GROUPS * SIZE; i++)
        REQUIRE(host[i] == (i < 2 * SIZE ? 5 : 3));
    return passed();
}
