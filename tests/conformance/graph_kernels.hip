// Kernel nodes: what they launch, what is asked of them and changed, their attributes.
// Linked with ROCm's device library.
#include "graphs.h"

extern "C" __device__ void __ockl_grid_sync(void);

static __global__ void other(int *data, int amount) { data[threadIdx.x] -= amount; }
static __global__ void shared_sum(int *data, int)
{
    extern __shared__ int part[];
    part[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = part[(threadIdx.x + 1) % blockDim.x];
}

CASE(a_node_launches_what_its_arguments_were)
{
    Stream stream;
    Numbers numbers(1);
    Graph graph;
    int amount = 4, *data = numbers;
    void *args[] = {&data, &amount};
    Launch launch(add, numbers, 0);
    launch.params.kernelParams = args;
    hipGraphNode_t node;
    CHECK(hipGraphAddKernelNode(&node, graph, nullptr, 0, &launch.params));
    amount = 1000; // the node has taken its arguments
    Executable executable(graph);
    executable.run(stream);
    executable.run(stream);
    REQUIRE(numbers == 9);
}

CASE(arguments_of_kernel_nodes)
{
    Graph graph, foreign_graph;
    Numbers numbers;
    Launch launch(add, numbers, 1);
    hipGraphNode_t node, foreign = empty_node(foreign_graph);
    GIVES(hipErrorInvalidValue, hipGraphAddKernelNode(nullptr, graph, nullptr, 0, &launch.params));
    GIVES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, nullptr, nullptr, 0, &launch.params));
    GIVES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, graph, nullptr, 1, &launch.params));
    GIVES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, graph, &foreign, 1, &launch.params));
    GIVES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, graph, nullptr, 0, nullptr));
    Launch without_function(add, numbers, 1);
    without_function.params.func = nullptr;
    GIVES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, graph, nullptr, 0, &without_function.params));
    Launch too_large(add, numbers, 1);
    too_large.params.blockDim = dim3(1025);
    GIVES(hipErrorInvalidConfiguration, hipGraphAddKernelNode(&node, graph, nullptr, 0, &too_large.params));
    Launch no_grid(add, numbers, 1);
    no_grid.params.gridDim = dim3(0);
    GIVES(hipErrorInvalidConfiguration, hipGraphAddKernelNode(&node, graph, nullptr, 0, &no_grid.params));
    Launch no_block(add, numbers, 1);
    no_block.params.blockDim = dim3(N, 0);
    GIVES(hipErrorInvalidConfiguration, hipGraphAddKernelNode(&node, graph, nullptr, 0, &no_block.params));
    Launch no_arguments(add, numbers, 1);
    no_arguments.params.kernelParams = nullptr;
    GIVES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, graph, nullptr, 0, &no_arguments.params));
    EQUAL(0u, graph.size());
}

CASE(get_params_gives_the_function_that_was_set)
{
    Graph graph;
    Numbers numbers;
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 7);
    hipKernelNodeParams params = {};
    CHECK(hipGraphKernelNodeGetParams(node, &params));
    REQUIRE(params.func == reinterpret_cast<void *>(add));
    REQUIRE(params.gridDim.x == 1 && params.blockDim.x == N && params.blockDim.y == 1 && params.sharedMemBytes == 0);
    REQUIRE(*static_cast<int **>(params.kernelParams[0]) == numbers.is);
    EQUAL(7, *static_cast<int *>(params.kernelParams[1]));
    REQUIRE(params.extra == nullptr);
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetParams(node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetParams(empty_node(graph), &params));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetParams(wild<hipGraphNode_t>(), &params));
}

CASE(get_params_in_a_captured_graph_and_a_clone)
{
    Stream stream;
    Numbers numbers;
    hipGraph_t made;
    hipGraphNode_t node, in_clone;
    size_t count = 1;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    add<<<1, N, 0, stream>>>(numbers, 3);
    CHECK(hipStreamEndCapture(stream, &made));
    Graph graph(made);
    CHECK(hipGraphGetNodes(graph, &node, &count));
    hipKernelNodeParams params = {};
    CHECK(hipGraphKernelNodeGetParams(node, &params));
    REQUIRE(params.func == reinterpret_cast<void *>(add));
    CHECK(hipGraphClone(&made, graph));
    Graph clone(made);
    CHECK(hipGraphNodeFindInClone(&in_clone, node, clone));
    CHECK(hipGraphKernelNodeGetParams(in_clone, &params));
    REQUIRE(params.func == reinterpret_cast<void *>(add));
    EQUAL(3, *static_cast<int *>(params.kernelParams[1]));
}

CASE(set_params_with_what_get_params_gave)
{
    Stream stream;
    Numbers numbers(10);
    Graph graph;
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 7);
    hipKernelNodeParams params;
    CHECK(hipGraphKernelNodeGetParams(node, &params));
    params.func = reinterpret_cast<void *>(other);
    CHECK(hipGraphKernelNodeSetParams(node, &params));
    CHECK(hipGraphKernelNodeGetParams(node, &params));
    REQUIRE(params.func == reinterpret_cast<void *>(other));
    *static_cast<int *>(params.kernelParams[1]) = 2; // the node's own
    CHECK(hipGraphKernelNodeSetParams(node, &params));
    Executable(graph).run(stream);
    REQUIRE(numbers == 8);
}

