// Virtual memory management: addresses, memory, where it is seen, and by whom.
#include "resources.h"

#include <malloc.h>
#include <unistd.h>

__global__ void add_one(unsigned *data) { data[threadIdx.x + blockIdx.x * blockDim.x] += 1; }

static hipMemAllocationProp properties(hipMemAllocationHandleType handles = hipMemHandleTypeNone)
{
    hipMemAllocationProp made = {};
    made.type = hipMemAllocationTypePinned;
    made.requestedHandleType = handles;
    made.location.type = hipMemLocationTypeDevice;
    return made;
}
static size_t granularity()
{
    size_t bytes = 0;
    hipMemAllocationProp props = properties();
    CHECK(hipMemGetAllocationGranularity(&bytes, &props, hipMemAllocationGranularityMinimum));
    return bytes;
}
static void allow(void *at, size_t bytes, hipMemAccessFlags flags = hipMemAccessFlagsProtReadWrite)
{
    hipMemAccessDesc access = {};
    access.location.type = hipMemLocationTypeDevice;
    access.flags = flags;
    CHECK(hipMemSetAccess(at, bytes, &access, 1));
}

struct Range {
    char *at = nullptr;
    size_t bytes;
    explicit Range(size_t bytes, size_t alignment = 0) : bytes(bytes)
    {
        CHECK(hipMemAddressReserve(reinterpret_cast<void **>(&at), bytes, alignment, nullptr, 0));
    }
    ~Range() { (void)hipMemAddressFree(at, bytes); }
    Range(const Range &) = delete;
    operator void *() const { return at; }
    unsigned *numbers() const { return reinterpret_cast<unsigned *>(at); }
};
struct Memory {
    hipMemGenericAllocationHandle_t handle = nullptr;
    explicit Memory(size_t bytes, hipMemAllocationHandleType handles = hipMemHandleTypeNone)
    {
        hipMemAllocationProp props = properties(handles);
        CHECK(hipMemCreate(&handle, bytes, &props, 0));
    }
    ~Memory() { (void)hipMemRelease(handle); }
    Memory(const Memory &) = delete;
    operator hipMemGenericAllocationHandle_t() const { return handle; }
};
struct Mapped {
    char *at;
    size_t bytes;
    Mapped(void *at, size_t bytes, hipMemGenericAllocationHandle_t memory) : at(static_cast<char *>(at)), bytes(bytes)
    {
        CHECK(hipMemMap(at, bytes, 0, memory, 0));
        allow(at, bytes);
    }
    ~Mapped() { (void)hipMemUnmap(at, bytes); }
    Mapped(const Mapped &) = delete;
};

