// Nodes of batches of memory operations, and of external semaphores.
#include "graphs.h"

static hipCtx_t context()
{
    hipCtx_t context = nullptr;
    CHECK(hipCtxGetCurrent(&context));
    return context;
}

static hipStreamBatchMemOpParams write(void *place, uint32_t value)
{
    hipStreamBatchMemOpParams params = {};
    params.operation = hipStreamMemOpWriteValue32;
    params.writeValue.operation = hipStreamMemOpWriteValue32;
    params.writeValue.address = place;
    params.writeValue.value = value;
    return params;
}

static hipStreamBatchMemOpParams wait(void *place, uint32_t value, unsigned flags)
{
    hipStreamBatchMemOpParams params = {};
    params.operation = hipStreamMemOpWaitValue32;
    params.waitValue.operation = hipStreamMemOpWaitValue32;
    params.waitValue.address = place;
    params.waitValue.value = value;
    params.waitValue.flags = flags;
    return params;
}

static hipBatchMemOpNodeParams batch(std::vector<hipStreamBatchMemOpParams> &operations)
{
    return {context(), unsigned(operations.size()), operations.data(), 0};
}

CASE(writes_and_waits_are_carried_out)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph;
    std::vector<hipStreamBatchMemOpParams> operations = {write(numbers, 5), wait(numbers, 5, hipStreamWaitValueEq), write(numbers + 1, 6)};
    auto params = batch(operations);
    hipGraphNode_t node;
    CHECK(hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
    hipGraphNodeType type;
    CHECK(hipGraphNodeGetType(node, &type));
    EQUAL(int(hipGraphNodeTypeBatchMemOp), int(type));
    Executable(graph).run(stream);
    EQUAL(5, numbers.all()[0]);
    EQUAL(6, numbers.all()[1]);
}

