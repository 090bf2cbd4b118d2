// Handles that are none: numbers, null, destroyed ones, those of another kind. Each is refused, none is followed.
#include "resources.h"

__global__ void nothing() {}

static hipStream_t bad_stream() { return reinterpret_cast<hipStream_t>(0xFFFF); }
static hipStream_t minus_stream() { return reinterpret_cast<hipStream_t>(intptr_t(-1)); }
static hipStream_t destroyed_stream()
{
    hipStream_t s;
    CHECK(hipStreamCreate(&s));
    CHECK(hipStreamDestroy(s));
    return s;
}
static hipEvent_t bad_event() { return reinterpret_cast<hipEvent_t>(0xFFFF); }
static hipEvent_t destroyed_event()
{
    hipEvent_t e;
    CHECK(hipEventCreate(&e));
    CHECK(hipEventDestroy(e));
    return e;
}
static void none(void *) {}
static void none_called(hipStream_t, hipError_t, void *) {}

// Streams. hip::isValid(stream) fails: hipErrorContextIsDestroyed (clr), but for those calls that say hipErrorInvalidHandle.
template <typename Call> static void refuses_streams(Call call, hipError_t error = hipErrorContextIsDestroyed)
{
    GIVES(error, call(bad_stream()));
    GIVES(error, call(minus_stream()));
    GIVES(error, call(destroyed_stream()));
}
template <typename Call> static void refuses_events(Call call)
{
    GIVES(hipErrorContextIsDestroyed, call(bad_event()));
    GIVES(hipErrorContextIsDestroyed, call(destroyed_event()));
}
CASE(stream_synchronize) { refuses_streams([](hipStream_t s) { return hipStreamSynchronize(s); }); }
CASE(stream_query) { refuses_streams([](hipStream_t s) { return hipStreamQuery(s); }); }
CASE(stream_destroy) { refuses_streams([](hipStream_t s) { return hipStreamDestroy(s); }); }
CASE(stream_get_flags)
{
    refuses_streams([](hipStream_t s) {
        unsigned flags;
        return hipStreamGetFlags(s, &flags);
    });
}
CASE(stream_get_priority)
{
    refuses_streams([](hipStream_t s) {
        int priority;
        return hipStreamGetPriority(s, &priority);
    });
}
#if HIP_VERSION_MAJOR >= 6
CASE(stream_get_device)
{
    refuses_streams([](hipStream_t s) {
        int device;
        return hipStreamGetDevice(s, &device);
    });
}
#endif
CASE(stream_wait_event)
{
    Event e;
    refuses_streams([&](hipStream_t s) { return hipStreamWaitEvent(s, e, 0); }, hipErrorInvalidHandle);
}
CASE(stream_add_callback) { refuses_streams([](hipStream_t s) { return hipStreamAddCallback(s, none_called, nullptr, 0); }); }
CASE(launch_host_func) { refuses_streams([](hipStream_t s) { return hipLaunchHostFunc(s, none, nullptr); }); }
CASE(stream_attach)
{
    Managed<int> m(1024);
    refuses_streams([&](hipStream_t s) { return hipStreamAttachMemAsync(s, m, 0, hipMemAttachGlobal); });
}
CASE(event_record_in_a_stream)
{
    Event e;
    refuses_streams([&](hipStream_t s) { return hipEventRecord(e, s); });
}
CASE(launch)
{
    auto launch = [](hipStream_t s) {
        return hipLaunchKernel(reinterpret_cast<const void *>(nothing), dim3(1), dim3(1), nullptr, 0, s);
    };
    refuses_streams(launch);
}
CASE(copy)
{
    Device<int> a(16, 1), b(16, 2);
    refuses_streams([&](hipStream_t s) { return hipMemcpyAsync(a, b, 64, hipMemcpyDeviceToDevice, s); });
    refuses_streams([&](hipStream_t s) { return hipMemcpyWithStream(a, b, 64, hipMemcpyDeviceToDevice, s); });
    refuses_streams([&](hipStream_t s) { return hipMemcpyDtoDAsync(a.at, b.at, 64, s); });
    refuses_streams([&](hipStream_t s) { return hipMemcpyPeerAsync(a, 0, b, 0, 64, s); });
    refuses_streams([&](hipStream_t s) { return hipMemcpy2DAsync(a, 16, b, 16, 16, 4, hipMemcpyDeviceToDevice, s); });
}
CASE(copy_between_host_and_device)
{
    Device<int> d(16, 1);
    Pinned<int> p(16);
    refuses_streams([&](hipStream_t s) { return hipMemcpyHtoDAsync(d.at, p.at, 64, s); });
    refuses_streams([&](hipStream_t s) { return hipMemcpyDtoHAsync(p.at, d.at, 64, s); });
}
CASE(fill)
{
    Device<int> d(16, 1);
    refuses_streams([&](hipStream_t s) { return hipMemsetAsync(d, 0, 64, s); });
    refuses_streams([&](hipStream_t s) { return hipMemsetD8Async(d.at, 0, 64, s); });
    refuses_streams([&](hipStream_t s) { return hipMemsetD16Async(d.at, 0, 32, s); });
    refuses_streams([&](hipStream_t s) { return hipMemsetD32Async(d.at, 0, 16, s); });
    refuses_streams([&](hipStream_t s) { return hipMemset2DAsync(d, 16, 0, 16, 4, s); });
    REQUIRE(d.all_are(1));
}
CASE(pool_allocation)
{
    void *at;
    hipMemPool_t pool;
    CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
    refuses_streams([&](hipStream_t s) { return hipMallocAsync(&at, 64, s); }, hipErrorInvalidHandle);
    refuses_streams([&](hipStream_t s) { return hipMallocFromPoolAsync(&at, 64, pool, s); }, hipErrorInvalidHandle);
    CHECK(hipMallocAsync(&at, 64, nullptr));
    refuses_streams([&](hipStream_t s) { return hipFreeAsync(at, s); }, hipErrorInvalidHandle);
    CHECK(hipFreeAsync(at, nullptr));
    CHECK(hipDeviceSynchronize());
}
CASE(prefetch)
{
    Managed<int> m(1024);
    refuses_streams([&](hipStream_t s) { return hipMemPrefetchAsync(m, m.bytes(), 0, s); });
}
CASE(capture_of_a_destroyed_stream)
{
    refuses_streams([](hipStream_t s) { return hipStreamBeginCapture(s, hipStreamCaptureModeGlobal); });
}
#if HIP_VERSION_MAJOR >= 7
CASE(stream_id) // this one says hipErrorInvalidResourceHandle (clr, hipStreamGetId_common)
{
    unsigned long long id;
    GIVES(hipErrorInvalidHandle, hipStreamGetId(bad_stream(), &id));
    GIVES(hipErrorInvalidHandle, hipStreamGetId(destroyed_stream(), &id));
}
#endif
CASE(destroying_null_and_built_in_streams)
{
    GIVES(hipErrorInvalidHandle, hipStreamDestroy(nullptr));
    GIVES(hipErrorInvalidHandle, hipStreamDestroy(hipStreamPerThread));
#if HIP_VERSION_MAJOR >= 7
    GIVES(hipErrorInvalidHandle, hipStreamDestroy(hipStreamLegacy));
#endif
}
CASE(destroying_a_stream_twice)
{
    hipStream_t s = destroyed_stream();
    GIVES(hipErrorContextIsDestroyed, hipStreamDestroy(s));
}
CASE(an_event_is_no_stream)
{
    Event e;
    GIVES(hipErrorContextIsDestroyed, hipStreamSynchronize(reinterpret_cast<hipStream_t>(e.handle)));
}
CASE(host_memory_is_no_stream)
{
    char memory[4096] = {};
    GIVES(hipErrorContextIsDestroyed, hipStreamSynchronize(reinterpret_cast<hipStream_t>(memory)));
    GIVES(hipErrorContextIsDestroyed, hipStreamQuery(reinterpret_cast<hipStream_t>(memory + 1)));
}

