// Captures: how they begin and end, what each mode forbids meanwhile and to whom, and what becomes of the capture then.
#include "graphs.h"

constexpr hipStreamCaptureMode MODES[] = {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed};

static void begin(hipStream_t stream, hipStreamCaptureMode mode = hipStreamCaptureModeGlobal) { CHECK(hipStreamBeginCapture(stream, mode)); }

// Ends a capture that is to give a graph.
static void end(hipStream_t stream)
{
    hipGraph_t graph = nullptr;
    CHECK(hipStreamEndCapture(stream, &graph));
    REQUIRE(graph != nullptr);
    CHECK(hipGraphDestroy(graph));
}

static void ends_with(hipError_t error, hipStream_t stream)
{
    hipGraph_t graph = wild<hipGraph_t>();
    GIVES(error, hipStreamEndCapture(stream, &graph));
    REQUIRE(graph == nullptr);
    hipStreamCaptureStatus status;
    CHECK(hipStreamIsCapturing(stream, &status));
    EQUAL(int(hipStreamCaptureStatusNone), int(status)); // it is over all the same
}

// What a call gives in another thread.
template <typename Call> static hipError_t elsewhere(Call call)
{
    hipError_t error;
    std::thread([&] { error = call(); }).join();
    return error;
}

CASE(begin_arguments)
{
    Stream stream;
    GIVES(hipErrorStreamCaptureUnsupported, hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal));
    GIVES(hipErrorStreamCaptureUnsupported, hipStreamBeginCapture(hipStreamLegacy, hipStreamCaptureModeGlobal));
    GIVES(hipErrorInvalidValue, hipStreamBeginCapture(stream, hipStreamCaptureMode(-1)));
    GIVES(hipErrorInvalidValue, hipStreamBeginCapture(stream, hipStreamCaptureMode(3)));
    GIVES(hipErrorContextIsDestroyed, hipStreamBeginCapture(wild<hipStream_t>(), hipStreamCaptureModeGlobal));
    begin(stream);
    GIVES(hipErrorIllegalState, hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    end(stream);
}

CASE(end_arguments)
{
    Stream stream;
    hipGraph_t graph;
    GIVES(hipErrorInvalidValue, hipStreamEndCapture(stream, nullptr));
    GIVES(hipErrorIllegalState, hipStreamEndCapture(stream, &graph));
    GIVES(hipErrorIllegalState, hipStreamEndCapture(nullptr, &graph));
    GIVES(hipErrorContextIsDestroyed, hipStreamEndCapture(wild<hipStream_t>(), &graph));
}

CASE(an_empty_capture_gives_an_empty_graph)
{
    Stream stream;
    hipGraph_t made;
    begin(stream);
    CHECK(hipStreamEndCapture(stream, &made));
    Graph graph(made);
    EQUAL(0u, graph.size());
    Executable(graph).run(stream);
}

CASE(nothing_runs_while_it_is_captured)
{
    Stream stream;
    Numbers numbers(1);
    for (auto mode : MODES) {
        begin(stream, mode);
        add<<<1, N, 0, stream>>>(numbers, 5);
        end(stream);
        CHECK(hipStreamSynchronize(stream));
        REQUIRE(numbers == 1);
    }
}

CASE(status)
{
    Stream stream;
    hipStreamCaptureStatus status = hipStreamCaptureStatus(77);
    CHECK(hipStreamIsCapturing(stream, &status));
    EQUAL(int(hipStreamCaptureStatusNone), int(status));
    CHECK(hipStreamIsCapturing(nullptr, &status));
    EQUAL(int(hipStreamCaptureStatusNone), int(status));
    begin(stream);
    CHECK(hipStreamIsCapturing(stream, &status));
    EQUAL(int(hipStreamCaptureStatusActive), int(status));
    GIVES(hipErrorStreamCaptureUnsupported, hipStreamQuery(stream));
    CHECK(hipStreamIsCapturing(stream, &status));
    EQUAL(int(hipStreamCaptureStatusInvalidated), int(status));
    ends_with(hipErrorStreamCaptureInvalidated, stream);
    GIVES(hipErrorInvalidValue, hipStreamIsCapturing(stream, nullptr));
    GIVES(hipErrorContextIsDestroyed, hipStreamIsCapturing(wild<hipStream_t>(), &status));
}

