// Captures of several streams: forks and joins, what is asked of a capture, and dependencies that the program changes.
#include "graphs.h"

static void begin(hipStream_t stream) { CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal)); }

static hipGraph_t end(hipStream_t stream)
{
    hipGraph_t graph = nullptr;
    CHECK(hipStreamEndCapture(stream, &graph));
    return graph;
}

// `to` comes after what is on `from`.
static void join(hipStream_t from, hipStream_t to, hipEvent_t event)
{
    CHECK(hipEventRecord(event, from));
    CHECK(hipStreamWaitEvent(to, event, 0));
}

static size_t edges(hipGraph_t graph)
{
    size_t count;
    CHECK(hipGraphGetEdges(graph, nullptr, nullptr, &count));
    return count;
}

CASE(fork_and_join)
{
    Stream a, b;
    Event fork, back;
    Numbers left(1), right(1);
    begin(a);
    add<<<1, N, 0, a>>>(left, 1);
    join(a, b, fork);
    multiply<<<1, N, 0, a>>>(left, 3);
    add<<<1, N, 0, b>>>(right, 4);
    join(b, a, back);
    CHECK(hipMemcpyAsync(left, right, 4, hipMemcpyDeviceToDevice, a));
    Graph graph(end(a));
    EQUAL(4u, graph.size());
    EQUAL(4u, edges(graph));
    Executable executable(graph);
    executable.run(a);
    EQUAL(5, left.all()[0]);
    EQUAL(6, left.all()[1]);
    add<<<1, N, 0, b>>>(right, 1); // b is a stream as before
    CHECK(hipStreamSynchronize(b));
    REQUIRE(right == 6);
}

CASE(forks_of_forks)
{
    Stream a, b, c;
    Event one, two, three, four;
    Numbers numbers(0);
    begin(a);
    join(a, b, one);
    join(b, c, two);
    add<<<1, N, 0, a>>>(numbers, 1);
    add<<<1, N, 0, b>>>(numbers, 10);
    add<<<1, N, 0, c>>>(numbers, 100);
    join(c, a, three);
    join(b, a, four);
    add<<<1, N, 0, a>>>(numbers, 1000);
    Graph graph(end(a));
    EQUAL(3u, edges(graph));
    Executable executable(graph);
    executable.run(b);
    REQUIRE(numbers == 1111);
}

CASE(streams_that_did_nothing_need_not_be_joined)
{
    Stream a, b;
    Event fork;
    Numbers numbers(0);
    begin(a);
    join(a, b, fork);
    add<<<1, N, 0, a>>>(numbers, 1);
    Graph graph(end(a));
    EQUAL(1u, graph.size());
    begin(b); // which is free again
    Graph other(end(b));
    EQUAL(0u, other.size());
}

CASE(not_joined_again)
{
    Stream a, b;
    Event fork;
    Numbers numbers(0);
    hipGraph_t graph = nullptr;
    begin(a);
    add<<<1, N, 0, a>>>(numbers, 1);
    join(a, b, fork);
    add<<<1, N, 0, b>>>(numbers, 1);
    GIVES(hipErrorStreamCaptureUnjoined, hipStreamEndCapture(a, &graph));
    REQUIRE(graph == nullptr);
    for (hipStream_t each : {hipStream_t(a), hipStream_t(b)}) {
        hipStreamCaptureStatus status;
        CHECK(hipStreamIsCapturing(each, &status));
        EQUAL(int(hipStreamCaptureStatusNone), int(status));
    }
}

CASE(joined_too_early)
{
    Stream a, b;
    Event fork, back;
    Numbers numbers(0);
    hipGraph_t graph;
    begin(a);
    add<<<1, N, 0, a>>>(numbers, 1);
    join(a, b, fork);
    add<<<1, N, 0, b>>>(numbers, 1);
    join(b, a, back);
    add<<<1, N, 0, b>>>(numbers, 1);
    GIVES(hipErrorStreamCaptureUnjoined, hipStreamEndCapture(a, &graph));
}

CASE(ended_on_another_stream)
{
    Stream a, b;
    Event fork, back;
    Numbers numbers(0);
    hipGraph_t graph;
    begin(a);
    join(a, b, fork);
    add<<<1, N, 0, b>>>(numbers, 1);
    join(b, a, back);
    GIVES(hipErrorStreamCaptureUnmatched, hipStreamEndCapture(b, &graph));
    Graph made(end(a));
    EQUAL(1u, made.size());
}

CASE(two_captures_do_not_merge)
{
    Stream a, b;
    Event event;
    hipGraph_t graph = nullptr;
    begin(a);
    begin(b);
    CHECK(hipEventRecord(event, a));
    GIVES(hipErrorStreamCaptureMerge, hipStreamWaitEvent(b, event, 0));
    for (hipStream_t each : {hipStream_t(a), hipStream_t(b)})
        if (hipStreamEndCapture(each, &graph) == hipSuccess)
            CHECK(hipGraphDestroy(graph));
}

