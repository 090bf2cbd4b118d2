// Streams: how they are made, what they say of themselves, what they refuse.
#include "resources.h"

CASE(null_places_are_invalid)
{
    GIVES(hipErrorInvalidValue, hipStreamCreate(nullptr));
    GIVES(hipErrorInvalidValue, hipStreamCreateWithFlags(nullptr, hipStreamDefault));
    GIVES(hipErrorInvalidValue, hipStreamCreateWithPriority(nullptr, hipStreamDefault, 0));
}
CASE(flags)
{
    hipStream_t s;
    GIVES(hipErrorInvalidValue, hipStreamCreateWithFlags(&s, 0xFF));
    GIVES(hipErrorInvalidValue, hipStreamCreateWithFlags(&s, 2));
    GIVES(hipErrorInvalidValue, hipStreamCreateWithPriority(&s, 0xFF, 0));
    for (unsigned wanted : {unsigned(hipStreamDefault), unsigned(hipStreamNonBlocking)}) {
        Stream made(wanted);
        unsigned flags = 99;
        CHECK(hipStreamGetFlags(made, &flags));
        EQUAL(wanted, flags);
    }
}
CASE(get_flags_refuses_null)
{
    Stream s;
    unsigned flags;
    GIVES(hipErrorInvalidValue, hipStreamGetFlags(s, nullptr));
    GIVES(hipErrorInvalidValue, hipStreamGetFlags(nullptr, &flags));
    GIVES(hipErrorInvalidValue, hipStreamGetFlags(nullptr, nullptr));
}
CASE(flags_of_the_stream_of_this_thread)
{
    unsigned flags = 99;
    CHECK(hipStreamGetFlags(hipStreamPerThread, &flags));
    EQUAL(unsigned(hipStreamDefault), flags);
}
CASE(priorities_have_a_range)
{
    int least = 99, greatest = 99;
    CHECK(hipDeviceGetStreamPriorityRange(&least, &greatest));
    EQUAL(1, least);
    EQUAL(-1, greatest);
    CHECK(hipDeviceGetStreamPriorityRange(nullptr, &greatest));
    CHECK(hipDeviceGetStreamPriorityRange(&least, nullptr));
    CHECK(hipDeviceGetStreamPriorityRange(nullptr, nullptr));
}
CASE(priorities_are_kept_in_the_range)
{
    int wanted[][2] = {{-1, -1}, {0, 0}, {1, 1}, {-7, -1}, {7, 1}};
    for (auto &pair : wanted) {
        hipStream_t s;
        int priority = 99;
        CHECK(hipStreamCreateWithPriority(&s, hipStreamDefault, pair[0]));
        CHECK(hipStreamGetPriority(s, &priority));
        EQUAL(pair[1], priority);
        CHECK(hipStreamDestroy(s));
    }
}
CASE(priority_of_null_and_plain_streams)
{
    Stream s;
    int priority = 99;
    CHECK(hipStreamGetPriority(nullptr, &priority));
    EQUAL(0, priority);
    priority = 99;
    CHECK(hipStreamGetPriority(s, &priority));
    EQUAL(0, priority);
    GIVES(hipErrorInvalidValue, hipStreamGetPriority(s, nullptr));
    GIVES(hipErrorInvalidValue, hipStreamGetPriority(nullptr, nullptr));
}
#if HIP_VERSION_MAJOR >= 6
CASE(device_of_a_stream)
{
    Stream s;
    int device = 99;
    CHECK(hipStreamGetDevice(s, &device));
    EQUAL(0, device);
    device = 99;
    CHECK(hipStreamGetDevice(nullptr, &device));
    EQUAL(0, device);
    device = 99;
    CHECK(hipStreamGetDevice(hipStreamPerThread, &device));
    EQUAL(0, device);
    GIVES(hipErrorInvalidValue, hipStreamGetDevice(s, nullptr));
}
#endif
CASE(query_and_synchronize_of_idle_streams)
{
    Stream s;
    for (hipStream_t stream : {hipStream_t(s), hipStream_t(nullptr), hipStream_t(hipStreamPerThread)}) {
        CHECK(hipStreamQuery(stream));
        CHECK(hipStreamSynchronize(stream));
    }
}
CASE(not_ready_is_no_error_that_stays)
{
    Stream s;
    Gate gate;
    gate.hold(s);
    GIVES(hipErrorNotReady, hipStreamQuery(s));
    gate.open();
    CHECK(hipStreamSynchronize(s));
#if HIP_VERSION_MAJOR >= 7 // "hipErrorNotReady ... is not actually an error"; HIP 7 keeps it out of hipGetLastError
    CHECK(hipGetLastError());
#endif
}
CASE(wait_event_flags)
{
    Stream s;
    Event e;
    GIVES(hipErrorInvalidValue, hipStreamWaitEvent(s, e, ~0u));
    GIVES(hipErrorInvalidValue, hipStreamWaitEvent(s, e, 2));
    CHECK(hipStreamWaitEvent(s, e, 0));
}
CASE(callback_arguments)
{
    Stream s;
    auto none = [](hipStream_t, hipError_t, void *) {};
    GIVES(hipErrorInvalidValue, hipStreamAddCallback(s, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipStreamAddCallback(s, none, nullptr, 1));
    CHECK(hipStreamAddCallback(s, none, nullptr, 0));
    CHECK(hipStreamSynchronize(s));
}
CASE(host_function_must_be_given)
{
    Stream s;
    GIVES(hipErrorInvalidValue, hipLaunchHostFunc(s, nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipLaunchHostFunc(nullptr, nullptr, nullptr));
}
CASE(host_functions_on_every_kind_of_stream)
{
    static std::atomic<int> calls;
    calls = 0;
    auto count = [](void *) { ++calls; };
    Stream s, blocking(hipStreamDefault);
    for (hipStream_t stream : {hipStream_t(s), hipStream_t(blocking), hipStream_t(nullptr), hipStream_t(hipStreamPerThread)})
        CHECK(hipLaunchHostFunc(stream, count, nullptr));
    CHECK(hipDeviceSynchronize());
    EQUAL(4, calls.load());
}
CASE(host_functions_run_in_order)
{
    static std::vector<int> order;
    order.clear();
    static int numbers[50];
    Stream s;
    for (int &number : numbers) {
        number = int(&number - numbers);
        CHECK(hipLaunchHostFunc(s, [](void *data) { order.push_back(*static_cast<int *>(data)); }, &number));
    }
    CHECK(hipStreamSynchronize(s));
    EQUAL(50u, order.size());
    for (int i = 0; i < 50; i++)
        EQUAL(i, order[size_t(i)]);
}
CASE(many_streams)
{
    std::vector<hipStream_t> streams(100);
    Device<unsigned> d(100, 0u);
    for (size_t i = 0; i < streams.size(); i++) {
        CHECK(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking));
        CHECK(hipMemsetD32Async(d.at + i, int(i), 1, streams[i]));
    }
    CHECK(hipDeviceSynchronize());
    std::vector<unsigned> result = d.host();
    for (size_t i = 0; i < streams.size(); i++) {
        EQUAL(i, size_t(result[i]));
        CHECK(hipStreamDestroy(streams[i]));
    }
}
CASE(attach_refuses)
{
    Stream s;
    Managed<int> m(1024);
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(s, nullptr, 0, hipMemAttachSingle));
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(s, m, m.bytes() - 1, hipMemAttachSingle));
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(s, m, m.bytes() + 1, hipMemAttachSingle));
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(s, m, 0, hipMemAttachSingle | hipMemAttachHost));
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(s, m, 0, 0));
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(s, m, 0, 8));
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(nullptr, m, 0, hipMemAttachSingle));
    int host;
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(s, &host, 0, hipMemAttachSingle));
    GIVES(hipErrorInvalidValue, hipStreamAttachMemAsync(s, &host, sizeof host, hipMemAttachSingle));
}
CASE(attach)
{
    Stream s;
    Managed<int> m(1024);
    CHECK(hipStreamAttachMemAsync(s, m, 0, hipMemAttachSingle));
    CHECK(hipStreamAttachMemAsync(s, m, m.bytes(), hipMemAttachHost));
    CHECK(hipStreamAttachMemAsync(nullptr, m, 0, hipMemAttachGlobal));
    CHECK(hipStreamSynchronize(s));
}

