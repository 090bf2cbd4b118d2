// Events: flags, times, records, and what they refuse.
#include "resources.h"

CASE(null_places_are_invalid)
{
    GIVES(hipErrorInvalidValue, hipEventCreate(nullptr));
    GIVES(hipErrorInvalidValue, hipEventCreateWithFlags(nullptr, 0));
}
CASE(flags_that_are_good)
{
    for (unsigned flags : {unsigned(hipEventDefault), unsigned(hipEventBlockingSync), unsigned(hipEventDisableTiming),
                           unsigned(hipEventReleaseToDevice), unsigned(hipEventReleaseToSystem),
                           unsigned(hipEventBlockingSync | hipEventDisableTiming),
                           unsigned(hipEventInterprocess | hipEventDisableTiming)})
        Event made(flags);
}
CASE(flags_that_are_bad)
{
    hipEvent_t e;
    GIVES(hipErrorInvalidValue, hipEventCreateWithFlags(&e, 0x10));
    GIVES(hipErrorInvalidValue, hipEventCreateWithFlags(&e, 0xFFFFFFFF));
    GIVES(hipErrorInvalidValue, hipEventCreateWithFlags(&e, hipEventReleaseToDevice | hipEventReleaseToSystem));
    GIVES(hipErrorInvalidValue, hipEventCreateWithFlags(&e, hipEventInterprocess));
}
CASE(never_recorded_is_ready)
{
    Event e;
    CHECK(hipEventQuery(e));
    CHECK(hipEventSynchronize(e));
}
CASE(elapsed_time)
{
    Stream s;
    Event start, stop;
    CHECK(hipEventRecord(start, s));
    CHECK(hipLaunchHostFunc(s, [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
    CHECK(hipEventRecord(stop, s));
    CHECK(hipEventSynchronize(stop));
    float ms = -1;
    CHECK(hipEventElapsedTime(&ms, start, stop));
    REQUIRE(ms >= 10 && ms < 60000);
    CHECK(hipEventElapsedTime(&ms, stop, start));
    REQUIRE(ms <= -10);
    CHECK(hipEventElapsedTime(&ms, start, start));
    EQUAL(0.0f, ms);
}
CASE(elapsed_time_of_what_has_not_happened)
{
    Stream s;
    Event start, stop, never;
    float ms;
    CHECK(hipEventRecord(start, s));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, start, never));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, never, start));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, never, never));
    Gate gate;
    gate.hold(s);
    CHECK(hipEventRecord(stop, s));
    GIVES(hipErrorNotReady, hipEventElapsedTime(&ms, start, stop));
    gate.open();
    CHECK(hipStreamSynchronize(s));
    CHECK(hipEventElapsedTime(&ms, start, stop));
}
CASE(no_elapsed_time_without_timing)
{
    Event start, stop(hipEventDisableTiming);
    CHECK(hipEventRecord(start, nullptr));
    CHECK(hipEventRecord(stop, nullptr));
    CHECK(hipEventSynchronize(stop));
    float ms;
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, start, stop));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, stop, start));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&ms, stop, stop));
}
CASE(record_again_moves_it)
{
    Stream s;
    Event start, stop;
    CHECK(hipEventRecord(start, s));
    CHECK(hipEventRecord(stop, s));
    CHECK(hipLaunchHostFunc(s, [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
    CHECK(hipEventRecord(stop, s));
    CHECK(hipEventSynchronize(stop));
    float ms = 0;
    CHECK(hipEventElapsedTime(&ms, start, stop));
    REQUIRE(ms >= 10);
}
CASE(record_in_a_destroyed_stream_is_ready)
{
    Event e;
    hipStream_t s;
    CHECK(hipStreamCreate(&s));
    CHECK(hipEventRecord(e, s));
    CHECK(hipStreamDestroy(s));
    CHECK(hipEventSynchronize(e));
    CHECK(hipEventQuery(e));
    CHECK(hipStreamWaitEvent(nullptr, e, 0));
}
CASE(record_in_built_in_streams)
{
    Event e;
    CHECK(hipEventRecord(e, nullptr));
    CHECK(hipEventSynchronize(e));
    CHECK(hipEventRecord(e, hipStreamPerThread));
    CHECK(hipEventSynchronize(e));
    CHECK(hipEventRecord(e));
    CHECK(hipEventSynchronize(e));
}
#if HIP_VERSION_MAJOR >= 7
CASE(record_flags)
{
    Event e;
    CHECK(hipEventRecordWithFlags(e, nullptr, hipEventRecordDefault));
    CHECK(hipEventSynchronize(e));
    GIVES(hipErrorInvalidValue, hipEventRecordWithFlags(e, nullptr, 2));
    GIVES(hipErrorInvalidValue, hipEventRecordWithFlags(e, nullptr, ~0u));
}
#endif
CASE(many_events)
{
    std::vector<hipEvent_t> events(2000);
    for (hipEvent_t &e : events) {
        CHECK(hipEventCreate(&e));
        CHECK(hipEventRecord(e, nullptr));
    }
    CHECK(hipEventSynchronize(events.back()));
    float ms = -1;
    CHECK(hipEventElapsedTime(&ms, events.front(), events.back()));
    REQUIRE(ms >= 0);
    for (hipEvent_t e : events)
        CHECK(hipEventDestroy(e));
}
CASE(launch_that_records_its_own_times)
{
    Event start, stop;
    Device<unsigned> d(16, 0u);
    struct Local {
        static __global__ void kernel(unsigned *data) { data[0] = 1; }
    };
    void *arguments[] = {&d.at};
    CHECK(hipExtLaunchKernel(reinterpret_cast<const void *>(Local::kernel), dim3(1), dim3(1), arguments, 0, nullptr, start, stop, 0));
    CHECK(hipEventSynchronize(stop));
    float ms = -1;
    CHECK(hipEventElapsedTime(&ms, start, stop));
    REQUIRE(ms >= 0);
}