CASE(an_event_of_the_same_stream)
{
    Stream a, b;
    Event event;
    Numbers numbers(0);
    begin(a);
    CHECK(hipEventRecord(event, a));
    begin(b);
    CHECK(hipStreamWaitEvent(a, event, 0));
    add<<<1, N, 0, a>>>(numbers, 1);
    Graph first(end(a));
    add<<<1, N, 0, b>>>(numbers, 1);
    Graph second(end(b));
    EQUAL(1u, first.size());
    EQUAL(1u, second.size());
}

CASE(an_event_of_a_capture_that_is_over)
{
    Stream a, b;
    Event event;
    Numbers numbers(0);
    begin(a);
    CHECK(hipEventRecord(event, a));
    Graph graph(end(a));
    CHECK(hipStreamWaitEvent(b, event, 0)); // nothing to wait for, nothing to join
    add<<<1, N, 0, b>>>(numbers, 1);
    CHECK(hipStreamSynchronize(b));
    REQUIRE(numbers == 1);
}

CASE(a_joined_stream_that_is_destroyed)
{
    Stream a;
    hipStream_t b;
    Event fork, back;
    Numbers numbers(0);
    CHECK(hipStreamCreate(&b));
    begin(a);
    join(a, b, fork);
    add<<<1, N, 0, b>>>(numbers, 1);
    join(b, a, back);
    CHECK(hipStreamDestroy(b));
    Graph graph(end(a));
    Executable(graph).run(a);
    REQUIRE(numbers == 1);
}

// Questions.

CASE(capture_info)
{
    Stream a, b;
    Event fork;
    Numbers numbers(0);
    hipStreamCaptureStatus status;
    unsigned long long id = 7, other_id = 8, next_id = 9;
    hipGraph_t graph = nullptr, of_b = nullptr;
    const hipGraphNode_t *nodes = nullptr;
    size_t count = 77;
    CHECK(hipStreamGetCaptureInfo(a, &status, &id));
    EQUAL(int(hipStreamCaptureStatusNone), int(status));
    EQUAL(7u, id); // untouched
    begin(a);
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, &id, &graph, &nodes, &count));
    EQUAL(int(hipStreamCaptureStatusActive), int(status));
    EQUAL(0u, count);
    REQUIRE(graph != nullptr);
    add<<<1, N, 0, a>>>(numbers, 1);
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, nullptr, nullptr, &nodes, &count));
    EQUAL(1u, count);
    hipGraphNodeType type;
    CHECK(hipGraphNodeGetType(nodes[0], &type));
    EQUAL(int(hipGraphNodeTypeKernel), int(type));
    join(a, b, fork);
    CHECK(hipStreamGetCaptureInfo_v2(b, &status, &other_id, &of_b, nullptr, &count));
    REQUIRE(of_b == graph && count == 1);
    EQUAL(id, other_id);
    CHECK(hipStreamGetCaptureInfo(b, &status, nullptr));
    hipGraph_t made = end(a);
    REQUIRE(made == graph);
    CHECK(hipGraphDestroy(made));
    begin(a);
    CHECK(hipStreamGetCaptureInfo(a, &status, &next_id));
    REQUIRE(next_id != id);
    Graph last(end(a));
    GIVES(hipErrorInvalidValue, hipStreamGetCaptureInfo(a, nullptr, &id));
    GIVES(hipErrorInvalidValue, hipStreamGetCaptureInfo_v2(a, nullptr, &id, nullptr, nullptr, nullptr));
    GIVES(hipErrorContextIsDestroyed, hipStreamGetCaptureInfo_v2(wild<hipStream_t>(), &status, &id, nullptr, nullptr, nullptr));
}

CASE(what_is_captured_is_not_destroyed)
{
    Stream a;
    Event event;
    Numbers numbers(0);
    hipStreamCaptureStatus status;
    hipGraph_t graph;
    const hipGraphNode_t *nodes;
    size_t count;
    begin(a);
    add<<<1, N, 0, a>>>(numbers, 1);
    CHECK(hipEventRecord(event, a)); // it knows the node, too
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, nullptr, &graph, &nodes, &count));
    hipGraphNode_t node = nodes[0];
    GIVES(hipErrorStreamCaptureUnsupported, hipGraphDestroyNode(node));
    GIVES(hipErrorStreamCaptureUnsupported, hipGraphDestroy(graph));
    CHECK(hipStreamWaitEvent(a, event, 0));
    add<<<1, N, 0, a>>>(numbers, 2);
    Graph made(end(a));
    EQUAL(2u, made.size());
    EQUAL(1u, edges(made));
    Executable(made).run(a);
    REQUIRE(numbers == 3);
    CHECK(hipGraphDestroyNode(node)); // it is the program's now
    EQUAL(1u, made.size());
}