// Events.
CASE(event_destroy) { refuses_events([](hipEvent_t e) { return hipEventDestroy(e); }); }
CASE(event_query) { refuses_events([](hipEvent_t e) { return hipEventQuery(e); }); }
CASE(event_synchronize) { refuses_events([](hipEvent_t e) { return hipEventSynchronize(e); }); }
CASE(event_record) { refuses_events([](hipEvent_t e) { return hipEventRecord(e, nullptr); }); }
CASE(wait_for_an_event) { refuses_events([](hipEvent_t e) { return hipStreamWaitEvent(nullptr, e, 0); }); }
CASE(event_elapsed_time)
{
    Event good;
    CHECK(hipEventRecord(good, nullptr));
    CHECK(hipEventSynchronize(good));
    float ms;
    refuses_events([&](hipEvent_t e) { return hipEventElapsedTime(&ms, e, good); });
    refuses_events([&](hipEvent_t e) { return hipEventElapsedTime(&ms, good, e); });
}
CASE(null_events)
{
    Event e;
    float ms;
    GIVES(hipErrorInvalidHandle, hipEventDestroy(nullptr));
    GIVES(hipErrorInvalidHandle, hipEventQuery(nullptr));
    GIVES(hipErrorInvalidHandle, hipEventSynchronize(nullptr));
    GIVES(hipErrorInvalidHandle, hipEventRecord(nullptr, nullptr));
    GIVES(hipErrorInvalidHandle, hipStreamWaitEvent(nullptr, nullptr, 0));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, nullptr, e));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, e, nullptr));
    GIVES(hipErrorInvalidValue, hipEventElapsedTime(nullptr, e, e));
}
CASE(a_stream_is_no_event)
{
    Stream s;
    GIVES(hipErrorContextIsDestroyed, hipEventQuery(reinterpret_cast<hipEvent_t>(s.handle)));
}
CASE(a_new_event_is_not_an_old_one)
{
    hipEvent_t old = destroyed_event();
    Event fresh;
    if (fresh.handle != old)
        GIVES(hipErrorContextIsDestroyed, hipEventQuery(old));
    CHECK(hipEventQuery(fresh));
}

