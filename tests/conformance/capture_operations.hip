// Captures: every kind of operation becomes a node, which does the same when the graph runs.
#include "graphs.h"

static __device__ int device_numbers[4];

// What `put` puts on a stream, as a graph of so many nodes, the first of that type.
template <typename Put> static hipGraph_t captured(hipStream_t stream, size_t count, hipGraphNodeType wanted, Put put)
{
    hipGraph_t graph;
    hipGraphNode_t nodes[16];
    size_t room = 16;
    hipGraphNodeType type;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    put();
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphGetNodes(graph, nodes, &room));
    EQUAL(count, room);
    CHECK(hipGraphNodeGetType(nodes[0], &type));
    EQUAL(int(wanted), int(type));
    return graph;
}

static void run(hipStream_t stream, hipGraph_t made)
{
    Graph graph(made);
    Executable executable(graph);
    executable.run(stream);
}

CASE(copies_in_a_line)
{
    Stream stream;
    Numbers a(0), b(0);
    std::vector<int> from(N, 7), to(N, 0);
    const size_t bytes = N * sizeof(int);
    run(stream, captured(stream, 3, hipGraphNodeTypeMemcpy, [&] {
        CHECK(hipMemcpyAsync(a, from.data(), bytes, hipMemcpyHostToDevice, stream));
        CHECK(hipMemcpyAsync(b, a, bytes, hipMemcpyDeviceToDevice, stream));
        CHECK(hipMemcpyAsync(to.data(), b, bytes, hipMemcpyDeviceToHost, stream));
    }));
    REQUIRE(to == from);
}

CASE(copies_of_the_driver)
{
    Stream stream;
    Numbers a(0), b(0);
    std::vector<int> from(N, 7), to(N, 0);
    const size_t bytes = N * sizeof(int);
    run(stream, captured(stream, 3, hipGraphNodeTypeMemcpy, [&] {
        CHECK(hipMemcpyHtoDAsync(a.is, from.data(), bytes, stream));
        CHECK(hipMemcpyDtoDAsync(b.is, a.is, bytes, stream));
        CHECK(hipMemcpyDtoHAsync(to.data(), b.is, bytes, stream));
    }));
    REQUIRE(to == from);
}

CASE(copies_between_devices)
{
    Stream stream;
    Numbers a(5), b(0);
    run(stream, captured(stream, 1, hipGraphNodeTypeMemcpy, [&] { CHECK(hipMemcpyPeerAsync(b, 0, a, 0, N * sizeof(int), stream)); }));
    REQUIRE(b == 5);
}

CASE(copies_of_rows)
{
    Stream stream;
    Numbers a(0);
    std::vector<int> from(N, 7);
    run(stream, captured(stream, 1, hipGraphNodeTypeMemcpy, [&] {
        CHECK(hipMemcpy2DAsync(a, 32, from.data(), 16, 8, 4, hipMemcpyHostToDevice, stream));
    }));
    auto got = a.all();
    for (int i = 0; i < N; i++)
        EQUAL(i < 32 && i % 8 < 2 ? 7 : 0, got[i]);
}

CASE(copies_of_blocks)
{
    Stream stream;
    Numbers a(0);
    std::vector<int> from(N, 7);
    hipMemcpy3DParms params = {};
    params.srcPtr = make_hipPitchedPtr(from.data(), 16, 16, 2);
    params.dstPtr = make_hipPitchedPtr(a, 16, 16, 4);
    params.extent = make_hipExtent(8, 2, 3);
    params.kind = hipMemcpyHostToDevice;
    run(stream, captured(stream, 1, hipGraphNodeTypeMemcpy, [&] { CHECK(hipMemcpy3DAsync(&params, stream)); }));
    auto got = a.all();
    for (int i = 0; i < N; i++)
        EQUAL(i / 16 < 3 && i % 16 / 4 < 2 && i % 4 < 2 ? 7 : 0, got[i]);
}

