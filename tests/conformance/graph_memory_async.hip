// Memory of graphs that is freed while streams are held: whoever frees it, or destroys its graph, waits for nobody.
#include "resources.h"

constexpr size_t BYTES = 1 << 20;

// A graph that allocates memory and fills it with fours; `frees`: and frees it.
struct Allocating {
    hipGraph_t graph = nullptr;
    hipGraphExec_t executable = nullptr;
    void *memory;
    explicit Allocating(bool frees = false)
    {
        hipMemAllocNodeParams params = {};
        params.bytesize = BYTES;
        params.poolProps.allocType = hipMemAllocationTypePinned;
        params.poolProps.location = {hipMemLocationTypeDevice, 0};
        hipGraphNode_t node, fill, end;
        CHECK(hipGraphCreate(&graph, 0));
        CHECK(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
        memory = params.dptr;
        hipMemsetParams four = {memory, 1, 1, 0, 4, BYTES}; // dst, elementSize, height, pitch, value, width
        CHECK(hipGraphAddMemsetNode(&fill, graph, &node, 1, &four));
        if (frees)
            CHECK(hipGraphAddMemFreeNode(&end, graph, &fill, 1, memory));
        CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    }
    ~Allocating()
    {
        (void)hipGraphExecDestroy(executable);
        (void)hipGraphDestroy(graph);
    }
    Allocating(const Allocating &) = delete;
};

static size_t left()
{
    size_t free_bytes, all;
    CHECK(hipMemGetInfo(&free_bytes, &all));
    return free_bytes;
}

CASE(of_a_graph_that_is_gone_freed_on_a_stream)
{
    Stream held, stream;
    Gate gate, own;
    size_t before = left();
    void *memory;
    {
        Allocating graph;
        memory = graph.memory;
        CHECK(hipGraphLaunch(graph.executable, stream));
    }
    CHECK(hipStreamSynchronize(stream));
    gate.hold(held);
    own.hold(stream);
    CHECK(hipFreeAsync(memory, stream));
    REQUIRE(gate.holds() && own.holds());
    GIVES(hipErrorInvalidValue, hipFreeAsync(memory, stream));
    EQUAL(BYTES, before - left()); // what is on the stream may use it
    own.open();
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(gate.holds());
    EQUAL(before, left());
}
CASE(of_a_graph_that_is_there_freed_on_a_stream)
{
    Stream held, stream;
    Gate gate;
    size_t before = left();
    gate.hold(held);
    {
        Allocating graph;
        for (int i = 0; i < 2; i++) {
            CHECK(hipGraphLaunch(graph.executable, stream));
            CHECK(hipFreeAsync(graph.memory, stream));
            GIVES(hipErrorInvalidValue, hipFreeAsync(graph.memory, stream));
        }
        CHECK(hipStreamSynchronize(stream));
    }
    REQUIRE(gate.holds());
    EQUAL(before, left());
}
CASE(of_a_graph_that_is_destroyed_before_it_is_done)
{
    Stream held, stream;
    Gate gate, own;
    size_t before = left();
    gate.hold(held);
    own.hold(stream);
    {
        Allocating graph(true);
        CHECK(hipGraphLaunch(graph.executable, stream));
    }
    REQUIRE(gate.holds() && own.holds());
    EQUAL(BYTES, before - left());
    own.open();
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(gate.holds());
    EQUAL(before, left());
}
CASE(freed_at_once_waits_for_streams)
{
    Stream stream;
    Gate gate;
    Allocating graph;
    CHECK(hipGraphLaunch(graph.executable, stream));
    gate.hold(stream);
    std::thread opens([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    hipError_t error = hipFree(graph.memory);
    hipError_t after = hipStreamQuery(stream);
    opens.join();
    CHECK(error);
    CHECK(after);
}
