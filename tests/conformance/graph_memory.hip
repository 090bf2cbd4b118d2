// Nodes that allocate and free; how much memory graphs have; executables that free by themselves.
#include "graphs.h"

constexpr size_t BYTES = 1 << 20;

static hipMemAllocNodeParams allocation(size_t bytes = BYTES)
{
    hipMemAllocNodeParams params = {};
    params.bytesize = bytes;
    params.poolProps.allocType = hipMemAllocationTypePinned;
    params.poolProps.location = {hipMemLocationTypeDevice, 0};
    return params;
}

static hipGraphNode_t allocate(hipGraph_t graph, int **memory, size_t bytes = BYTES)
{
    auto params = allocation(bytes);
    hipGraphNode_t node;
    CHECK(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    *memory = static_cast<int *>(params.dptr);
    REQUIRE(*memory != nullptr);
    return node;
}

static hipGraphNode_t release(hipGraph_t graph, hipGraphNode_t before, int *memory)
{
    hipGraphNode_t node;
    CHECK(hipGraphAddMemFreeNode(&node, graph, before ? &before : nullptr, before != nullptr, memory));
    return node;
}

static uint64_t amount(hipGraphMemAttributeType attribute)
{
    uint64_t bytes = ~uint64_t(0);
    CHECK(hipDeviceGetGraphMemAttribute(0, attribute, &bytes));
    return bytes;
}

static void forget_highest()
{
    uint64_t none = 0;
    CHECK(hipDeviceGraphMemTrim(0));
    CHECK(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &none));
    CHECK(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrReservedMemHigh, &none));
}

CASE(memory_between_its_nodes)
{
    Stream stream;
    Graph graph;
    int *memory;
    std::vector<int> host(N);
    auto node = allocate(graph, &memory);
    auto fill = fill_node(graph, {node}, memory, 4);
    auto kernel = launch_node(graph, {fill}, add, memory, 3);
    auto down = copy_node(graph, {kernel}, host.data(), memory);
    release(graph, down, memory);
    Executable executable(graph);
    for (int i = 0; i < 3; i++) { // the address stays valid over launches
        host.assign(N, 0);
        executable.run(stream);
        REQUIRE(host == std::vector<int>(N, 7));
    }
}

CASE(addresses_are_different)
{
    Graph graph, other;
    int *a, *b, *c;
    allocate(graph, &a);
    allocate(graph, &b);
    allocate(other, &c);
    REQUIRE(a != b && a != c && b != c);
}

CASE(memory_outlives_the_launch)
{
    Stream stream;
    int *memory;
    std::vector<int> host(N);
    hipGraph_t graph;
    CHECK(hipGraphCreate(&graph, 0));
    auto node = allocate(graph, &memory);
    fill_node(graph, {node}, memory, 4);
    {
        Executable executable(graph);
        CHECK(hipGraphDestroy(graph));
        executable.run(stream);
        add<<<1, N, 0, stream>>>(memory, 1);
        CHECK(hipMemcpyAsync(host.data(), memory, N * sizeof(int), hipMemcpyDeviceToHost, stream));
        CHECK(hipStreamSynchronize(stream));
        REQUIRE(host == std::vector<int>(N, 5));
    }
    CHECK(hipFree(memory)); // after the executable is gone
}

CASE(freed_by_free_async)
{
    Stream stream;
    Graph graph;
    int *memory;
    allocate(graph, &memory);
    Executable executable(graph);
    for (int i = 0; i < 2; i++) {
        CHECK(hipGraphLaunch(executable, stream));
        CHECK(hipFreeAsync(memory, stream));
    }
    CHECK(hipStreamSynchronize(stream));
}

CASE(freed_by_another_graph)
{
    Stream stream;
    Graph first, second;
    int *memory;
    allocate(first, &memory);
    release(second, nullptr, memory);
    Executable makes(first), frees(second);
    for (int i = 0; i < 2; i++) {
        CHECK(hipGraphLaunch(makes, stream));
        CHECK(hipGraphLaunch(frees, stream));
    }
    CHECK(hipStreamSynchronize(stream));
}

