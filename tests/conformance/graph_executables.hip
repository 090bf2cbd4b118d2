// Graphs that are ready to run: instantiated, uploaded, launched, with nodes switched off; the order that edges ask for.
#include "graphs.h"

CASE(instantiate_arguments)
{
    Graph graph;
    hipGraphExec_t executable;
    hipGraphInstantiateParams params = {};
    GIVES(hipErrorInvalidValue, hipGraphInstantiate(nullptr, graph, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphInstantiate(&executable, nullptr, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithFlags(nullptr, graph, 0));
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithFlags(&executable, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithFlags(&executable, graph, 10));
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithFlags(&executable, graph, hipGraphInstantiateFlagUpload));
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithFlags(&executable, graph, hipGraphInstantiateFlagDeviceLaunch));
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithParams(nullptr, graph, &params));
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithParams(&executable, nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithParams(&executable, graph, nullptr));
    params.flags = 10;
    GIVES(hipErrorInvalidValue, hipGraphInstantiateWithParams(&executable, graph, &params));
    EQUAL(int(hipGraphInstantiateError), int(params.result_out));
}

CASE(flags_of_executables)
{
    Graph graph;
    unsigned long long flags = 77;
    for (unsigned long long each : {0, int(hipGraphInstantiateFlagAutoFreeOnLaunch), int(hipGraphInstantiateFlagUseNodePriority)}) {
        Executable executable(graph, each);
        CHECK(hipGraphExecGetFlags(executable, &flags));
        EQUAL(each, flags);
    }
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipGraphExecGetFlags(nullptr, &flags));
    GIVES(hipErrorInvalidValue, hipGraphExecGetFlags(executable, nullptr));
}

CASE(instantiate_with_params)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph;
    launch_node(graph, {}, add, numbers, 1);
    hipGraphExec_t executable;
    for (unsigned long long flags : {0, 1, 2, 4, 8}) {
        hipGraphInstantiateParams params = {};
        params.errNode_out = wild<hipGraphNode_t>();
        params.result_out = hipGraphInstantiateError;
        params.flags = flags;
        params.uploadStream = stream;
        CHECK(hipGraphInstantiateWithParams(&executable, graph, &params));
        EQUAL(int(hipGraphInstantiateSuccess), int(params.result_out));
        REQUIRE(params.errNode_out == nullptr);
        CHECK(hipGraphLaunch(executable, stream));
        CHECK(hipStreamSynchronize(stream));
        CHECK(hipGraphExecDestroy(executable));
    }
    REQUIRE(numbers == 5);
}

CASE(upload)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph;
    launch_node(graph, {}, add, numbers, 1);
    Executable executable(graph);
    CHECK(hipGraphUpload(executable, stream));
    CHECK(hipGraphUpload(executable, nullptr));
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(numbers == 0);
    executable.run(stream);
    REQUIRE(numbers == 1);
    GIVES(hipErrorInvalidValue, hipGraphUpload(nullptr, stream));
}

CASE(launch_arguments)
{
    Stream stream;
    Graph graph;
    hipGraphExec_t executable;
    GIVES(hipErrorInvalidValue, hipGraphLaunch(nullptr, stream));
    GIVES(hipErrorInvalidValue, hipGraphLaunch(wild<hipGraphExec_t>(), stream));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(executable, stream)); // an empty one
    GIVES(hipErrorContextIsDestroyed, hipGraphLaunch(executable, wild<hipStream_t>()));
    CHECK(hipGraphExecDestroy(executable));
    GIVES(hipErrorInvalidValue, hipGraphLaunch(executable, stream));
    GIVES(hipErrorInvalidValue, hipGraphExecDestroy(nullptr));
}

CASE(graphs_are_no_executables)
{
    Stream stream;
    Graph graph;
    empty_node(graph);
    GIVES(hipErrorInvalidValue, hipGraphLaunch(reinterpret_cast<hipGraphExec_t>(graph.is), stream));
    Executable executable(graph);
    size_t count;
    GIVES(hipErrorInvalidValue, hipGraphGetNodes(reinterpret_cast<hipGraph_t>(executable.is), nullptr, &count));
}

CASE(launched_on_every_stream)
{
    Numbers numbers(0);
    Graph graph;
    launch_node(graph, {}, add, numbers, 1);
    Executable executable(graph);
    Stream stream, other(hipStreamNonBlocking);
    for (hipStream_t each : {hipStream_t(stream), hipStream_t(other), hipStream_t(nullptr), hipStreamPerThread, hipStreamLegacy}) {
        CHECK(hipGraphLaunch(executable, each));
        CHECK(hipStreamSynchronize(each));
    }
    REQUIRE(numbers == 5);
}

