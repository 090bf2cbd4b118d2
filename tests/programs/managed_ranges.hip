// Managed memory and what is said of parts of it: where they are wanted, where they were moved to, who reaches them.
#include <hip/hip_runtime.h>
#include "check.h"

constexpr int PAGE = 4096 / sizeof(int), PAGES = 8;

__managed__ int steps[PAGE];

__global__ void double_all(int *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] *= 2;
        atomicAdd(&steps[0], 1);
    }
}

static int asked(hipMemRangeAttribute attribute, const void *data, int pages)
{
    int answer = 77;
    CHECK(hipMemRangeGetAttribute(&answer, sizeof answer, attribute, data, pages * PAGE * sizeof(int)));
    return answer;
}

int main()
{
    int *data, managed = 0;
    const size_t page = PAGE * sizeof(int);
    CHECK(hipDeviceGetAttribute(&managed, hipDeviceAttributeManagedMemory, 0));
    REQUIRE(managed == 1);
    CHECK(hipMallocManaged(reinterpret_cast<void **>(&data), PAGES * page, hipMemAttachGlobal));
    for (int i = 0; i < PAGES * PAGE; i++)
        data[i] = i;
    REQUIRE(asked(hipMemRangeAttributeLastPrefetchLocation, data, PAGES) == hipInvalidDeviceId);
    REQUIRE(asked(hipMemRangeAttributePreferredLocation, data, PAGES) == hipInvalidDeviceId);
    REQUIRE(asked(hipMemRangeAttributeReadMostly, data, PAGES) == 0);

    CHECK(hipMemAdvise(data, 4 * page, hipMemAdviseSetPreferredLocation, 0));
    CHECK(hipMemAdvise(data + 2 * PAGE, 4 * page, hipMemAdviseSetReadMostly, 0));
    CHECK(hipMemPrefetchAsync(data, 2 * page, 0, nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(asked(hipMemRangeAttributePreferredLocation, data, 4) == 0);
    REQUIRE(asked(hipMemRangeAttributePreferredLocation, data + PAGE, 4) == hipInvalidDeviceId);
    REQUIRE(asked(hipMemRangeAttributeReadMostly, data + 2 * PAGE, 4) == 1);
    REQUIRE(asked(hipMemRangeAttributeReadMostly, data, 4) == 0);
    REQUIRE(asked(hipMemRangeAttributeLastPrefetchLocation, data, 2) == 0);
    REQUIRE(asked(hipMemRangeAttributeLastPrefetchLocation, data, 3) == hipInvalidDeviceId);

    double_all<<<PAGES * PAGE / 256, 256>>>(data, PAGES * PAGE); // also where nothing was prefetched
    CHECK(hipMemPrefetchAsync(data, PAGES * page, hipCpuDeviceId, nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(asked(hipMemRangeAttributeLastPrefetchLocation, data, PAGES) == hipCpuDeviceId);
    for (int i = 0; i < PAGES * PAGE; i++)
        REQUIRE(data[i] == 2 * i);
    REQUIRE(steps[0] == PAGES * PAGE);

    CHECK(hipMemAdvise(data, PAGES * page, hipMemAdviseUnsetPreferredLocation, 0));
    CHECK(hipMemAdvise(data, PAGES * page, hipMemAdviseUnsetReadMostly, 0));
    REQUIRE(asked(hipMemRangeAttributePreferredLocation, data, PAGES) == hipInvalidDeviceId);
    REQUIRE(asked(hipMemRangeAttributeReadMostly, data + 2 * PAGE, 4) == 0);
    CHECK(hipMemAdvise(data, PAGES * page, hipMemAdviseSetAccessedBy, 0));
    REQUIRE(asked(hipMemRangeAttributeAccessedBy, data, PAGES) == 0);
    CHECK(hipFree(data));

    CHECK(hipMallocManaged(reinterpret_cast<void **>(&data), PAGES * page, hipMemAttachGlobal)); // nothing was said of it
    CHECK(hipMemset(data, 0, PAGES * page));
    CHECK(hipDeviceSynchronize());
    REQUIRE(data[0] == 0 && data[PAGES * PAGE - 1] == 0);
    REQUIRE(asked(hipMemRangeAttributeLastPrefetchLocation, data, PAGES) == hipInvalidDeviceId);
    CHECK(hipFree(data));
    return passed();
}