CASE(no_relaunch_before_memory_is_free)
{
    Stream stream;
    Graph graph;
    int *memory;
    allocate(graph, &memory);
    Executable executable(graph);
    executable.run(stream);
    GIVES(hipErrorInvalidValue, hipGraphLaunch(executable, stream));
    CHECK(hipFree(memory));
    executable.run(stream);
    CHECK(hipFree(memory));
}

CASE(auto_free_on_launch)
{
    Stream stream;
    Graph graph;
    int *memory;
    auto node = allocate(graph, &memory);
    fill_node(graph, {node}, memory, 4);
    Executable executable(graph, hipGraphInstantiateFlagAutoFreeOnLaunch);
    for (int i = 0; i < 3; i++)
        executable.run(stream);
    std::vector<int> host(N);
    CHECK(hipMemcpy(host.data(), memory, N * sizeof(int), hipMemcpyDeviceToHost));
    REQUIRE(host == std::vector<int>(N, 4));
    CHECK(hipFree(memory));
}

CASE(what_was_freed_cannot_be_freed_again)
{
    Stream stream;
    Graph graph;
    int *memory;
    auto node = allocate(graph, &memory);
    release(graph, node, memory);
    Executable executable(graph);
    executable.run(stream);
    GIVES(hipErrorInvalidValue, hipFree(memory));
}

CASE(amounts_of_memory)
{
    Stream stream;
    forget_highest();
    uint64_t before = amount(hipGraphMemAttrUsedMemCurrent);
    Graph graph;
    int *memory;
    auto node = allocate(graph, &memory);
    EQUAL(before, amount(hipGraphMemAttrUsedMemCurrent)); // nothing before the launch
    Executable executable(graph);
    executable.run(stream);
    EQUAL(before + BYTES, amount(hipGraphMemAttrUsedMemCurrent));
    REQUIRE(amount(hipGraphMemAttrReservedMemCurrent) >= before + BYTES);
    EQUAL(before + BYTES, amount(hipGraphMemAttrUsedMemHigh));
    CHECK(hipFree(memory));
    CHECK(hipDeviceGraphMemTrim(0));
    EQUAL(before, amount(hipGraphMemAttrUsedMemCurrent));
    EQUAL(before, amount(hipGraphMemAttrReservedMemCurrent));
    REQUIRE(amount(hipGraphMemAttrReservedMemHigh) >= before + BYTES);
    forget_highest();
    EQUAL(before, amount(hipGraphMemAttrUsedMemHigh));
    EQUAL(before, amount(hipGraphMemAttrReservedMemHigh));
}

CASE(amounts_of_two_graphs)
{
    Stream stream;
    forget_highest();
    uint64_t before = amount(hipGraphMemAttrUsedMemCurrent);
    Graph first, second;
    int *a, *b;
    allocate(first, &a);
    allocate(second, &b);
    Executable one(first), two(second);
    one.run(stream);
    two.run(stream);
    EQUAL(before + 2 * BYTES, amount(hipGraphMemAttrUsedMemCurrent));
    CHECK(hipFree(a));
    CHECK(hipFree(b));
    EQUAL(before, amount(hipGraphMemAttrUsedMemCurrent));
    EQUAL(before + 2 * BYTES, amount(hipGraphMemAttrUsedMemHigh));
}