CASE(the_default_stream_has_no_status_meanwhile)
{
    Stream stream, apart(hipStreamNonBlocking);
    hipStreamCaptureStatus status;
    unsigned long long id;
    begin(stream);
    GIVES(hipErrorStreamCaptureImplicit, hipStreamIsCapturing(nullptr, &status));
    GIVES(hipErrorStreamCaptureImplicit, hipStreamIsCapturing(hipStreamLegacy, &status));
    GIVES(hipErrorStreamCaptureImplicit, hipStreamGetCaptureInfo(nullptr, &status, &id));
    GIVES(hipErrorStreamCaptureImplicit, hipStreamGetCaptureInfo_v2(nullptr, &status, &id, nullptr, nullptr, nullptr));
    end(stream); // asking harms nobody
    begin(apart);
    CHECK(hipStreamIsCapturing(nullptr, &status)); // which does not wait for the default stream
    EQUAL(int(hipStreamCaptureStatusNone), int(status));
    end(apart);
}

// Waiting and asking.

static void while_capturing(hipError_t wanted, hipError_t (*call)(hipStream_t, hipEvent_t), bool relaxed_too)
{
    for (unsigned flags : {hipStreamDefault, hipStreamNonBlocking})
        for (auto mode : MODES) {
            if (mode == hipStreamCaptureModeRelaxed && !relaxed_too)
                continue;
            Stream stream(flags);
            Event event;
            begin(stream, mode);
            GIVES(wanted, call(stream, event));
            ends_with(hipErrorStreamCaptureInvalidated, stream);
        }
}

CASE(synchronize_the_stream)
{
    while_capturing(hipErrorStreamCaptureUnsupported, [](hipStream_t stream, hipEvent_t) { return hipStreamSynchronize(stream); }, true);
}

CASE(query_the_stream)
{
    while_capturing(hipErrorStreamCaptureUnsupported, [](hipStream_t stream, hipEvent_t) { return hipStreamQuery(stream); }, true);
}

CASE(synchronize_the_device)
{
    while_capturing(hipErrorStreamCaptureUnsupported, [](hipStream_t, hipEvent_t) { return hipDeviceSynchronize(); }, true);
}

CASE(synchronize_an_event)
{
    while_capturing(hipErrorCapturedEvent, [](hipStream_t stream, hipEvent_t event) {
        hipError_t error = hipEventRecord(event, stream);
        return error ? error : hipEventSynchronize(event);
    }, true);
}

CASE(query_an_event)
{
    while_capturing(hipErrorCapturedEvent, [](hipStream_t stream, hipEvent_t event) {
        hipError_t error = hipEventRecord(event, stream);
        return error ? error : hipEventQuery(event);
    }, true);
}

CASE(add_a_callback)
{
    while_capturing(hipErrorStreamCaptureUnsupported, [](hipStream_t stream, hipEvent_t) {
        return hipStreamAddCallback(stream, [](hipStream_t, hipError_t, void *) {}, nullptr, 0);
    }, true);
}

CASE(elapsed_time_of_captured_events)
{
    Stream stream;
    Event start, stop;
    float milliseconds;
    begin(stream);
    CHECK(hipEventRecord(start, stream));
    CHECK(hipEventRecord(stop, stream));
    GIVES(hipErrorCapturedEvent, hipEventElapsedTime(&milliseconds, start, stop));
    hipGraph_t graph = nullptr;
    (void)hipStreamEndCapture(stream, &graph);
    if (graph)
        CHECK(hipGraphDestroy(graph));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&milliseconds, start, stop)); // never recorded
    CHECK(hipEventQuery(start));
    CHECK(hipEventSynchronize(start));
}