// Pools, modules, functions.
static hipMemPool_t new_pool()
{
    hipMemPoolProps properties = {};
    properties.allocType = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    hipMemPool_t pool;
    CHECK(hipMemPoolCreate(&pool, &properties));
    return pool;
}
CASE(pool_destroyed_twice)
{
    hipMemPool_t pool = new_pool();
    CHECK(hipMemPoolDestroy(pool));
    GIVES(hipErrorInvalidValue, hipMemPoolDestroy(pool));
    hipMemPool_t other = new_pool();
    CHECK(hipMemPoolDestroy(other));
}
CASE(default_pool_cannot_be_destroyed)
{
    hipMemPool_t pool;
    CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolDestroy(pool));
    GIVES(hipErrorInvalidValue, hipMemPoolDestroy(nullptr));
}
CASE(pool_that_is_none)
{
    uint64_t value = 0;
    void *at;
    hipMemPool_t bad = reinterpret_cast<hipMemPool_t>(0xFFFF), gone = new_pool();
    CHECK(hipMemPoolDestroy(gone));
    for (hipMemPool_t pool : {bad, gone}) {
        GIVES(hipErrorInvalidValue, hipMemPoolDestroy(pool));
        GIVES(hipErrorInvalidValue, hipMemPoolTrimTo(pool, 0));
        GIVES(hipErrorInvalidValue, hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, &value));
        GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &value));
        GIVES(hipErrorInvalidValue, hipMallocFromPoolAsync(&at, 64, pool, nullptr));
    }
}
CASE(module_that_is_none)
{
    hipModule_t bad = reinterpret_cast<hipModule_t>(0xFFFF);
    hipFunction_t function;
    hipDeviceptr_t at;
    size_t bytes;
    GIVES(hipErrorNotFound, hipModuleUnload(bad));
    GIVES(hipErrorNotFound, hipModuleGetFunction(&function, bad, "nothing"));
    GIVES(hipErrorNotFound, hipModuleGetGlobal(&at, &bytes, bad, "nothing"));
    GIVES(hipErrorInvalidHandle, hipModuleUnload(nullptr));
    GIVES(hipErrorInvalidHandle, hipModuleGetFunction(&function, nullptr, "nothing"));
    GIVES(hipErrorInvalidHandle, hipModuleGetGlobal(&at, &bytes, nullptr, "nothing"));
}
CASE(function_that_is_none)
{
    int host = 0;
    GIVES(hipErrorInvalidDeviceFunction, hipLaunchKernel(&host, dim3(1), dim3(1), nullptr, 0, nullptr));
    GIVES(hipErrorInvalidDeviceFunction, hipLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr));
    GIVES(hipErrorInvalidHandle, hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}
