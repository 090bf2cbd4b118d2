// What must return before it is done: every asynchronous operation behind a host function that spins, its effect afterwards.
#include "resources.h"

constexpr size_t N = 1000;
__device__ unsigned symbol[N];

__global__ void add(unsigned *data, unsigned value)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        data[i] += value;
}
static std::atomic<int> calls; // not on a stack that a failed case has left
static void count(void *data) { ++*static_cast<std::atomic<int> *>(data); }
static void called(hipStream_t, hipError_t, void *data) { ++*static_cast<std::atomic<int> *>(data); }

CASE(copy_from_device_to_device)
{
    Stream s;
    Device<unsigned> from(N, 1u), to(N, 0u);
    returns_while_held(s, [&] { return hipMemcpyAsync(to, from, to.bytes(), hipMemcpyDeviceToDevice, s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_from_device_to_device_runs_after_the_host_function)
{
    Stream s, other;
    Device<unsigned> from(N, 1u), to(N, 0u);
    Pinned<unsigned> seen(N, 9u);
    Gate gate;
    gate.hold(s);
    CHECK(hipMemcpyAsync(to, from, to.bytes(), hipMemcpyDeviceToDevice, s));
    REQUIRE(gate.holds());
    CHECK(hipMemcpyAsync(seen, to, to.bytes(), hipMemcpyDeviceToHost, other));
    CHECK(hipStreamSynchronize(other));
    REQUIRE(gate.holds());
    REQUIRE(seen.all_are(0));
    gate.open();
    CHECK(hipStreamSynchronize(s));
    REQUIRE(to.all_are(1));
}
CASE(copy_from_pinned_memory)
{
    Stream s;
    Pinned<unsigned> from(N, 1u);
    Device<unsigned> to(N, 0u);
    returns_while_held(s, [&] { return hipMemcpyAsync(to, from, to.bytes(), hipMemcpyHostToDevice, s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_from_pinned_memory_reads_it_when_it_runs)
{
    Stream s;
    Pinned<unsigned> from(N, 1u);
    Device<unsigned> to(N, 0u);
    Gate gate;
    gate.hold(s);
    CHECK(hipMemcpyAsync(to, from, to.bytes(), hipMemcpyHostToDevice, s));
    REQUIRE(gate.holds());
    for (size_t i = 0; i < N; i++)
        from[i] = 2;
    gate.open();
    CHECK(hipStreamSynchronize(s));
    REQUIRE(to.all_are(2));
}
CASE(copy_to_pinned_memory)
{
    Stream s;
    Device<unsigned> from(N, 1u);
    Pinned<unsigned> to(N, 0u);
    returns_while_held(s, [&] { return hipMemcpyAsync(to, from, to.bytes(), hipMemcpyDeviceToHost, s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_to_registered_memory)
{
    Stream s;
    Device<unsigned> from(N, 1u);
    std::vector<unsigned> to(N);
    CHECK(hipHostRegister(to.data(), from.bytes(), hipHostRegisterDefault));
    returns_while_held(s, [&] { return hipMemcpyAsync(to.data(), from, from.bytes(), hipMemcpyDeviceToHost, s); });
    REQUIRE(to == std::vector<unsigned>(N, 1));
    CHECK(hipHostUnregister(to.data()));
}
CASE(copy_with_kind_default)
{
    Stream s;
    Device<unsigned> from(N, 1u), to(N, 0u);
    returns_while_held(s, [&] { return hipMemcpyAsync(to, from, to.bytes(), hipMemcpyDefault, s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_to_pageable_memory_has_ended_when_it_returns)
{
    Stream s;
    Device<unsigned> d(N, 1u);
    std::vector<unsigned> to(N);
    add<<<4, 256, 0, s>>>(d, 1);
    CHECK(hipMemcpyAsync(to.data(), d, d.bytes(), hipMemcpyDeviceToHost, s));
    REQUIRE(to == std::vector<unsigned>(N, 2));
}
CASE(copy_from_pageable_memory_has_read_it_when_it_returns)
{
    Stream s;
    Device<unsigned> to(N, 0u);
    std::vector<unsigned> from(N, 1);
    CHECK(hipMemcpyAsync(to, from.data(), to.bytes(), hipMemcpyHostToDevice, s));
    from.assign(N, 2);
    CHECK(hipStreamSynchronize(s));
    REQUIRE(to.all_are(1));
}
CASE(copy_dtod)
{
    Stream s;
    Device<unsigned> from(N, 1u), to(N, 0u);
    returns_while_held(s, [&] { return hipMemcpyDtoDAsync(to.at, from.at, to.bytes(), s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_htod)
{
    Stream s;
    Pinned<unsigned> from(N, 1u);
    Device<unsigned> to(N, 0u);
    returns_while_held(s, [&] { return hipMemcpyHtoDAsync(to.at, from.at, to.bytes(), s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_dtoh)
{
    Stream s;
    Device<unsigned> from(N, 1u);
    Pinned<unsigned> to(N, 0u);
    returns_while_held(s, [&] { return hipMemcpyDtoHAsync(to.at, from.at, to.bytes(), s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_between_peers)
{
    Stream s;
    Device<unsigned> from(N, 1u), to(N, 0u);
    returns_while_held(s, [&] { return hipMemcpyPeerAsync(to, 0, from, 0, to.bytes(), s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_of_two_dimensions)
{
    Stream s;
    Device<unsigned> from(64, 1u), to(64, 0u);
    returns_while_held(s, [&] { return hipMemcpy2DAsync(to, 32, from, 32, 16, 8, hipMemcpyDeviceToDevice, s); });
    std::vector<unsigned> result = to.host();
    for (size_t i = 0; i < 64; i++)
        EQUAL(i % 8 < 4 ? 1u : 0u, result[i]);
}
CASE(copy_of_three_dimensions)
{
    Stream s;
    Device<unsigned> from(64, 1u), to(64, 0u);
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(from.at, 16, 16, 4);
    copy.dstPtr = make_hipPitchedPtr(to.at, 16, 16, 4);
    copy.extent = make_hipExtent(16, 4, 4);
    copy.kind = hipMemcpyDeviceToDevice;
    returns_while_held(s, [&] { return hipMemcpy3DAsync(&copy, s); });
    REQUIRE(to.all_are(1));
}
CASE(copy_to_symbol)
{
    Stream s;
    Device<unsigned> from(N, 1u), to(N, 0u);
    returns_while_held(s, [&] {
        return hipMemcpyToSymbolAsync(HIP_SYMBOL(symbol), from, from.bytes(), 0, hipMemcpyDeviceToDevice, s);
    });
    CHECK(hipMemcpyFromSymbol(to, HIP_SYMBOL(symbol), to.bytes(), 0, hipMemcpyDeviceToDevice));
    REQUIRE(to.all_are(1));
}
CASE(copy_from_symbol)
{
    Stream s;
    Device<unsigned> from(N, 3u), to(N, 0u);
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(symbol), from, from.bytes(), 0, hipMemcpyDeviceToDevice));
    CHECK(hipDeviceSynchronize());
    returns_while_held(s, [&] {
        return hipMemcpyFromSymbolAsync(to, HIP_SYMBOL(symbol), to.bytes(), 0, hipMemcpyDeviceToDevice, s);
    });
    REQUIRE(to.all_are(3));
}
CASE(fill)
{
    Stream s;
    Device<unsigned> d(N, 0u);
    returns_while_held(s, [&] { return hipMemsetAsync(d, 1, d.bytes(), s); });
    REQUIRE(d.all_are(0x01010101));
}
CASE(fill_of_pinned_memory)
{
    Stream s;
    Pinned<unsigned> p(N, 0u);
    returns_while_held(s, [&] { return hipMemsetAsync(p, 1, p.bytes(), s); });
    REQUIRE(p.all_are(0x01010101));
}
CASE(fill_of_bytes)
{
    Stream s;
    Device<unsigned> d(N, 0u);
    returns_while_held(s, [&] { return hipMemsetD8Async(d.at, 1, d.bytes(), s); });
    REQUIRE(d.all_are(0x01010101));
}
CASE(fill_of_shorts)
{
    Stream s;
    Device<unsigned> d(N, 0u);
    returns_while_held(s, [&] { return hipMemsetD16Async(d.at, 0x102, d.bytes() / 2, s); });
    REQUIRE(d.all_are(0x01020102));
}
CASE(fill_of_words)
{
    Stream s;
    Device<unsigned> d(N, 0u);
    returns_while_held(s, [&] { return hipMemsetD32Async(d.at, 0x1020304, N, s); });
    REQUIRE(d.all_are(0x01020304));
}
CASE(fill_of_two_dimensions)
{
    Stream s;
    Device<unsigned> d(64, 0u);
    returns_while_held(s, [&] { return hipMemset2DAsync(d, 32, 1, 16, 8, s); });
    std::vector<unsigned> result = d.host();
    for (size_t i = 0; i < 64; i++)
        EQUAL(i % 8 < 4 ? 0x01010101u : 0u, result[i]);
}
CASE(fill_of_three_dimensions)
{
    Stream s;
    Device<unsigned> d(64, 0u);
    returns_while_held(s, [&] {
        return hipMemset3DAsync(make_hipPitchedPtr(d.at, 16, 16, 4), 1, make_hipExtent(16, 4, 4), s);
    });
    REQUIRE(d.all_are(0x01010101));
}
CASE(synchronous_fill_of_device_memory_does_not_wait) // HIP: asynchronous to the host, but for host and offset addresses
{
    Device<unsigned> d(N, 0u);
    returns_while_held(nullptr, [&] { return hipMemset(d, 1, d.bytes()); });
    REQUIRE(d.all_are(0x01010101));
}
CASE(synchronous_fill_of_pinned_memory_waits)
{
    Pinned<unsigned> p(N, 0u);
    CHECK(hipMemset(p, 1, p.bytes()));
    REQUIRE(p.all_are(0x01010101));
}
CASE(synchronous_copy_on_the_device_does_not_wait)
{
    Device<unsigned> from(N, 1u), to(N, 0u);
    returns_while_held(nullptr, [&] { return hipMemcpy(to, from, to.bytes(), hipMemcpyDeviceToDevice); });
    REQUIRE(to.all_are(1));
}
#if HIP_VERSION_MAJOR >= 6
// Returns when what holds the null stream is over, and with what it does done.
template <typename Call> static void waits(Call call)
{
    Gate gate;
    gate.hold(nullptr);
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    hipError_t error = call();
    bool held = gate.holds();
    opener.join();
    CHECK(error);
    REQUIRE(!held);
    CHECK(hipStreamQuery(nullptr));
}
CASE(copies_and_fills_of_memory_that_asks_for_it_wait)
{
    unsigned on = 1, off = 0;
    Device<unsigned> plain(N, 1u), marked(N, 0u);
    hipDeviceptr_t at = reinterpret_cast<hipDeviceptr_t>(marked.at);
    CHECK(hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, at));
    waits([&] { return hipMemcpy(marked, plain, plain.bytes(), hipMemcpyDeviceToDevice); });
    waits([&] { return hipMemcpyDtoD(at, reinterpret_cast<hipDeviceptr_t>(plain.at), plain.bytes()); });
    waits([&] { return hipMemcpy(plain, marked, plain.bytes(), hipMemcpyDeviceToDevice); });
    waits([&] { return hipMemset(marked, 2, marked.bytes()); });
    REQUIRE(marked.all_are(0x02020202));
    CHECK(hipPointerSetAttribute(&off, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, at));
    returns_while_held(nullptr, [&] { return hipMemset(marked, 1, marked.bytes()); });
}
#endif
CASE(launch)
{
    Stream s;
    Device<unsigned> d(N, 1u);
    returns_while_held(s, [&] {
        add<<<4, 256, 0, s>>>(d, 1);
        return hipGetLastError();
    });
    REQUIRE(d.all_are(2));
}
CASE(host_function)
{
    Stream s;
    calls = 0;
    returns_while_held(s, [&] { return hipLaunchHostFunc(s, count, &calls); });
    EQUAL(1, calls.load());
}
CASE(callback)
{
    Stream s;
    calls = 0;
    returns_while_held(s, [&] { return hipStreamAddCallback(s, called, &calls, 0); });
    EQUAL(1, calls.load());
}
CASE(callback_holds_its_stream)
{
    Stream s;
    static std::atomic<bool> go;
    go = false;
    Device<unsigned> d(N, 0u);
    auto wait = [](hipStream_t, hipError_t, void *data) {
        auto *flag = static_cast<std::atomic<bool> *>(data);
        soon([flag] { return flag->load(); });
    };
    CHECK(hipStreamAddCallback(s, wait, &go, 0));
    CHECK(hipMemsetAsync(d, 1, d.bytes(), s));
    GIVES(hipErrorNotReady, hipStreamQuery(s));
    go = true;
    CHECK(hipStreamSynchronize(s));
    REQUIRE(d.all_are(0x01010101));
}
CASE(callback_is_told_stream_and_success)
{
    Stream s;
    static struct Told {
        hipStream_t stream;
        hipError_t error;
        std::thread::id thread;
    } told;
    told = {nullptr, hipErrorUnknown, std::this_thread::get_id()};
    auto tell = [](hipStream_t stream, hipError_t error, void *data) {
        *static_cast<Told *>(data) = {stream, error, std::this_thread::get_id()};
    };
    CHECK(hipStreamAddCallback(s, tell, &told, 0));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(told.stream == s.handle);
    EQUAL(hipSuccess, told.error);
    REQUIRE(told.thread != std::this_thread::get_id());
}
CASE(event_record)
{
    Stream s;
    Event e;
    returns_while_held(s, [&] {
        hipError_t error = hipEventRecord(e, s);
        GIVES(hipErrorNotReady, hipEventQuery(e));
        return error;
    });
    CHECK(hipEventQuery(e));
}
CASE(event_is_ready_without_anybody_who_waits)
{
    Stream s;
    Event e;
    Gate gate;
    gate.hold(s);
    CHECK(hipEventRecord(e, s));
    GIVES(hipErrorNotReady, hipEventQuery(e));
    gate.open();
    REQUIRE(soon([&] { return hipEventQuery(e) == hipSuccess; }));
}
CASE(stream_is_ready_without_anybody_who_waits)
{
    Stream s;
    Device<unsigned> d(N, 0u);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), s));
    REQUIRE(soon([&] { return hipStreamQuery(s) == hipSuccess; }));
}
CASE(work_before_an_event_does_not_wait_for_work_after_it)
{
    Stream s;
    Event e;
    Device<unsigned> d(N, 0u);
    Pinned<unsigned> seen(N, 0u);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), s));
    CHECK(hipMemcpyAsync(seen, d, d.bytes(), hipMemcpyDeviceToHost, s));
    CHECK(hipEventRecord(e, s));
    Gate gate;
    gate.hold(s);
    CHECK(hipEventSynchronize(e));
    REQUIRE(gate.holds());
    REQUIRE(seen.all_are(0x01010101));
}
CASE(wait_for_an_event)
{
    Stream first, second;
    Event e;
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(first);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), first));
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    add<<<4, 256, 0, second>>>(d, 1);
    CHECK(hipGetLastError());
    REQUIRE(gate.holds());
    GIVES(hipErrorNotReady, hipStreamQuery(second));
    gate.open();
    CHECK(hipStreamSynchronize(second));
    REQUIRE(d.all_are(0x01010102));
}
CASE(wait_holds_copies_and_fills)
{
    Stream first, second;
    Event e;
    Device<unsigned> a(N, 1u), b(N, 2u);
    Gate gate;
    gate.hold(first);
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    CHECK(hipMemcpyAsync(a, b, a.bytes(), hipMemcpyDeviceToDevice, second));
    CHECK(hipMemsetAsync(b, 0, b.bytes(), second));
    REQUIRE(gate.holds());
    GIVES(hipErrorNotReady, hipStreamQuery(second));
    gate.open();
    CHECK(hipStreamSynchronize(second));
    REQUIRE(a.all_are(2) && b.all_are(0));
}
CASE(wait_is_for_the_record_before_it)
{
    Stream first, second;
    Event e;
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    Gate gate;
    gate.hold(first);
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamSynchronize(second));
    REQUIRE(gate.holds());
}
CASE(wait_for_an_event_that_was_never_recorded_is_none)
{
    Stream s;
    Event e;
    CHECK(hipStreamWaitEvent(s, e, 0));
    CHECK(hipStreamSynchronize(s));
}
CASE(destroying_a_recorded_event_does_not_wait)
{
    Stream s;
    hipEvent_t e;
    CHECK(hipEventCreate(&e));
    returns_while_held(s, [&] {
        hipError_t error = hipEventRecord(e, s);
        return error ? error : hipEventDestroy(e);
    });
}
CASE(what_waits_for_a_destroyed_event_still_waits)
{
    Stream first, second;
    hipEvent_t e;
    CHECK(hipEventCreate(&e));
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(first);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), first));
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    CHECK(hipEventDestroy(e));
    add<<<4, 256, 0, second>>>(d, 1);
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipStreamSynchronize(second));
    REQUIRE(d.all_are(0x01010102));
}
CASE(destroying_a_stream_lets_its_work_end)
{
    Device<unsigned> d(N, 0u);
    hipStream_t s;
    CHECK(hipStreamCreate(&s));
    for (int i = 0; i < 10; i++)
        add<<<4, 256, 0, s>>>(d, 1);
    CHECK(hipStreamDestroy(s));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(10));
}
CASE(pool_memory)
{
    Stream s;
    unsigned *at = nullptr;
    Pinned<unsigned> seen(N, 0u);
    returns_while_held(s, [&] {
        CHECK(hipMallocAsync(reinterpret_cast<void **>(&at), N * 4, s));
        CHECK(hipMemsetAsync(at, 1, N * 4, s));
        CHECK(hipMemcpyAsync(seen, at, N * 4, hipMemcpyDeviceToHost, s));
        return hipFreeAsync(at, s);
    });
    REQUIRE(seen.all_are(0x01010101));
}
CASE(freed_pool_memory_is_not_given_to_another_stream_before)
{
    Stream s, other;
    unsigned *mine = nullptr, *theirs = nullptr;
    CHECK(hipMallocAsync(reinterpret_cast<void **>(&mine), N * 4, s));
    CHECK(hipStreamSynchronize(s));
    Gate gate;
    gate.hold(s);
    CHECK(hipMemsetAsync(mine, 1, N * 4, s));
    CHECK(hipFreeAsync(mine, s));
    CHECK(hipMallocAsync(reinterpret_cast<void **>(&theirs), N * 4, other));
    REQUIRE(gate.holds());
    REQUIRE(theirs != mine);
    gate.open();
    CHECK(hipFreeAsync(theirs, other));
    CHECK(hipDeviceSynchronize());
}
CASE(prefetch)
{
    Stream s;
    Managed<unsigned> m(N);
    returns_while_held(s, [&] { return hipMemPrefetchAsync(m, m.bytes(), 0, s); });
}
CASE(order_of_all_in_one_stream)
{
    Stream s;
    Device<unsigned> a(N, 0u), b(N, 0u);
    Pinned<unsigned> p(N, 5u), seen(N, 0u);
    calls = 0;
    Gate gate;
    gate.hold(s);
    CHECK(hipMemcpyAsync(a, p, a.bytes(), hipMemcpyHostToDevice, s));                 // a: 5
    add<<<4, 256, 0, s>>>(a, 1);                                                      // a: 6
    CHECK(hipMemcpyAsync(b, a, a.bytes(), hipMemcpyDeviceToDevice, s));               // b: 6
    CHECK(hipMemsetAsync(a, 0, a.bytes(), s));                                        // a: 0
    CHECK(hipLaunchHostFunc(s, count, &calls));
    add<<<4, 256, 0, s>>>(b, 1);                                                      // b: 7
    CHECK(hipMemcpyAsync(seen, b, b.bytes(), hipMemcpyDeviceToHost, s));
    REQUIRE(gate.holds());
    EQUAL(0, calls.load());
    gate.open();
    CHECK(hipStreamSynchronize(s));
    EQUAL(1, calls.load());
    REQUIRE(seen.all_are(7) && a.all_are(0));
}
CASE(a_held_stream_does_not_hold_another)
{
    Stream held, free;
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(held);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), free));
    add<<<4, 256, 0, free>>>(d, 1);
    CHECK(hipStreamSynchronize(free));
    REQUIRE(gate.holds());
    gate.open();
    REQUIRE(d.all_are(0x01010102));
}
CASE(host_functions_of_two_streams_run_at_once)
{
    Stream first, second;
    Gate a, b;
    a.hold(first);
    b.hold(second);
    REQUIRE(soon([&] { return a.entered() && b.entered(); }));
    REQUIRE(a.holds() && b.holds());
}
CASE(null_stream_waits_for_a_blocking_stream)
{
    Stream blocking(hipStreamDefault);
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(blocking);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), blocking));
    add<<<4, 256>>>(d, 1);
    CHECK(hipGetLastError());
    REQUIRE(gate.holds());
    GIVES(hipErrorNotReady, hipStreamQuery(nullptr));
    gate.open();
    CHECK(hipStreamSynchronize(nullptr));
    REQUIRE(d.all_are(0x01010102));
}
CASE(blocking_stream_waits_for_the_null_stream)
{
    Stream blocking(hipStreamDefault);
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(nullptr);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), nullptr));
    add<<<4, 256, 0, blocking>>>(d, 1);
    CHECK(hipGetLastError());
    REQUIRE(gate.holds());
    GIVES(hipErrorNotReady, hipStreamQuery(blocking));
    gate.open();
    CHECK(hipStreamSynchronize(blocking));
    REQUIRE(d.all_are(0x01010102));
}
CASE(non_blocking_stream_does_not_wait_for_the_null_stream)
{
    Stream s;
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(nullptr);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), s));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(gate.holds());
}
CASE(null_stream_does_not_wait_for_a_non_blocking_stream)
{
    Stream s;
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(s);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), nullptr));
    CHECK(hipStreamSynchronize(nullptr));
    REQUIRE(gate.holds());
}
CASE(per_thread_stream_waits_for_the_null_stream)
{
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(nullptr);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), nullptr));
    add<<<4, 256, 0, hipStreamPerThread>>>(d, 1);
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipStreamSynchronize(hipStreamPerThread));
    REQUIRE(d.all_are(0x01010102));
}
CASE(device_synchronize_waits_for_every_stream)
{
    Stream first, second(hipStreamDefault);
    calls = 0;
    auto slowly = [](void *data) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        ++*static_cast<std::atomic<int> *>(data);
    };
    CHECK(hipLaunchHostFunc(first, slowly, &calls));
    CHECK(hipLaunchHostFunc(second, slowly, &calls));
    CHECK(hipDeviceSynchronize());
    EQUAL(2, calls.load());
}
static std::atomic<int> released;
static void release_later(void *data)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    released = *static_cast<volatile int *>(data);
}
template <typename Free> static void waits_for_host_functions(void *memory, Free free)
{
    Stream s;
    released = 0;
    *static_cast<int *>(memory) = 42;
    CHECK(hipLaunchHostFunc(s, release_later, memory));
    CHECK(free(memory));
    EQUAL(42, released.load());
}
CASE(freeing_host_memory_waits_for_host_functions)
{
    void *memory;
    CHECK(hipHostMalloc(&memory, 4096, 0));
    waits_for_host_functions(memory, hipHostFree);
}
CASE(free_host_waits_for_host_functions)
{
    void *memory;
    CHECK(hipHostMalloc(&memory, 4096, 0));
    waits_for_host_functions(memory, hipFreeHost);
}
CASE(freeing_managed_memory_waits_for_host_functions)
{
    void *memory;
    CHECK(hipMallocManaged(&memory, 4096, hipMemAttachGlobal));
    waits_for_host_functions(memory, hipFree);
}
CASE(unregistering_waits_for_host_functions)
{
    std::vector<int> memory(2048);
    CHECK(hipHostRegister(memory.data(), 4096, hipHostRegisterDefault));
    waits_for_host_functions(memory.data(), hipHostUnregister);
}
CASE(freeing_device_memory_waits_for_its_use)
{
    Stream s;
    unsigned *d;
    Pinned<unsigned> seen(N, 0u);
    CHECK(hipMalloc(reinterpret_cast<void **>(&d), N * 4));
    Gate gate;
    gate.hold(s);
    CHECK(hipMemsetAsync(d, 1, N * 4, s));
    CHECK(hipMemcpyAsync(seen, d, N * 4, hipMemcpyDeviceToHost, s));
    REQUIRE(gate.holds());
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    hipError_t error = hipFree(d);
    bool ended = seen.all_are(0x01010101);
    opener.join();
    CHECK(error);
    REQUIRE(ended);
}
CASE(a_thousand_operations_behind_a_gate)
{
    Stream s;
    Device<unsigned> d(N, 0u);
    Gate gate;
    gate.hold(s);
    for (int i = 0; i < 500; i++) {
        add<<<4, 256, 0, s>>>(d, 1);
        CHECK(hipMemcpyAsync(d, d.at + N / 2, d.bytes() / 2, hipMemcpyDeviceToDevice, s));
    }
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipStreamSynchronize(s));
    REQUIRE(d.all_are(500));
}
CASE(two_threads_in_two_streams)
{
    bool good[2] = {};
    auto work = [&good](int index) {
        hipStream_t s;
        unsigned *d;
        std::vector<unsigned> seen(N);
        bool fine = hipStreamCreateWithFlags(&s, hipStreamNonBlocking) == hipSuccess
            && hipMalloc(reinterpret_cast<void **>(&d), N * 4) == hipSuccess
            && hipMemsetAsync(d, 0, N * 4, s) == hipSuccess;
        for (int i = 0; fine && i < 20; i++)
            add<<<4, 256, 0, s>>>(d, unsigned(index + 1));
        fine = fine && hipMemcpyAsync(seen.data(), d, N * 4, hipMemcpyDeviceToHost, s) == hipSuccess;
        fine = fine && hipFree(d) == hipSuccess && hipStreamDestroy(s) == hipSuccess;
        good[index] = fine && seen == std::vector<unsigned>(N, 20u * unsigned(index + 1));
    };
    std::thread first(work, 0), second(work, 1);
    first.join();
    second.join();
    REQUIRE(good[0] && good[1]);
}
