// Memcpy nodes: lines, blocks in three dimensions, symbols, the driver's form; their parameters and changes.
#include "graphs.h"

static __device__ int device_numbers[4] = {1, 2, 3, 4};
static __constant__ int constant_numbers[4] = {5, 6, 7, 8};
static __device__ int other_numbers[4];

static hipMemcpy3DParms line(void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
    hipMemcpy3DParms params = {};
    params.srcPtr = make_hipPitchedPtr(const_cast<void *>(from), bytes, bytes, 1);
    params.dstPtr = make_hipPitchedPtr(to, bytes, bytes, 1);
    params.extent = make_hipExtent(bytes, 1, 1);
    params.kind = kind;
    return params;
}

static hipCtx_t context()
{
    hipCtx_t context = nullptr;
    CHECK(hipCtxGetCurrent(&context));
    REQUIRE(context != nullptr);
    return context;
}

CASE(memory_that_hip_does_not_know_is_copied_when_the_launch_returns) // as by hipMemcpyAsync
{
    Stream held;
    Numbers a;
    std::vector<int> from(N, 9), to(N, 0);
    Graph graph;
    const size_t bytes = N * sizeof(int);
    auto up = copy_node(graph, {}, a, from.data(), bytes, hipMemcpyHostToDevice);
    copy_node(graph, {up}, to.data(), a, bytes, hipMemcpyDeviceToHost);
    Executable executable(graph);
    for (hipStream_t stream : {hipStream_t(nullptr), hipStream_t(held)}) {
        to.assign(N, 0);
        for (int i = 0; i < 4; i++)
            CHECK(hipMemsetAsync(a, i, bytes, stream));
        CHECK(hipGraphLaunch(executable, stream));
        REQUIRE(to == from);
    }
}
CASE(up_across_and_down)
{
    Stream stream;
    Numbers a, b;
    std::vector<int> from(N, 9), to(N, 0);
    Graph graph;
    const size_t bytes = N * sizeof(int);
    auto up = copy_node(graph, {}, a, from.data(), bytes, hipMemcpyHostToDevice);
    auto across = copy_node(graph, {up}, b, a, bytes, hipMemcpyDeviceToDevice);
    copy_node(graph, {across}, to.data(), b, bytes, hipMemcpyDeviceToHost);
    Executable executable(graph);
    executable.run(stream);
    REQUIRE(to == from);
    from.assign(N, 10); // read when the graph runs
    executable.run(stream);
    REQUIRE(to == from);
}

CASE(host_to_host)
{
    Stream stream;
    std::vector<int> from(N, 9), to(N, 0);
    Graph graph;
    copy_node(graph, {}, to.data(), from.data(), N * sizeof(int), hipMemcpyHostToHost);
    Executable(graph).run(stream);
    REQUIRE(to == from);
}

static void refuses_lines(hipError_t (*call)(hipGraph_t, hipGraphNode_t, hipGraphExec_t, void *, const void *, size_t))
{
    Numbers a, b;
    Graph graph;
    const size_t bytes = N * sizeof(int);
    hipGraphNode_t node = copy_node(graph, {}, a, b, bytes, hipMemcpyDeviceToDevice);
    Executable executable(graph);
    CHECK(call(graph, node, executable, a, b, bytes));
    GIVES(hipErrorInvalidValue, call(graph, node, executable, nullptr, b, bytes));
    GIVES(hipErrorInvalidValue, call(graph, node, executable, a, nullptr, bytes));
    GIVES(hipErrorInvalidValue, call(graph, node, executable, a, b, 0));
    GIVES(hipErrorInvalidValue, call(graph, node, executable, a, b, bytes + 1));
}

CASE(lines_refused_when_added)
{
    refuses_lines([](hipGraph_t graph, hipGraphNode_t, hipGraphExec_t, void *to, const void *from, size_t bytes) {
        hipGraphNode_t node;
        return hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, to, from, bytes, hipMemcpyDeviceToDevice);
    });
}

CASE(lines_refused_when_set)
{
    refuses_lines([](hipGraph_t, hipGraphNode_t node, hipGraphExec_t, void *to, const void *from, size_t bytes) {
        return hipGraphMemcpyNodeSetParams1D(node, to, from, bytes, hipMemcpyDeviceToDevice);
    });
}