CASE(a_wait_lasts_until_the_value_is_there)
{
    Stream stream;
    Graph graph;
    uint32_t *place;
    CHECK(hipHostMalloc(reinterpret_cast<void **>(&place), 4, 0));
    *place = 0;
    std::atomic<int> calls{0};
    std::vector<hipStreamBatchMemOpParams> operations = {wait(place, 7, hipStreamWaitValueGte)};
    auto params = batch(operations);
    hipGraphNode_t node;
    CHECK(hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
    host_node(graph, {node}, calls);
    Executable executable(graph);
    CHECK(hipGraphLaunch(executable, stream));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    int early = calls;
    __atomic_store_n(place, 8, __ATOMIC_SEQ_CST);
    CHECK(hipStreamSynchronize(stream));
    EQUAL(0, early);
    EQUAL(1, calls.load());
    CHECK(hipHostFree(place));
}

CASE(parameters_of_batches)
{
    Stream stream;
    Numbers numbers(0);
    Graph graph;
    std::vector<hipStreamBatchMemOpParams> operations = {write(numbers, 5)}, others = {write(numbers + 1, 6), write(numbers + 2, 7)};
    auto params = batch(operations), got = params, changed = batch(others);
    hipGraphNode_t node;
    CHECK(hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
    got = {};
    CHECK(hipGraphBatchMemOpNodeGetParams(node, &got));
    REQUIRE(got.count == 1 && got.flags == 0 && got.ctx == params.ctx && got.paramArray[0].writeValue.value == 5);
    Executable executable(graph);
    CHECK(hipGraphExecBatchMemOpNodeSetParams(executable, node, &changed));
    executable.run(stream);
    REQUIRE(numbers.all()[0] == 0 && numbers.all()[1] == 6 && numbers.all()[2] == 7);
    CHECK(hipGraphBatchMemOpNodeSetParams(node, &changed));
    CHECK(hipGraphBatchMemOpNodeGetParams(node, &got));
    REQUIRE(got.count == 2 && got.paramArray[1].writeValue.value == 7);
}

CASE(batch_arguments)
{
    Numbers numbers(0);
    Graph graph, foreign_graph;
    std::vector<hipStreamBatchMemOpParams> operations = {write(numbers, 5)};
    auto good = batch(operations), params = good;
    hipGraphNode_t node, made, foreign = empty_node(foreign_graph);
    GIVES(hipErrorInvalidValue, hipGraphAddBatchMemOpNode(nullptr, graph, nullptr, 0, &good));
    GIVES(hipErrorInvalidValue, hipGraphAddBatchMemOpNode(&node, nullptr, nullptr, 0, &good));
    GIVES(hipErrorInvalidValue, hipGraphAddBatchMemOpNode(&node, graph, nullptr, 1, &good));
    GIVES(hipErrorInvalidValue, hipGraphAddBatchMemOpNode(&node, graph, &foreign, 1, &good));
    GIVES(hipErrorInvalidValue, hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, nullptr));
    CHECK(hipGraphAddBatchMemOpNode(&made, graph, nullptr, 0, &good));
    Executable executable(graph);
    auto bad = [&](hipBatchMemOpNodeParams params) {
        GIVES(hipErrorInvalidValue, hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
        GIVES(hipErrorInvalidValue, hipGraphBatchMemOpNodeSetParams(made, &params));
        GIVES(hipErrorInvalidValue, hipGraphExecBatchMemOpNodeSetParams(executable, made, &params));
    };
    params.count = 0;
    bad(params);
    params.count = 257;
    bad(params);
    params = good;
    params.paramArray = nullptr;
    bad(params);
    params = good;
    params.flags = 1;
    bad(params);
    params = good;
    params.ctx = nullptr;
    bad(params);
    GIVES(hipErrorInvalidValue, hipGraphBatchMemOpNodeGetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphBatchMemOpNodeGetParams(made, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphBatchMemOpNodeSetParams(nullptr, &good));
    GIVES(hipErrorInvalidValue, hipGraphBatchMemOpNodeSetParams(made, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecBatchMemOpNodeSetParams(nullptr, made, &good));
    GIVES(hipErrorInvalidValue, hipGraphExecBatchMemOpNodeSetParams(executable, nullptr, &good));
    GIVES(hipErrorInvalidValue, hipGraphExecBatchMemOpNodeSetParams(executable, made, nullptr));
}

// There is no external semaphore on this platform; nodes can be made and asked, and a launch refuses the null in them.

CASE(semaphore_nodes)
{
    Stream stream;
    Graph graph;
    hipExternalSemaphore_t none[1] = {nullptr};
    hipExternalSemaphoreSignalParams signal_one = {};
    hipExternalSemaphoreWaitParams wait_one = {};
    hipExternalSemaphoreSignalNodeParams signal = {}, signal_got;
    hipExternalSemaphoreWaitNodeParams wait = {}, wait_got;
    signal.extSemArray = wait.extSemArray = none;
    signal.numExtSems = wait.numExtSems = 1;
    signal.paramsArray = &signal_one;
    wait.paramsArray = &wait_one;
    hipGraphNode_t signals, waits;
    hipGraphNodeType type;
    CHECK(hipGraphAddExternalSemaphoresSignalNode(&signals, graph, nullptr, 0, &signal));
    CHECK(hipGraphAddExternalSemaphoresWaitNode(&waits, graph, &signals, 1, &wait));
    CHECK(hipGraphNodeGetType(signals, &type));
    EQUAL(int(hipGraphNodeTypeExtSemaphoreSignal), int(type));
    CHECK(hipGraphNodeGetType(waits, &type));
    EQUAL(int(hipGraphNodeTypeExtSemaphoreWait), int(type));
    CHECK(hipGraphExternalSemaphoresSignalNodeGetParams(signals, &signal_got));
    EQUAL(1u, signal_got.numExtSems);
    CHECK(hipGraphExternalSemaphoresWaitNodeGetParams(waits, &wait_got));
    EQUAL(1u, wait_got.numExtSems);
    CHECK(hipGraphExternalSemaphoresSignalNodeSetParams(signals, &signal));
    CHECK(hipGraphExternalSemaphoresWaitNodeSetParams(waits, &wait));
    Executable executable(graph);
    CHECK(hipGraphExecExternalSemaphoresSignalNodeSetParams(executable, signals, &signal));
    CHECK(hipGraphExecExternalSemaphoresWaitNodeSetParams(executable, waits, &wait));
    GIVES(hipErrorInvalidValue, hipGraphLaunch(executable, stream));
}

CASE(semaphore_arguments)
{
    Graph graph, foreign_graph;
    hipExternalSemaphoreSignalNodeParams signal = {};
    hipExternalSemaphoreWaitNodeParams wait = {};
    hipGraphNode_t node, signals, waits, foreign = empty_node(foreign_graph);
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresSignalNode(nullptr, graph, nullptr, 0, &signal));
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresSignalNode(&node, nullptr, nullptr, 0, &signal));
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresSignalNode(&node, graph, nullptr, 1, &signal));
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresSignalNode(&node, graph, &foreign, 1, &signal));
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresSignalNode(&node, graph, nullptr, 0, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresWaitNode(nullptr, graph, nullptr, 0, &wait));
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresWaitNode(&node, nullptr, nullptr, 0, &wait));
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresWaitNode(&node, graph, nullptr, 1, &wait));
    GIVES(hipErrorInvalidValue, hipGraphAddExternalSemaphoresWaitNode(&node, graph, nullptr, 0, nullptr));
    CHECK(hipGraphAddExternalSemaphoresSignalNode(&signals, graph, nullptr, 0, &signal));
    CHECK(hipGraphAddExternalSemaphoresWaitNode(&waits, graph, nullptr, 0, &wait));
    Executable executable(graph);
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresSignalNodeGetParams(nullptr, &signal));
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresSignalNodeGetParams(signals, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresSignalNodeGetParams(waits, &signal));
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresWaitNodeGetParams(nullptr, &wait));
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresWaitNodeGetParams(waits, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresSignalNodeSetParams(nullptr, &signal));
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresSignalNodeSetParams(signals, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresWaitNodeSetParams(nullptr, &wait));
    GIVES(hipErrorInvalidValue, hipGraphExternalSemaphoresWaitNodeSetParams(waits, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecExternalSemaphoresSignalNodeSetParams(nullptr, signals, &signal));
    GIVES(hipErrorInvalidValue, hipGraphExecExternalSemaphoresSignalNodeSetParams(executable, waits, &signal));
    GIVES(hipErrorInvalidValue, hipGraphExecExternalSemaphoresSignalNodeSetParams(executable, signals, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphExecExternalSemaphoresWaitNodeSetParams(nullptr, waits, &wait));
    GIVES(hipErrorInvalidValue, hipGraphExecExternalSemaphoresWaitNodeSetParams(executable, signals, &wait));
    GIVES(hipErrorInvalidValue, hipGraphExecExternalSemaphoresWaitNodeSetParams(executable, waits, nullptr));
}