CASE(dependencies_are_replaced)
{
    Stream a;
    Numbers numbers(0), others(0);
    hipStreamCaptureStatus status;
    hipGraph_t graph;
    const hipGraphNode_t *nodes;
    size_t count;
    begin(a);
    add<<<1, N, 0, a>>>(numbers, 1);
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, nullptr, &graph, nullptr, nullptr));
    auto fill = fill_node(graph, {}, others, 5);
    CHECK(hipStreamUpdateCaptureDependencies(a, &fill, 1, hipStreamSetCaptureDependencies));
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, nullptr, nullptr, &nodes, &count));
    EQUAL(1u, count);
    REQUIRE(nodes[0] == fill);
    add<<<1, N, 0, a>>>(others, 1);
    Graph made(end(a)); // what was replaced need not be joined
    EQUAL(3u, made.size());
    EQUAL(1u, edges(made));
    Executable(made).run(a);
    REQUIRE(numbers == 1 && others == 6);
}

CASE(dependencies_are_added)
{
    Stream a;
    Numbers numbers(0), others(0);
    hipStreamCaptureStatus status;
    hipGraph_t graph;
    size_t count;
    begin(a);
    add<<<1, N, 0, a>>>(numbers, 1);
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, nullptr, &graph, nullptr, nullptr));
    auto fill = fill_node(graph, {}, others, 5);
    CHECK(hipStreamUpdateCaptureDependencies(a, &fill, 1, hipStreamAddCaptureDependencies));
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, nullptr, nullptr, nullptr, &count));
    EQUAL(2u, count);
    add<<<1, N, 0, a>>>(others, 1);
    Graph made(end(a));
    EQUAL(2u, edges(made));
}

CASE(nodes_added_by_hand_need_not_be_joined)
{
    Stream a;
    Numbers numbers(0), others(0);
    hipStreamCaptureStatus status;
    hipGraph_t graph;
    begin(a);
    add<<<1, N, 0, a>>>(numbers, 1);
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, nullptr, &graph, nullptr, nullptr));
    fill_node(graph, {}, others, 5);
    Graph made(end(a));
    EQUAL(2u, made.size());
}

CASE(update_arguments)
{
    Stream a;
    Numbers numbers(0);
    Graph other;
    auto foreign = empty_node(other);
    hipGraphNode_t none = nullptr;
    const hipGraphNode_t *tails;
    hipStreamCaptureStatus status;
    GIVES(hipErrorIllegalState, hipStreamUpdateCaptureDependencies(a, nullptr, 0, 0));
    begin(a);
    add<<<1, N, 0, a>>>(numbers, 1);
    CHECK(hipStreamGetCaptureInfo_v2(a, &status, nullptr, nullptr, &tails, nullptr));
    hipGraphNode_t node = tails[0];
    CHECK(hipStreamUpdateCaptureDependencies(a, nullptr, 0, hipStreamAddCaptureDependencies));
    GIVES(hipErrorInvalidValue, hipStreamUpdateCaptureDependencies(a, nullptr, 1, hipStreamAddCaptureDependencies));
    GIVES(hipErrorInvalidValue, hipStreamUpdateCaptureDependencies(a, &node, 1, 20));
    GIVES(hipErrorInvalidValue, hipStreamUpdateCaptureDependencies(a, &none, 1, hipStreamAddCaptureDependencies));
    GIVES(hipErrorInvalidValue, hipStreamUpdateCaptureDependencies(a, &foreign, 1, hipStreamAddCaptureDependencies));
    GIVES(hipErrorContextIsDestroyed, hipStreamUpdateCaptureDependencies(wild<hipStream_t>(), &node, 1, 0));
    Graph made(end(a));
    EQUAL(1u, made.size());
}

