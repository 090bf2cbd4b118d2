// Managed memory: allocation, advice and prefetches, and what ranges say of them.
#include "resources.h"

#include <algorithm>

constexpr size_t PAGE = 4096;
__managed__ int managed_variable = 5;
__managed__ int managed_array[100];

__global__ void add_one(int *data) { data[threadIdx.x]++; }
__global__ void add_to_managed()
{
    managed_variable += 1;
    managed_array[threadIdx.x] = int(threadIdx.x);
}

static int range(const void *at, hipMemRangeAttribute attribute, size_t bytes = PAGE)
{
    int value = 12345;
    CHECK(hipMemRangeGetAttribute(&value, sizeof value, attribute, at, bytes));
    return value;
}
static std::vector<int> accessed_by(const void *at, size_t places)
{
    std::vector<int> devices(places, 12345);
    CHECK(hipMemRangeGetAttribute(devices.data(), places * sizeof(int), hipMemRangeAttributeAccessedBy, at, PAGE));
    return devices;
}

CASE(malloc_arguments)
{
    void *at;
    GIVES(hipErrorInvalidValue, hipMallocManaged(nullptr, PAGE, hipMemAttachGlobal));
    GIVES(hipErrorInvalidValue, hipMallocManaged(&at, 0, hipMemAttachGlobal));
    GIVES(hipErrorInvalidValue, hipMallocManaged(&at, PAGE, 0));
    GIVES(hipErrorInvalidValue, hipMallocManaged(&at, PAGE, hipMemAttachSingle));
    GIVES(hipErrorInvalidValue, hipMallocManaged(&at, PAGE, hipMemAttachGlobal | hipMemAttachHost));
    GIVES(hipErrorOutOfMemory, hipMallocManaged(&at, ~size_t(0), hipMemAttachGlobal));
    CHECK(hipMallocManaged(&at, PAGE, hipMemAttachHost));
    CHECK(hipFree(at));
}
CASE(malloc_is_aligned_to_pages)
{
    for (size_t bytes : {1, 100, 4096, 5000}) {
        void *at;
        CHECK(hipMallocManaged(&at, bytes, hipMemAttachGlobal));
        EQUAL(0u, reinterpret_cast<uintptr_t>(at) % PAGE);
        CHECK(hipFree(at));
    }
}
CASE(host_and_device_see_it)
{
    Managed<int> m(64);
    for (int i = 0; i < 64; i++)
        m[i] = i;
    add_one<<<1, 64>>>(m);
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        EQUAL(i + 1, m[i]);
}
CASE(variables)
{
    managed_variable = 10;
    add_to_managed<<<1, 1>>>();
    CHECK(hipDeviceSynchronize());
    EQUAL(11, managed_variable);
    add_to_managed<<<1, 100>>>();
    CHECK(hipDeviceSynchronize());
    EQUAL(99, managed_array[99]);
}
CASE(ranges_say_nothing_at_first)
{
    Managed<char> m(PAGE);
    EQUAL(0, range(m, hipMemRangeAttributeReadMostly));
    EQUAL(hipInvalidDeviceId, range(m, hipMemRangeAttributePreferredLocation));
    EQUAL(hipInvalidDeviceId, range(m, hipMemRangeAttributeLastPrefetchLocation));
    REQUIRE(accessed_by(m, 1) == std::vector<int>{hipInvalidDeviceId});
}
CASE(read_mostly)
{
    Managed<char> m(PAGE);
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetReadMostly, 0));
    EQUAL(1, range(m, hipMemRangeAttributeReadMostly));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseUnsetReadMostly, 0));
    EQUAL(0, range(m, hipMemRangeAttributeReadMostly));
}
CASE(preferred_location)
{
    Managed<char> m(PAGE);
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetPreferredLocation, 0));
    EQUAL(0, range(m, hipMemRangeAttributePreferredLocation));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
    EQUAL(hipCpuDeviceId, range(m, hipMemRangeAttributePreferredLocation));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseUnsetPreferredLocation, 0));
    EQUAL(hipInvalidDeviceId, range(m, hipMemRangeAttributePreferredLocation));
}
CASE(accessed_by)
{
    Managed<char> m(PAGE);
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetAccessedBy, 0));
    REQUIRE(accessed_by(m, 1) == std::vector<int>{0});
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetAccessedBy, hipCpuDeviceId));
    std::vector<int> devices = accessed_by(m, 3);
    EQUAL(1, std::count(devices.begin(), devices.end(), 0));
    EQUAL(1, std::count(devices.begin(), devices.end(), hipCpuDeviceId));
    EQUAL(1, std::count(devices.begin(), devices.end(), hipInvalidDeviceId));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseUnsetAccessedBy, 0));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseUnsetAccessedBy, hipCpuDeviceId));
    REQUIRE(accessed_by(m, 1) == std::vector<int>{hipInvalidDeviceId});
}
CASE(last_prefetch)
{
    Managed<char> m(PAGE);
    Stream s;
    CHECK(hipMemPrefetchAsync(m, PAGE, 0, s));
    CHECK(hipStreamSynchronize(s));
    EQUAL(0, range(m, hipMemRangeAttributeLastPrefetchLocation));
    CHECK(hipMemPrefetchAsync(m, PAGE, hipCpuDeviceId, s));
    CHECK(hipStreamSynchronize(s));
    EQUAL(hipCpuDeviceId, range(m, hipMemRangeAttributeLastPrefetchLocation));
    CHECK(hipMemPrefetchAsync(m, PAGE, 0, nullptr));
    CHECK(hipDeviceSynchronize());
    EQUAL(0, range(m, hipMemRangeAttributeLastPrefetchLocation));
}
CASE(coherency_mode)
{
    Managed<char> m(PAGE);
    EQUAL(int(hipMemRangeCoherencyModeFineGrain), range(m, hipMemRangeAttributeCoherencyMode));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetCoarseGrain, 0));
    EQUAL(int(hipMemRangeCoherencyModeCoarseGrain), range(m, hipMemRangeAttributeCoherencyMode));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseUnsetCoarseGrain, 0));
    EQUAL(int(hipMemRangeCoherencyModeFineGrain), range(m, hipMemRangeAttributeCoherencyMode));
}
CASE(coherency_mode_of_memory_that_is_not_managed)
{
    Device<char> d(2 * PAGE);
    Pinned<char> coherent(PAGE), not_coherent(PAGE, 0, hipHostMallocNonCoherent);
    std::vector<char> own(4 * PAGE);
    EQUAL(int(hipMemRangeCoherencyModeCoarseGrain), range(d.at + PAGE, hipMemRangeAttributeCoherencyMode));
    EQUAL(int(hipMemRangeCoherencyModeFineGrain), range(coherent, hipMemRangeAttributeCoherencyMode));
    EQUAL(int(hipMemRangeCoherencyModeCoarseGrain), range(not_coherent, hipMemRangeAttributeCoherencyMode));
    CHECK(hipHostRegister(own.data(), own.size(), hipHostRegisterDefault));
    EQUAL(int(hipMemRangeCoherencyModeFineGrain), range(own.data(), hipMemRangeAttributeCoherencyMode));
    CHECK(hipHostUnregister(own.data()));
    int value;
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeCoherencyMode, &value, 4));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeCoherencyMode, d, 3 * PAGE));
}
CASE(advice_keeps_what_is_in_memory)
{
    Managed<int> m(64);
    for (int i = 0; i < 64; i++)
        m[i] = i;
    CHECK(hipMemAdvise(m, m.bytes(), hipMemAdviseSetReadMostly, 0));
    CHECK(hipMemPrefetchAsync(m, m.bytes(), 0, nullptr));
    add_one<<<1, 64>>>(m);
    CHECK(hipMemPrefetchAsync(m, m.bytes(), hipCpuDeviceId, nullptr));
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        EQUAL(i + 1, m[i]);
}
CASE(advice_is_for_whole_pages)
{
    Managed<char> m(3 * PAGE);
    CHECK(hipMemAdvise(m.at + PAGE + 100, 8, hipMemAdviseSetPreferredLocation, 0));
    EQUAL(0, range(m.at + PAGE, hipMemRangeAttributePreferredLocation));
    EQUAL(hipInvalidDeviceId, range(m.at, hipMemRangeAttributePreferredLocation));
    CHECK(hipMemPrefetchAsync(m.at + PAGE - 1, 2, 0, nullptr));
    EQUAL(0, range(m, hipMemRangeAttributeLastPrefetchLocation, 2 * PAGE));
    EQUAL(hipInvalidDeviceId, range(m.at + 2 * PAGE, hipMemRangeAttributeLastPrefetchLocation));
}
CASE(advice_for_a_part)
{
    Managed<char> m(4 * PAGE);
    CHECK(hipMemAdvise(m.at + PAGE, PAGE, hipMemAdviseSetPreferredLocation, 0));
    EQUAL(0, range(m.at + PAGE, hipMemRangeAttributePreferredLocation));
    EQUAL(hipInvalidDeviceId, range(m, hipMemRangeAttributePreferredLocation));
    EQUAL(hipInvalidDeviceId, range(m, hipMemRangeAttributePreferredLocation, 4 * PAGE));
    CHECK(hipMemAdvise(m, 4 * PAGE, hipMemAdviseSetReadMostly, 0));
    CHECK(hipMemAdvise(m.at + 3 * PAGE, PAGE, hipMemAdviseUnsetReadMostly, 0));
    EQUAL(1, range(m, hipMemRangeAttributeReadMostly, 3 * PAGE));
    EQUAL(0, range(m, hipMemRangeAttributeReadMostly, 4 * PAGE));
}
CASE(several_attributes_at_once)
{
    Managed<char> m(PAGE);
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetReadMostly, 0));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetPreferredLocation, 0));
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetAccessedBy, 0));
    CHECK(hipMemPrefetchAsync(m, PAGE, 0, nullptr));
    CHECK(hipDeviceSynchronize());
    int values[4] = {9, 9, 9, 9};
    void *places[] = {&values[0], &values[1], &values[2], &values[3]};
    size_t sizes[] = {4, 4, 4, 4};
    hipMemRangeAttribute names[] = {hipMemRangeAttributeReadMostly, hipMemRangeAttributePreferredLocation,
                                    hipMemRangeAttributeAccessedBy, hipMemRangeAttributeLastPrefetchLocation};
    CHECK(hipMemRangeGetAttributes(places, sizes, names, 4, m, PAGE));
    EQUAL(1, values[0]);
    EQUAL(0, values[1]);
    EQUAL(0, values[2]);
    EQUAL(0, values[3]);
}
CASE(range_attribute_refuses)
{
    Managed<char> m(PAGE);
    Device<char> d(PAGE);
    int value[4];
    hipMemRangeAttribute read_mostly = hipMemRangeAttributeReadMostly;
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(nullptr, 4, read_mostly, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 0, read_mostly, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 8, read_mostly, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 8, hipMemRangeAttributePreferredLocation, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 8, hipMemRangeAttributeLastPrefetchLocation, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 6, hipMemRangeAttributeAccessedBy, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 4, hipMemRangeAttribute(999), m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 4, read_mostly, nullptr, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 4, read_mostly, d, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttribute(value, 4, read_mostly, m, 0));
}
CASE(range_attributes_refuse)
{
    Managed<char> m(PAGE);
    Device<char> d(PAGE);
    int value;
    void *places[] = {&value};
    size_t sizes[] = {4}, wrong[] = {6};
    hipMemRangeAttribute names[] = {hipMemRangeAttributeReadMostly}, bad[] = {hipMemRangeAttribute(999)};
    CHECK(hipMemRangeGetAttributes(places, sizes, names, 1, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(nullptr, sizes, names, 1, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(places, nullptr, names, 1, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(places, wrong, names, 1, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(places, sizes, nullptr, 1, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(places, sizes, bad, 1, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(places, sizes, names, 0, m, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(places, sizes, names, 1, nullptr, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(places, sizes, names, 1, d, PAGE));
    GIVES(hipErrorInvalidValue, hipMemRangeGetAttributes(places, sizes, names, 1, m, 0));
}
CASE(advise_refuses)
{
    Managed<char> m(PAGE);
    int host;
    GIVES(hipErrorInvalidValue, hipMemAdvise(nullptr, PAGE, hipMemAdviseSetReadMostly, 0));
    GIVES(hipErrorInvalidValue, hipMemAdvise(m, 0, hipMemAdviseSetReadMostly, 0));
    GIVES(hipErrorInvalidValue, hipMemAdvise(m, PAGE + 1, hipMemAdviseSetReadMostly, 0));
    GIVES(hipErrorInvalidValue, hipMemAdvise(m.at + 1, PAGE, hipMemAdviseSetReadMostly, 0));
    GIVES(hipErrorInvalidValue, hipMemAdvise(m, PAGE, hipMemoryAdvise(-1), 0));
    GIVES(hipErrorInvalidValue, hipMemAdvise(&host, sizeof host, hipMemAdviseSetReadMostly, 0));
    GIVES(hipErrorInvalidDevice, hipMemAdvise(m, PAGE, hipMemAdviseSetPreferredLocation, -2));
    GIVES(hipErrorInvalidDevice, hipMemAdvise(m, PAGE, hipMemAdviseSetPreferredLocation, 1));
    GIVES(hipErrorInvalidDevice, hipMemAdvise(m, PAGE, hipMemAdviseSetAccessedBy, 77));
}
CASE(read_mostly_ignores_the_device)
{
    Managed<char> m(PAGE);
    CHECK(hipMemAdvise(m, PAGE, hipMemAdviseSetReadMostly, -2));
    EQUAL(1, range(m, hipMemRangeAttributeReadMostly));
}
CASE(prefetch_refuses)
{
    Managed<char> m(PAGE);
    GIVES(hipErrorInvalidValue, hipMemPrefetchAsync(nullptr, PAGE, 0, nullptr));
    GIVES(hipErrorInvalidValue, hipMemPrefetchAsync(m, 0, 0, nullptr));
    GIVES(hipErrorInvalidValue, hipMemPrefetchAsync(m, PAGE + 1, 0, nullptr));
    GIVES(hipErrorInvalidDevice, hipMemPrefetchAsync(m, PAGE, -2, nullptr));
    GIVES(hipErrorInvalidDevice, hipMemPrefetchAsync(m, PAGE, 1, nullptr));
}
#if HIP_VERSION_MAJOR >= 7
CASE(locations_of_the_second_form)
{
    Managed<char> m(PAGE);
    hipMemLocation device = {hipMemLocationTypeDevice, 0}, host = {hipMemLocationTypeHost, 0}, none = {hipMemLocationTypeInvalid, 0};
    CHECK(hipMemAdvise_v2(m, PAGE, hipMemAdviseSetPreferredLocation, device));
    EQUAL(0, range(m, hipMemRangeAttributePreferredLocation));
    CHECK(hipMemAdvise_v2(m, PAGE, hipMemAdviseSetPreferredLocation, host));
    EQUAL(hipCpuDeviceId, range(m, hipMemRangeAttributePreferredLocation));
    GIVES(hipErrorInvalidValue, hipMemAdvise_v2(m, PAGE, hipMemAdviseSetPreferredLocation, none));
    CHECK(hipMemPrefetchAsync_v2(m, PAGE, device, 0, nullptr));
    CHECK(hipDeviceSynchronize());
    EQUAL(0, range(m, hipMemRangeAttributeLastPrefetchLocation));
    GIVES(hipErrorInvalidValue, hipMemPrefetchAsync_v2(m, PAGE, device, 1, nullptr));
    GIVES(hipErrorInvalidValue, hipMemPrefetchAsync_v2(nullptr, PAGE, device, 0, nullptr));
}
#endif
