// A graph built node by node: launches, copies, fills, host functions, a child; changed, cloned, asked, launched again.
#include <hip/hip_runtime.h>
#include <atomic>
#include <vector>
#include "check.h"

__device__ int bias[2];

__global__ void add(int *data, int amount) { data[threadIdx.x] += amount; }
__global__ void times(int *data, int factor) { data[threadIdx.x] = data[threadIdx.x] * factor + bias[1]; }

static std::atomic<int> calls;
static void called(void *amount) { calls += *static_cast<int *>(amount); }

static hipKernelNodeParams launch(void *function, int n, void **args)
{
    hipKernelNodeParams params = {};
    params.func = function;
    params.gridDim = dim3(1);
    params.blockDim = dim3(n);
    params.kernelParams = args;
    return params;
}

// Planes of 3 rows of 4 bytes out of a larger block, through a device array of the same shape.
static void three_dimensions(hipStream_t stream)
{
    std::vector<unsigned char> from(8 * 6 * 5), to(8 * 6 * 5, 0xEE);
    for (size_t i = 0; i < from.size(); i++)
        from[i] = static_cast<unsigned char>(i);
    hipPitchedPtr device;
    hipGraph_t graph;
    hipGraphNode_t in, out;
    hipGraphExec_t executable;
    hipExtent extent = {4, 3, 2};
    CHECK(hipMalloc3D(&device, extent));
    CHECK(hipGraphCreate(&graph, 0));
    hipMemcpy3DParms params = {};
    params.srcPtr = {from.data(), 8, 8, 6};
    params.srcPos = {2, 1, 3};
    params.dstPtr = device;
    params.extent = extent;
    params.kind = hipMemcpyHostToDevice;
    CHECK(hipGraphAddMemcpyNode(&in, graph, nullptr, 0, &params));
    hipMemcpy3DParms back = {};
    back.srcPtr = device;
    back.dstPtr = {to.data(), 8, 8, 6};
    back.dstPos = {1, 2, 1};
    back.extent = extent;
    back.kind = hipMemcpyDeviceToHost;
    CHECK(hipGraphAddMemcpyNode(&out, graph, &in, 1, &back));
    CHECK(hipGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(hipGraphLaunch(executable, stream));
    CHECK(hipStreamSynchronize(stream));
    for (int z = 0; z < 5; z++)
        for (int y = 0; y < 6; y++)
            for (int x = 0; x < 8; x++) {
                bool inside = x >= 1 && x < 5 && y >= 2 && y < 5 && z >= 1 && z < 3;
                unsigned char expected = inside ? from[((z + 2) * 6 + (y - 1)) * 8 + x + 1] : 0xEE;
                REQUIRE(to[(z * 6 + y) * 8 + x] == expected);
            }
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(device.ptr));
}