CASE(set_params_arguments)
{
    Graph graph;
    Numbers numbers;
    Launch launch(add, numbers, 1);
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 7);
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetParams(nullptr, &launch.params));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetParams(node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetParams(empty_node(graph), &launch.params));
    launch.params.func = nullptr;
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetParams(node, &launch.params));
    launch.params.func = reinterpret_cast<void *>(add);
    launch.params.kernelParams = nullptr;
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetParams(node, &launch.params));
}

CASE(exec_set_params_changes_the_executable_alone)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph, other_graph;
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 7), foreign = launch_node(other_graph, {}, add, numbers, 1);
    Executable executable(graph);
    Launch launch(other, numbers, 3);
    CHECK(hipGraphExecKernelNodeSetParams(executable, node, &launch.params));
    executable.run(stream);
    REQUIRE(numbers == -3);
    hipKernelNodeParams params;
    CHECK(hipGraphKernelNodeGetParams(node, &params));
    EQUAL(7, *static_cast<int *>(params.kernelParams[1]));
    GIVES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(nullptr, node, &launch.params));
    GIVES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(executable, nullptr, &launch.params));
    GIVES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(executable, node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(executable, foreign, &launch.params));
    GIVES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(executable, empty_node(graph), &launch.params));
    launch.params.func = nullptr;
    GIVES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(executable, node, &launch.params));
}

CASE(a_node_changes_after_its_graph_was_instantiated)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph;
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 7);
    Executable before(graph);
    Launch launch(add, numbers, 100);
    CHECK(hipGraphKernelNodeSetParams(node, &launch.params));
    Executable after(graph);
    before.run(stream);
    REQUIRE(numbers == 7);
    after.run(stream);
    REQUIRE(numbers == 107);
}

CASE(arguments_in_one_buffer)
{
    Stream stream;
    Numbers numbers(1);
    Graph graph;
    struct { int *data; int amount; } buffer = {numbers, 6};
    size_t bytes = sizeof buffer;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
    Launch launch(add, numbers, 0);
    launch.params.kernelParams = nullptr;
    launch.params.extra = extra;
    hipGraphNode_t node;
    CHECK(hipGraphAddKernelNode(&node, graph, nullptr, 0, &launch.params));
    buffer.amount = 1000;
    hipKernelNodeParams params;
    CHECK(hipGraphKernelNodeGetParams(node, &params));
    REQUIRE(params.extra != nullptr && params.kernelParams == nullptr);
    CHECK(hipGraphKernelNodeSetParams(node, &params));
    Executable(graph).run(stream);
    REQUIRE(numbers == 7);
}

CASE(both_forms_of_arguments_are_refused)
{
    Numbers numbers(1);
    Graph graph;
    struct { int *data; int amount; } buffer = {numbers, 6};
    size_t bytes = sizeof buffer;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
    Launch launch(add, numbers, 0);
    launch.params.extra = extra;
    hipGraphNode_t node;
    GIVES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, graph, nullptr, 0, &launch.params));
}

CASE(dynamic_shared_memory)
{
    Stream stream;
    Numbers numbers;
    std::vector<int> first(N);
    for (int i = 0; i < N; i++)
        first[i] = i;
    CHECK(hipMemcpy(numbers, first.data(), N * sizeof(int), hipMemcpyHostToDevice));
    Graph graph;
    Launch launch(shared_sum, numbers, 0);
    launch.params.sharedMemBytes = N * sizeof(int);
    hipGraphNode_t node;
    CHECK(hipGraphAddKernelNode(&node, graph, nullptr, 0, &launch.params));
    Executable(graph).run(stream);
    EQUAL(1, numbers.all()[0]);
    EQUAL(0, numbers.all()[N - 1]);
    launch.params.sharedMemBytes = 1 << 20;
    REQUIRE(hipGraphAddKernelNode(&node, graph, nullptr, 0, &launch.params) != hipSuccess);
}

