// Nodes of events, host functions and child graphs; and hipGraphAddNode with the functions that set parameters of any kind.
#include "graphs.h"

CASE(host_nodes_are_called_in_order)
{
    Stream stream;
    Numbers numbers(1);
    Graph graph;
    static int seen[N];
    static int *memory;
    memory = numbers;
    auto before = launch_node(graph, {}, add, numbers, 2);
    auto down = copy_node(graph, {before}, seen, numbers);
    static int found;
    found = 0;
    hipHostNodeParams params = {[](void *) { found = seen[5]; }, nullptr};
    hipGraphNode_t node;
    CHECK(hipGraphAddHostNode(&node, graph, &down, 1, &params));
    Executable executable(graph);
    executable.run(stream);
    EQUAL(3, found);
    executable.run(stream);
    EQUAL(5, found);
}

CASE(host_nodes_arguments)
{
    std::atomic<int> calls{0}, others{0};
    Stream stream;
    Graph graph, foreign_graph;
    hipHostNodeParams params = {count_call, &others}, none = {nullptr, &others}, got;
    hipGraphNode_t node, foreign = empty_node(foreign_graph), empty = empty_node(graph);
    GIVES(hipErrorInvalidValue, hipGraphAddHostNode(nullptr, graph, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddHostNode(&node, nullptr, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddHostNode(&node, graph, nullptr, 1, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddHostNode(&node, graph, &foreign, 1, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddHostNode(&node, graph, nullptr, 0, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphAddHostNode(&node, graph, nullptr, 0, &none));
    node = host_node(graph, {}, calls);
    CHECK(hipGraphHostNodeGetParams(node, &got));
    REQUIRE(got.fn == count_call && got.userData == &calls);
    GIVES(hipErrorInvalidValue, hipGraphHostNodeGetParams(nullptr, &got));
    GIVES(hipErrorInvalidValue, hipGraphHostNodeGetParams(node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphHostNodeGetParams(empty, &got));
    GIVES(hipErrorInvalidValue, hipGraphHostNodeSetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphHostNodeSetParams(node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphHostNodeSetParams(node, &none));
    GIVES(hipErrorInvalidValue, hipGraphHostNodeSetParams(empty, &params));
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(nullptr, node, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(executable, nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(executable, node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(executable, node, &none));
    GIVES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(executable, foreign, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(executable, empty, &params));
    CHECK(hipGraphExecHostNodeSetParams(executable, node, &params));
    executable.run(stream);
    REQUIRE(calls == 0 && others == 1);
    CHECK(hipGraphHostNodeSetParams(node, &params));
    Executable(graph).run(stream);
    REQUIRE(calls == 0 && others == 2);
}

// Events.

CASE(events_are_recorded_by_a_graph)
{
    Stream stream;
    Numbers numbers(0);
    Event start, stop;
    Graph graph;
    hipGraphNode_t first, last;
    CHECK(hipGraphAddEventRecordNode(&first, graph, nullptr, 0, start));
    auto node = launch_node(graph, {first}, add, numbers, 1);
    CHECK(hipGraphAddEventRecordNode(&last, graph, &node, 1, stop));
    Executable executable(graph);
    executable.run(stream);
    CHECK(hipEventSynchronize(stop));
    CHECK(hipEventQuery(stop));
    float milliseconds = -1;
    CHECK(hipEventElapsedTime(&milliseconds, start, stop));
    REQUIRE(milliseconds >= 0);
}

CASE(a_graph_waits_for_an_event_of_a_stream)
{
    Stream stream(hipStreamNonBlocking), other(hipStreamNonBlocking);
    static std::atomic<bool> gate, called;
    gate = called = false;
    Event event;
    Graph graph;
    hipGraphNode_t wait, host;
    hipHostNodeParams params = {[](void *) { called = true; }, nullptr};
    CHECK(hipGraphAddEventWaitNode(&wait, graph, nullptr, 0, event));
    CHECK(hipGraphAddHostNode(&host, graph, &wait, 1, &params));
    Executable executable(graph);
    CHECK(hipLaunchHostFunc(other, [](void *) { while (!gate) std::this_thread::yield(); }, nullptr));
    CHECK(hipEventRecord(event, other));
    CHECK(hipGraphLaunch(executable, stream));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    bool early = called;
    gate = true;
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(!early && called);
}

CASE(event_nodes_get_and_set)
{
    Stream stream;
    Event first, second;
    Graph graph;
    hipGraphNode_t record, wait;
    hipEvent_t got;
    CHECK(hipGraphAddEventRecordNode(&record, graph, nullptr, 0, first));
    CHECK(hipGraphAddEventWaitNode(&wait, graph, nullptr, 0, first));
    CHECK(hipGraphEventRecordNodeGetEvent(record, &got));
    REQUIRE(got == first);
    CHECK(hipGraphEventWaitNodeGetEvent(wait, &got));
    REQUIRE(got == first);
    CHECK(hipGraphEventRecordNodeSetEvent(record, second));
    CHECK(hipGraphEventRecordNodeGetEvent(record, &got));
    REQUIRE(got == second);
    CHECK(hipGraphEventWaitNodeSetEvent(wait, second));
    CHECK(hipGraphEventWaitNodeGetEvent(wait, &got));
    REQUIRE(got == second);
    Executable executable(graph);
    CHECK(hipGraphExecEventRecordNodeSetEvent(executable, record, first));
    CHECK(hipGraphExecEventWaitNodeSetEvent(executable, wait, first));
    CHECK(hipGraphEventRecordNodeGetEvent(record, &got));
    REQUIRE(got == second); // the graph keeps its own
    executable.run(stream);
    float milliseconds;
    CHECK(hipEventElapsedTime(&milliseconds, first, first));                             // was recorded
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&milliseconds, first, second)); // was not
}

CASE(event_nodes_arguments)
{
    Event event;
    Graph graph, foreign_graph;
    hipGraphNode_t node, foreign = empty_node(foreign_graph), record, wait;
    hipEvent_t got;
    GIVES(hipErrorInvalidValue, hipGraphAddEventRecordNode(nullptr, graph, nullptr, 0, event));
    GIVES(hipErrorInvalidValue, hipGraphAddEventRecordNode(&node, nullptr, nullptr, 0, event));
    GIVES(hipErrorInvalidValue, hipGraphAddEventRecordNode(&node, graph, nullptr, 1, event));
    GIVES(hipErrorInvalidValue, hipGraphAddEventRecordNode(&node, graph, &foreign, 1, event));
    GIVES(hipErrorInvalidValue, hipGraphAddEventRecordNode(&node, graph, nullptr, 0, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphAddEventWaitNode(nullptr, graph, nullptr, 0, event));
    GIVES(hipErrorInvalidValue, hipGraphAddEventWaitNode(&node, nullptr, nullptr, 0, event));
    GIVES(hipErrorInvalidValue, hipGraphAddEventWaitNode(&node, graph, nullptr, 1, event));
    GIVES(hipErrorInvalidValue, hipGraphAddEventWaitNode(&node, graph, &foreign, 1, event));
    GIVES(hipErrorInvalidValue, hipGraphAddEventWaitNode(&node, graph, nullptr, 0, nullptr));
    CHECK(hipGraphAddEventRecordNode(&record, graph, nullptr, 0, event));
    CHECK(hipGraphAddEventWaitNode(&wait, graph, nullptr, 0, event));
    GIVES(hipErrorInvalidValue, hipGraphEventRecordNodeGetEvent(nullptr, &got));
    GIVES(hipErrorInvalidValue, hipGraphEventRecordNodeGetEvent(record, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphEventRecordNodeGetEvent(wait, &got));
    GIVES(hipErrorInvalidValue, hipGraphEventRecordNodeSetEvent(nullptr, event));
    GIVES(hipErrorInvalidValue, hipGraphEventRecordNodeSetEvent(record, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphEventRecordNodeSetEvent(wait, event));
    GIVES(hipErrorInvalidValue, hipGraphEventWaitNodeGetEvent(nullptr, &got));
    GIVES(hipErrorInvalidValue, hipGraphEventWaitNodeGetEvent(wait, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphEventWaitNodeGetEvent(record, &got));
    GIVES(hipErrorInvalidValue, hipGraphEventWaitNodeSetEvent(nullptr, event));
    GIVES(hipErrorInvalidValue, hipGraphEventWaitNodeSetEvent(wait, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphEventWaitNodeSetEvent(record, event));
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipGraphExecEventRecordNodeSetEvent(nullptr, record, event));
    GIVES(hipErrorInvalidValue, hipGraphExecEventRecordNodeSetEvent(executable, nullptr, event));
    GIVES(hipErrorInvalidValue, hipGraphExecEventRecordNodeSetEvent(executable, record, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecEventRecordNodeSetEvent(executable, wait, event));
    GIVES(hipErrorInvalidValue, hipGraphExecEventRecordNodeSetEvent(executable, foreign, event));
    GIVES(hipErrorInvalidValue, hipGraphExecEventWaitNodeSetEvent(nullptr, wait, event));
    GIVES(hipErrorInvalidValue, hipGraphExecEventWaitNodeSetEvent(executable, nullptr, event));
    GIVES(hipErrorInvalidValue, hipGraphExecEventWaitNodeSetEvent(executable, wait, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecEventWaitNodeSetEvent(executable, record, event));
}

// Child graphs.

CASE(children_run_between_their_neighbours)
{
    Stream stream;
    Numbers numbers(1);
    Graph graph, child;
    auto a = launch_node(child, {}, add, numbers, 2);
    launch_node(child, {a}, multiply, numbers, 3);
    auto before = launch_node(graph, {}, add, numbers, 1);
    hipGraphNode_t node;
    CHECK(hipGraphAddChildGraphNode(&node, graph, &before, 1, child));
    launch_node(graph, {node}, add, numbers, 100);
    Executable(graph).run(stream);
    REQUIRE(numbers == (1 + 1 + 2) * 3 + 100);
}

CASE(children_are_clones_of_the_moment)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph;
    hipGraph_t child, own;
    hipGraphNode_t node, inner;
    size_t count = 1;
    CHECK(hipGraphCreate(&child, 0));
    launch_node(child, {}, add, numbers, 2);
    CHECK(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    launch_node(child, {}, add, numbers, 100);
    CHECK(hipGraphDestroy(child));
    CHECK(hipGraphChildGraphNodeGetGraph(node, &own));
    REQUIRE(own != child);
    CHECK(hipGraphGetNodes(own, &inner, &count));
    EQUAL(1u, count);
    Launch launch(add, numbers, 5);
    CHECK(hipGraphKernelNodeSetParams(inner, &launch.params)); // the node's own graph may be changed
    Executable(graph).run(stream);
    REQUIRE(numbers == 5);
}

CASE(children_in_children)
{
    Stream stream;
    Numbers numbers(0);
    Graph outer, middle, inner;
    hipGraphNode_t node;
    launch_node(inner, {}, add, numbers, 1);
    CHECK(hipGraphAddChildGraphNode(&node, middle, nullptr, 0, inner));
    CHECK(hipGraphAddChildGraphNode(&node, middle, &node, 1, inner));
    CHECK(hipGraphAddChildGraphNode(&node, outer, nullptr, 0, middle));
    CHECK(hipGraphAddChildGraphNode(&node, outer, &node, 1, middle));
    Executable(outer).run(stream);
    REQUIRE(numbers == 4);
}

CASE(child_arguments)
{
    Graph graph, child, foreign_graph;
    hipGraphNode_t node, foreign = empty_node(foreign_graph);
    hipGraph_t own;
    GIVES(hipErrorInvalidValue, hipGraphAddChildGraphNode(nullptr, graph, nullptr, 0, child));
    GIVES(hipErrorInvalidValue, hipGraphAddChildGraphNode(&node, nullptr, nullptr, 0, child));
    GIVES(hipErrorInvalidValue, hipGraphAddChildGraphNode(&node, graph, nullptr, 1, child));
    GIVES(hipErrorInvalidValue, hipGraphAddChildGraphNode(&node, graph, &foreign, 1, child));
    GIVES(hipErrorInvalidValue, hipGraphAddChildGraphNode(&node, graph, nullptr, 0, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphAddChildGraphNode(&node, graph, nullptr, 0, wild<hipGraph_t>()));
    CHECK(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    GIVES(hipErrorInvalidValue, hipGraphChildGraphNodeGetGraph(nullptr, &own));
    GIVES(hipErrorInvalidValue, hipGraphChildGraphNodeGetGraph(node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphChildGraphNodeGetGraph(foreign, &own));
}

CASE(children_of_executables_are_exchanged)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph, child, other, shorter, of_other_types, foreign_graph;
    hipGraphNode_t node, foreign = empty_node(foreign_graph);
    launch_node(child, {}, add, numbers, 1);
    launch_node(other, {}, add, numbers, 10);
    fill_node(of_other_types, {}, numbers, 1);
    CHECK(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    Executable executable(graph);
    CHECK(hipGraphExecChildGraphNodeSetParams(executable, node, other));
    executable.run(stream);
    REQUIRE(numbers == 10);
    Executable(graph).run(stream);
    REQUIRE(numbers == 11); // the graph itself is as it was
    GIVES(hipErrorInvalidValue, hipGraphExecChildGraphNodeSetParams(nullptr, node, other));
    GIVES(hipErrorInvalidValue, hipGraphExecChildGraphNodeSetParams(executable, nullptr, other));
    GIVES(hipErrorInvalidValue, hipGraphExecChildGraphNodeSetParams(executable, node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecChildGraphNodeSetParams(executable, foreign, other));
    GIVES(hipErrorUnknown, hipGraphExecChildGraphNodeSetParams(executable, node, graph)); // its own parent
    GIVES(hipErrorUnknown, hipGraphExecChildGraphNodeSetParams(executable, node, shorter));
    GIVES(hipErrorUnknown, hipGraphExecChildGraphNodeSetParams(executable, node, of_other_types));
}

// Any kind.

static hipGraphNodeParams of_type(hipGraphNodeType type)
{
    hipGraphNodeParams params = {};
    params.type = type;
    return params;
}

CASE(add_node_of_each_kind)
{
    Stream stream;
    Numbers numbers(0), copied(0);
    std::atomic<int> calls{0};
    Event event, never;
    Graph graph, child;
    hipGraphNode_t node;
    launch_node(child, {}, add, numbers, 1000);
    auto after = [&, before = hipGraphNode_t(nullptr)](hipGraphNodeParams params) mutable {
        CHECK(hipGraphAddNode(&node, graph, &before, before != nullptr, &params));
        hipGraphNodeType type;
        CHECK(hipGraphNodeGetType(node, &type));
        EQUAL(int(params.type), int(type));
        before = node;
    };
    hipGraphNodeParams fill = of_type(hipGraphNodeTypeMemset), kernel = of_type(hipGraphNodeTypeKernel),
                       inner = of_type(hipGraphNodeTypeGraph), copy = of_type(hipGraphNodeTypeMemcpy),
                       call = of_type(hipGraphNodeTypeHost), wait = of_type(hipGraphNodeTypeWaitEvent),
                       record = of_type(hipGraphNodeTypeEventRecord);
    fill.memset = fill_params(numbers, 5);
    Launch launch(add, numbers, 3);
    kernel.kernel = launch.params;
    inner.graph.graph = child;
    copy.memcpy.copyParams.srcPtr = make_hipPitchedPtr(numbers, N * 4, N * 4, 1);
    copy.memcpy.copyParams.dstPtr = make_hipPitchedPtr(copied, N * 4, N * 4, 1);
    copy.memcpy.copyParams.extent = make_hipExtent(N * 4, 1, 1);
    copy.memcpy.copyParams.kind = hipMemcpyDeviceToDevice;
    call.host = {count_call, &calls};
    wait.eventWait.event = never;
    record.eventRecord.event = event;
    for (auto &params : {fill, kernel, inner, copy, call, wait, record})
        after(params);
    Executable executable(graph);
    executable.run(stream);
    REQUIRE(numbers == 1008 && copied == 1008 && calls == 1);
    float milliseconds;
    CHECK(hipEventElapsedTime(&milliseconds, event, event));
}

CASE(add_node_for_memory)
{
    Stream stream;
    Graph graph;
    hipGraphNode_t node, fill, end;
    hipGraphNodeParams params = of_type(hipGraphNodeTypeMemAlloc), free = of_type(hipGraphNodeTypeMemFree);
    params.alloc.bytesize = N * sizeof(int);
    params.alloc.poolProps.allocType = hipMemAllocationTypePinned;
    params.alloc.poolProps.location = {hipMemLocationTypeDevice, 0};
    CHECK(hipGraphAddNode(&node, graph, nullptr, 0, &params));
    REQUIRE(params.alloc.dptr != nullptr);
    std::vector<int> host(N, 0);
    fill = fill_node(graph, {node}, static_cast<int *>(params.alloc.dptr), 6);
    auto down = copy_node(graph, {fill}, host.data(), params.alloc.dptr);
    free.free.dptr = params.alloc.dptr;
    CHECK(hipGraphAddNode(&end, graph, &down, 1, &free));
    Executable executable(graph);
    executable.run(stream);
    REQUIRE(host == std::vector<int>(N, 6));
}

CASE(add_node_arguments)
{
    Graph graph, foreign_graph;
    hipGraphNode_t node, foreign = empty_node(foreign_graph);
    std::atomic<int> calls{0};
    hipGraphNodeParams params = of_type(hipGraphNodeTypeHost), none = of_type(hipGraphNodeTypeHost);
    params.host = {count_call, &calls};
    GIVES(hipErrorInvalidValue, hipGraphAddNode(nullptr, graph, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddNode(&node, nullptr, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddNode(&node, graph, nullptr, 1, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddNode(&node, graph, &foreign, 1, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddNode(&node, graph, nullptr, 0, nullptr));
    for (auto type : {hipGraphNodeTypeHost, hipGraphNodeTypeGraph, hipGraphNodeTypeWaitEvent, hipGraphNodeTypeEventRecord,
                      hipGraphNodeTypeMemset, hipGraphNodeTypeMemAlloc, hipGraphNodeTypeMemFree}) {
        none.type = type;
        GIVES(hipErrorInvalidValue, hipGraphAddNode(&node, graph, nullptr, 0, &none)); // nothing in it
    }
    none.type = hipGraphNodeTypeCount;
    GIVES(hipErrorInvalidValue, hipGraphAddNode(&node, graph, nullptr, 0, &none));
    none.type = hipGraphNodeType(-1);
    GIVES(hipErrorInvalidValue, hipGraphAddNode(&node, graph, nullptr, 0, &none));
    for (auto type : {hipGraphNodeTypeExtSemaphoreSignal, hipGraphNodeTypeExtSemaphoreWait}) {
        none.type = type;
        GIVES(hipErrorNotSupported, hipGraphAddNode(&node, graph, nullptr, 0, &none));
    }
    EQUAL(0u, graph.size());
}

CASE(node_set_params_of_each_kind)
{
    Stream stream;
    Numbers numbers(0), copied(0);
    std::atomic<int> calls{0}, others{0};
    Event event, other_event;
    Graph graph, child, other_child;
    hipGraphNode_t inner, record, wait;
    launch_node(child, {}, add, numbers, 1000);
    launch_node(other_child, {}, add, numbers, 2000);
    auto fill = fill_node(graph, {}, numbers, 5);
    auto kernel = launch_node(graph, {fill}, add, numbers, 3);
    CHECK(hipGraphAddChildGraphNode(&inner, graph, &kernel, 1, child));
    auto copy = copy_node(graph, {inner}, copied, numbers, N * 4, hipMemcpyDeviceToDevice);
    auto host = host_node(graph, {copy}, calls);
    CHECK(hipGraphAddEventRecordNode(&record, graph, &host, 1, event));
    CHECK(hipGraphAddEventWaitNode(&wait, graph, &record, 1, event));
    Executable executable(graph);
    auto set = [&](bool in_executable) {
        auto to = [&](hipGraphNode_t node, hipGraphNodeParams params) {
            CHECK(in_executable ? hipGraphExecNodeSetParams(executable, node, &params) : hipGraphNodeSetParams(node, &params));
        };
        hipGraphNodeParams params = of_type(hipGraphNodeTypeMemset);
        params.memset = fill_params(numbers, 50);
        to(fill, params);
        params = of_type(hipGraphNodeTypeKernel);
        Launch launch(add, numbers, 30);
        params.kernel = launch.params;
        to(kernel, params);
        params = of_type(hipGraphNodeTypeGraph);
        params.graph.graph = other_child;
        to(inner, params);
        params = of_type(hipGraphNodeTypeMemcpy);
        params.memcpy.copyParams.srcPtr = make_hipPitchedPtr(numbers, 8, 8, 1);
        params.memcpy.copyParams.dstPtr = make_hipPitchedPtr(copied, 8, 8, 1);
        params.memcpy.copyParams.extent = make_hipExtent(8, 1, 1);
        params.memcpy.copyParams.kind = hipMemcpyDeviceToDevice;
        to(copy, params);
        params = of_type(hipGraphNodeTypeHost);
        params.host = {count_call, &others};
        to(host, params);
        params = of_type(hipGraphNodeTypeEventRecord);
        params.eventRecord.event = other_event;
        to(record, params);
        params = of_type(hipGraphNodeTypeWaitEvent);
        params.eventWait.event = other_event;
        to(wait, params);
    };
    set(true);
    executable.run(stream);
    float milliseconds;
    REQUIRE(numbers == 2080 && calls == 0 && others == 1);
    CHECK(hipEventElapsedTime(&milliseconds, other_event, other_event));
    Executable as_it_was(graph);
    as_it_was.run(stream);
    REQUIRE(numbers == 1008 && copied == 1008 && calls == 1);
    set(false);
    copied = 0;
    Executable changed(graph);
    changed.run(stream);
    REQUIRE(numbers == 2080 && calls == 1 && others == 2 && copied.all()[1] == 2080 && copied.all()[2] == 0);
}

CASE(node_set_params_arguments)
{
    std::atomic<int> calls{0};
    Graph graph, foreign_graph;
    auto node = host_node(graph, {}, calls), foreign = host_node(foreign_graph, {}, calls);
    Executable executable(graph);
    hipGraphNodeParams params = of_type(hipGraphNodeTypeHost), none = of_type(hipGraphNodeTypeHost), other = of_type(hipGraphNodeTypeEmpty);
    params.host = {count_call, &calls};
    GIVES(hipErrorInvalidValue, hipGraphNodeSetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphNodeSetParams(node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphNodeSetParams(node, &none));
    GIVES(hipErrorInvalidValue, hipGraphNodeSetParams(node, &other));
    other = of_type(hipGraphNodeTypeMemAlloc);
    GIVES(hipErrorNotSupported, hipGraphNodeSetParams(node, &other));
    GIVES(hipErrorInvalidValue, hipGraphExecNodeSetParams(nullptr, node, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecNodeSetParams(executable, nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecNodeSetParams(executable, node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecNodeSetParams(executable, foreign, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecNodeSetParams(executable, node, &none));
}