CASE(lines_refused_when_set_in_executables)
{
    refuses_lines([](hipGraph_t, hipGraphNode_t node, hipGraphExec_t executable, void *to, const void *from, size_t bytes) {
        return hipGraphExecMemcpyNodeSetParams1D(executable, node, to, from, bytes, hipMemcpyDeviceToDevice);
    });
}

CASE(directions_that_are_none)
{
    Numbers a, b;
    Graph graph;
    hipGraphNode_t node = copy_node(graph, {}, a, b);
    const size_t bytes = N * sizeof(int);
    auto none = hipMemcpyKind(-1);
    GIVES(hipErrorInvalidMemcpyDirection, hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, a, b, bytes, none));
    GIVES(hipErrorInvalidMemcpyDirection, hipGraphMemcpyNodeSetParams1D(node, a, b, bytes, none));
    hipMemcpy3DParms params = line(a, b, bytes, none);
    GIVES(hipErrorInvalidMemcpyDirection, hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &params));
}

CASE(directions_that_contradict_the_memory)
{
    Numbers numbers;
    std::vector<int> host(N);
    Graph graph;
    hipGraphNode_t node;
    const size_t bytes = N * sizeof(int);
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, numbers, host.data(), bytes, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, host.data(), numbers, bytes, hipMemcpyHostToDevice));
    CHECK(hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, host.data(), numbers, bytes, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams1D(node, numbers, host.data(), bytes, hipMemcpyDeviceToHost));
}

CASE(executables_keep_their_direction)
{
    Numbers numbers;
    std::vector<int> host(N);
    Graph graph;
    const size_t bytes = N * sizeof(int);
    hipGraphNode_t node = copy_node(graph, {}, host.data(), numbers, bytes, hipMemcpyDeviceToHost);
    Executable executable(graph);
    CHECK(hipGraphExecMemcpyNodeSetParams1D(executable, node, host.data(), numbers, bytes / 2, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams1D(executable, node, host.data(), numbers, bytes, hipMemcpyDefault));
    GIVES(hipErrorInvalidValue,
          hipGraphExecMemcpyNodeSetParams1D(executable, node, numbers, host.data(), bytes, hipMemcpyHostToDevice));
    hipMemcpy3DParms params = line(host.data(), numbers, bytes, hipMemcpyDefault);
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams(executable, node, &params));
}

