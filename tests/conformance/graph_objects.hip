// User objects: who counts, and that the destructor is called once, when the last reference goes.
#include "graphs.h"

struct Object {
    std::atomic<int> destroyed{0};
    hipUserObject_t is = nullptr;
    explicit Object(unsigned count = 1) { CHECK(hipUserObjectCreate(&is, &destroyed, count_call, count, hipUserObjectNoDestructorSync)); }
    operator hipUserObject_t() const { return is; }
};

// The destructor may be called in another thread.
static void gone(const Object &object, int times = 1)
{
    for (int i = 0; i < 500 && object.destroyed != times; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EQUAL(times, object.destroyed.load());
}

CASE(create_arguments)
{
    hipUserObject_t object;
    std::atomic<int> destroyed{0};
    auto flags = hipUserObjectNoDestructorSync;
    GIVES(hipErrorInvalidValue, hipUserObjectCreate(nullptr, &destroyed, count_call, 1, flags));
    GIVES(hipErrorInvalidValue, hipUserObjectCreate(&object, &destroyed, nullptr, 1, flags));
    GIVES(hipErrorInvalidValue, hipUserObjectCreate(&object, &destroyed, count_call, 0, flags));
    GIVES(hipErrorInvalidValue, hipUserObjectCreate(&object, &destroyed, count_call, 1u << 31, flags));
    GIVES(hipErrorInvalidValue, hipUserObjectCreate(&object, &destroyed, count_call, 1, 0));
    GIVES(hipErrorInvalidValue, hipUserObjectCreate(&object, &destroyed, count_call, 1, 2));
    CHECK(hipUserObjectCreate(&object, nullptr, [](void *) {}, 1, flags));
    CHECK(hipUserObjectRelease(object, 1));
}

CASE(the_last_release_destroys)
{
    Object object(3);
    CHECK(hipUserObjectRelease(object, 1));
    CHECK(hipUserObjectRetain(object, 2));
    CHECK(hipUserObjectRelease(object, 3));
    EQUAL(0, object.destroyed.load());
    CHECK(hipUserObjectRelease(object, 1));
    gone(object);
    CHECK(hipUserObjectRelease(object, 1)); // of what is gone: nothing
    CHECK(hipUserObjectRetain(object, 1));
    gone(object);
}

CASE(more_than_there_are_is_nothing)
{
    Object object(2);
    CHECK(hipUserObjectRelease(object, 3));
    EQUAL(0, object.destroyed.load());
    CHECK(hipUserObjectRelease(object, 2));
    gone(object);
}

CASE(retain_and_release_arguments)
{
    Object object;
    Graph graph;
    GIVES(hipErrorInvalidValue, hipUserObjectRetain(nullptr, 1));
    GIVES(hipErrorInvalidValue, hipUserObjectRetain(object, 0));
    GIVES(hipErrorInvalidValue, hipUserObjectRetain(object, 1u << 31));
    GIVES(hipErrorInvalidValue, hipUserObjectRelease(nullptr, 1));
    GIVES(hipErrorInvalidValue, hipUserObjectRelease(object, 0));
    GIVES(hipErrorInvalidValue, hipUserObjectRelease(object, 1u << 31));
    GIVES(hipErrorInvalidValue, hipGraphRetainUserObject(nullptr, object, 1, 0));
    GIVES(hipErrorInvalidValue, hipGraphRetainUserObject(graph, nullptr, 1, 0));
    GIVES(hipErrorInvalidValue, hipGraphRetainUserObject(graph, object, 0, 0));
    GIVES(hipErrorInvalidValue, hipGraphRetainUserObject(graph, object, 1u << 31, 0));
    GIVES(hipErrorInvalidValue, hipGraphRetainUserObject(graph, object, 1, 7));
    GIVES(hipErrorInvalidValue, hipGraphReleaseUserObject(nullptr, object, 1));
    GIVES(hipErrorInvalidValue, hipGraphReleaseUserObject(graph, nullptr, 1));
    GIVES(hipErrorInvalidValue, hipGraphReleaseUserObject(graph, object, 0));
    GIVES(hipErrorInvalidValue, hipGraphReleaseUserObject(graph, object, 1u << 31));
    CHECK(hipUserObjectRelease(object, 1));
    gone(object);
}

CASE(a_graph_that_takes_the_reference)
{
    Object object;
    {
        Graph graph;
        CHECK(hipGraphRetainUserObject(graph, object, 1, hipGraphUserObjectMove));
        EQUAL(0, object.destroyed.load());
    }
    gone(object);
}

CASE(a_graph_with_references_of_its_own)
{
    Object object;
    {
        Graph graph;
        CHECK(hipGraphRetainUserObject(graph, object, 2, 0));
        CHECK(hipUserObjectRelease(object, 1));
        EQUAL(0, object.destroyed.load());
    }
    gone(object);
}

CASE(a_graph_that_releases)
{
    Object object;
    Graph graph;
    CHECK(hipGraphReleaseUserObject(graph, object, 1)); // it has none: nothing
    EQUAL(0, object.destroyed.load());
    CHECK(hipGraphRetainUserObject(graph, object, 2, 0));
    CHECK(hipGraphReleaseUserObject(graph, object, 2));
    EQUAL(0, object.destroyed.load());
    CHECK(hipUserObjectRelease(object, 1));
    gone(object);
}

CASE(clones_and_executables_hold_it)
{
    Stream stream;
    Object object;
    hipGraph_t graph, clone;
    hipGraphExec_t executable;
    CHECK(hipGraphCreate(&graph, 0));
    empty_node(graph);
    CHECK(hipGraphRetainUserObject(graph, object, 1, hipGraphUserObjectMove));
    CHECK(hipGraphClone(&clone, graph));
    CHECK(hipGraphInstantiate(&executable, clone, nullptr, nullptr, 0));
    CHECK(hipGraphDestroy(graph));
    EQUAL(0, object.destroyed.load());
    CHECK(hipGraphDestroy(clone));
    EQUAL(0, object.destroyed.load());
    CHECK(hipGraphLaunch(executable, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(executable));
    gone(object);
}

CASE(it_lives_as_long_as_the_launch_runs)
{
    Stream stream;
    Object object;
    static std::atomic<bool> gate;
    gate = false;
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipGraphNode_t node;
    hipHostNodeParams params = {[](void *) { while (!gate) std::this_thread::yield(); }, nullptr};
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphAddHostNode(&node, graph, nullptr, 0, &params));
    CHECK(hipGraphRetainUserObject(graph, object, 1, hipGraphUserObjectMove));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(executable, stream));
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphDestroy(graph));
    int early = object.destroyed;
    gate = true;
    CHECK(hipStreamSynchronize(stream));
    EQUAL(0, early);
    gone(object);
}

CASE(children_hold_it)
{
    Object object;
    {
        Graph graph;
        {
            Graph child;
            hipGraphNode_t node;
            CHECK(hipGraphRetainUserObject(child, object, 1, hipGraphUserObjectMove));
            CHECK(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
        }
        EQUAL(0, object.destroyed.load());
    }
    gone(object);
}

CASE(retained_while_it_is_captured)
{
    Stream stream;
    Object object;
    hipGraph_t graph, made;
    hipStreamCaptureStatus status;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr));
    CHECK(hipGraphRetainUserObject(graph, object, 1, hipGraphUserObjectMove));
    CHECK(hipStreamEndCapture(stream, &made));
    EQUAL(0, object.destroyed.load());
    CHECK(hipGraphDestroy(made));
    gone(object);
}
