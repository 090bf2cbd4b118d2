// Allocation in stream order, from the device's pool and from one of the program's own; what pools say of themselves.
#include <hip/hip_runtime.h>
#include <cstdint>
#include <vector>
#include "check.h"

__global__ void fill(int *data, int value) { data[threadIdx.x] = value; }
__global__ void sum(const int *a, const int *b, int *to) { to[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

static uint64_t ask(hipMemPool_t pool, hipMemPoolAttr attribute)
{
    uint64_t value = ~uint64_t(0);
    CHECK(hipMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

int main()
{
    const int n = 256, bytes = n * sizeof(int);
    hipStream_t stream;
    hipMemPool_t standard, pool;
    int *a, *b, *c, supported;
    std::vector<int> host(n);
    CHECK(hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, 0));
    REQUIRE(supported);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipDeviceGetDefaultMemPool(&standard, 0));
    hipMemPoolProps properties = {};
    properties.allocType = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    CHECK(hipMemPoolCreate(&pool, &properties));
    CHECK(hipMallocAsync(reinterpret_cast<void **>(&a), bytes, stream));
    CHECK(hipMallocFromPoolAsync(reinterpret_cast<void **>(&b), bytes, pool, stream));
    CHECK(hipDeviceSetMemPool(0, pool));
    CHECK(hipMallocAsync(reinterpret_cast<void **>(&c), bytes, stream));
    REQUIRE(ask(standard, hipMemPoolAttrUsedMemCurrent) == bytes && ask(pool, hipMemPoolAttrUsedMemCurrent) == 2 * bytes);
    for (int round = 0; round < 3; round++) {
        fill<<<1, n, 0, stream>>>(a, round);
        fill<<<1, n, 0, stream>>>(b, 100);
        sum<<<1, n, 0, stream>>>(a, b, c);
        CHECK(hipFreeAsync(b, stream));
        CHECK(hipMallocFromPoolAsync(reinterpret_cast<void **>(&b), bytes, pool, stream));
    }
    CHECK(hipMemcpyAsync(host.data(), c, bytes, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(host[n - 1] == 102);
    CHECK(hipFreeAsync(b, stream));
    CHECK(hipFreeAsync(c, stream));
    CHECK(hipStreamSynchronize(stream));
    REQUIRE(ask(pool, hipMemPoolAttrUsedMemCurrent) == 0 && ask(pool, hipMemPoolAttrUsedMemHigh) == 2 * bytes);
    uint64_t value = 0;
    CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &value));
    REQUIRE(ask(pool, hipMemPoolAttrUsedMemHigh) == 0);
    value = 1 << 20;
    CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &value));
    REQUIRE(ask(pool, hipMemPoolAttrReleaseThreshold) == value);
    REQUIRE(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &value) == hipErrorInvalidValue);
    int on = 0;
    CHECK(hipMemPoolGetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &on));
    REQUIRE(on == 1);
    hipMemAccessDesc access = {};
    access.location = properties.location;
    access.flags = hipMemAccessFlagsProtReadWrite;
    CHECK(hipMemPoolSetAccess(pool, &access, 1));
    hipMemAccessFlags flags;
    CHECK(hipMemPoolGetAccess(&flags, pool, &access.location));
    REQUIRE(flags == hipMemAccessFlagsProtReadWrite);
    CHECK(hipMemPoolTrimTo(pool, 0));
    CHECK(hipMemPoolDestroy(pool));
    CHECK(hipDeviceGetMemPool(&pool, 0));
    REQUIRE(pool == standard);
    CHECK(hipFree(a));
    REQUIRE(ask(standard, hipMemPoolAttrUsedMemCurrent) == 0);
    return passed();
}