CASE(copies_of_symbols)
{
    Stream stream;
    int from[4] = {1, 2, 3, 4}, to[4] = {}, none[4] = {};
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(device_numbers), none, sizeof none));
    run(stream, captured(stream, 2, hipGraphNodeTypeMemcpy, [&] {
        CHECK(hipMemcpyToSymbolAsync(HIP_SYMBOL(device_numbers), from, 8, 4, hipMemcpyHostToDevice, stream));
        CHECK(hipMemcpyFromSymbolAsync(to, HIP_SYMBOL(device_numbers), 16, 0, hipMemcpyDeviceToHost, stream));
    }));
    REQUIRE(to[0] == 0 && to[1] == 1 && to[2] == 2 && to[3] == 0);
}

CASE(fills)
{
    Stream stream;
    Numbers a(0), b(0), c(0), d(0);
    run(stream, captured(stream, 4, hipGraphNodeTypeMemset, [&] {
        CHECK(hipMemsetAsync(a, 1, N * sizeof(int), stream));
        CHECK(hipMemsetD8Async(b.is, 2, N * sizeof(int), stream));
        CHECK(hipMemsetD16Async(c.is, 3, N * sizeof(int) / 2, stream));
        CHECK(hipMemsetD32Async(d.is, 4, N, stream));
    }));
    REQUIRE(a == 0x01010101 && b == 0x02020202 && c == 0x00030003 && d == 4);
}

CASE(fills_of_rows_and_blocks)
{
    Stream stream;
    Numbers a(0), b(0);
    run(stream, captured(stream, 2, hipGraphNodeTypeMemset, [&] {
        CHECK(hipMemset2DAsync(a, 32, 1, 8, 4, stream));
        CHECK(hipMemset3DAsync(make_hipPitchedPtr(b, 16, 16, 4), 1, make_hipExtent(8, 2, 3), stream));
    }));
    auto rows = a.all(), blocks = b.all();
    for (int i = 0; i < N; i++) {
        EQUAL(i < 32 && i % 8 < 2 ? 0x01010101 : 0, rows[i]);
        EQUAL(i / 16 < 3 && i % 16 / 4 < 2 && i % 4 < 2 ? 0x01010101 : 0, blocks[i]);
    }
}

CASE(nothing_to_do_is_no_node)
{
    Stream stream;
    Numbers numbers(1);
    hipGraph_t made;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipMemcpyAsync(numbers, numbers, 0, hipMemcpyDefault, stream));
    CHECK(hipMemsetAsync(numbers, 0, 0, stream));
    CHECK(hipMemset3DAsync(make_hipPitchedPtr(numbers, 16, 16, 4), 1, make_hipExtent(8, 2, 0), stream));
    CHECK(hipStreamEndCapture(stream, &made));
    EQUAL(0u, Graph(made).size());
}

CASE(what_is_refused_is_refused_when_it_is_captured)
{
    Stream stream;
    Numbers numbers(1);
    std::vector<int> host(N);
    hipGraph_t made;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    GIVES(hipErrorInvalidValue, hipMemcpyAsync(numbers, host.data(), N * sizeof(int) + 1, hipMemcpyHostToDevice, stream));
    GIVES(hipErrorInvalidValue, hipMemsetAsync(host.data(), 0, 4, stream));
    CHECK(hipStreamEndCapture(stream, &made));
    EQUAL(0u, Graph(made).size());
}

CASE(host_functions)
{
    Stream stream;
    std::atomic<int> calls{0};
    run(stream, captured(stream, 1, hipGraphNodeTypeHost, [&] { CHECK(hipLaunchHostFunc(stream, count_call, &calls)); }));
    EQUAL(1, calls.load());
}

