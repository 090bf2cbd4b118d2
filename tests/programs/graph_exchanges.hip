// Executables whose kernels are exchanged in every way: by nodes of any kind, by a child, by a whole graph and then by a node of
// the first; and launches on one stream while another is captured. Needs functions of HIP 6.2.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

const int N = 64;

__global__ void add(int *data, int amount) { data[threadIdx.x] += amount; }
__global__ void times(int *data, int factor) { data[threadIdx.x] *= factor; }

struct Launch {
    int *data, number;
    void *args[2];
    hipKernelNodeParams params = {};
    Launch(void (*function)(int *, int), int *data, int number) : data(data), number(number)
    {
        args[0] = &this->data;
        args[1] = &this->number;
        params.func = reinterpret_cast<void *>(function);
        params.gridDim = dim3(1);
        params.blockDim = dim3(N);
        params.kernelParams = args;
    }
};

static hipGraph_t graph_of(void (*function)(int *, int), int *data, int number, hipGraphNode_t *node)
{
    hipGraph_t graph;
    Launch launch(function, data, number);
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddKernelNode(node, graph, nullptr, 0, &launch.params));
    return graph;
}

static int run(hipGraphExec_t executable, hipStream_t stream, int *data)
{
    std::vector<int> host(N, 10);
    CHECK(hipMemcpy(data, host.data(), N * sizeof(int), hipMemcpyHostToDevice));
    CHECK(hipGraphLaunch(executable, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipMemcpy(host.data(), data, N * sizeof(int), hipMemcpyDeviceToHost));
    for (int value : host)
        REQUIRE(value == host[0]);
    return host[0];
}

static void exchange_kernels(hipStream_t stream, int *data)
{
    hipGraphNode_t node, other_node, bad;
    hipGraphExec_t executable;
    hipGraph_t graph = graph_of(add, data, 1, &node), other = graph_of(times, data, 3, &other_node);
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    REQUIRE(run(executable, stream, data) == 11);
    hipGraphNodeParams params = {};
    Launch launch(times, data, 2);
    params.type = hipGraphNodeTypeKernel;
    params.kernel = launch.params;
    CHECK(hipGraphExecNodeSetParams(executable, node, &params));
    REQUIRE(run(executable, stream, data) == 20);
    hipGraphExecUpdateResult result;
    CHECK(hipGraphExecUpdate(executable, other, &bad, &result));
    CHECK(hipGraphDestroy(other));
    REQUIRE(run(executable, stream, data) == 30);
    Launch last(add, data, 7);
    CHECK(hipGraphExecKernelNodeSetParams(executable, node, &last.params)); // the first graph's node
    REQUIRE(run(executable, stream, data) == 17);
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphDestroy(graph));
}

static void exchange_children(hipStream_t stream, int *data)
{
    hipGraphNode_t node, child_node;
    hipGraphExec_t executable;
    hipGraph_t parent, child = graph_of(add, data, 1, &child_node), other = graph_of(times, data, 3, &child_node);
    CHECK(hipGraphCreate(&parent, 0));
    CHECK(hipGraphAddChildGraphNode(&node, parent, nullptr, 0, child));
    CHECK(hipGraphInstantiate(&executable, parent, nullptr, nullptr, 0));
    REQUIRE(run(executable, stream, data) == 11);
    CHECK(hipGraphExecChildGraphNodeSetParams(executable, node, other));
    REQUIRE(run(executable, stream, data) == 30);
    hipGraphNodeParams params = {};
    params.type = hipGraphNodeTypeGraph;
    params.graph.graph = child;
    CHECK(hipGraphExecNodeSetParams(executable, node, &params));
    REQUIRE(run(executable, stream, data) == 11);
    for (hipGraph_t graph : {parent, child, other})
        CHECK(hipGraphDestroy(graph));
    CHECK(hipGraphExecDestroy(executable));
}

// Nobody knows that a tool has work to do on the other stream.
static void launch_while_capturing(hipStream_t stream, hipStream_t other, int *data, hipStreamCaptureMode mode)
{
    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK(hipStreamBeginCapture(stream, mode));
    add<<<1, N, 0, stream>>>(data, 1);
    times<<<1, N, 0, other>>>(data, 1);
    add<<<1, N, 0, stream>>>(data, 2);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    CHECK(hipStreamSynchronize(other));
    REQUIRE(run(executable, stream, data) == 13);
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphDestroy(graph));
}

int main()
{
    int *data;
    hipStream_t stream, other;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipStreamCreate(&other));
    CHECK(hipMalloc(&data, N * sizeof(int)));
    exchange_kernels(stream, data);
    exchange_children(stream, data);
    for (auto mode : {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed})
        launch_while_capturing(stream, other, data, mode);
    REQUIRE(hipGetLastError() == hipSuccess);
    return passed();
}