// Streams on some compute units: bits of words, 32 units each.
static unsigned mask_words()
{
    int units;
    CHECK(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    return unsigned(units + 31) / 32;
}
CASE(mask_arguments)
{
    hipStream_t s;
    uint32_t mask = 1;
    GIVES(hipErrorInvalidHandle, hipExtStreamCreateWithCUMask(nullptr, 1, &mask));
    GIVES(hipErrorInvalidValue, hipExtStreamCreateWithCUMask(&s, 0, &mask));
    GIVES(hipErrorInvalidValue, hipExtStreamCreateWithCUMask(&s, 1, nullptr));
    GIVES(hipErrorInvalidValue, hipExtStreamGetCUMask(nullptr, mask_words(), nullptr));
    GIVES(hipErrorInvalidValue, hipExtStreamGetCUMask(nullptr, mask_words() - 1, &mask));
}
CASE(mask_is_kept)
{
    std::vector<uint32_t> wanted(mask_words(), 0), got(mask_words(), 99);
    wanted[0] = 1;
    hipStream_t s;
    CHECK(hipExtStreamCreateWithCUMask(&s, unsigned(wanted.size()), wanted.data()));
    CHECK(hipExtStreamGetCUMask(s, unsigned(got.size()), got.data()));
    EQUAL(1u, got[0]);
    unsigned flags = 99;
    CHECK(hipStreamGetFlags(s, &flags));
    EQUAL(unsigned(hipStreamDefault), flags);
    Device<unsigned> d(16, 0u);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), s));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(d.all_are(0x01010101));
    CHECK(hipStreamDestroy(s));
}
CASE(mask_of_other_streams_has_all_units)
{
    int units;
    CHECK(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    Stream s;
    for (hipStream_t stream : {hipStream_t(nullptr), hipStream_t(hipStreamPerThread), hipStream_t(s)}) {
        std::vector<uint32_t> got(mask_words(), 0);
        CHECK(hipExtStreamGetCUMask(stream, unsigned(got.size()), got.data()));
        int bits = 0;
        for (uint32_t word : got)
            bits += __builtin_popcount(word);
        EQUAL(units, bits);
    }
}
#if HIP_VERSION_MAJOR >= 7
CASE(ids_differ)
{
    Stream a, b;
    unsigned long long first, second, again;
    CHECK(hipStreamGetId(a, &first));
    CHECK(hipStreamGetId(b, &second));
    CHECK(hipStreamGetId(a, &again));
    REQUIRE(first != second && first == again);
    CHECK(hipStreamGetId(nullptr, &first));
    GIVES(hipErrorInvalidValue, hipStreamGetId(a, nullptr));
}
CASE(legacy_stream)
{
    Device<unsigned> d(16, 0u);
    CHECK(hipMemsetAsync(d, 1, d.bytes(), hipStreamLegacy));
    CHECK(hipStreamSynchronize(hipStreamLegacy));
    CHECK(hipStreamQuery(hipStreamLegacy));
    REQUIRE(d.all_are(0x01010101));
}
#endif

// Values in memory that streams write and wait for: only where the device says so.
CASE(stream_memory_operations_as_the_attribute_says)
{
    int can = 99;
    CHECK(hipDeviceGetAttribute(&can, hipDeviceAttributeCanUseStreamWaitValue, 0));
    Pinned<uint32_t> p(1, 0u);
    hipError_t error = hipStreamWriteValue32(nullptr, p, 7, 0);
    if (can) {
        CHECK(error);
        CHECK(hipStreamWaitValue32(nullptr, p, 7, hipStreamWaitValueEq, 0xFFFFFFFF));
        CHECK(hipStreamSynchronize(nullptr));
        EQUAL(7u, p[0]);
    } else
        EQUAL(hipErrorNotSupported, error);
}