CASE(kernels_in_each_way)
{
    Stream stream;
    Numbers numbers(0);
    Launch one(add, numbers, 1), ten(add, numbers, 10), hundred(add, numbers, 100);
    hipFunction_t function;
    CHECK(hipGetFuncBySymbol(&function, reinterpret_cast<void *>(add)));
    hipGraph_t made = captured(stream, 4, hipGraphNodeTypeKernel, [&] {
        add<<<1, N, 0, stream>>>(numbers, 1000);
        CHECK(hipLaunchKernel(one.params.func, dim3(1), dim3(N), one.args, 0, stream));
        CHECK(hipModuleLaunchKernel(function, 1, 1, 1, N, 1, 1, 0, stream, ten.args, nullptr));
        CHECK(hipExtLaunchKernel(hundred.params.func, dim3(1), dim3(N), hundred.args, 0, stream, nullptr, nullptr, 0));
    });
    run(stream, made);
    REQUIRE(numbers == 1111);
}

CASE(kernels_with_events)
{
    Stream stream;
    Numbers numbers(0);
    Event start, stop;
    Launch one(add, numbers, 1);
    hipGraph_t made;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipExtLaunchKernel(one.params.func, dim3(1), dim3(N), one.args, 0, stream, start, stop, 0));
    CHECK(hipStreamEndCapture(stream, &made));
    run(stream, made);
    float milliseconds = -1;
    CHECK(hipEventElapsedTime(&milliseconds, start, stop));
    REQUIRE(numbers == 1 && milliseconds >= 0);
}

CASE(events_for_those_outside)
{
    Stream stream;
    Event event;
    std::atomic<int> calls{0};
    hipGraph_t made = captured(stream, 2, hipGraphNodeTypeHost, [&] {
        CHECK(hipLaunchHostFunc(stream, count_call, &calls));
        CHECK(hipEventRecordWithFlags(event, stream, hipEventRecordExternal));
    });
    run(stream, made);
    float milliseconds;
    CHECK(hipEventElapsedTime(&milliseconds, event, event)); // recorded by the graph
}

CASE(waits_for_those_outside)
{
    Stream stream(hipStreamNonBlocking), other(hipStreamNonBlocking);
    Event event;
    static std::atomic<bool> gate, called;
    gate = called = false;
    Graph graph(captured(stream, 2, hipGraphNodeTypeWaitEvent, [&] {
        CHECK(hipStreamWaitEvent(stream, event, hipEventWaitExternal));
        CHECK(hipLaunchHostFunc(stream, [](void *) { called = true; }, nullptr));
    }));
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

CASE(graphs_in_captures)
{
    Stream stream;
    Numbers numbers(0);
    Graph inner;
    launch_node(inner, {}, add, numbers, 3);
    Executable executable(inner);
    run(stream, captured(stream, 2, hipGraphNodeTypeGraph, [&] {
        CHECK(hipGraphLaunch(executable, stream));
        multiply<<<1, N, 0, stream>>>(numbers, 5);
    }));
    REQUIRE(numbers == 15);
}

CASE(arguments_are_of_the_moment)
{
    Stream stream;
    Numbers numbers(0);
    hipGraph_t made = captured(stream, 2, hipGraphNodeTypeKernel, [&] {
        for (int amount = 1; amount < 3; amount++)
            add<<<1, N, 0, stream>>>(numbers, amount);
    });
    run(stream, made);
    REQUIRE(numbers == 3);
}

CASE(nodes_follow_each_other)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph(captured(stream, 3, hipGraphNodeTypeMemset, [&] {
        CHECK(hipMemsetAsync(numbers, 0, 4, stream));
        add<<<1, N, 0, stream>>>(numbers, 1);
        add<<<1, N, 0, stream>>>(numbers, 1);
    }));
    hipGraphNode_t nodes[3], before;
    size_t count = 3, edges;
    CHECK(hipGraphGetNodes(graph, nodes, &count));
    CHECK(hipGraphGetEdges(graph, nullptr, nullptr, &edges));
    EQUAL(2u, edges);
    for (int i = 1; i < 3; i++) {
        size_t one = 1;
        CHECK(hipGraphNodeGetDependencies(nodes[i], &before, &one));
        REQUIRE(one == 1 && before == nodes[i - 1]);
    }
}
