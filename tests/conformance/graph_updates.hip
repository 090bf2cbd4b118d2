// hipGraphExecUpdate: what takes an executable's graph's place, and what does not, and why.
#include "graphs.h"

static void refused(hipGraphExec_t executable, hipGraph_t graph, hipGraphExecUpdateResult wanted, hipGraphNode_t node)
{
    hipGraphNode_t bad = wild<hipGraphNode_t>();
    hipGraphExecUpdateResult result = hipGraphExecUpdateSuccess;
    GIVES(hipErrorGraphExecUpdateFailure, hipGraphExecUpdate(executable, graph, &bad, &result));
    EQUAL(int(wanted), int(result));
    REQUIRE(bad == node);
}

static void update(hipGraphExec_t executable, hipGraph_t graph)
{
    hipGraphNode_t bad = nullptr;
    hipGraphExecUpdateResult result = hipGraphExecUpdateError;
    CHECK(hipGraphExecUpdate(executable, graph, &bad, &result));
    EQUAL(int(hipGraphExecUpdateSuccess), int(result));
}

CASE(update_arguments)
{
    Graph graph;
    Executable executable(graph);
    hipGraphNode_t bad;
    hipGraphExecUpdateResult result;
    GIVES(hipErrorInvalidValue, hipGraphExecUpdate(nullptr, graph, &bad, &result));
    GIVES(hipErrorInvalidValue, hipGraphExecUpdate(executable, nullptr, &bad, &result));
    GIVES(hipErrorInvalidValue, hipGraphExecUpdate(executable, graph, nullptr, &result));
    GIVES(hipErrorInvalidValue, hipGraphExecUpdate(executable, graph, &bad, nullptr));
}

CASE(every_kind_of_node_takes_new_parameters)
{
    Stream stream;
    Numbers numbers(0), first_copy(0), second_copy(0);
    std::atomic<int> first_calls{0}, second_calls{0};
    Event first_event, second_event;
    auto build = [&](hipGraph_t graph, int by, int *copied, std::atomic<int> &calls, hipEvent_t event) {
        Graph child;
        launch_node(child, {}, add, numbers, 100 * by);
        hipGraphNode_t inner, record;
        auto fill = fill_node(graph, {}, numbers, by);
        auto kernel = launch_node(graph, {fill}, add, numbers, 10 * by);
        CHECK(hipGraphAddChildGraphNode(&inner, graph, &kernel, 1, child));
        auto copy = copy_node(graph, {inner}, copied, numbers, N * sizeof(int), hipMemcpyDeviceToDevice);
        auto host = host_node(graph, {copy}, calls);
        CHECK(hipGraphAddEventRecordNode(&record, graph, &host, 1, event));
    };
    Graph graph, other;
    build(graph, 1, first_copy, first_calls, first_event);
    build(other, 2, second_copy, second_calls, second_event);
    Executable executable(graph);
    update(executable, other);
    executable.run(stream);
    REQUIRE(numbers == 222 && second_copy == 222 && first_copy == 0 && first_calls == 0 && second_calls == 1);
    float milliseconds;
    CHECK(hipEventElapsedTime(&milliseconds, second_event, second_event));
    update(executable, graph);
    executable.run(stream);
    REQUIRE(numbers == 111 && first_copy == 111 && first_calls == 1);
}

CASE(another_kernel_takes_the_place)
{
    Stream stream;
    Numbers numbers(3);
    Graph graph, other;
    launch_node(graph, {}, add, numbers, 4);
    launch_node(other, {}, multiply, numbers, 4);
    Executable executable(graph);
    update(executable, other);
    executable.run(stream);
    REQUIRE(numbers == 12);
}

CASE(a_clone_takes_the_place)
{
    Stream stream;
    Numbers numbers(3);
    Graph graph;
    launch_node(graph, {}, add, numbers, 4);
    Executable executable(graph);
    hipGraph_t made;
    CHECK(hipGraphClone(&made, graph));
    Graph clone(made);
    update(executable, clone);
    executable.run(stream);
    REQUIRE(numbers == 7);
}

CASE(other_numbers_of_nodes)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph, longer, shorter;
    launch_node(graph, {}, add, numbers, 4);
    launch_node(longer, {}, add, numbers, 5);
    launch_node(longer, {}, add, numbers, 5);
    Executable executable(graph);
    refused(executable, longer, hipGraphExecUpdateErrorTopologyChanged, nullptr);
    refused(executable, shorter, hipGraphExecUpdateErrorTopologyChanged, nullptr);
    executable.run(stream);
    REQUIRE(numbers == 4);
}

CASE(other_types)
{
    Numbers numbers(0);
    Graph graph, other;
    launch_node(graph, {}, add, numbers, 4);
    auto node = fill_node(other, {}, numbers, 5);
    Executable executable(graph);
    refused(executable, other, hipGraphExecUpdateErrorNodeTypeChanged, node);
}

CASE(other_edges)
{
    Numbers numbers(0);
    Graph graph, other;
    auto first = launch_node(graph, {}, add, numbers, 4);
    launch_node(graph, {first}, add, numbers, 4);
    launch_node(other, {}, add, numbers, 4);
    auto second = launch_node(other, {}, add, numbers, 4);
    Executable executable(graph);
    refused(executable, other, hipGraphExecUpdateErrorTopologyChanged, second);
}

CASE(other_directions)
{
    Numbers numbers(0);
    std::vector<int> host(N);
    Graph graph, other;
    copy_node(graph, {}, numbers, host.data(), N * sizeof(int), hipMemcpyHostToDevice);
    auto node = copy_node(other, {}, host.data(), numbers, N * sizeof(int), hipMemcpyDeviceToHost);
    Executable executable(graph);
    refused(executable, other, hipGraphExecUpdateErrorParametersChanged, node);
}

CASE(captured_graphs_update)
{
    Stream stream;
    Numbers numbers(0);
    auto capture = [&](int amount) {
        hipGraph_t made;
        CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
        CHECK(hipMemsetAsync(numbers, 0, N * sizeof(int), stream));
        add<<<1, N, 0, stream>>>(numbers, amount);
        multiply<<<1, N, 0, stream>>>(numbers, 2);
        CHECK(hipStreamEndCapture(stream, &made));
        return made;
    };
    Graph first(capture(1));
    Executable executable(first);
    for (int i = 2; i < 5; i++) {
        Graph next(capture(i));
        update(executable, next);
        executable.run(stream);
        REQUIRE(numbers == 2 * i);
    }
}

CASE(nodes_of_the_first_graph_still_name_those_of_the_executable)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph, other;
    auto node = launch_node(graph, {}, add, numbers, 1);
    launch_node(other, {}, add, numbers, 2);
    Executable executable(graph);
    update(executable, other);
    Launch launch(add, numbers, 50);
    CHECK(hipGraphExecKernelNodeSetParams(executable, node, &launch.params));
    executable.run(stream);
    REQUIRE(numbers == 50);
}
