// Who gets what was freed into a pool: ways of reuse, limits, double frees, pools that end before their memory does.
#include "resources.h"

constexpr size_t MIB = 1 << 20;

__global__ void fill(unsigned *data, unsigned value) { data[threadIdx.x] = value; }

struct Pool {
    hipMemPool_t handle = nullptr;
    explicit Pool(size_t most = 0)
    {
        hipMemPoolProps properties = {};
        properties.allocType = hipMemAllocationTypePinned;
        properties.location.type = hipMemLocationTypeDevice;
#if HIP_VERSION_MAJOR >= 6
        properties.maxSize = most;
#endif
        CHECK(hipMemPoolCreate(&handle, &properties));
    }
    ~Pool()
    {
        (void)hipDeviceSynchronize();
        (void)hipMemPoolDestroy(handle);
    }
    Pool(const Pool &) = delete;
    operator hipMemPool_t() const { return handle; }
    void *take(size_t bytes, hipStream_t stream) const
    {
        void *at = nullptr;
        CHECK(hipMallocFromPoolAsync(&at, bytes, handle, stream));
        return at;
    }
    uint64_t is(hipMemPoolAttr attribute) const
    {
        uint64_t value = 0;
        CHECK(hipMemPoolGetAttribute(handle, attribute, &value));
        return value;
    }
    void keep() const
    {
        uint64_t all = ~uint64_t(0);
        CHECK(hipMemPoolSetAttribute(handle, hipMemPoolAttrReleaseThreshold, &all));
    }
    void turn_off(hipMemPoolAttr attribute) const
    {
        int zero = 0;
        CHECK(hipMemPoolSetAttribute(handle, attribute, &zero));
    }
};