CASE(another_stream_is_waited_for)
{
    for (auto mode : MODES) {
        Stream stream, other;
        hipError_t wanted = mode == hipStreamCaptureModeRelaxed ? hipSuccess : hipErrorStreamCaptureUnsupported;
        begin(stream, mode);
        GIVES(wanted, hipStreamSynchronize(other));
        if (wanted == hipSuccess)
            end(stream);
        else
            ends_with(hipErrorStreamCaptureInvalidated, stream);
    }
}

CASE(another_thread_waits_for_another_stream)
{
    for (auto mode : MODES) {
        Stream stream, other;
        hipError_t wanted = mode == hipStreamCaptureModeGlobal ? hipErrorStreamCaptureUnsupported : hipSuccess;
        for (int i = 0; i < 2; i++) {
            begin(stream, mode);
            GIVES(wanted, elsewhere([&] { return i ? hipStreamSynchronize(other) : hipStreamQuery(other); }));
            if (wanted == hipSuccess)
                end(stream);
            else
                ends_with(hipErrorStreamCaptureInvalidated, stream);
        }
    }
}

CASE(another_thread_asks_for_an_event_that_was_never_recorded)
{
    Stream stream;
    Event event;
    begin(stream);
    GIVES(hipSuccess, elsewhere([&] { return hipEventSynchronize(event); }));
    GIVES(hipSuccess, elsewhere([&] { return hipEventQuery(event); }));
    end(stream);
}

// Calls that are unsafe.

static void unsafe(hipError_t (*call)(int *memory))
{
    Numbers numbers;
    for (auto mode : MODES) {
        Stream stream;
        begin(stream, mode);
        hipError_t error = call(numbers);
        if (mode == hipStreamCaptureModeRelaxed) {
            CHECK(error);
            end(stream);
        } else {
            EQUAL(int(hipErrorStreamCaptureUnsupported), int(error));
            ends_with(hipErrorStreamCaptureInvalidated, stream);
        }
    }
}

template <typename Make, typename Destroy> static hipError_t make_and_destroy(Make make, Destroy destroy)
{
    void *memory;
    hipError_t error = make(&memory);
    return error ? error : destroy(memory);
}

CASE(unsafe_malloc)
{
    unsafe([](int *) { return make_and_destroy([](void **memory) { return hipMalloc(memory, 4); }, hipFree); });
}

CASE(unsafe_malloc_managed)
{
    unsafe([](int *) { return make_and_destroy([](void **memory) { return hipMallocManaged(memory, 4, hipMemAttachGlobal); }, hipFree); });
}

CASE(unsafe_host_malloc)
{
    unsafe([](int *) { return make_and_destroy([](void **memory) { return hipHostMalloc(memory, 4, 0); }, hipHostFree); });
}

CASE(unsafe_malloc_pitch)
{
    unsafe([](int *) {
        size_t pitch;
        return make_and_destroy([&](void **memory) { return hipMallocPitch(memory, &pitch, 4, 4); }, hipFree);
    });
}

CASE(free_is_unsafe)
{
    Stream stream;
    int *memory;
    CHECK(hipMalloc(reinterpret_cast<void **>(&memory), 4));
    begin(stream);
    GIVES(hipErrorStreamCaptureUnsupported, hipFree(memory));
    ends_with(hipErrorStreamCaptureInvalidated, stream);
    CHECK(hipFree(memory)); // it was not freed
}

CASE(unsafe_calls_of_other_threads)
{
    for (auto mode : MODES) {
        Stream stream;
        void *memory;
        hipError_t wanted = mode == hipStreamCaptureModeGlobal ? hipErrorStreamCaptureUnsupported : hipSuccess;
        begin(stream, mode);
        GIVES(wanted, elsewhere([&] {
            hipError_t error = hipMalloc(&memory, 4);
            return error ? error : hipFree(memory);
        }));
        if (wanted == hipSuccess)
            end(stream);
        else
            ends_with(hipErrorStreamCaptureInvalidated, stream);
    }
}

// Calls on the default stream.

