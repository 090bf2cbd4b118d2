// Memset nodes: elements, rows, what is refused, changes in graphs and executables.
#include "graphs.h"

template <typename Element> static void fills(size_t width, size_t height)
{
    Stream stream;
    Graph graph;
    void *memory;
    size_t pitch;
    CHECK(hipMallocPitch(&memory, &pitch, width * sizeof(Element), height));
    CHECK(hipMemset(memory, 0, pitch * height));
    hipMemsetParams params = fill_params(memory, 42, sizeof(Element), width, height, pitch);
    hipGraphNode_t node;
    CHECK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
    Executable(graph).run(stream);
    std::vector<Element> host(width * height);
    CHECK(hipMemcpy2D(host.data(), width * sizeof(Element), memory, pitch, width * sizeof(Element), height, hipMemcpyDeviceToHost));
    REQUIRE(host == std::vector<Element>(width * height, 42));
    CHECK(hipFree(memory));
}

CASE(bytes) { fills<uint8_t>(100, 1); }
CASE(halves) { fills<uint16_t>(33, 1); }
CASE(words) { fills<uint32_t>(5000, 1); }
CASE(rows_of_bytes) { fills<uint8_t>(65, 7); }
CASE(rows_of_words) { fills<uint32_t>(65, 300); }

static void refuses(hipError_t (*call)(hipGraph_t, hipGraphNode_t, hipGraphExec_t, const hipMemsetParams *))
{
    Numbers numbers;
    Graph graph;
    hipMemsetParams good = fill_params(numbers, 1);
    hipGraphNode_t node;
    CHECK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &good));
    Executable executable(graph);
    auto bad = [&](hipMemsetParams params) { GIVES(hipErrorInvalidValue, call(graph, node, executable, &params)); };
    CHECK(call(graph, node, executable, &good));
    GIVES(hipErrorInvalidValue, call(graph, node, executable, nullptr));
    bad(fill_params(nullptr, 1));
    bad(fill_params(numbers, 1, 0));
    bad(fill_params(numbers, 1, 3));
    bad(fill_params(numbers, 1, 8));
    bad(fill_params(numbers, 1, 4, 0));
    bad(fill_params(numbers, 1, 4, N + 1));
    bad(fill_params(numbers, 1, 4, N, 0));
    bad(fill_params(numbers, 1, 4, 2, 2, 4));                          // a pitch below the width
    bad(fill_params(numbers, 1, 4, 2, 2, N * sizeof(int)));            // the second row is behind the end
    std::vector<int> host(N);
    bad(fill_params(host.data(), 1));
}

CASE(add_refuses)
{
    refuses([](hipGraph_t graph, hipGraphNode_t, hipGraphExec_t, const hipMemsetParams *params) {
        hipGraphNode_t node;
        return hipGraphAddMemsetNode(&node, graph, nullptr, 0, params);
    });
}

CASE(set_refuses)
{
    refuses([](hipGraph_t, hipGraphNode_t node, hipGraphExec_t, const hipMemsetParams *params) {
        return hipGraphMemsetNodeSetParams(node, params);
    });
}

CASE(exec_set_refuses)
{
    refuses([](hipGraph_t, hipGraphNode_t node, hipGraphExec_t executable, const hipMemsetParams *params) {
        return hipGraphExecMemsetNodeSetParams(executable, node, params);
    });
}

CASE(driver_add_refuses)
{
    refuses([](hipGraph_t graph, hipGraphNode_t, hipGraphExec_t, const hipMemsetParams *params) {
        hipGraphNode_t node;
        hipCtx_t context;
        (void)hipCtxGetCurrent(&context);
        return hipDrvGraphAddMemsetNode(&node, graph, nullptr, 0, params, context);
    });
}

CASE(driver_exec_set_refuses)
{
    refuses([](hipGraph_t, hipGraphNode_t node, hipGraphExec_t executable, const hipMemsetParams *params) {
        hipCtx_t context;
        (void)hipCtxGetCurrent(&context);
        return hipDrvGraphExecMemsetNodeSetParams(executable, node, params, context);
    });
}

