// Pools of two devices: whose memory it is, and who was given access.
#include "resources.h"

constexpr size_t MIB = 1 << 20;

static hipMemPool_t pool_of(int device)
{
    hipMemPoolProps properties = {};
    properties.allocType = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    properties.location.id = device;
    hipMemPool_t pool;
    CHECK(hipMemPoolCreate(&pool, &properties));
    return pool;
}
static size_t left_of(int device)
{
    size_t left, total;
    CHECK(hipSetDevice(device));
    CHECK(hipMemGetInfo(&left, &total));
    CHECK(hipSetDevice(0));
    return left;
}

CASE(memory_is_that_of_the_pools_device)
{
    hipMemPool_t pool = pool_of(1);
    size_t first = left_of(0), second = left_of(1);
    void *at;
    CHECK(hipMallocFromPoolAsync(&at, MIB, pool, nullptr)); // in a stream of device 0
    hipPointerAttribute_t says;
    CHECK(hipPointerGetAttributes(&says, at));
    EQUAL(1, says.device);
    EQUAL(first, left_of(0));
    EQUAL(second - MIB, left_of(1));
    CHECK(hipFreeAsync(at, nullptr));
    CHECK(hipStreamSynchronize(nullptr));
    EQUAL(second, left_of(1));
    CHECK(hipMemPoolDestroy(pool));
}
CASE(a_device_takes_its_own_pools_only)
{
    hipMemPool_t pool = pool_of(1), current, own;
    GIVES(hipErrorInvalidDevice, hipDeviceSetMemPool(0, pool));
    CHECK(hipDeviceSetMemPool(1, pool));
    CHECK(hipDeviceGetMemPool(&current, 1));
    REQUIRE(current == pool);
    CHECK(hipDeviceGetMemPool(&current, 0));
    CHECK(hipDeviceGetDefaultMemPool(&own, 0));
    REQUIRE(current == own);
    CHECK(hipMemPoolDestroy(pool));
}
CASE(access_is_remembered)
{
    hipMemPool_t pool = pool_of(0);
    hipMemAccessDesc access = {};
    access.location.type = hipMemLocationTypeDevice;
    access.location.id = 1;
    hipMemAccessFlags flags;
    CHECK(hipMemPoolGetAccess(&flags, pool, &access.location));
    EQUAL(int(hipMemAccessFlagsProtNone), int(flags));
    for (hipMemAccessFlags wanted : {hipMemAccessFlagsProtReadWrite, hipMemAccessFlagsProtRead, hipMemAccessFlagsProtNone}) {
        access.flags = wanted;
        CHECK(hipMemPoolSetAccess(pool, &access, 1));
        CHECK(hipMemPoolGetAccess(&flags, pool, &access.location));
        EQUAL(int(wanted), int(flags));
    }
    hipMemAccessDesc both[] = {access, access};
    both[0].flags = hipMemAccessFlagsProtRead;
    both[1].location.id = 2;
    GIVES(hipErrorInvalidDevice, hipMemPoolSetAccess(pool, both, 2)); // then none of it is done
    CHECK(hipMemPoolGetAccess(&flags, pool, &access.location));
    EQUAL(int(hipMemAccessFlagsProtNone), int(flags));
    CHECK(hipMemPoolDestroy(pool));
}
CASE(advice_names_either_device)
{
    Managed<char> m(4096);
    int places[3];
    CHECK(hipMemAdvise(m, 4096, hipMemAdviseSetAccessedBy, 1));
    CHECK(hipMemAdvise(m, 4096, hipMemAdviseSetAccessedBy, 0));
    CHECK(hipMemRangeGetAttribute(places, sizeof places, hipMemRangeAttributeAccessedBy, m, 4096));
    EQUAL(0, places[0]);
    EQUAL(1, places[1]);
    EQUAL(hipInvalidDeviceId, places[2]);
    GIVES(hipErrorInvalidDevice, hipMemAdvise(m, 4096, hipMemAdviseSetAccessedBy, 2));
}