static void implicit(hipError_t (*call)(int *memory, int *host))
{
    Numbers numbers;
    std::vector<int> host(N);
    for (auto mode : MODES) {
        Stream stream;
        begin(stream, mode);
        GIVES(hipErrorStreamCaptureImplicit, call(numbers, host.data()));
        ends_with(hipErrorStreamCaptureInvalidated, stream);
        CHECK(call(numbers, host.data()));
        CHECK(hipDeviceSynchronize());
    }
}

CASE(copies_that_wait)
{
    implicit([](int *memory, int *host) { return hipMemcpy(memory, host, 4, hipMemcpyHostToDevice); });
    implicit([](int *memory, int *host) { return hipMemcpyDtoH(host, memory, 4); });
    implicit([](int *memory, int *host) { return hipMemcpy2D(memory, 8, host, 8, 4, 2, hipMemcpyHostToDevice); });
}

CASE(fills_that_wait)
{
    implicit([](int *memory, int *) { return hipMemset(memory, 0, 4); });
    implicit([](int *memory, int *) { return hipMemsetD32(memory, 0, 1); });
    implicit([](int *memory, int *) { return hipMemset2D(memory, 8, 0, 4, 2); });
}

CASE(calls_on_the_default_stream)
{
    implicit([](int *memory, int *host) { return hipMemcpyAsync(memory, host, 4, hipMemcpyHostToDevice, nullptr); });
    implicit([](int *memory, int *) { return hipMemsetAsync(memory, 0, 4, nullptr); });
    implicit([](int *, int *) { return hipLaunchHostFunc(nullptr, [](void *) {}, nullptr); });
    implicit([](int *memory, int *) {
        Launch launch(add, memory, 1);
        return hipLaunchKernel(launch.params.func, dim3(1), dim3(N), launch.args, 0, nullptr);
    });
}

CASE(streams_that_do_not_wait_for_the_default_one)
{
    Stream stream(hipStreamNonBlocking);
    Numbers numbers(1);
    begin(stream, hipStreamCaptureModeRelaxed);
    add<<<1, N>>>(numbers, 1);
    CHECK(hipGetLastError());
    CHECK(hipMemsetAsync(numbers, 0, 4, nullptr));
    end(stream);
    CHECK(hipDeviceSynchronize());
    EQUAL(0, numbers.all()[0]);
    EQUAL(2, numbers.all()[1]);
}

CASE(other_streams_go_on)
{
    Stream stream, other;
    Numbers numbers(1);
    begin(stream, hipStreamCaptureModeRelaxed);
    add<<<1, N, 0, other>>>(numbers, 1);
    CHECK(hipStreamSynchronize(other));
    add<<<1, N, 0, stream>>>(numbers, 100);
    end(stream);
    REQUIRE(numbers == 2);
}

CASE(an_invalid_capture_records_nothing)
{
    Stream stream;
    Numbers numbers(1);
    std::vector<int> host(N);
    begin(stream);
    GIVES(hipErrorStreamCaptureUnsupported, hipStreamQuery(stream));
    GIVES(hipErrorStreamCaptureInvalidated, hipMemsetAsync(numbers, 0, 4, stream));
    GIVES(hipErrorStreamCaptureInvalidated, hipMemcpyAsync(host.data(), numbers, 4, hipMemcpyDeviceToHost, stream));
    GIVES(hipErrorStreamCaptureInvalidated, hipLaunchHostFunc(stream, [](void *) {}, nullptr));
    add<<<1, N, 0, stream>>>(numbers, 1);
    GIVES(hipErrorStreamCaptureInvalidated, hipGetLastError());
    ends_with(hipErrorStreamCaptureInvalidated, stream);
    add<<<1, N, 0, stream>>>(numbers, 1);
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(numbers == 2);
}

// Threads.

CASE(ended_by_another_thread)
{
    for (auto mode : MODES) {
        Stream stream;
        hipGraph_t graph = nullptr;
        begin(stream, mode);
        hipError_t wanted = mode == hipStreamCaptureModeRelaxed ? hipSuccess : hipErrorStreamCaptureWrongThread;
        GIVES(wanted, elsewhere([&] { return hipStreamEndCapture(stream, &graph); }));
        if (wanted == hipSuccess)
            CHECK(hipGraphDestroy(graph));
        else
            end(stream); // it goes on
    }
}

