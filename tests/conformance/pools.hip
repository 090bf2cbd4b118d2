// Memory pools: reuse in the order of streams and events, thresholds, limits, attributes, access, handles.
#include "resources.h"

#include <unistd.h>

constexpr size_t MIB = 1 << 20;

static hipMemPoolProps properties(hipMemAllocationHandleType handles = hipMemHandleTypeNone)
{
    hipMemPoolProps made = {};
    made.allocType = hipMemAllocationTypePinned;
    made.handleTypes = handles;
    made.location.type = hipMemLocationTypeDevice;
    made.location.id = 0;
    return made;
}
struct Pool {
    hipMemPool_t handle = nullptr;
    explicit Pool(hipMemPoolProps from = properties()) { CHECK(hipMemPoolCreate(&handle, &from)); }
    ~Pool()
    {
        (void)hipDeviceSynchronize();
        (void)hipMemPoolDestroy(handle);
    }
    Pool(const Pool &) = delete;
    operator hipMemPool_t() const { return handle; }
    void *take(size_t bytes, hipStream_t stream = nullptr) const
    {
        void *at = nullptr;
        CHECK(hipMallocFromPoolAsync(&at, bytes, handle, stream));
        return at;
    }
    uint64_t is(hipMemPoolAttr attribute) const
    {
        uint64_t value = 99;
        CHECK(hipMemPoolGetAttribute(handle, attribute, &value));
        return value;
    }
    void set(hipMemPoolAttr attribute, uint64_t value) const { CHECK(hipMemPoolSetAttribute(handle, attribute, &value)); }
};

