// Allocations: sizes, flags, alignment, what is freed how, what is left.
#include "resources.h"

constexpr size_t HUGE = ~size_t(0);

CASE(malloc_arguments)
{
    void *at = &at;
    GIVES(hipErrorInvalidValue, hipMalloc(nullptr, 64));
    GIVES(hipErrorOutOfMemory, hipMalloc(&at, HUGE));
    GIVES(hipErrorOutOfMemory, hipMalloc(&at, HUGE - 4096));
    CHECK(hipMalloc(&at, 0));
    REQUIRE(at == nullptr);
    CHECK(hipFree(nullptr));
}
CASE(malloc_is_aligned)
{
    for (size_t bytes : {1, 3, 63, 257, 100000}) {
        void *at;
        CHECK(hipMalloc(&at, bytes));
        EQUAL(0u, reinterpret_cast<uintptr_t>(at) % 256);
        CHECK(hipFree(at));
    }
}
CASE(allocations_do_not_overlap)
{
    Device<unsigned> a(1000, 1u), b(1000, 2u), c(1000, 3u);
    REQUIRE(a.all_are(1) && b.all_are(2) && c.all_are(3));
}
CASE(free_refuses)
{
    int host;
    void *at;
    CHECK(hipMalloc(&at, 64));
    CHECK(hipFree(at));
    GIVES(hipErrorInvalidValue, hipFree(at));
    GIVES(hipErrorInvalidValue, hipFree(&host));
    GIVES(hipErrorInvalidValue, hipFree(reinterpret_cast<void *>(1)));
}
CASE(free_takes_every_kind)
{
    void *at;
    CHECK(hipHostMalloc(&at, 64, 0));
    CHECK(hipHostFree(at));
    CHECK(hipMallocManaged(&at, 64, hipMemAttachGlobal));
    CHECK(hipFree(at));
    CHECK(hipMallocAsync(&at, 64, nullptr));
    CHECK(hipFree(at));
}
CASE(host_free_refuses)
{
    int host;
    void *at;
    GIVES(hipErrorInvalidValue, hipHostFree(&host));
    CHECK(hipHostMalloc(&at, 64, 0));
    CHECK(hipHostFree(at));
    GIVES(hipErrorInvalidValue, hipHostFree(at));
    CHECK(hipHostFree(nullptr));
}
CASE(free_memory_is_counted)
{
    size_t before, during, after, total;
    void *at;
    CHECK(hipMemGetInfo(&before, &total));
    CHECK(hipMalloc(&at, 64 << 20));
    CHECK(hipMemGetInfo(&during, &total));
    CHECK(hipFree(at));
    CHECK(hipMemGetInfo(&after, &total));
    EQUAL(before, after);
    REQUIRE(before - during >= (64 << 20) && before - during < (80 << 20));
    REQUIRE(before <= total);
}
CASE(memory_info_without_places)
{
    size_t value = 0;
    CHECK(hipMemGetInfo(nullptr, &value));
    REQUIRE(value > 0);
    CHECK(hipMemGetInfo(&value, nullptr));
    CHECK(hipMemGetInfo(nullptr, nullptr));
}
CASE(pitch_arguments)
{
    void *at = &at;
    size_t pitch = 0;
    GIVES(hipErrorInvalidValue, hipMallocPitch(nullptr, &pitch, 1, 1));
    GIVES(hipErrorInvalidValue, hipMallocPitch(&at, nullptr, 1, 1));
    GIVES(hipErrorOutOfMemory, hipMallocPitch(&at, &pitch, 1, HUGE));
    REQUIRE(hipMallocPitch(&at, &pitch, HUGE, 1) != hipSuccess); // 1 since ROCm 6.4 (clr checks for overflow), 2 before
    REQUIRE(hipMallocPitch(&at, &pitch, HUGE, HUGE) != hipSuccess);
    CHECK(hipMallocPitch(&at, &pitch, 0, 1));
    REQUIRE(at == nullptr);
    at = &at;
    CHECK(hipMallocPitch(&at, &pitch, 1, 0));
    REQUIRE(at == nullptr);
}
CASE(pitch_is_aligned)
{
    int align;
    CHECK(hipDeviceGetAttribute(&align, hipDeviceAttributeTexturePitchAlignment, 0));
    REQUIRE(align > 0);
    for (size_t width : {1, 255, 256, 257, 1000}) {
        void *at;
        size_t pitch = 0;
        CHECK(hipMallocPitch(&at, &pitch, width, 3));
        REQUIRE(pitch >= width);
        EQUAL(0u, pitch % size_t(align));
        CHECK(hipMemset(at, 1, pitch * 3));
        CHECK(hipFree(at));
    }
}
CASE(pitch_of_the_driver_interface)
{
    hipDeviceptr_t at;
    size_t pitch = 0;
    GIVES(hipErrorInvalidValue, hipMemAllocPitch(nullptr, &pitch, 1, 1, 4));
    GIVES(hipErrorInvalidValue, hipMemAllocPitch(&at, nullptr, 1, 1, 4));
    GIVES(hipErrorInvalidValue, hipMemAllocPitch(&at, &pitch, 0, 1, 4));
    GIVES(hipErrorInvalidValue, hipMemAllocPitch(&at, &pitch, 1, 0, 4));
    GIVES(hipErrorInvalidValue, hipMemAllocPitch(&at, &pitch, 1, 1, 0));
    GIVES(hipErrorInvalidValue, hipMemAllocPitch(&at, &pitch, 1, 1, 7));
    GIVES(hipErrorInvalidValue, hipMemAllocPitch(&at, &pitch, 1, 1, 12));
    GIVES(hipErrorOutOfMemory, hipMemAllocPitch(&at, &pitch, 1, HUGE, 4));
    CHECK(hipMemAllocPitch(&at, &pitch, 100, 3, 16));
    REQUIRE(pitch >= 100);
    CHECK(hipFree(at));
}
CASE(malloc_3d)
{
    hipPitchedPtr made = {};
    GIVES(hipErrorInvalidValue, hipMalloc3D(nullptr, make_hipExtent(1, 1, 1)));
    GIVES(hipErrorOutOfMemory, hipMalloc3D(&made, make_hipExtent(1, HUGE, 1)));
    GIVES(hipErrorOutOfMemory, hipMalloc3D(&made, make_hipExtent(1, 1, HUGE)));
    REQUIRE(hipMalloc3D(&made, make_hipExtent(HUGE, 1, 1)) != hipSuccess);
    REQUIRE(hipMalloc3D(&made, make_hipExtent(HUGE, HUGE, HUGE)) != hipSuccess);
    CHECK(hipMalloc3D(&made, make_hipExtent(0, 1, 1)));
    REQUIRE(made.ptr == nullptr);
    CHECK(hipMalloc3D(&made, make_hipExtent(100, 5, 4)));
    REQUIRE(made.pitch >= 100);
    EQUAL(100u, made.xsize);
    EQUAL(5u, made.ysize);
    CHECK(hipMemset(made.ptr, 1, made.pitch * 5 * 4));
    CHECK(hipFree(made.ptr));
}
CASE(host_malloc_arguments)
{
    void *at = &at;
    GIVES(hipErrorInvalidValue, hipHostMalloc(nullptr, 64, 0));
    GIVES(hipErrorInvalidValue, hipHostMalloc(&at, 64, 0xFF << 8));
    GIVES(hipErrorInvalidValue, hipHostMalloc(&at, 64, 0xFFFFFFFF));
    GIVES(hipErrorInvalidValue, hipHostMalloc(&at, 64, hipHostMallocCoherent | hipHostMallocNonCoherent));
    GIVES(hipErrorOutOfMemory, hipHostMalloc(&at, HUGE, 0));
    CHECK(hipHostMalloc(&at, 0, 0));
    REQUIRE(at == nullptr);
    GIVES(hipErrorInvalidValue, hipMallocHost(nullptr, 64));
    GIVES(hipErrorInvalidValue, hipMemAllocHost(nullptr, 64));
    GIVES(hipErrorInvalidValue, hipHostAlloc(nullptr, 64, 0));
}
CASE(host_malloc_flags_are_kept)
{
    for (unsigned wanted : {unsigned(hipHostMallocDefault), unsigned(hipHostMallocPortable), unsigned(hipHostMallocMapped),
                            unsigned(hipHostMallocWriteCombined), unsigned(hipHostMallocCoherent),
                            unsigned(hipHostMallocNonCoherent), unsigned(hipHostMallocNumaUser),
                            unsigned(hipHostMallocPortable | hipHostMallocMapped)}) {
        Pinned<int> p(16, 0, wanted);
        unsigned flags = 99;
        CHECK(hipHostGetFlags(&flags, p));
        EQUAL(wanted, flags);
    }
}
CASE(host_alloc_flags)
{
    void *at;
#if HIP_VERSION_MAJOR >= 7
    GIVES(hipErrorInvalidValue, hipHostAlloc(&at, 64, hipHostMallocCoherent));
    GIVES(hipErrorInvalidValue, hipHostAlloc(&at, 64, hipHostMallocNumaUser));
#endif
    GIVES(hipErrorInvalidValue, hipHostAlloc(&at, 64, 0xFFFFFF00));
    CHECK(hipHostAlloc(&at, 64, hipHostMallocPortable | hipHostMallocMapped));
    CHECK(hipHostFree(at));
}
CASE(host_flags_refuses)
{
    int host;
    unsigned flags;
    Device<int> d(16);
    Pinned<int> p(16);
    GIVES(hipErrorInvalidValue, hipHostGetFlags(nullptr, p));
    GIVES(hipErrorInvalidValue, hipHostGetFlags(&flags, nullptr));
    GIVES(hipErrorInvalidValue, hipHostGetFlags(&flags, &host));
    GIVES(hipErrorInvalidValue, hipHostGetFlags(&flags, d));
}
CASE(device_address_of_host_memory)
{
    int host;
    void *at = nullptr;
    Pinned<int> p(16);
    CHECK(hipHostGetDevicePointer(&at, p, 0));
    REQUIRE(at == p.at);
    CHECK(hipHostGetDevicePointer(&at, p.at + 3, 0));
    REQUIRE(at == p.at + 3);
    GIVES(hipErrorInvalidValue, hipHostGetDevicePointer(nullptr, p, 0));
    GIVES(hipErrorInvalidValue, hipHostGetDevicePointer(&at, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipHostGetDevicePointer(&at, &host, 0));
    GIVES(hipErrorInvalidValue, hipHostGetDevicePointer(&at, p, 1));
}
CASE(extended_malloc)
{
    void *at;
    GIVES(hipErrorInvalidValue, hipExtMallocWithFlags(nullptr, 64, hipDeviceMallocDefault));
    GIVES(hipErrorInvalidValue, hipExtMallocWithFlags(&at, 64, 0x8000));
    GIVES(hipErrorInvalidValue, hipExtMallocWithFlags(&at, 4, hipMallocSignalMemory));
    GIVES(hipErrorInvalidValue, hipExtMallocWithFlags(&at, 64, hipMallocSignalMemory));
    CHECK(hipExtMallocWithFlags(&at, 0, hipDeviceMallocDefault));
    REQUIRE(at == nullptr);
    for (unsigned flags : {unsigned(hipDeviceMallocDefault), unsigned(hipDeviceMallocFinegrained)}) {
        CHECK(hipExtMallocWithFlags(&at, 64, flags));
        CHECK(hipMemset(at, 1, 64));
        CHECK(hipFree(at));
    }
    CHECK(hipExtMallocWithFlags(&at, 8, hipMallocSignalMemory));
    CHECK(hipFree(at));
}
CASE(address_range)
{
    Device<char> d(1000);
    hipDeviceptr_t base;
    size_t bytes;
    CHECK(hipMemGetAddressRange(&base, &bytes, d.at + 999));
    REQUIRE(base == hipDeviceptr_t(d.at));
    EQUAL(1000u, bytes);
    GIVES(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, reinterpret_cast<hipDeviceptr_t>(&bytes)));
    GIVES(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, hipDeviceptr_t(nullptr)));
    CHECK(hipMemPtrGetInfo(d.at, &bytes));
    EQUAL(1000u, bytes);
    GIVES(hipErrorInvalidValue, hipMemPtrGetInfo(&bytes, &bytes));
}
CASE(memory_is_used_again)
{
    for (int i = 0; i < 200; i++) {
        void *at;
        CHECK(hipMalloc(&at, size_t(256) << 20));
        CHECK(hipFree(at));
    }
}
CASE(everything_is_too_much)
{
    size_t free, total;
    void *at;
    CHECK(hipMemGetInfo(&free, &total));
    GIVES(hipErrorOutOfMemory, hipMalloc(&at, total + 1));
    CHECK(hipMalloc(&at, 64)); // and afterwards all is well
    CHECK(hipFree(at));
}
CASE(threads_allocate_at_once)
{
    std::atomic<int> bad{0};
    auto work = [&bad] {
        for (int i = 0; i < 100; i++) {
            void *at;
            if (hipMalloc(&at, size_t(1000 + i)) != hipSuccess || hipMemset(at, i, 1000) != hipSuccess || hipFree(at) != hipSuccess)
                bad++;
        }
    };
    std::thread a(work), b(work), c(work);
    a.join();
    b.join();
    c.join();
    EQUAL(0, bad.load());
}