CASE(other_arguments)
{
    Numbers numbers;
    Graph graph, other;
    hipGraphNode_t node, foreign = empty_node(other), empty = empty_node(graph);
    hipMemsetParams params = fill_params(numbers, 1), got;
    hipCtx_t context;
    CHECK(hipCtxGetCurrent(&context));
    GIVES(hipErrorInvalidValue, hipGraphAddMemsetNode(nullptr, graph, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemsetNode(&node, nullptr, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemsetNode(&node, graph, nullptr, 1, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemsetNode(&node, graph, &foreign, 1, &params));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemsetNode(nullptr, graph, nullptr, 0, &params, context));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemsetNode(&node, nullptr, nullptr, 0, &params, context));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemsetNode(&node, graph, nullptr, 1, &params, context));
    node = fill_node(graph, {}, numbers, 1);
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipGraphMemsetNodeSetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphMemsetNodeSetParams(empty, &params));
    GIVES(hipErrorInvalidValue, hipGraphMemsetNodeGetParams(nullptr, &got));
    GIVES(hipErrorInvalidValue, hipGraphMemsetNodeGetParams(node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphMemsetNodeGetParams(empty, &got));
    GIVES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(nullptr, node, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(executable, nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(executable, empty, &params));
    GIVES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(executable, fill_node(graph, {}, numbers, 1), &params)); // later
    GIVES(hipErrorInvalidValue, hipDrvGraphExecMemsetNodeSetParams(nullptr, node, &params, context));
    GIVES(hipErrorInvalidValue, hipDrvGraphExecMemsetNodeSetParams(executable, nullptr, &params, context));
}

CASE(get_params_gives_what_was_set)
{
    Numbers numbers;
    Graph graph;
    hipMemsetParams params = fill_params(numbers, 0x1234, 2, 5, 3, 20), got = {};
    hipGraphNode_t node;
    CHECK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
    CHECK(hipGraphMemsetNodeGetParams(node, &got));
    REQUIRE(got.dst == params.dst && got.elementSize == 2 && got.height == 3 && got.pitch == 20 && got.value == 0x1234 && got.width == 5);
    params = fill_params(numbers, 9, 1, 7);
    CHECK(hipGraphMemsetNodeSetParams(node, &params));
    CHECK(hipGraphMemsetNodeGetParams(node, &got));
    REQUIRE(got.elementSize == 1 && got.height == 1 && got.value == 9 && got.width == 7);
}

CASE(set_params_and_executables)
{
    Stream stream;
    Numbers numbers(0), others(0);
    Graph graph;
    hipGraphNode_t node = fill_node(graph, {}, numbers, 1);
    Executable executable(graph);
    hipMemsetParams params = fill_params(others, 5);
    CHECK(hipGraphExecMemsetNodeSetParams(executable, node, &params));
    executable.run(stream);
    REQUIRE(numbers == 0 && others == 5);
    params = fill_params(numbers, 6);
    hipCtx_t context;
    CHECK(hipCtxGetCurrent(&context));
    CHECK(hipDrvGraphExecMemsetNodeSetParams(executable, node, &params, context));
    executable.run(stream);
    REQUIRE(numbers == 6 && others == 5);
    params = fill_params(others, 7);
    CHECK(hipGraphMemsetNodeSetParams(node, &params));
    Executable(graph).run(stream);
    REQUIRE(numbers == 6 && others == 7);
}

CASE(rows_of_executables_keep_their_shape)
{
    Numbers numbers;
    Graph graph;
    hipMemsetParams params = fill_params(numbers, 1, 4, 4, 4, 32);
    hipGraphNode_t node;
    CHECK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
    Executable executable(graph);
    params.value = 2;
    CHECK(hipGraphExecMemsetNodeSetParams(executable, node, &params));
    params.width = 3;
    GIVES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(executable, node, &params));
    params.width = 4;
    params.height = 3;
    GIVES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(executable, node, &params));
}

CASE(driver_node_is_carried_out)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph;
    hipGraphNode_t node;
    hipCtx_t context;
    CHECK(hipCtxGetCurrent(&context));
    hipMemsetParams params = fill_params(numbers, 77);
    CHECK(hipDrvGraphAddMemsetNode(&node, graph, nullptr, 0, &params, context));
    Executable(graph).run(stream);
    REQUIRE(numbers == 77);
}