CASE(attribute_of_access_policy)
{
    Graph graph;
    Numbers numbers;
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 1);
    hipKernelNodeAttrValue value = {}, got = {};
    value.accessPolicyWindow.base_ptr = numbers.is;
    value.accessPolicyWindow.hitProp = hipAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = hipAccessPropertyStreaming;
    value.accessPolicyWindow.hitRatio = 0.5f;
    CHECK(hipGraphKernelNodeSetAttribute(node, hipKernelNodeAttributeAccessPolicyWindow, &value));
    CHECK(hipGraphKernelNodeGetAttribute(node, hipKernelNodeAttributeAccessPolicyWindow, &got));
    REQUIRE(got.accessPolicyWindow.base_ptr == numbers.is);
    EQUAL(int(hipAccessPropertyPersisting), int(got.accessPolicyWindow.hitProp));
    EQUAL(int(hipAccessPropertyStreaming), int(got.accessPolicyWindow.missProp));
    EQUAL(0.5f, got.accessPolicyWindow.hitRatio);
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    value.accessPolicyWindow.num_bytes = size_t(properties.accessPolicyMaxWindowSize) + 1;
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetAttribute(node, hipKernelNodeAttributeAccessPolicyWindow, &value));
    value.accessPolicyWindow.num_bytes = 0;
    value.accessPolicyWindow.hitRatio = 1.5f;
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetAttribute(node, hipKernelNodeAttributeAccessPolicyWindow, &value));
    value.accessPolicyWindow.hitRatio = -0.5f;
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetAttribute(node, hipKernelNodeAttributeAccessPolicyWindow, &value));
    value.accessPolicyWindow.hitRatio = 0.5f;
    value.accessPolicyWindow.missProp = hipAccessPropertyPersisting;
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetAttribute(node, hipKernelNodeAttributeAccessPolicyWindow, &value));
}

CASE(attributes_cooperative_and_priority)
{
    Graph graph;
    Numbers numbers;
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 1), second = launch_node(graph, {}, add, numbers, 1);
    hipKernelNodeAttrValue value = {}, got = {};
    CHECK(hipGraphKernelNodeGetAttribute(node, hipKernelNodeAttributeCooperative, &got));
    EQUAL(0, got.cooperative);
    value.cooperative = 1;
    CHECK(hipGraphKernelNodeSetAttribute(node, hipKernelNodeAttributeCooperative, &value));
    CHECK(hipGraphKernelNodeGetAttribute(node, hipKernelNodeAttributeCooperative, &got));
    EQUAL(1, got.cooperative);
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetAttribute(node, hipKernelNodeAttributePriority, &got)); // not in use
    value.priority = 0;
    CHECK(hipGraphKernelNodeSetAttribute(second, hipKernelNodeAttributePriority, &value));
    CHECK(hipGraphKernelNodeGetAttribute(second, hipKernelNodeAttributePriority, &got));
    EQUAL(0, got.priority);
}

CASE(attribute_arguments)
{
    Graph graph;
    Numbers numbers;
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 1), empty = empty_node(graph);
    hipKernelNodeAttrValue value = {};
    auto attribute = hipKernelNodeAttributeCooperative;
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetAttribute(nullptr, attribute, &value));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetAttribute(node, attribute, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetAttribute(node, hipKernelNodeAttrID(77), &value));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeSetAttribute(empty, attribute, &value));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetAttribute(nullptr, attribute, &value));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetAttribute(node, attribute, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetAttribute(node, hipKernelNodeAttrID(77), &value));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeGetAttribute(empty, attribute, &value));
}

CASE(copies_of_attributes)
{
    Graph graph;
    Numbers numbers;
    hipGraphNode_t from = launch_node(graph, {}, add, numbers, 1), to = launch_node(graph, {}, add, numbers, 1), in_clone;
    hipKernelNodeAttrValue value = {}, got = {};
    CHECK(hipGraphKernelNodeCopyAttributes(from, to)); // none
    value.cooperative = 1;
    CHECK(hipGraphKernelNodeSetAttribute(from, hipKernelNodeAttributeCooperative, &value));
    CHECK(hipGraphKernelNodeCopyAttributes(from, to));
    CHECK(hipGraphKernelNodeGetAttribute(to, hipKernelNodeAttributeCooperative, &got));
    EQUAL(1, got.cooperative);
    hipGraph_t made;
    CHECK(hipGraphClone(&made, graph));
    Graph clone(made);
    CHECK(hipGraphNodeFindInClone(&in_clone, from, clone));
    got = {};
    CHECK(hipGraphKernelNodeGetAttribute(in_clone, hipKernelNodeAttributeCooperative, &got));
    EQUAL(1, got.cooperative);
    hipGraphNode_t policy = launch_node(graph, {}, add, numbers, 1);
    value = {};
    CHECK(hipGraphKernelNodeSetAttribute(policy, hipKernelNodeAttributeAccessPolicyWindow, &value));
    GIVES(hipErrorInvalidContext, hipGraphKernelNodeCopyAttributes(from, policy)); // another one is in use
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeCopyAttributes(nullptr, to));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeCopyAttributes(from, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphKernelNodeCopyAttributes(from, empty_node(graph)));
}

static __global__ void meet(int *data, int)
{
    atomicAdd(data, 1);
    __ockl_grid_sync();
    if (threadIdx.x == 0 && blockIdx.x == 1)
        data[1] = data[0];
}

CASE(captured_cooperative_launches_stay_so)
{
    Stream stream;
    Numbers numbers(0);
    int *data = numbers, unused = 0;
    void *args[] = {&data, &unused};
    hipGraph_t made;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void *>(meet), dim3(4), dim3(N), args, 0, stream));
    CHECK(hipStreamEndCapture(stream, &made));
    Graph graph(made);
    Executable(graph).run(stream);
    EQUAL(4 * N, numbers.all()[1]);
}