CASE(attribute_arguments)
{
    uint64_t value = 0;
    auto high = hipGraphMemAttrUsedMemHigh;
    GIVES(hipErrorInvalidDevice, hipDeviceGetGraphMemAttribute(-1, high, &value));
    GIVES(hipErrorInvalidDevice, hipDeviceGetGraphMemAttribute(1 << 20, high, &value));
    GIVES(hipErrorInvalidValue, hipDeviceGetGraphMemAttribute(0, high, nullptr));
    GIVES(hipErrorInvalidValue, hipDeviceGetGraphMemAttribute(0, hipGraphMemAttributeType(7), &value));
    GIVES(hipErrorInvalidDevice, hipDeviceSetGraphMemAttribute(-1, high, &value));
    GIVES(hipErrorInvalidDevice, hipDeviceSetGraphMemAttribute(1 << 20, high, &value));
    GIVES(hipErrorInvalidValue, hipDeviceSetGraphMemAttribute(0, high, nullptr));
    GIVES(hipErrorInvalidValue, hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &value));
    GIVES(hipErrorInvalidValue, hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrReservedMemCurrent, &value));
    GIVES(hipErrorInvalidValue, hipDeviceSetGraphMemAttribute(0, hipGraphMemAttributeType(7), &value));
    value = 1;
    GIVES(hipErrorInvalidValue, hipDeviceSetGraphMemAttribute(0, high, &value)); // only back to what is now
    GIVES(hipErrorInvalidDevice, hipDeviceGraphMemTrim(-1));
    GIVES(hipErrorInvalidDevice, hipDeviceGraphMemTrim(1 << 20));
    CHECK(hipDeviceGraphMemTrim(0));
}

CASE(allocation_arguments)
{
    Graph graph, foreign_graph;
    auto good = allocation(), params = good;
    hipGraphNode_t node, foreign = empty_node(foreign_graph);
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(nullptr, graph, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, nullptr, nullptr, 0, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 1, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, &foreign, 1, &params));
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, nullptr));
    params = allocation(0);
    params.dptr = &params;
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    REQUIRE(params.dptr == nullptr);
    params = good;
    params.poolProps.allocType = hipMemAllocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    params = good;
    params.poolProps.location.type = hipMemLocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    params = good;
    params.poolProps.location.id = -1;
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    params.poolProps.location.id = 1 << 20;
    GIVES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    EQUAL(0u, graph.size());
}

CASE(free_arguments)
{
    Graph graph, foreign_graph;
    Numbers numbers;
    int *memory, host;
    hipGraphNode_t node, foreign = empty_node(foreign_graph), made = allocate(graph, &memory);
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(nullptr, graph, &made, 1, memory));
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&node, nullptr, &made, 1, memory));
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&node, graph, nullptr, 1, memory));
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&node, graph, &made, 0, memory));
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&node, graph, &foreign, 1, memory));
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&node, graph, &made, 1, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&node, graph, &made, 1, &host));
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&node, graph, &made, 1, numbers));
    release(graph, made, memory);
    GIVES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&node, graph, &made, 1, memory)); // twice
}

CASE(driver_free_nodes)
{
    Stream stream;
    Graph graph;
    int *memory, host;
    hipGraphNode_t node, made = allocate(graph, &memory);
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemFreeNode(nullptr, graph, &made, 1, memory));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemFreeNode(&node, nullptr, &made, 1, memory));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemFreeNode(&node, graph, nullptr, 1, memory));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemFreeNode(&node, graph, &made, 0, memory));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemFreeNode(&node, graph, &made, 1, nullptr));
    GIVES(hipErrorInvalidValue, hipDrvGraphAddMemFreeNode(&node, graph, &made, 1, &host));
    CHECK(hipDrvGraphAddMemFreeNode(&node, graph, &made, 1, memory));
    Executable executable(graph);
    executable.run(stream);
    executable.run(stream);
}