CASE(places_and_handles_of_lines)
{
    Numbers a, b;
    Graph graph, other;
    hipGraphNode_t node, foreign = copy_node(other, {}, a, b), empty = empty_node(graph);
    const size_t bytes = N * sizeof(int);
    const auto kind = hipMemcpyDefault;
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode1D(nullptr, graph, nullptr, 0, a, b, bytes, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode1D(&node, nullptr, nullptr, 0, a, b, bytes, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode1D(&node, graph, nullptr, 1, a, b, bytes, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode1D(&node, graph, &foreign, 1, a, b, bytes, kind));
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams1D(nullptr, a, b, bytes, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams1D(empty, a, b, bytes, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams1D(nullptr, foreign, a, b, bytes, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams1D(executable, nullptr, a, b, bytes, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams1D(executable, foreign, a, b, bytes, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams1D(executable, empty, a, b, bytes, kind));
}

CASE(no_change_to_a_copy_onto_itself)
{
    Numbers a, b;
    Graph graph;
    hipGraphNode_t node = copy_node(graph, {}, a, b);
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams1D(node, a, a, 4, hipMemcpyDefault));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams1D(executable, node, a, a, 4, hipMemcpyDefault));
}

CASE(set_params_moves_the_copy)
{
    Stream stream;
    Numbers a(1), b(2), c(3);
    Graph graph;
    const size_t bytes = N * sizeof(int);
    hipGraphNode_t node = copy_node(graph, {}, a, b, bytes, hipMemcpyDeviceToDevice);
    Executable executable(graph);
    CHECK(hipGraphExecMemcpyNodeSetParams1D(executable, node, c, b, bytes, hipMemcpyDeviceToDevice));
    executable.run(stream);
    REQUIRE(a == 1 && c == 2);
    CHECK(hipGraphMemcpyNodeSetParams1D(node, b, a, bytes, hipMemcpyDeviceToDevice));
    Executable(graph).run(stream);
    REQUIRE(b == 1);
}

// Three dimensions.

CASE(a_block_out_of_a_larger_one)
{
    Stream stream;
    std::vector<unsigned char> from(8 * 6 * 5), to(8 * 6 * 5, 0xEE);
    for (size_t i = 0; i < from.size(); i++)
        from[i] = static_cast<unsigned char>(i);
    Graph graph;
    hipGraphNode_t node;
    hipMemcpy3DParms params = {};
    params.srcPtr = make_hipPitchedPtr(from.data(), 8, 8, 6);
    params.srcPos = make_hipPos(2, 1, 3);
    params.dstPtr = make_hipPitchedPtr(to.data(), 8, 8, 6);
    params.dstPos = make_hipPos(1, 2, 1);
    params.extent = make_hipExtent(4, 3, 2);
    params.kind = hipMemcpyHostToHost;
    CHECK(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &params));
    Executable(graph).run(stream);
    for (int z = 0; z < 5; z++)
        for (int y = 0; y < 6; y++)
            for (int x = 0; x < 8; x++) {
                bool inside = x >= 1 && x < 5 && y >= 2 && y < 5 && z >= 1 && z < 3;
                EQUAL(int(inside ? from[((z + 2) * 6 + y - 1) * 8 + x + 1] : 0xEE), int(to[(z * 6 + y) * 8 + x]));
            }
}

static void refuses_blocks(hipError_t (*call)(hipGraph_t, hipGraphNode_t, hipGraphExec_t, const hipMemcpy3DParms *))
{
    Numbers a, b;
    Graph graph;
    const size_t bytes = N * sizeof(int);
    const auto kind = hipMemcpyDeviceToDevice;
    hipMemcpy3DParms good = line(a, b, bytes, kind), params;
    hipGraphNode_t node;
    CHECK(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &good));
    Executable executable(graph);
    CHECK(call(graph, node, executable, &good));
    GIVES(hipErrorInvalidValue, call(graph, node, executable, nullptr));
    params = {};
    REQUIRE(call(graph, node, executable, &params) != hipSuccess);
    params = good;
    params.dstPtr.ptr = nullptr;
    GIVES(hipErrorInvalidValue, call(graph, node, executable, &params));
    params = good;
    params.srcPtr.ptr = nullptr;
    GIVES(hipErrorInvalidValue, call(graph, node, executable, &params));
    params = good;
    params.extent.width = bytes + 1; // beyond the allocation and the pitch
    REQUIRE(call(graph, node, executable, &params) != hipSuccess);
    params = good;
    params.extent.height = 2; // beyond the allocation
    params.srcPtr.ysize = params.dstPtr.ysize = 2;
    GIVES(hipErrorInvalidValue, call(graph, node, executable, &params));
}

CASE(blocks_refused_when_added)
{
    refuses_blocks([](hipGraph_t graph, hipGraphNode_t, hipGraphExec_t, const hipMemcpy3DParms *params) {
        hipGraphNode_t node;
        return hipGraphAddMemcpyNode(&node, graph, nullptr, 0, params);
    });
}

CASE(blocks_refused_when_set)
{
    refuses_blocks([](hipGraph_t, hipGraphNode_t node, hipGraphExec_t, const hipMemcpy3DParms *params) {
        return hipGraphMemcpyNodeSetParams(node, params);
    });
}

CASE(blocks_refused_when_set_in_executables)
{
    refuses_blocks([](hipGraph_t, hipGraphNode_t node, hipGraphExec_t executable, const hipMemcpy3DParms *params) {
        return hipGraphExecMemcpyNodeSetParams(executable, node, const_cast<hipMemcpy3DParms *>(params));
    });
}

CASE(one_row_needs_no_pitch)
{
    Stream stream;
    std::vector<int> from(N, 3), to(N, 0);
    Graph graph;
    const size_t bytes = N * sizeof(int);
    hipMemcpy3DParms params = line(to.data(), from.data(), bytes, hipMemcpyDefault);
    params.srcPtr = make_hipPitchedPtr(from.data(), 0, bytes, 0);
    params.dstPtr = make_hipPitchedPtr(to.data(), 0, bytes, 0);
    hipGraphNode_t node;
    CHECK(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &params));
    Executable(graph).run(stream);
    REQUIRE(to == from);
}

CASE(places_and_handles_of_blocks)
{
    Numbers a, b;
    Graph graph, other;
    hipMemcpy3DParms params = line(a, b, N * sizeof(int), hipMemcpyDefault);
    hipGraphNode_t node, foreign = copy_node(other, {}, a, b), empty = empty_node(graph);
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode(nullptr, graph, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode(&node, nullptr, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode(&node, graph, nullptr, 1, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNode(&node, graph, &foreign, 1, &params));
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeGetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeGetParams(foreign, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeGetParams(empty, &params));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams(empty, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams(nullptr, foreign, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams(executable, nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams(executable, foreign, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams(executable, empty, &params));
}

CASE(get_params_gives_what_was_set)
{
    Numbers a, b;
    Graph graph;
    const size_t bytes = N * sizeof(int);
    hipMemcpy3DParms params = line(a, b, bytes, hipMemcpyDeviceToDevice), got;
    params.srcPos = make_hipPos(4, 0, 0);
    params.extent.width = 8;
    hipGraphNode_t node;
    CHECK(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &params));
    CHECK(hipGraphMemcpyNodeGetParams(node, &got));
    REQUIRE(got.srcPtr.ptr == b.is && got.dstPtr.ptr == a.is && got.srcPtr.pitch == bytes && got.srcPtr.xsize == bytes);
    REQUIRE(got.srcPos.x == 4 && got.extent.width == 8 && got.extent.height == 1 && got.kind == hipMemcpyDeviceToDevice);
    node = copy_node(graph, {}, b, a, 12, hipMemcpyDeviceToDevice);
    CHECK(hipGraphMemcpyNodeGetParams(node, &got));
    REQUIRE(got.srcPtr.ptr == a.is && got.dstPtr.ptr == b.is && got.extent.width == 12 && got.extent.depth == 1);
    EQUAL(int(hipMemcpyDeviceToDevice), int(got.kind));
}

CASE(set_params_of_blocks)
{
    Stream stream;
    Numbers a(1), b(2), c(3);
    Graph graph;
    const size_t bytes = N * sizeof(int);
    hipMemcpy3DParms params = line(a, b, bytes, hipMemcpyDeviceToDevice);
    hipGraphNode_t node;
    CHECK(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &params));
    Executable executable(graph);
    params = line(c, b, bytes, hipMemcpyDeviceToDevice);
    CHECK(hipGraphExecMemcpyNodeSetParams(executable, node, &params));
    executable.run(stream);
    REQUIRE(a == 1 && c == 2);
    params = line(b, a, bytes, hipMemcpyDeviceToDevice);
    CHECK(hipGraphMemcpyNodeSetParams(node, &params));
    Executable(graph).run(stream);
    REQUIRE(b == 1);
}

// Symbols.

CASE(from_symbols)
{
    Stream stream;
    Numbers numbers(0);
    int host[4] = {};
    Graph graph;
    hipGraphNode_t node;
    CHECK(hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, numbers, HIP_SYMBOL(device_numbers), sizeof host, 0, hipMemcpyDeviceToDevice));
    CHECK(hipGraphAddMemcpyNodeFromSymbol(&node, graph, &node, 1, host, HIP_SYMBOL(constant_numbers), 8, 8, hipMemcpyDeviceToHost));
    Executable(graph).run(stream);
    EQUAL(7, host[0]);
    EQUAL(8, host[1]);
    EQUAL(0, host[2]);
    EQUAL(1, numbers.all()[0]);
    EQUAL(4, numbers.all()[3]);
}

CASE(to_symbols)
{
    Stream stream;
    Numbers numbers(77);
    int host[4] = {10, 20, 30, 40}, got[4] = {};
    Graph graph;
    hipGraphNode_t node;
    CHECK(hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, HIP_SYMBOL(other_numbers), host, sizeof host, 0, hipMemcpyHostToDevice));
    CHECK(hipGraphAddMemcpyNodeToSymbol(&node, graph, &node, 1, HIP_SYMBOL(other_numbers), numbers, 4, 12, hipMemcpyDeviceToDevice));
    Executable(graph).run(stream);
    CHECK(hipMemcpyFromSymbol(got, HIP_SYMBOL(other_numbers), sizeof got));
    REQUIRE(got[0] == 10 && got[2] == 30 && got[3] == 77);
}

CASE(symbols_refused_when_added)
{
    Numbers numbers;
    Graph graph, other;
    hipGraphNode_t node, foreign = empty_node(other);
    const void *symbol = HIP_SYMBOL(device_numbers);
    const auto kind = hipMemcpyDefault;
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeFromSymbol(nullptr, graph, nullptr, 0, numbers, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeFromSymbol(&node, nullptr, nullptr, 0, numbers, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 1, numbers, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeFromSymbol(&node, graph, &foreign, 1, numbers, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, nullptr, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidSymbol, hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, numbers, nullptr, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, numbers, symbol, 0, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, numbers, symbol, 17, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, numbers, symbol, 16, 1, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeToSymbol(nullptr, graph, nullptr, 0, symbol, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeToSymbol(&node, nullptr, nullptr, 0, symbol, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 1, symbol, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeToSymbol(&node, graph, &foreign, 1, symbol, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, symbol, nullptr, 16, 0, kind));
    GIVES(hipErrorInvalidSymbol, hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, nullptr, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, symbol, numbers, 0, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, symbol, numbers, 17, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, symbol, numbers, 16, 1, kind));
}

CASE(set_params_from_symbols)
{
    Stream stream;
    Numbers numbers(0), second(0);
    Graph graph;
    hipGraphNode_t node;
    const void *symbol = HIP_SYMBOL(device_numbers), *constants = HIP_SYMBOL(constant_numbers);
    const auto kind = hipMemcpyDeviceToDevice;
    CHECK(hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, numbers, symbol, 16, 0, kind));
    Executable executable(graph);
    CHECK(hipGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, second, constants, 8, 8, kind));
    executable.run(stream);
    REQUIRE(numbers == 0 && second.all()[0] == 7 && second.all()[2] == 0);
    CHECK(hipGraphMemcpyNodeSetParamsFromSymbol(node, numbers, constants, 16, 0, kind));
    Executable(graph).run(stream);
    EQUAL(5, numbers.all()[0]);

    GIVES(hipErrorInvalidSymbol, hipGraphMemcpyNodeSetParamsFromSymbol(node, numbers, nullptr, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsFromSymbol(nullptr, numbers, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsFromSymbol(node, nullptr, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsFromSymbol(node, numbers, symbol, 0, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsFromSymbol(node, numbers, symbol, 17, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsFromSymbol(node, numbers, symbol, 16, 1, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsFromSymbol(node, const_cast<void *>(constants), symbol, 16, 0, kind));
    GIVES(hipErrorInvalidMemcpyDirection, hipGraphMemcpyNodeSetParamsFromSymbol(node, numbers, symbol, 16, 0, hipMemcpyHostToDevice));
    GIVES(hipErrorInvalidSymbol, hipGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, numbers, nullptr, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsFromSymbol(nullptr, node, numbers, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsFromSymbol(executable, nullptr, numbers, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, nullptr, symbol, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, numbers, symbol, 0, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, numbers, symbol, 16, 0, hipMemcpyDefault));
}

CASE(set_params_to_symbols)
{
    Stream stream;
    Numbers numbers(3), second(4);
    int got[4] = {};
    Graph graph;
    hipGraphNode_t node;
    const void *symbol = HIP_SYMBOL(other_numbers);
    const auto kind = hipMemcpyDeviceToDevice;
    CHECK(hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, symbol, numbers, 16, 0, kind));
    Executable executable(graph);
    CHECK(hipGraphExecMemcpyNodeSetParamsToSymbol(executable, node, symbol, second, 8, 8, kind));
    CHECK(hipMemcpyToSymbol(symbol, got, sizeof got));
    executable.run(stream);
    CHECK(hipMemcpyFromSymbol(got, symbol, sizeof got));
    REQUIRE(got[0] == 0 && got[2] == 4);
    CHECK(hipGraphMemcpyNodeSetParamsToSymbol(node, symbol, numbers, 4, 0, kind));
    Executable(graph).run(stream);
    CHECK(hipMemcpyFromSymbol(got, symbol, sizeof got));
    REQUIRE(got[0] == 3 && got[1] == 0 && got[2] == 4);

    GIVES(hipErrorInvalidSymbol, hipGraphMemcpyNodeSetParamsToSymbol(node, nullptr, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsToSymbol(nullptr, symbol, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsToSymbol(node, symbol, nullptr, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsToSymbol(node, symbol, numbers, 0, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsToSymbol(node, symbol, numbers, 17, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsToSymbol(node, symbol, numbers, 16, 1, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsToSymbol(node, symbol, HIP_SYMBOL(device_numbers), 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParamsToSymbol(node, symbol, numbers, 16, 0, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidSymbol, hipGraphExecMemcpyNodeSetParamsToSymbol(executable, node, nullptr, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsToSymbol(nullptr, node, symbol, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsToSymbol(executable, nullptr, symbol, numbers, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsToSymbol(executable, node, symbol, nullptr, 16, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsToSymbol(executable, node, symbol, numbers, 0, 0, kind));
    GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParamsToSymbol(executable, node, symbol, numbers, 16, 0, hipMemcpyDefault));
}

// The driver's form.

static HIP_MEMCPY3D driver_line(void *to, void *from, size_t bytes)
{
    HIP_MEMCPY3D params = {};
    params.srcMemoryType = params.dstMemoryType = hipMemoryTypeDevice;
    params.srcDevice = from;
    params.dstDevice = to;
    params.srcPitch = params.dstPitch = bytes;
    params.srcHeight = params.dstHeight = 1;
    params.WidthInBytes = bytes;
    params.Height = params.Depth = 1;
    return params;
}

CASE(driver_nodes_copy_to_and_from_arrays)
{
    Stream stream;
    Numbers from(7), to(0);
    hipArray_t array;
    hipChannelFormatDesc desc = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindSigned);
    CHECK(hipMallocArray(&array, &desc, 8, 2, hipArrayDefault));
    Graph graph;
    hipGraphNode_t up, down;
    HIP_MEMCPY3D params = driver_line(nullptr, from, 16);
    params.dstMemoryType = hipMemoryTypeArray;
    params.dstArray = array;
    params.dstXInBytes = 8;
    params.dstY = 1;
    CHECK(hipDrvGraphAddMemcpyNode(&up, graph, nullptr, 0, &params, context()));
    HIP_MEMCPY3D found;
    CHECK(hipDrvGraphMemcpyNodeGetParams(up, &found));
    REQUIRE(found.dstArray == array && found.dstXInBytes == 8 && found.dstY == 1);
    hipMemcpy3DParms block;
    CHECK(hipGraphMemcpyNodeGetParams(up, &block));
    REQUIRE(block.dstArray == array && block.dstPos.x == 2 && block.dstPos.y == 1 && block.srcPtr.ptr == static_cast<void *>(from));
    EQUAL(size_t(4), block.extent.width); // elements
    params = driver_line(to, nullptr, 16);
    params.srcMemoryType = hipMemoryTypeArray;
    params.srcArray = array;
    params.srcXInBytes = 8;
    params.srcY = 1;
    CHECK(hipDrvGraphAddMemcpyNode(&down, graph, &up, 1, &params, context()));
    Executable(graph).run(stream);
    for (int i = 0; i < 8; i++)
        EQUAL(i < 4 ? 7 : 0, to.all()[i]);
    params.srcXInBytes = 20; // beyond the row
    GIVES(hipErrorInvalidValue, hipDrvGraphMemcpyNodeSetParams(down, &params));
    CHECK(hipFreeArray(array));
}

CASE(driver_nodes_copy)
{
    Stream stream;
    Numbers a(1), b(2);
    std::vector<int> host(N, 0);
    Graph graph;
    hipGraphNode_t node, down;
    const size_t bytes = N * sizeof(int);
    HIP_MEMCPY3D params = driver_line(a, b, bytes);
    CHECK(hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &params, context()));
    params = driver_line(nullptr, a, bytes);
    params.dstMemoryType = hipMemoryTypeHost;
    params.dstHost = host.data();
    CHECK(hipDrvGraphAddMemcpyNode(&down, graph, &node, 1, &params, context()));
    Executable(graph).run(stream);
    REQUIRE(a == 2 && host == std::vector<int>(N, 2));
    hipGraphNodeType type;
    CHECK(hipGraphNodeGetType(node, &type));
    EQUAL(int(hipGraphNodeTypeMemcpy), int(type));
}

CASE(driver_nodes_copy_a_part)
{
    Stream stream;
    Numbers a(0), b(2);
    Graph graph;
    hipGraphNode_t node;
    HIP_MEMCPY3D params = driver_line(a, b, 32);
    params.dstXInBytes = 4;
    params.dstY = 1;
    params.dstHeight = 4;
    params.Height = 2;
    params.srcHeight = 2;
    params.WidthInBytes = 8;
    CHECK(hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &params, context()));
    Executable(graph).run(stream);
    auto got = a.all();
    for (int i = 0; i < N; i++)
        EQUAL(i == 9 || i == 10 || i == 17 || i == 18 ? 2 : 0, got[i]);
}

CASE(driver_nodes_parameters)
{
    Stream stream;
    Numbers a(1), b(2), c(3);
    Graph graph;
    hipGraphNode_t node;
    const size_t bytes = N * sizeof(int);
    HIP_MEMCPY3D params = driver_line(a, b, bytes), got = {};
    CHECK(hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &params, context()));
    CHECK(hipDrvGraphMemcpyNodeGetParams(node, &got));
    REQUIRE(got.srcDevice == b.is && got.dstDevice == a.is && got.WidthInBytes == bytes && got.srcMemoryType == hipMemoryTypeDevice);
    Executable executable(graph);
    params = driver_line(c, b, bytes);
    CHECK(hipDrvGraphExecMemcpyNodeSetParams(executable, node, &params, context()));
    executable.run(stream);
    REQUIRE(a == 1 && c == 2);
    params = driver_line(b, a, bytes);
    CHECK(hipDrvGraphMemcpyNodeSetParams(node, &params));
    Executable(graph).run(stream);
    REQUIRE(b == 1);
}

CASE(driver_nodes_refused)
{
    Numbers a, b;
    Graph graph, other;
    const size_t bytes = N * sizeof(int);
    HIP_MEMCPY3D good = driver_line(a, b, bytes), params = {};
    hipGraphNode_t node, foreign = empty_node(other);
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemcpyNode(nullptr, graph, nullptr, 0, &good, context()));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemcpyNode(&node, nullptr, nullptr, 0, &good, context()));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 1, &good, context()));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemcpyNode(&node, graph, &foreign, 1, &good, context()));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, nullptr, context()));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &good, nullptr));
    params = driver_line(nullptr, b, bytes);
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &params, context()));
    params = driver_line(a, nullptr, bytes);
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &params, context()));
    CHECK(hipDrvGraphAddMemcpyNode(&node, graph, nullptr, 0, &good, context()));
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipDrvGraphMemcpyNodeGetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipDrvGraphMemcpyNodeGetParams(node, nullptr));
    GIVES(hipErrorInvalidValue, hipDrvGraphMemcpyNodeSetParams(nullptr, &good));
    GIVES(hipErrorInvalidValue, hipDrvGraphMemcpyNodeSetParams(node, nullptr));
    GIVES(hipErrorInvalidValue, hipDrvGraphExecMemcpyNodeSetParams(nullptr, node, &good, context()));
    GIVES(hipErrorInvalidValue, hipDrvGraphExecMemcpyNodeSetParams(executable, nullptr, &good, context()));
    GIVES(hipErrorInvalidValue, hipDrvGraphExecMemcpyNodeSetParams(executable, node, nullptr, context()));
    params = {};
    GIVES(hipErrorInvalidValue, hipDrvGraphExecMemcpyNodeSetParams(executable, node, &params, context()));
}