CASE(launches_follow_each_other)
{
    Stream stream;
    Numbers numbers(1);
    Graph graph;
    auto first = launch_node(graph, {}, add, numbers, 1);
    launch_node(graph, {first}, multiply, numbers, 2);
    Executable executable(graph);
    for (int i = 0; i < 4; i++)
        CHECK(hipGraphLaunch(executable, stream));
    add<<<1, N, 0, stream>>>(numbers, 1000);
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(numbers == ((((1 + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2 + 1000);
}

CASE(a_launch_returns_before_it_is_done)
{
    Stream stream;
    Graph graph;
    static std::atomic<bool> gate;
    gate = false;
    hipHostNodeParams params = {[](void *) { while (!gate) std::this_thread::yield(); }, nullptr};
    hipGraphNode_t node;
    Numbers numbers(1);
    CHECK(hipGraphAddHostNode(&node, graph, nullptr, 0, &params));
    auto fill = fill_node(graph, {node}, numbers, 2);
    auto kernel = launch_node(graph, {fill}, add, numbers, 1);
    Numbers copied;
    copy_node(graph, {kernel}, copied, numbers, N * sizeof(int), hipMemcpyDeviceToDevice);
    Executable executable(graph);
    CHECK(hipGraphLaunch(executable, stream));
    hipError_t before = hipStreamQuery(stream);
    gate = true;
    CHECK(hipStreamSynchronize(stream));
    GIVES(hipErrorNotReady, before);
    REQUIRE(copied == 3);
}

CASE(destroyed_while_it_runs)
{
    Stream stream;
    static std::atomic<bool> gate;
    gate = false;
    Numbers numbers(1);
    hipGraphExec_t executable;
    {
        Graph graph;
        hipHostNodeParams params = {[](void *) { while (!gate) std::this_thread::yield(); }, nullptr};
        hipGraphNode_t node;
        CHECK(hipGraphAddHostNode(&node, graph, nullptr, 0, &params));
        launch_node(graph, {node}, add, numbers, 1);
        CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    }
    CHECK(hipGraphLaunch(executable, stream));
    CHECK(hipGraphExecDestroy(executable));
    gate = true;
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(numbers == 2);
}

CASE(branches_and_joins)
{
    Stream stream;
    Numbers left(1), right(2), joined(0);
    Graph graph;
    auto top = empty_node(graph);
    auto a = launch_node(graph, {top}, add, left, 10), b = launch_node(graph, {top}, multiply, right, 10);
    a = launch_node(graph, {a}, multiply, left, 3);
    b = launch_node(graph, {b}, add, right, 5);
    auto join = copy_node(graph, {a, b}, joined, left, N * sizeof(int) / 2, hipMemcpyDeviceToDevice);
    copy_node(graph, {join}, joined + N / 2, right, N * sizeof(int) / 2, hipMemcpyDeviceToDevice);
    Executable(graph).run(stream);
    auto got = joined.all();
    EQUAL(33, got[0]);
    EQUAL(25, got[N - 1]);
}

CASE(edges_that_are_added_backwards)
{
    Stream stream;
    Numbers numbers(1);
    Graph graph;
    hipGraphNode_t nodes[5];
    for (int i = 4; i >= 0; i--) // the last one first
        nodes[i] = launch_node(graph, {}, i % 2 ? multiply : add, numbers, i + 1);
    CHECK(hipGraphAddDependencies(graph, nodes, nodes + 1, 4));
    Executable(graph).run(stream);
    REQUIRE(numbers == ((1 + 1) * 2 + 3) * 4 + 5);
}

CASE(nodes_switched_off)
{
    Stream stream;
    Numbers numbers(1), copied(0);
    std::atomic<int> calls{0};
    Graph graph, other;
    auto fill = fill_node(graph, {}, numbers, 5);
    auto kernel = launch_node(graph, {fill}, add, numbers, 2);
    auto copy = copy_node(graph, {kernel}, copied, numbers, N * sizeof(int), hipMemcpyDeviceToDevice);
    auto host = host_node(graph, {copy}, calls), empty = empty_node(graph), foreign = launch_node(other, {}, add, numbers, 1);
    Executable executable(graph);
    unsigned on = 7;
    for (auto node : {fill, kernel, copy}) {
        CHECK(hipGraphNodeGetEnabled(executable, node, &on));
        EQUAL(1u, on);
        CHECK(hipGraphNodeSetEnabled(executable, node, 0));
        CHECK(hipGraphNodeGetEnabled(executable, node, &on));
        EQUAL(0u, on);
    }
    executable.run(stream);
    REQUIRE(numbers == 1 && copied == 0 && calls == 1);
    CHECK(hipGraphNodeSetEnabled(executable, kernel, 1));
    CHECK(hipGraphNodeSetEnabled(executable, copy, 1));
    executable.run(stream);
    REQUIRE(numbers == 3 && copied == 3);
    CHECK(hipGraphNodeSetEnabled(executable, fill, 1));
    executable.run(stream);
    REQUIRE(copied == 7);
    GIVES(hipErrorInvalidValue, hipGraphNodeSetEnabled(nullptr, kernel, 0));
    GIVES(hipErrorInvalidValue, hipGraphNodeSetEnabled(executable, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphNodeSetEnabled(executable, foreign, 0));
    GIVES(hipErrorInvalidValue, hipGraphNodeSetEnabled(executable, host, 0));
    GIVES(hipErrorInvalidValue, hipGraphNodeSetEnabled(executable, empty, 0));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetEnabled(nullptr, kernel, &on));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetEnabled(executable, nullptr, &on));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetEnabled(executable, kernel, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetEnabled(executable, foreign, &on));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetEnabled(executable, host, &on));
}

CASE(destroyed_nodes_of_a_graph_stay_in_its_executable)
{
    Stream stream;
    Numbers numbers(1);
    Graph graph;
    auto node = launch_node(graph, {}, add, numbers, 2);
    Executable executable(graph);
    CHECK(hipGraphDestroyNode(node));
    executable.run(stream);
    REQUIRE(numbers == 3);
    Launch launch(add, numbers, 7);
    GIVES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(executable, node, &launch.params));
}

CASE(executables_in_threads)
{
    constexpr int THREADS = 4;
    Numbers numbers[THREADS];
    std::vector<std::thread> threads;
    std::atomic<int> failed{0};
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&, i] {
            try {
                Stream stream;
                Graph graph;
                auto first = launch_node(graph, {}, add, numbers[i], i);
                launch_node(graph, {first}, add, numbers[i], 1);
                Executable executable(graph);
                for (int j = 0; j < 5; j++)
                    executable.run(stream);
            } catch (const conformance::Failed &) {
                failed++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    EQUAL(0, failed.load());
    for (int i = 0; i < THREADS; i++)
        REQUIRE(numbers[i] == 5 * (i + 1));
}