CASE(parameters_of_memory_nodes)
{
    Graph graph;
    int *memory;
    auto made = allocate(graph, &memory), freed = release(graph, made, memory), empty = empty_node(graph);
    hipMemAllocNodeParams params = {};
    void *address = nullptr;
    CHECK(hipGraphMemAllocNodeGetParams(made, &params));
    REQUIRE(params.dptr == memory && params.bytesize == BYTES && params.poolProps.allocType == hipMemAllocationTypePinned);
    CHECK(hipGraphMemFreeNodeGetParams(freed, &address));
    REQUIRE(address == memory);
    GIVES(hipErrorInvalidValue, hipGraphMemAllocNodeGetParams(nullptr, &params));
    GIVES(hipErrorInvalidValue, hipGraphMemAllocNodeGetParams(made, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphMemAllocNodeGetParams(empty, &params));
    GIVES(hipErrorInvalidValue, hipGraphMemFreeNodeGetParams(nullptr, &address));
    GIVES(hipErrorInvalidValue, hipGraphMemFreeNodeGetParams(freed, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphMemFreeNodeGetParams(empty, &address));
}

CASE(what_such_graphs_do_not_allow)
{
    Graph graph, frees;
    int *memory;
    auto made = allocate(graph, &memory);
    auto freed = release(frees, nullptr, memory);
    hipGraph_t clone;
    hipGraphExec_t second;
    GIVES(hipErrorNotSupported, hipGraphClone(&clone, graph));
    GIVES(hipErrorNotSupported, hipGraphClone(&clone, frees));
    GIVES(hipErrorNotSupported, hipGraphDestroyNode(made));
    GIVES(hipErrorNotSupported, hipGraphDestroyNode(freed));
    Executable executable(graph), other(frees);
    GIVES(hipErrorNotSupported, hipGraphInstantiate(&second, graph, nullptr, nullptr, 0));
    GIVES(hipErrorNotSupported, hipGraphInstantiateWithFlags(&second, frees, 0));
}

CASE(captured_allocations)
{
    Stream stream;
    int *memory = nullptr;
    std::vector<int> host(N);
    hipGraph_t made;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipMallocAsync(reinterpret_cast<void **>(&memory), BYTES, stream));
    REQUIRE(memory != nullptr);
    CHECK(hipMemsetAsync(memory, 0, N * sizeof(int), stream));
    add<<<1, N, 0, stream>>>(memory, 5);
    CHECK(hipMemcpyAsync(host.data(), memory, N * sizeof(int), hipMemcpyDeviceToHost, stream));
    CHECK(hipFreeAsync(memory, stream));
    CHECK(hipStreamEndCapture(stream, &made));
    Graph graph(made);
    hipGraphNode_t nodes[5];
    size_t count = 5;
    CHECK(hipGraphGetNodes(graph, nodes, &count));
    EQUAL(5u, count);
    hipGraphNodeType type;
    CHECK(hipGraphNodeGetType(nodes[0], &type));
    EQUAL(int(hipGraphNodeTypeMemAlloc), int(type));
    CHECK(hipGraphNodeGetType(nodes[4], &type));
    EQUAL(int(hipGraphNodeTypeMemFree), int(type));
    hipMemAllocNodeParams params;
    CHECK(hipGraphMemAllocNodeGetParams(nodes[0], &params));
    REQUIRE(params.dptr == memory && params.bytesize == BYTES);
    Executable executable(graph);
    for (int i = 0; i < 2; i++) {
        host.assign(N, 0);
        executable.run(stream);
        REQUIRE(host == std::vector<int>(N, 5));
    }
}

CASE(allocations_from_a_pool_are_captured)
{
    Stream stream;
    int *memory = nullptr;
    hipMemPool_t pool;
    hipGraph_t made;
    CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipMallocFromPoolAsync(reinterpret_cast<void **>(&memory), BYTES, pool, stream));
    CHECK(hipMemsetAsync(memory, 1, BYTES, stream));
    CHECK(hipStreamEndCapture(stream, &made));
    Graph graph(made);
    EQUAL(2u, graph.size());
    Executable(graph).run(stream);
    unsigned char last = 0;
    CHECK(hipMemcpy(&last, reinterpret_cast<char *>(memory) + BYTES - 1, 1, hipMemcpyDeviceToHost));
    EQUAL(1, last);
    CHECK(hipFree(memory));
}