CASE(granularity_arguments)
{
    size_t bytes = 0, recommended = 0;
    hipMemAllocationProp props = properties();
    GIVES(hipErrorInvalidValue, hipMemGetAllocationGranularity(nullptr, &props, hipMemAllocationGranularityMinimum));
    GIVES(hipErrorInvalidValue, hipMemGetAllocationGranularity(&bytes, nullptr, hipMemAllocationGranularityMinimum));
    GIVES(hipErrorInvalidValue, hipMemGetAllocationGranularity(&bytes, &props, hipMemAllocationGranularity_flags(0xff)));
    CHECK(hipMemGetAllocationGranularity(&bytes, &props, hipMemAllocationGranularityMinimum));
    CHECK(hipMemGetAllocationGranularity(&recommended, &props, hipMemAllocationGranularityRecommended));
    REQUIRE(bytes > 0 && recommended % bytes == 0);
    props.type = hipMemAllocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipMemGetAllocationGranularity(&bytes, &props, hipMemAllocationGranularityMinimum));
    props = properties(), props.location.type = hipMemLocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipMemGetAllocationGranularity(&bytes, &props, hipMemAllocationGranularityMinimum));
    props = properties(), props.location.id = 99;
    GIVES(hipErrorInvalidValue, hipMemGetAllocationGranularity(&bytes, &props, hipMemAllocationGranularityMinimum));
}
CASE(reserve_arguments)
{
    void *at;
    size_t unit = granularity();
    GIVES(hipErrorInvalidValue, hipMemAddressReserve(nullptr, unit, 0, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipMemAddressReserve(&at, 0, 0, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipMemAddressReserve(&at, unit - 1, 0, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipMemAddressReserve(&at, unit, 3, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipMemAddressReserve(&at, unit, 0, nullptr, 1));
    GIVES(hipErrorInvalidValue, hipMemAddressFree(nullptr, unit));
    GIVES(hipErrorInvalidValue, hipMemAddressFree(&at, unit));
    CHECK(hipMemAddressReserve(&at, unit, 0, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipMemAddressFree(at, 0));
    CHECK(hipMemAddressFree(at, unit));
    GIVES(hipErrorInvalidValue, hipMemAddressFree(at, unit));
}
CASE(reserved_addresses_are_aligned)
{
    for (size_t alignment = 1; alignment <= 1 << 24; alignment *= 2) {
        Range range(granularity(), alignment);
        EQUAL(0u, reinterpret_cast<uintptr_t>(range.at) % alignment);
    }
}
CASE(create_arguments)
{
    hipMemGenericAllocationHandle_t handle;
    size_t unit = granularity();
    hipMemAllocationProp props = properties();
    GIVES(hipErrorInvalidValue, hipMemCreate(nullptr, unit, &props, 0));
    GIVES(hipErrorInvalidValue, hipMemCreate(&handle, 0, &props, 0));
    GIVES(hipErrorInvalidValue, hipMemCreate(&handle, unit + 1, &props, 0));
    GIVES(hipErrorInvalidValue, hipMemCreate(&handle, unit, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipMemCreate(&handle, unit, &props, 1));
    GIVES(hipErrorOutOfMemory, hipMemCreate(&handle, size_t(1) << 50, &props, 0));
    props.type = hipMemAllocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipMemCreate(&handle, unit, &props, 0));
    props = properties(), props.location.type = hipMemLocationTypeInvalid;
    GIVES(hipErrorInvalidValue, hipMemCreate(&handle, unit, &props, 0));
    props = properties(), props.location.id = 99;
    GIVES(hipErrorInvalidDevice, hipMemCreate(&handle, unit, &props, 0));
    props = properties(), props.location.id = -1;
    GIVES(hipErrorInvalidDevice, hipMemCreate(&handle, unit, &props, 0));
    GIVES(hipErrorInvalidValue, hipMemRelease(nullptr));
}
CASE(memory_that_is_made_is_counted)
{
    size_t before, during, after, total, bytes = 64 * granularity();
    CHECK(hipMemGetInfo(&before, &total));
    {
        Memory memory(bytes);
        CHECK(hipMemGetInfo(&during, &total));
    }
    CHECK(hipMemGetInfo(&after, &total));
    EQUAL(bytes, before - during);
    EQUAL(before, after);
}
CASE(kernels_and_copies_reach_it)
{
    size_t unit = granularity();
    Range range(2 * unit);
    Memory memory(unit);
    Mapped mapped(range.at + unit, unit, memory);
    unsigned *at = reinterpret_cast<unsigned *>(mapped.at);
    CHECK(hipMemset(at, 0, unit));
    add_one<<<1, 64>>>(at);
    std::vector<unsigned> seen(128);
    CHECK(hipMemcpy(seen.data(), at, 512, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < 128; i++)
        EQUAL(i < 64, seen[i]);
    GIVES(hipErrorInvalidValue, hipMemset(at, 0, unit + 1));
    GIVES(hipErrorInvalidValue, hipMemset(range, 0, 1));
    GIVES(hipErrorInvalidValue, hipFree(at));
}
CASE(it_is_seen_in_two_places)
{
    size_t unit = granularity();
    Range first(unit), second(unit);
    Memory memory(unit);
    Mapped a(first, unit, memory), b(second, unit, memory);
    CHECK(hipMemset(first, 0, unit));
    add_one<<<1, 64>>>(first.numbers());
    add_one<<<1, 64>>>(second.numbers());
    unsigned seen = 0;
    CHECK(hipMemcpy(&seen, first.numbers() + 63, 4, hipMemcpyDeviceToHost));
    EQUAL(2u, seen);
}
CASE(it_keeps_what_is_in_it)
{
    size_t unit = granularity();
    Range first(unit), second(unit);
    Memory memory(unit);
    unsigned seen = 0;
    {
        Mapped mapped(first, unit, memory);
        CHECK(hipMemset(first, 0x11, unit));
    }
    GIVES(hipErrorInvalidValue, hipMemcpy(&seen, first, 4, hipMemcpyDeviceToHost));
    Mapped mapped(second, unit, memory);
    CHECK(hipMemcpy(&seen, second, 4, hipMemcpyDeviceToHost));
    EQUAL(0x11111111u, seen);
}
CASE(places_side_by_side_are_one)
{
    size_t unit = granularity();
    Range range(3 * unit);
    Memory a(unit), b(2 * unit);
    CHECK(hipMemMap(range.at, unit, 0, a, 0));
    CHECK(hipMemMap(range.at + unit, 2 * unit, 0, b, 0));
    allow(range, 3 * unit);
    CHECK(hipMemset(range, 0, 3 * unit));
    add_one<<<unsigned(3 * unit / 4 / 64), 64>>>(range.numbers());
    std::vector<unsigned> seen(3 * unit / 4);
    CHECK(hipMemcpy(seen.data(), range, 3 * unit, hipMemcpyDeviceToHost));
    REQUIRE(seen == std::vector<unsigned>(3 * unit / 4, 1u));
    GIVES(hipErrorInvalidValue, hipMemset(range, 0, 3 * unit + 1));
    GIVES(hipErrorInvalidValue, hipMemUnmap(range, 2 * unit)); // half of one
    CHECK(hipMemUnmap(range, 3 * unit));
    GIVES(hipErrorInvalidValue, hipMemUnmap(range, 3 * unit));
}
CASE(map_arguments)
{
    size_t unit = granularity();
    Range range(2 * unit);
    Memory memory(unit);
    GIVES(hipErrorInvalidValue, hipMemMap(nullptr, unit, 0, memory, 0));
    GIVES(hipErrorInvalidValue, hipMemMap(range, 0, 0, memory, 0));
    GIVES(hipErrorInvalidValue, hipMemMap(range, unit - 1, 0, memory, 0));
    GIVES(hipErrorInvalidValue, hipMemMap(range, unit, 1, memory, 0));
    GIVES(hipErrorInvalidValue, hipMemMap(range, unit, 0, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipMemMap(range, unit, 0, memory, 1));
    GIVES(hipErrorInvalidValue, hipMemMap(range, 2 * unit, 0, memory, 0)); // more than there is
    GIVES(hipErrorInvalidValue, hipMemMap(range.at + 2 * unit, unit, 0, memory, 0));
    Mapped mapped(range, unit, memory);
    GIVES(hipErrorInvalidValue, hipMemMap(range, unit, 0, memory, 0));
    GIVES(hipErrorInvalidValue, hipMemAddressFree(range, 2 * unit));
    GIVES(hipErrorInvalidValue, hipMemUnmap(nullptr, unit));
    GIVES(hipErrorInvalidValue, hipMemUnmap(range, 0));
}
CASE(access)
{
    size_t unit = granularity();
    Range range(unit);
    Memory memory(unit);
    hipMemLocation device = {hipMemLocationTypeDevice, 0}, nowhere = {hipMemLocationTypeInvalid, 0};
    unsigned long long flags = 99;
    GIVES(hipErrorInvalidValue, hipMemGetAccess(&flags, &device, range));
    CHECK(hipMemMap(range, unit, 0, memory, 0));
    CHECK(hipMemGetAccess(&flags, &device, range));
    EQUAL(unsigned(hipMemAccessFlagsProtNone), flags);
    allow(range, unit);
    CHECK(hipMemGetAccess(&flags, &device, range.at + 100));
    EQUAL(unsigned(hipMemAccessFlagsProtReadWrite), flags);
    allow(range, unit, hipMemAccessFlagsProtRead);
    CHECK(hipMemGetAccess(&flags, &device, range));
    EQUAL(unsigned(hipMemAccessFlagsProtRead), flags);
    hipMemAccessDesc desc = {};
    desc.location = device, desc.flags = hipMemAccessFlagsProtReadWrite;
    GIVES(hipErrorInvalidValue, hipMemGetAccess(nullptr, &device, range));
    GIVES(hipErrorInvalidValue, hipMemGetAccess(&flags, nullptr, range));
    GIVES(hipErrorInvalidValue, hipMemGetAccess(&flags, &device, nullptr));
    GIVES(hipErrorInvalidValue, hipMemGetAccess(&flags, &nowhere, range));
    GIVES(hipErrorInvalidValue, hipMemSetAccess(nullptr, unit, &desc, 1));
    GIVES(hipErrorInvalidValue, hipMemSetAccess(range, 0, &desc, 1));
    GIVES(hipErrorInvalidValue, hipMemSetAccess(range, unit, nullptr, 1));
    GIVES(hipErrorInvalidValue, hipMemSetAccess(range, unit, &desc, 0));
    GIVES(hipErrorInvalidValue, hipMemSetAccess(range, 2 * unit, &desc, 1));
    desc.flags = hipMemAccessFlags(2);
    GIVES(hipErrorInvalidValue, hipMemSetAccess(range, unit, &desc, 1));
    desc.flags = hipMemAccessFlagsProtRead, desc.location.id = 99;
    GIVES(hipErrorInvalidValue, hipMemSetAccess(range, unit, &desc, 1));
    CHECK(hipMemUnmap(range, unit));
}
ALONE(kernels_without_access_fault)
{
    size_t unit = granularity();
    Range range(unit);
    Memory memory(unit);
    CHECK(hipMemMap(range, unit, 0, memory, 0));
    add_one<<<1, 64>>>(range.numbers());
    GIVES(hipErrorIllegalAddress, hipDeviceSynchronize());
}
CASE(released_memory_stays_where_it_is_mapped)
{
    size_t unit = granularity(), before, after, total;
    CHECK(hipMemGetInfo(&before, &total));
    {
        Range range(unit);
        hipMemGenericAllocationHandle_t handle, again;
        hipMemAllocationProp props = properties(), got = {};
        CHECK(hipMemCreate(&handle, unit, &props, 0));
        CHECK(hipMemMap(range, unit, 0, handle, 0));
        CHECK(hipMemRelease(handle));
        GIVES(hipErrorInvalidValue, hipMemRelease(handle));
        allow(range, unit);
        CHECK(hipMemset(range, 1, unit));
        CHECK(hipMemRetainAllocationHandle(&again, range.at + 8));
        CHECK(hipMemGetAllocationPropertiesFromHandle(&got, again));
        EQUAL(int(hipMemAllocationTypePinned), int(got.type));
        EQUAL(int(hipMemLocationTypeDevice), int(got.location.type));
        CHECK(hipMemUnmap(range, unit));
        CHECK(hipMemRelease(again));
    }
    CHECK(hipMemGetInfo(&after, &total));
    EQUAL(before, after);
}
CASE(handles_of_addresses)
{
    hipMemGenericAllocationHandle_t handle;
    Device<int> d(64);
    GIVES(hipErrorInvalidValue, hipMemRetainAllocationHandle(nullptr, d));
    GIVES(hipErrorInvalidValue, hipMemRetainAllocationHandle(&handle, nullptr));
    GIVES(hipErrorInvalidValue, hipMemRetainAllocationHandle(&handle, d));
}
CASE(exported_and_imported)
{
    size_t unit = granularity();
    int file = -1;
    hipMemGenericAllocationHandle_t imported;
    hipMemAllocationHandleType fd = hipMemHandleTypePosixFileDescriptor;
    Memory memory(unit, fd), plain(unit);
    GIVES(hipErrorInvalidValue, hipMemExportToShareableHandle(nullptr, memory, fd, 0));
    GIVES(hipErrorInvalidValue, hipMemExportToShareableHandle(&file, nullptr, fd, 0));
    GIVES(hipErrorInvalidValue, hipMemExportToShareableHandle(&file, memory, fd, 1));
    GIVES(hipErrorInvalidValue, hipMemExportToShareableHandle(&file, plain, fd, 0));
    GIVES(hipErrorInvalidValue, hipMemImportFromShareableHandle(&imported, reinterpret_cast<void *>(intptr_t(1)), fd));
    CHECK(hipMemExportToShareableHandle(&file, memory, fd, 0));
    CHECK(hipMemImportFromShareableHandle(&imported, reinterpret_cast<void *>(intptr_t(file)), fd));
    close(file);
    Range first(unit), second(unit);
    {
        Mapped a(first, unit, memory), b(second, unit, imported);
        CHECK(hipMemset(first, 0, unit));
        add_one<<<1, 64>>>(second.numbers());
        unsigned seen = 0;
        CHECK(hipMemcpy(&seen, first, 4, hipMemcpyDeviceToHost));
        EQUAL(1u, seen);
    }
    CHECK(hipMemRelease(imported));
}
CASE(mapping_keeps_nothing)
{
    Range range(granularity());
    Memory memory(granularity());
    auto map = [&](int times) {
        for (int i = 0; i < times; i++) {
            CHECK(hipMemMap(range, range.bytes, 0, memory.handle, 0));
            CHECK(hipMemUnmap(range, range.bytes));
        }
        return mallinfo2().uordblks;
    };
    auto before = map(10);
    REQUIRE(map(500) < before + 4000); // 8 bytes or more for each would be too much
}