CASE(create_refuses)
{
    hipMemPool_t pool;
    hipMemPoolProps props = properties();
    GIVES(hipErrorInvalidValue, hipMemPoolCreate(nullptr, &props));
    GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, nullptr));
    props.allocType = hipMemAllocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
    props = properties(), props.location.type = hipMemLocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
    props = properties(), props.location.id = 1;
    hipError_t error = hipMemPoolCreate(&pool, &props); // 1 (clr), 101 (AMD's tests of 2024)
    REQUIRE(error == hipErrorInvalidValue || error == hipErrorInvalidDevice);
    props = properties(), props.location.id = -1;
    REQUIRE(hipMemPoolCreate(&pool, &props) != hipSuccess);
}
CASE(memory_of_a_pool)
{
    Pool pool;
    Stream s;
    Pinned<unsigned> seen(100, 0u);
    void *at = pool.take(400, s);
    REQUIRE(at != nullptr);
    CHECK(hipMemsetD32Async(hipDeviceptr_t(at), 77, 100, s));
    CHECK(hipMemcpyAsync(seen, at, 400, hipMemcpyDeviceToHost, s));
    CHECK(hipFreeAsync(at, s));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(seen.all_are(77));
}
CASE(allocate_refuses)
{
    Pool pool;
    void *at = &at;
    GIVES(hipErrorInvalidValue, hipMallocAsync(nullptr, 64, nullptr));
    GIVES(hipErrorOutOfMemory, hipMallocAsync(&at, ~size_t(0), nullptr));
    GIVES(hipErrorInvalidValue, hipMallocFromPoolAsync(nullptr, 64, pool, nullptr));
    GIVES(hipErrorInvalidValue, hipMallocFromPoolAsync(&at, 64, nullptr, nullptr));
    GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&at, ~size_t(0), pool, nullptr));
    CHECK(hipMallocAsync(&at, 0, nullptr));
    REQUIRE(at == nullptr);
    at = &at;
    CHECK(hipMallocFromPoolAsync(&at, 0, pool, nullptr));
    REQUIRE(at == nullptr);
}
CASE(free_refuses)
{
    void *at;
    int host;
    CHECK(hipFreeAsync(nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipFreeAsync(&host, nullptr));
    CHECK(hipMallocAsync(&at, 64, nullptr));
    CHECK(hipFreeAsync(at, nullptr));
    CHECK(hipDeviceSynchronize());
    GIVES(hipErrorInvalidValue, hipFreeAsync(at, nullptr));
}
CASE(plain_memory_may_be_freed_in_a_stream)
{
    void *at;
    CHECK(hipMalloc(&at, 64));
    CHECK(hipFreeAsync(at, nullptr));
    CHECK(hipDeviceSynchronize());
}
CASE(the_same_stream_gets_the_same_address)
{
    Stream s;
    Pool pool;
    for (size_t bytes : {size_t(400), MIB, 3 * MIB + 5}) {
        void *first = pool.take(bytes, s);
        CHECK(hipFreeAsync(first, s));
        void *second = pool.take(bytes, s);
        REQUIRE(first == second);
        CHECK(hipFreeAsync(second, s));
    }
    void *first, *second; // and so does the device's own pool
    CHECK(hipMallocAsync(&first, MIB, s));
    CHECK(hipFreeAsync(first, s));
    CHECK(hipMallocAsync(&second, MIB, s));
    REQUIRE(first == second);
    CHECK(hipFreeAsync(second, s));
}
CASE(another_stream_waits_for_an_event_and_gets_it)
{
    Stream first, second;
    Event e;
    Pool pool;
    void *mine = pool.take(MIB, first);
    Gate gate;
    gate.hold(first);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    void *theirs = pool.take(MIB, second);
    REQUIRE(gate.holds());
    REQUIRE(theirs == mine);
    gate.open();
    CHECK(hipFreeAsync(theirs, second));
}
CASE(another_stream_without_an_order_does_not_get_it)
{
    Stream first, second;
    Pool pool;
    void *mine = pool.take(MIB, first);
    Gate gate;
    gate.hold(first);
    CHECK(hipFreeAsync(mine, first));
    void *theirs = pool.take(MIB, second);
    REQUIRE(gate.holds());
    REQUIRE(theirs != mine);
    gate.open();
    CHECK(hipFreeAsync(theirs, second));
}
CASE(another_stream_gets_it_when_it_was_freed)
{
    Stream first, second;
    Pool pool;
    pool.set(hipMemPoolAttrReleaseThreshold, ~uint64_t(0));
    void *mine = pool.take(MIB, first);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipStreamSynchronize(first));
    void *theirs = pool.take(MIB, second);
    REQUIRE(theirs == mine);
    CHECK(hipFreeAsync(theirs, second));
}
CASE(what_is_used_and_reserved)
{
    Stream s;
    Pool pool;
    EQUAL(0u, pool.is(hipMemPoolAttrUsedMemCurrent));
    EQUAL(0u, pool.is(hipMemPoolAttrReservedMemCurrent));
    void *a = pool.take(MIB, s), *b = pool.take(2 * MIB, s);
    EQUAL(3 * MIB, pool.is(hipMemPoolAttrUsedMemCurrent));
    REQUIRE(pool.is(hipMemPoolAttrReservedMemCurrent) >= 3 * MIB);
    CHECK(hipFreeAsync(a, s));
    CHECK(hipFreeAsync(b, s));
    CHECK(hipStreamSynchronize(s));
    EQUAL(0u, pool.is(hipMemPoolAttrUsedMemCurrent));
    EQUAL(3 * MIB, pool.is(hipMemPoolAttrUsedMemHigh));
    REQUIRE(pool.is(hipMemPoolAttrReservedMemHigh) >= 3 * MIB);
}
CASE(without_a_threshold_all_is_given_back)
{
    Stream s;
    Pool pool;
    EQUAL(0u, pool.is(hipMemPoolAttrReleaseThreshold));
    CHECK(hipFreeAsync(pool.take(MIB, s), s));
    CHECK(hipStreamSynchronize(s));
    EQUAL(0u, pool.is(hipMemPoolAttrReservedMemCurrent));
}
CASE(a_threshold_keeps_memory)
{
    Stream s;
    Pool pool;
    pool.set(hipMemPoolAttrReleaseThreshold, 64 * MIB);
    EQUAL(64 * MIB, pool.is(hipMemPoolAttrReleaseThreshold));
    CHECK(hipFreeAsync(pool.take(MIB, s), s));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(pool.is(hipMemPoolAttrReservedMemCurrent) >= MIB);
}
CASE(trim)
{
    Stream s;
    Pool pool;
    pool.set(hipMemPoolAttrReleaseThreshold, ~uint64_t(0));
    void *kept = pool.take(MIB, s);
    CHECK(hipFreeAsync(pool.take(4 * MIB, s), s));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(pool.is(hipMemPoolAttrReservedMemCurrent) >= 5 * MIB);
    CHECK(hipMemPoolTrimTo(pool, ~size_t(0)));
    REQUIRE(pool.is(hipMemPoolAttrReservedMemCurrent) >= 5 * MIB);
    CHECK(hipMemPoolTrimTo(pool, 0));
    uint64_t left = pool.is(hipMemPoolAttrReservedMemCurrent);
    REQUIRE(left >= MIB && left < 4 * MIB);
    CHECK(hipFreeAsync(kept, s));
    GIVES(hipErrorInvalidValue, hipMemPoolTrimTo(nullptr, 0));
}
#if HIP_VERSION_MAJOR >= 6
CASE(memory_comes_again_without_what_was_set_for_it)
{
    Stream s;
    Pool pool;
    unsigned on = 1;
    bool set = true;
    pool.set(hipMemPoolAttrReleaseThreshold, ~uint64_t(0));
    void *first = pool.take(MIB, s);
    CHECK(hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, hipDeviceptr_t(first)));
    CHECK(hipFreeAsync(first, s));
    void *second = pool.take(MIB, s);
    REQUIRE(second == first);
    CHECK(hipPointerGetAttribute(&set, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, hipDeviceptr_t(second)));
    REQUIRE(!set);
    CHECK(hipFreeAsync(second, s));
}
#endif
__global__ void add_arrays(const int *a, const int *b, int *sum, int count)
{
    int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        sum[i] = a[i] + b[i];
}
CASE(a_pool_gives_what_it_has_not_after_a_trim_to_more)
{
    constexpr int COUNT = 1 << 18;
    constexpr size_t BYTES = COUNT * sizeof(int);
    Stream s;
    Pool pool;
    std::vector<int> from(COUNT, 3), sum(COUNT);
    pool.set(hipMemPoolAttrReleaseThreshold, ~uint64_t(0));
    for (size_t left = 10; left; left--) {
        CHECK(hipMemPoolTrimTo(pool, 3 * BYTES * left));
        void *a = pool.take(BYTES, s), *b = pool.take(BYTES, s), *c = pool.take(BYTES, s);
        CHECK(hipMemcpyAsync(a, from.data(), BYTES, hipMemcpyHostToDevice, s));
        CHECK(hipMemcpyAsync(b, from.data(), BYTES, hipMemcpyHostToDevice, s));
        add_arrays<<<COUNT / 256, 256, 0, s>>>(static_cast<int *>(a), static_cast<int *>(b), static_cast<int *>(c), COUNT);
        CHECK(hipMemcpyAsync(sum.data(), c, BYTES, hipMemcpyDeviceToHost, s));
        for (void *each : {a, b, c})
            CHECK(hipFreeAsync(each, s));
        CHECK(hipStreamSynchronize(s));
        REQUIRE(sum == std::vector<int>(COUNT, 6));
    }
}
CASE(high_water_marks_are_set_back)
{
    Stream s;
    Pool pool;
    CHECK(hipFreeAsync(pool.take(MIB, s), s));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(pool.is(hipMemPoolAttrUsedMemHigh) >= MIB);
    pool.set(hipMemPoolAttrUsedMemHigh, 0);
    pool.set(hipMemPoolAttrReservedMemHigh, 0);
    EQUAL(0u, pool.is(hipMemPoolAttrUsedMemHigh));
    uint64_t five = 5;
    GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &five));
    GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemHigh, &five));
}
CASE(attributes_refuse)
{
    Pool pool;
    uint64_t value = 0;
    GIVES(hipErrorInvalidValue, hipMemPoolGetAttribute(nullptr, hipMemPoolAttrReleaseThreshold, &value));
    GIVES(hipErrorInvalidValue, hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, nullptr));
    GIVES(hipErrorInvalidValue, hipMemPoolGetAttribute(pool, hipMemPoolAttr(0x99), &value));
    GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(nullptr, hipMemPoolAttrReleaseThreshold, &value));
    GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, nullptr));
    GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttr(0x99), &value));
    GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &value));
    GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &value));
}
CASE(ways_of_reuse_are_on_and_kept)
{
    Pool pool;
    for (hipMemPoolAttr attribute : {hipMemPoolReuseFollowEventDependencies, hipMemPoolReuseAllowOpportunistic,
                                     hipMemPoolReuseAllowInternalDependencies}) {
        int value = 99, zero = 0;
        CHECK(hipMemPoolGetAttribute(pool, attribute, &value));
        EQUAL(1, value);
        CHECK(hipMemPoolSetAttribute(pool, attribute, &zero));
        CHECK(hipMemPoolGetAttribute(pool, attribute, &value));
        EQUAL(0, value);
    }
}
#if HIP_VERSION_MAJOR >= 6
CASE(largest_size_is_honoured)
{
    Stream s;
    hipMemPoolProps props = properties();
    props.maxSize = 4 * MIB;
    Pool pool(props);
    void *first = pool.take(3 * MIB, s), *at = nullptr;
    GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&at, 2 * MIB, pool, s));
    CHECK(hipMallocFromPoolAsync(&at, MIB, pool, s));
    CHECK(hipFreeAsync(at, s));
    CHECK(hipFreeAsync(first, s));
}
#endif
CASE(device_has_a_pool)
{
    hipMemPool_t own = nullptr, current = nullptr;
    CHECK(hipDeviceGetDefaultMemPool(&own, 0));
    CHECK(hipDeviceGetMemPool(&current, 0));
    REQUIRE(own != nullptr && own == current);
    GIVES(hipErrorInvalidValue, hipDeviceGetDefaultMemPool(nullptr, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceGetDefaultMemPool(&own, -1));
    GIVES(hipErrorInvalidDevice, hipDeviceGetDefaultMemPool(&own, 5));
    GIVES(hipErrorInvalidValue, hipDeviceGetMemPool(nullptr, 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetMemPool(&own, 5));
    GIVES(hipErrorInvalidValue, hipDeviceGetMemPool(&own, -1));
}
CASE(device_takes_another_pool)
{
    hipMemPool_t own, current;
    CHECK(hipDeviceGetDefaultMemPool(&own, 0));
    hipMemPoolProps props = properties();
    hipMemPool_t pool;
    CHECK(hipMemPoolCreate(&pool, &props));
    CHECK(hipDeviceSetMemPool(0, pool));
    CHECK(hipDeviceGetMemPool(&current, 0));
    REQUIRE(current == pool);
    void *at;
    CHECK(hipMallocAsync(&at, MIB, nullptr));
    uint64_t used = 0;
    CHECK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
    EQUAL(MIB, used);
    CHECK(hipFreeAsync(at, nullptr));
    CHECK(hipDeviceSynchronize());
    GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(0, nullptr));
    GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(5, pool));
    GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(-1, pool));
    CHECK(hipMemPoolDestroy(pool)); // and the device falls back on its own
    CHECK(hipDeviceGetMemPool(&current, 0));
    REQUIRE(current == own);
}
CASE(destroyed_pool_lives_until_its_memory_is_freed)
{
    Stream s;
    hipMemPoolProps props = properties();
    hipMemPool_t pool;
    CHECK(hipMemPoolCreate(&pool, &props));
    void *at;
    Pinned<unsigned> seen(16, 0u);
    CHECK(hipMallocFromPoolAsync(&at, 64, pool, s));
    CHECK(hipMemPoolDestroy(pool));
    CHECK(hipMemsetAsync(at, 1, 64, s));
    CHECK(hipMemcpyAsync(seen, at, 64, hipMemcpyDeviceToHost, s));
    CHECK(hipFreeAsync(at, s));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(seen.all_are(0x01010101));
}
CASE(access_of_the_own_device)
{
    Pool pool;
    hipMemLocation device = {};
    device.type = hipMemLocationTypeDevice;
    hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
    CHECK(hipMemPoolGetAccess(&flags, pool, &device));
    EQUAL(hipMemAccessFlagsProtReadWrite, flags);
    hipMemAccessDesc desc = {};
    desc.location = device;
    desc.flags = hipMemAccessFlagsProtReadWrite;
    CHECK(hipMemPoolSetAccess(pool, &desc, 1));
}
CASE(access_refuses)
{
    Pool pool;
    hipMemAccessFlags flags;
    hipMemAccessDesc desc = {};
    desc.location.type = hipMemLocationTypeDevice;
    desc.flags = hipMemAccessFlagsProtReadWrite;
    hipMemAccessDesc twice[] = {desc, desc};
    GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(nullptr, &desc, 1));
    GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, nullptr, 1));
    REQUIRE(hipMemPoolSetAccess(pool, twice, 2) != hipSuccess);
    hipMemAccessDesc bad = desc;
    bad.location.type = hipMemLocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, &bad, 1));
    bad = desc, bad.location.id = 1;
    GIVES(hipErrorInvalidDevice, hipMemPoolSetAccess(pool, &bad, 1));
    bad = desc, bad.flags = hipMemAccessFlagsProtNone; // a device can always reach its own memory
    GIVES(hipErrorInvalidDevice, hipMemPoolSetAccess(pool, &bad, 1));
    bad = desc, bad.flags = hipMemAccessFlags(99);
    GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, &bad, 1));
    hipMemLocation nowhere = {}, far = desc.location;
    nowhere.type = hipMemLocationTypeInvalid;
    far.id = 1;
    GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(nullptr, pool, &desc.location));
    GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, nullptr, &desc.location));
    GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, pool, nullptr));
    GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, pool, &nowhere));
    GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, pool, &far));
}
CASE(export_of_a_pool)
{
    Pool pool(properties(hipMemHandleTypePosixFileDescriptor));
    int handle = -1;
    CHECK(hipMemPoolExportToShareableHandle(&handle, pool, hipMemHandleTypePosixFileDescriptor, 0));
    REQUIRE(handle >= 0);
    CHECK(close(handle) == 0 ? hipSuccess : hipErrorUnknown);
}
CASE(export_refuses)
{
    Pool pool(properties(hipMemHandleTypePosixFileDescriptor)), plain;
    int handle = -1;
    hipMemAllocationHandleType fd = hipMemHandleTypePosixFileDescriptor;
    GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(nullptr, pool, fd, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&handle, nullptr, fd, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&handle, pool, fd, 1));
    GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&handle, pool, hipMemHandleTypeNone, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&handle, pool, hipMemHandleTypeWin32, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&handle, plain, fd, 0));
}
CASE(import_refuses)
{
    hipMemPool_t pool;
    hipMemAllocationHandleType fd = hipMemHandleTypePosixFileDescriptor;
    void *handle = reinterpret_cast<void *>(intptr_t(1));
    GIVES(hipErrorInvalidValue, hipMemPoolImportFromShareableHandle(nullptr, handle, fd, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolImportFromShareableHandle(&pool, nullptr, fd, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolImportFromShareableHandle(&pool, handle, hipMemHandleTypeNone, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolImportFromShareableHandle(&pool, handle, fd, 1));
}
CASE(export_of_a_pointer_refuses)
{
    hipMemPoolPtrExportData data;
    int host;
    GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(nullptr, &host));
    GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, nullptr));
    GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, &host));
    void *at;
    Pool pool(properties(hipMemHandleTypePosixFileDescriptor));
    GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(nullptr, pool, &data));
    GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&at, nullptr, &data));
    GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&at, pool, nullptr));
}