CASE(captures_in_threads)
{
    constexpr int THREADS = 4;
    Numbers numbers[THREADS];
    std::atomic<int> failed{0};
    for (auto mode : MODES) {
        std::vector<std::thread> threads;
        for (int i = 0; i < THREADS; i++)
            threads.emplace_back([&, i] {
                try {
                    Stream stream;
                    hipGraph_t graph;
                    for (int j = 0; j < 10; j++) {
                        begin(stream, mode);
                        CHECK(hipMemsetAsync(numbers[i], 0, N * sizeof(int), stream));
                        add<<<1, N, 0, stream>>>(numbers[i], i + 1);
                        CHECK(hipStreamEndCapture(stream, &graph));
                        Graph owner(graph);
                        EQUAL(2u, owner.size());
                    }
                } catch (const conformance::Failed &what) {
                    std::fprintf(stderr, "%s\n", what.words.c_str());
                    failed++;
                }
            });
        for (auto &thread : threads)
            thread.join();
    }
    EQUAL(0, failed.load());
}

CASE(exchange_of_modes)
{
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    CHECK(hipThreadExchangeStreamCaptureMode(&mode));
    EQUAL(int(hipStreamCaptureModeGlobal), int(mode));
    GIVES(hipSuccess, elsewhere([] { // each thread has its own
        hipStreamCaptureMode mode = hipStreamCaptureModeThreadLocal;
        hipError_t error = hipThreadExchangeStreamCaptureMode(&mode);
        return error ? error : mode == hipStreamCaptureModeGlobal ? hipSuccess : hipErrorUnknown;
    }));
    Stream stream;
    begin(stream);
    void *memory;
    hipError_t error = hipMalloc(&memory, 4); // the thread allows what the capture would forbid
    hipGraph_t graph = nullptr;
    hipError_t ended = hipStreamEndCapture(stream, &graph);
    CHECK(hipThreadExchangeStreamCaptureMode(&mode));
    EQUAL(int(hipStreamCaptureModeRelaxed), int(mode));
    CHECK(error);
    CHECK(ended);
    CHECK(hipFree(memory));
    CHECK(hipGraphDestroy(graph));
    GIVES(hipErrorInvalidValue, hipThreadExchangeStreamCaptureMode(nullptr));
    mode = hipStreamCaptureMode(-1);
    GIVES(hipErrorInvalidValue, hipThreadExchangeStreamCaptureMode(&mode));
    mode = hipStreamCaptureMode(3);
    GIVES(hipErrorInvalidValue, hipThreadExchangeStreamCaptureMode(&mode));
}

CASE(a_thread_that_is_local_does_not_care_for_others)
{
    Stream stream;
    begin(stream); // global
    GIVES(hipSuccess, elsewhere([] {
        hipStreamCaptureMode mode = hipStreamCaptureModeThreadLocal;
        void *memory;
        hipError_t error = hipThreadExchangeStreamCaptureMode(&mode);
        error = error ? error : hipMalloc(&memory, 4);
        return error ? error : hipFree(memory);
    }));
    end(stream);
}

CASE(a_stream_that_is_destroyed_meanwhile)
{
    hipStream_t stream;
    Numbers numbers(1);
    CHECK(hipStreamCreate(&stream));
    begin(stream);
    add<<<1, N, 0, stream>>>(numbers, 1);
    CHECK(hipStreamDestroy(stream));
    REQUIRE(numbers == 1);
    void *memory;
    CHECK(hipMalloc(&memory, 4)); // nothing is captured any more
    CHECK(hipFree(memory));
}

CASE(the_stream_of_the_thread)
{
    Numbers numbers(1);
    hipGraph_t made;
    begin(hipStreamPerThread);
    add<<<1, N, 0, hipStreamPerThread>>>(numbers, 2);
    CHECK(hipStreamEndCapture(hipStreamPerThread, &made));
    Graph graph(made);
    EQUAL(1u, graph.size());
    Executable(graph).run(hipStreamPerThread);
    REQUIRE(numbers == 3);
}