CASE(into_a_graph_that_is_there)
{
    Stream a;
    Numbers numbers(0), others(0);
    Graph graph, foreign_graph;
    auto first = fill_node(graph, {}, numbers, 3), foreign = empty_node(foreign_graph);
    fill_node(graph, {}, others, 4); // a leaf that was there before
    hipGraph_t made;
    hipGraphEdgeData data = {};
    const auto mode = hipStreamCaptureModeGlobal;
    GIVES(hipErrorInvalidValue, hipStreamBeginCaptureToGraph(a, nullptr, nullptr, nullptr, 0, mode));
    GIVES(hipErrorInvalidValue, hipStreamBeginCaptureToGraph(a, graph, nullptr, nullptr, 1, mode));
    GIVES(hipErrorInvalidValue, hipStreamBeginCaptureToGraph(a, graph, &first, nullptr, 0, mode));
    GIVES(hipErrorInvalidValue, hipStreamBeginCaptureToGraph(a, graph, &foreign, nullptr, 1, mode));
    GIVES(hipErrorNotSupported, hipStreamBeginCaptureToGraph(a, graph, &first, &data, 1, mode));
    GIVES(hipErrorInvalidValue, hipStreamBeginCaptureToGraph(a, graph, &first, nullptr, 1, hipStreamCaptureMode(-1)));
    GIVES(hipErrorStreamCaptureUnsupported, hipStreamBeginCaptureToGraph(nullptr, graph, &first, nullptr, 1, mode));
    CHECK(hipStreamBeginCaptureToGraph(a, graph, &first, nullptr, 1, mode));
    add<<<1, N, 0, a>>>(numbers, 1);
    CHECK(hipStreamEndCapture(a, &made));
    REQUIRE(made == graph.is);
    EQUAL(3u, graph.size());
    EQUAL(1u, edges(graph));
    CHECK(hipStreamBeginCaptureToGraph(a, graph, nullptr, nullptr, 0, mode)); // once more, after nothing
    add<<<1, N, 0, a>>>(others, 1);
    CHECK(hipStreamEndCapture(a, &made));
    EQUAL(4u, graph.size());
    EQUAL(1u, edges(graph));
    Executable(graph).run(a);
    REQUIRE(numbers == 4);
}

CASE(an_invalid_capture_leaves_the_program_its_graph)
{
    Stream a;
    Graph graph;
    empty_node(graph);
    hipGraph_t made;
    CHECK(hipStreamBeginCaptureToGraph(a, graph, nullptr, nullptr, 0, hipStreamCaptureModeGlobal));
    GIVES(hipErrorStreamCaptureUnsupported, hipStreamQuery(a));
    GIVES(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(a, &made));
    EQUAL(1u, graph.size());
}

CASE(the_same_graph_many_times)
{
    Stream a, b;
    Event fork, back;
    Numbers numbers(0);
    std::vector<int> host(N);
    begin(a);
    add<<<1, N, 0, a>>>(numbers, 1);
    join(a, b, fork);
    CHECK(hipMemcpyAsync(host.data(), numbers, N * sizeof(int), hipMemcpyDeviceToHost, b));
    join(b, a, back);
    Graph graph(end(a));
    Executable executable(graph);
    for (int i = 1; i < 20; i++) {
        executable.run(a);
        REQUIRE(host == std::vector<int>(N, i));
    }
}

// Forms for which the default stream is that of the thread.
extern "C" hipError_t hipStreamBeginCapture_spt(hipStream_t, hipStreamCaptureMode);
extern "C" hipError_t hipStreamEndCapture_spt(hipStream_t, hipGraph_t *);
extern "C" hipError_t hipStreamIsCapturing_spt(hipStream_t, hipStreamCaptureStatus *);
extern "C" hipError_t hipStreamGetCaptureInfo_spt(hipStream_t, hipStreamCaptureStatus *, unsigned long long *);
extern "C" hipError_t hipStreamGetCaptureInfo_v2_spt(hipStream_t, hipStreamCaptureStatus *, unsigned long long *, hipGraph_t *,
                                                     const hipGraphNode_t **, size_t *);
extern "C" hipError_t hipGraphLaunch_spt(hipGraphExec_t, hipStream_t);
extern "C" hipError_t hipMemsetAsync_spt(void *, int, size_t, hipStream_t);
extern "C" hipError_t hipLaunchHostFunc_spt(hipStream_t, hipHostFn_t, void *);

CASE(the_default_stream_of_the_thread)
{
    Numbers numbers(0);
    std::atomic<int> calls{0};
    hipGraph_t made;
    hipStreamCaptureStatus status;
    unsigned long long id, same_id;
    size_t count;
    CHECK(hipStreamBeginCapture_spt(nullptr, hipStreamCaptureModeGlobal));
    CHECK(hipMemsetAsync_spt(numbers, 1, N * sizeof(int), nullptr));
    CHECK(hipLaunchHostFunc_spt(nullptr, count_call, &calls));
    CHECK(hipStreamIsCapturing_spt(nullptr, &status));
    EQUAL(int(hipStreamCaptureStatusActive), int(status));
    CHECK(hipStreamGetCaptureInfo_spt(nullptr, &status, &id));
    CHECK(hipStreamGetCaptureInfo_v2_spt(nullptr, &status, &same_id, nullptr, nullptr, &count));
    EQUAL(id, same_id);
    EQUAL(1u, count);
    CHECK(hipStreamEndCapture_spt(nullptr, &made));
    Graph graph(made);
    EQUAL(2u, graph.size());
    Executable executable(graph);
    CHECK(hipGraphLaunch_spt(executable, nullptr));
    CHECK(hipStreamSynchronize(hipStreamPerThread));
    REQUIRE(numbers == 0x01010101 && calls == 1);
}
