// What outlives what: streams, threads, modules and the works that were put on them; and launches of graphs by two threads.
#include "own_module.h"
#include "resources.h"

#include <pthread.h>

extern "C" __global__ void add_one(int *data) { data[0] += 1; }

CASE(an_event_outlives_its_stream)
{
    Stream busy, waiting;
    Event event;
    Gate gate;
    void *freed, *other;
    std::vector<void *> memory;
    CHECK(hipMallocAsync(&freed, 4096, busy));
    gate.hold(busy);
    CHECK(hipFreeAsync(freed, busy));
    {
        Stream gone;
        CHECK(hipEventRecord(event, gone));
    }
    CHECK(hipStreamWaitEvent(waiting, event, 0));
    for (size_t bytes = 64; bytes <= 512; bytes += 16) // which would take the place of what the stream was
        memory.push_back(std::memset(std::malloc(bytes), 0x41, bytes));
    CHECK(hipMallocAsync(&other, 4096, waiting));
    REQUIRE(other != freed);
    gate.open();
    CHECK(hipFreeAsync(other, waiting));
    CHECK(hipStreamSynchronize(waiting));
    for (void *each : memory)
        std::free(each);
}
CASE(a_thread_that_ends_may_ask_for_its_stream)
{
    static pthread_key_t key;
    static std::atomic<hipError_t> late;
    late = hipErrorUnknown;
    int *data;
    CHECK(hipMalloc(&data, 64));
    REQUIRE(pthread_key_create(&key, [](void *at) { late = hipMemsetAsync(at, 1, 64, hipStreamPerThread); }) == 0);
    std::thread thread([&] {
        (void)hipMemsetAsync(data, 0, 64, hipStreamPerThread);
        pthread_setspecific(key, data);
    });
    thread.join();
    CHECK(late);
    CHECK(hipFree(data));
}
CASE(a_graph_does_not_follow_a_kernel_that_is_unloaded)
{
    hipModule_t module;
    hipFunction_t kernel;
    hipGraph_t graph;
    hipGraphExec_t executable;
    int *data;
    Stream stream;
    CHECK(hipMalloc(&data, 64));
    std::vector<char> code = own_code_object();
    CHECK(hipModuleLoadData(&module, code.data()));
    CHECK(hipModuleGetFunction(&kernel, module, "add_one"));
    void *arguments[] = {&data};
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
    CHECK(hipModuleLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    CHECK(hipModuleUnload(module));
    GIVES(hipErrorInvalidHandle, hipGraphLaunch(executable, stream));
    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipGraphDestroy(graph));
    CHECK(hipFree(data));
}

// Two graphs: each fills with its number, copies often, and looks whether it is still its own.
struct Checked {
    int *data, number;
    std::atomic<int> *wrong;
};
static hipGraphExec_t filling(Checked *checked, int *data, int *copy)
{
    Stream stream;
    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
    CHECK(hipMemsetD32Async(data, checked->number, 16, stream));
    for (int i = 0; i < 8; i++)
        CHECK(hipMemcpyAsync(copy, data, 64, hipMemcpyDefault, stream));
    CHECK(hipLaunchHostFunc(
        stream,
        [](void *given) {
            Checked *is = static_cast<Checked *>(given);
            *is->wrong += is->data[0] != is->number;
        },
        checked));
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    CHECK(hipGraphDestroy(graph));
    return executable;
}
CASE(a_graph_launch_is_one_step_of_its_stream)
{
    Stream stream;
    int *data, *copy;
    std::atomic<int> wrong{0}, failed{0};
    CHECK(hipHostMalloc(&data, 64, 0));
    CHECK(hipHostMalloc(&copy, 64, 0));
    Checked checked[] = {{data, 1, &wrong}, {data, 2, &wrong}};
    hipGraphExec_t executables[] = {filling(&checked[0], data, copy), filling(&checked[1], data, copy)};
    std::vector<std::thread> threads;
    for (hipGraphExec_t executable : executables)
        threads.emplace_back([&, executable] {
            for (int i = 0; i < 1000; i++)
                failed += hipGraphLaunch(executable, stream) != hipSuccess;
        });
    for (std::thread &thread : threads)
        thread.join();
    CHECK(hipStreamSynchronize(stream));
    EQUAL(0, failed.load());
    EQUAL(0, wrong.load());
    for (hipGraphExec_t executable : executables)
        CHECK(hipGraphExecDestroy(executable));
    CHECK(hipHostFree(data));
    CHECK(hipHostFree(copy));
}
CASE(many_streams_wait_for_one)
{
    Gate gate;
    Stream first;
    Event event;
    std::vector<hipStream_t> streams(400);
    int *data;
    CHECK(hipMalloc(&data, 4096));
    gate.hold(first);
    CHECK(hipEventRecord(event, first));
    for (hipStream_t &stream : streams) {
        CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
        CHECK(hipStreamWaitEvent(stream, event, 0));
        CHECK(hipMemsetAsync(data, 7, 4096, stream));
        GIVES(hipErrorNotReady, hipStreamQuery(stream));
    }
    gate.open();
    for (hipStream_t stream : streams)
        CHECK(hipStreamDestroy(stream));
    CHECK(hipFree(data));
}