int main()
{
    const int n = 64;
    int *x, *y, amount = 3, factor = 2, two = 2, biases[2] = {0, 100};
    std::vector<int> first(n, 1), result(n), other(n);
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&x, n * sizeof(int)));
    CHECK(hipMalloc(&y, n * sizeof(int)));
    CHECK(hipMemcpyToSymbol(bias, biases, sizeof biases, 0, hipMemcpyHostToDevice));
    three_dimensions(stream);

    // up -> plus -> (multiplied, told); multiplied -> down; cleared -> lifted -> down_y. Nodes are added in no good order.
    hipGraph_t graph, clone;
    hipGraphNode_t up, plus, multiplied, told, down, cleared, lifted, down_y, start;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddMemcpyNode1D(&down, graph, nullptr, 0, result.data(), x, n * sizeof(int), hipMemcpyDeviceToHost));
    void *multiply_args[] = {&x, &factor}, *add_args[] = {&x, &amount}, *lift_args[] = {&y, &amount};
    auto params = launch(reinterpret_cast<void *>(times), n, multiply_args);
    CHECK(hipGraphAddKernelNode(&multiplied, graph, nullptr, 0, &params));
    CHECK(hipGraphAddEmptyNode(&start, graph, nullptr, 0));
    CHECK(hipGraphAddMemcpyNode1D(&up, graph, &start, 1, x, first.data(), n * sizeof(int), hipMemcpyHostToDevice));
    params = launch(reinterpret_cast<void *>(add), n, add_args);
    CHECK(hipGraphAddKernelNode(&plus, graph, &up, 1, &params));
    hipHostNodeParams host = {called, &two};
    CHECK(hipGraphAddHostNode(&told, graph, &plus, 1, &host));
    hipMemsetParams fill = {};
    fill.dst = y;
    fill.elementSize = 4;
    fill.value = 7;
    fill.width = n;
    fill.height = 1;
    CHECK(hipGraphAddMemsetNode(&cleared, graph, &start, 1, &fill));
    params = launch(reinterpret_cast<void *>(add), n, lift_args);
    CHECK(hipGraphAddKernelNode(&lifted, graph, &cleared, 1, &params));
    CHECK(hipGraphAddMemcpyNode1D(&down_y, graph, &lifted, 1, other.data(), y, n * sizeof(int), hipMemcpyDeviceToHost));
    hipGraphNode_t from[] = {plus, multiplied}, to[] = {multiplied, down};
    CHECK(hipGraphAddDependencies(graph, from, to, 2));
    amount = 1000; // the nodes have taken their arguments

    size_t count = 0;
    CHECK(hipGraphGetNodes(graph, nullptr, &count));
    REQUIRE(count == 9);
    hipGraphNode_t roots[4];
    count = 4;
    CHECK(hipGraphGetRootNodes(graph, roots, &count));
    REQUIRE(count == 1 && roots[0] == start && roots[1] == nullptr);
    CHECK(hipGraphGetEdges(graph, nullptr, nullptr, &count));
    REQUIRE(count == 8);
    CHECK(hipGraphNodeGetDependentNodes(plus, nullptr, &count));
    REQUIRE(count == 2);
    hipGraphNodeType type;
    CHECK(hipGraphNodeGetType(told, &type));
    REQUIRE(type == hipGraphNodeTypeHost);
    CHECK(hipGraphKernelNodeGetParams(plus, &params));
    REQUIRE(params.blockDim.x == n && *static_cast<int *>(params.kernelParams[1]) == 3);

    hipGraphExec_t executable;
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int i = 1; i <= 2; i++) {
        CHECK(hipGraphLaunch(executable, stream));
        CHECK(hipStreamSynchronize(stream));
        REQUIRE(result[5] == (1 + 3) * 2 + 100 && other[63] == 10 && calls == 2 * i);
    }

    amount = 9;
    params = launch(reinterpret_cast<void *>(add), n, add_args);
    CHECK(hipGraphExecKernelNodeSetParams(executable, plus, &params));
    CHECK(hipGraphExecMemcpyNodeSetParams1D(executable, down_y, result.data() + 1, y, sizeof(int), hipMemcpyDeviceToHost));
    CHECK(hipGraphLaunch(executable, stream));
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(result[0] == (1 + 9) * 2 + 100 && (result[1] == 10 || result[1] == result[0]));

    // As a child: twice on top of each other, the copy to the host once at the end.
    CHECK(hipGraphClone(&clone, graph));
    hipGraphNode_t in_clone, child, tail;
    CHECK(hipGraphNodeFindInClone(&in_clone, down, clone));
    CHECK(hipGraphDestroyNode(in_clone));
    hipGraph_t outer;
    CHECK(hipGraphCreate(&outer, 0));
    CHECK(hipGraphAddChildGraphNode(&child, outer, nullptr, 0, clone));
    params = launch(reinterpret_cast<void *>(add), n, add_args);
    CHECK(hipGraphAddKernelNode(&tail, outer, &child, 1, &params));
    hipGraphExec_t outer_executable;
    CHECK(hipGraphInstantiate(&outer_executable, outer, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(outer_executable, stream));
    CHECK(hipMemcpyAsync(result.data(), x, n * sizeof(int), hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(result[9] == (1 + 3) * 2 + 100 + 9 && calls == 8);

    // The same shape with another constant takes the executable's place; another shape does not.
    hipMemsetParams refill = fill;
    refill.value = 70;
    CHECK(hipGraphMemsetNodeSetParams(cleared, &refill));
    hipGraphNode_t bad;
    hipGraphExecUpdateResult update;
    CHECK(hipGraphExecUpdate(executable, graph, &bad, &update));
    CHECK(hipGraphLaunch(executable, stream));
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(update == hipGraphExecUpdateSuccess && other[1] == 73);
    REQUIRE(hipGraphExecUpdate(executable, outer, &bad, &update) == hipErrorGraphExecUpdateFailure);
    REQUIRE(update == hipGraphExecUpdateErrorTopologyChanged);

    add<<<1, n, 0, stream>>>(y, 1);
    CHECK(hipMemcpyAsync(other.data(), y, n * sizeof(int), hipMemcpyDeviceToHost, stream));
    REQUIRE(other[1] == 74);
    hipGraphNode_t circle_from[] = {down}, circle_to[] = {up};
    CHECK(hipGraphAddDependencies(graph, circle_from, circle_to, 1));
    hipGraphExec_t none;
    REQUIRE(hipGraphInstantiate(&none, graph, nullptr, nullptr, 0) == hipErrorInvalidValue);
    REQUIRE(hipGraphAddKernelNode(&bad, outer, &down, 1, &params) == hipErrorInvalidValue);
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphExecDestroy(outer_executable));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipGraphDestroy(clone));
    CHECK(hipGraphDestroy(outer));
    return passed();
}
