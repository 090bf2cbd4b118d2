// What is asked for while the host has no more memory fails, or is whole: this program's own realloc gives none.
#include "resources.h"

#include <dlfcn.h>

static std::atomic<bool> none_left{false};

extern "C" void *realloc(void *memory, size_t bytes) noexcept
{
    static auto libc = reinterpret_cast<void *(*)(void *, size_t)>(dlsym(RTLD_NEXT, "realloc"));
    return none_left ? nullptr : libc(memory, bytes);
}

// More than any table has room for without growing.
template <typename Allocate, typename Free> static void all_or_nothing(Allocate allocate, Free give_back)
{
    constexpr int MANY = 300;
    void *all[MANY];
    int made = 0;
    hipError_t error = hipSuccess;
    size_t before, after, total;
    CHECK(hipMemGetInfo(&before, &total));
    CHECK(allocate(&all[made++])); // the table is there
    none_left = true;
    while (made < MANY && !(error = allocate(&all[made])))
        made++;
    none_left = false;
    for (int i = 0; i < made; i++)
        CHECK(give_back(all[i]));
    GIVES(hipErrorOutOfMemory, error);
    REQUIRE(made > 1);
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemGetInfo(&after, &total));
    EQUAL(before, after);
}

ALONE(device_memory)
{
    CHECK(hipFree(nullptr));
    all_or_nothing([](void **at) { return hipMalloc(at, 4096); }, hipFree);
}
ALONE(memory_of_pools)
{
    CHECK(hipFree(nullptr));
    all_or_nothing([](void **at) { return hipMallocAsync(at, 4096, nullptr); }, [](void *at) { return hipFreeAsync(at, nullptr); });
}
ALONE(registered_memory)
{
    static char memory[300][16] = {{1}};
    static int next = 0;
    CHECK(hipFree(nullptr));
    all_or_nothing([](void **at) { return *at = memory[next], hipHostRegister(memory[next++], 16, 0); }, hipHostUnregister);
    CHECK(hipHostRegister(memory, sizeof memory, 0));
    EQUAL(1, memory[0][0]);
    CHECK(hipHostUnregister(memory));
}