CASE(chance_can_be_turned_off)
{
    Stream first, second;
    Pool pool;
    pool.keep();
    pool.turn_off(hipMemPoolReuseAllowOpportunistic);
    void *mine = pool.take(MIB, first);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipStreamSynchronize(first));
    void *theirs = pool.take(MIB, second);
    REQUIRE(theirs != mine);
    REQUIRE(pool.take(MIB, first) == mine);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipFreeAsync(theirs, second));
}
CASE(events_count_also_when_all_is_done)
{
    Stream first, second;
    Event e;
    Pool pool;
    pool.keep();
    pool.turn_off(hipMemPoolReuseAllowOpportunistic);
    void *mine = pool.take(MIB, first);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamSynchronize(first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    void *theirs = pool.take(MIB, second);
    REQUIRE(theirs == mine);
    CHECK(hipFreeAsync(theirs, second));
}
CASE(events_before_the_free_do_not_count)
{
    Stream first, second;
    Event e;
    Pool pool;
    pool.keep();
    pool.turn_off(hipMemPoolReuseAllowOpportunistic);
    void *mine = pool.take(MIB, first);
    CHECK(hipEventRecord(e, first));
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    void *theirs = pool.take(MIB, second);
    REQUIRE(theirs != mine);
    CHECK(hipFreeAsync(theirs, second));
}
CASE(events_can_be_turned_off)
{
    Stream first, second;
    Event e;
    Pool pool;
    pool.turn_off(hipMemPoolReuseFollowEventDependencies);
    void *mine = pool.take(MIB, first);
    Gate gate;
    gate.hold(first);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    void *theirs = pool.take(MIB, second);
    REQUIRE(gate.holds());
    REQUIRE(theirs != mine);
    gate.open();
    CHECK(hipFreeAsync(theirs, second));
}
CASE(events_by_way_of_a_third_stream)
{
    Stream first, second, third;
    Event e, f;
    Pool pool;
    void *mine = pool.take(MIB, first);
    Gate gate;
    gate.hold(first);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamWaitEvent(third, e, 0));
    CHECK(hipEventRecord(f, third));
    CHECK(hipStreamWaitEvent(second, f, 0));
    void *theirs = pool.take(MIB, second);
    REQUIRE(gate.holds());
    REQUIRE(theirs == mine);
    gate.open();
    CHECK(hipFreeAsync(theirs, second));
}
CASE(a_third_stream_that_waits_too_late_does_not_count)
{
    Stream first, second, third;
    Event e, f;
    Pool pool;
    void *mine = pool.take(MIB, first);
    Gate gate;
    gate.hold(first);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipEventRecord(e, first));
    CHECK(hipEventRecord(f, third));
    CHECK(hipStreamWaitEvent(third, e, 0)); // f was recorded before
    CHECK(hipStreamWaitEvent(second, f, 0));
    void *theirs = pool.take(MIB, second);
    REQUIRE(gate.holds());
    REQUIRE(theirs != mine);
    gate.open();
    CHECK(hipFreeAsync(theirs, second));
}
CASE(default_stream_makes_an_order)
{
    Stream first(hipStreamDefault), second(hipStreamDefault);
    Pool pool;
    pool.keep();
    pool.turn_off(hipMemPoolReuseAllowOpportunistic);
    void *mine = pool.take(MIB, first);
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipMemsetAsync(Device<int>(1), 0, 4, nullptr)); // comes after all blocking streams, and they after it
    CHECK(hipLaunchHostFunc(second, [](void *) {}, nullptr));
    void *theirs = pool.take(MIB, second);
    REQUIRE(theirs == mine);
    CHECK(hipFreeAsync(theirs, second));
}
CASE(what_is_used_again_is_used_in_order)
{
    Stream first, second;
    Event e;
    Pool pool;
    Pinned<unsigned> seen(64, 0u);
    auto *mine = static_cast<unsigned *>(pool.take(256, first));
    Gate gate;
    gate.hold(first);
    fill<<<1, 64, 0, first>>>(mine, 1u);
    CHECK(hipMemcpyAsync(seen, mine, 256, hipMemcpyDeviceToHost, first));
    CHECK(hipFreeAsync(mine, first));
    CHECK(hipEventRecord(e, first));
    CHECK(hipStreamWaitEvent(second, e, 0));
    auto *theirs = static_cast<unsigned *>(pool.take(256, second));
    REQUIRE(theirs == mine);
    fill<<<1, 64, 0, second>>>(theirs, 2u);
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipStreamSynchronize(first));
    REQUIRE(seen.all_are(1));
    CHECK(hipMemcpyAsync(seen, theirs, 256, hipMemcpyDeviceToHost, second));
    CHECK(hipStreamSynchronize(second));
    REQUIRE(seen.all_are(2));
    CHECK(hipFreeAsync(theirs, second));
}
#if HIP_VERSION_MAJOR >= 6
CASE(streams_wait_for_each_other_where_nothing_else_is_left)
{
    Stream first, second;
    Pool pool(MIB);
    void *mine = pool.take(MIB, first), *theirs = nullptr;
    Gate gate;
    gate.hold(first);
    CHECK(hipFreeAsync(mine, first));
    pool.turn_off(hipMemPoolReuseAllowInternalDependencies);
    GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&theirs, MIB, pool, second));
    int one = 1;
    CHECK(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowInternalDependencies, &one));
    CHECK(hipMallocFromPoolAsync(&theirs, MIB, pool, second));
    REQUIRE(gate.holds());
    REQUIRE(theirs == mine);
    GIVES(hipErrorNotReady, hipStreamQuery(second));
    gate.open();
    CHECK(hipStreamSynchronize(second));
    CHECK(hipFreeAsync(theirs, second));
}
CASE(what_is_kept_makes_room_in_its_pool)
{
    Stream s;
    Pool pool(4 * MIB);
    pool.keep();
    CHECK(hipFreeAsync(pool.take(3 * MIB, s), s));
    CHECK(hipStreamSynchronize(s));
    EQUAL(3 * MIB, pool.is(hipMemPoolAttrReservedMemCurrent));
    void *at = pool.take(2 * MIB, s);
    EQUAL(2 * MIB, pool.is(hipMemPoolAttrReservedMemCurrent));
    EQUAL(3 * MIB, pool.is(hipMemPoolAttrReservedMemHigh));
    CHECK(hipFreeAsync(at, s));
}
#endif
CASE(what_pools_keep_makes_room_for_others)
{
    Stream s;
    Pool pool;
    pool.keep();
    size_t free = 0, total = 0;
    CHECK(hipMemGetInfo(&free, &total));
    CHECK(hipFreeAsync(pool.take(free - MIB, s), s));
    CHECK(hipStreamSynchronize(s));
    size_t now = 0;
    CHECK(hipMemGetInfo(&now, &total));
    REQUIRE(now <= MIB);
    void *at;
    CHECK(hipMalloc(&at, free - MIB));
    CHECK(hipFree(at));
}
CASE(every_kind_of_waiting_gives_back)
{
    Stream s;
    Event e;
    Pool pool;
    auto reserved = [&] { return pool.is(hipMemPoolAttrReservedMemCurrent); };
    CHECK(hipFreeAsync(pool.take(MIB, s), s));
    CHECK(hipEventRecord(e, s));
    EQUAL(MIB, reserved());
    CHECK(hipEventSynchronize(e));
    EQUAL(0u, reserved());
    CHECK(hipFreeAsync(pool.take(MIB, s), s));
    CHECK(hipDeviceSynchronize());
    EQUAL(0u, reserved());
    CHECK(hipFreeAsync(pool.take(MIB, nullptr), nullptr));
    CHECK(hipStreamSynchronize(nullptr));
    EQUAL(0u, reserved());
}
CASE(what_is_not_done_stays)
{
    Stream s;
    Pool pool;
    void *at = pool.take(MIB, s);
    Gate gate;
    gate.hold(s);
    CHECK(hipFreeAsync(at, s));
    CHECK(hipMemPoolTrimTo(pool, 0));
    REQUIRE(gate.holds());
    EQUAL(MIB, pool.is(hipMemPoolAttrReservedMemCurrent));
    EQUAL(0u, pool.is(hipMemPoolAttrUsedMemCurrent));
    gate.open();
    CHECK(hipStreamSynchronize(s));
    EQUAL(0u, pool.is(hipMemPoolAttrReservedMemCurrent));
}
CASE(plain_free_gives_it_to_the_pool)
{
    Stream s;
    Pool pool;
    pool.keep();
    void *at = pool.take(MIB, s);
    CHECK(hipFree(at));
    EQUAL(0u, pool.is(hipMemPoolAttrUsedMemCurrent));
    EQUAL(MIB, pool.is(hipMemPoolAttrReservedMemCurrent));
    REQUIRE(pool.take(MIB, s) == at);
    CHECK(hipFreeAsync(at, s));
}
CASE(freed_twice)
{
    Stream s;
    Pool pool;
    void *at = pool.take(MIB, s), *plain;
    CHECK(hipMalloc(&plain, 64));
    Gate gate;
    gate.hold(s);
    for (void *each : {at, plain}) {
        CHECK(hipFreeAsync(each, s));
        GIVES(hipErrorInvalidValue, hipFreeAsync(each, s));
        GIVES(hipErrorInvalidValue, hipFree(each));
    }
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipStreamSynchronize(s));
}
CASE(plain_memory_is_freed_in_the_order_of_the_stream)
{
    Stream s;
    Pinned<unsigned> seen(64, 0u);
    unsigned *at;
    CHECK(hipMalloc(reinterpret_cast<void **>(&at), 256));
    Gate gate;
    gate.hold(s);
    fill<<<1, 64, 0, s>>>(at, 7u);
    CHECK(hipMemcpyAsync(seen, at, 256, hipMemcpyDeviceToHost, s));
    CHECK(hipFreeAsync(at, s));
    REQUIRE(gate.holds());
    gate.open();
    CHECK(hipStreamSynchronize(s));
    REQUIRE(seen.all_are(7));
}
CASE(destroyed_twice)
{
    hipMemPool_t pool;
    {
        Pool own;
        pool = own.handle;
        CHECK(hipMemPoolDestroy(pool));
        GIVES(hipErrorInvalidValue, hipMemPoolDestroy(pool));
    }
    CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
    GIVES(hipErrorInvalidValue, hipMemPoolDestroy(pool));
    GIVES(hipErrorInvalidValue, hipMemPoolDestroy(nullptr));
}
CASE(memory_of_a_destroyed_pool_goes_back)
{
    Stream s;
    size_t before, after, total;
    CHECK(hipMemGetInfo(&before, &total));
    void *at;
    {
        Pool pool;
        pool.keep();
        at = pool.take(MIB, s);
    }
    CHECK(hipMemsetAsync(at, 1, MIB, s));
    CHECK(hipFreeAsync(at, s));
    CHECK(hipStreamSynchronize(s));
    CHECK(hipMemGetInfo(&after, &total));
    EQUAL(before, after);
}
CASE(access_to_itself_alone)
{
    Pool pool;
    hipMemAccessDesc access = {};
    access.location.type = hipMemLocationTypeDevice;
    access.flags = hipMemAccessFlagsProtRead;
    GIVES(hipErrorNotSupported, hipMemPoolSetAccess(pool, &access, 1));
    access.flags = hipMemAccessFlagsProtReadWrite;
    hipMemAccessDesc twice[] = {access, access};
    GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, twice, 2));
}
