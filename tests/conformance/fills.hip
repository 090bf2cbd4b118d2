// Fills: what they write, and which places they refuse.
#include "resources.h"

constexpr size_t HUGE = ~size_t(0);

CASE(foreign_memory_is_invalid)
{
    std::vector<char> host(4096, 5);
    void *at = host.data();
    GIVES(hipErrorInvalidValue, hipMemset(at, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemsetAsync(at, 1, 64, nullptr));
    GIVES(hipErrorInvalidValue, hipMemsetD8(at, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemsetD16(at, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemsetD32(at, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemset2D(at, 16, 1, 16, 4));
    GIVES(hipErrorInvalidValue, hipMemset2DAsync(at, 16, 1, 16, 4, nullptr));
    GIVES(hipErrorInvalidValue, hipMemset3D(make_hipPitchedPtr(at, 16, 16, 4), 1, make_hipExtent(16, 4, 2)));
    GIVES(hipErrorInvalidValue, hipMemset3DAsync(make_hipPitchedPtr(at, 16, 16, 4), 1, make_hipExtent(16, 4, 2), nullptr));
    REQUIRE(host == std::vector<char>(4096, 5));
}
CASE(wild_address_is_invalid)
{
    void *at = reinterpret_cast<void *>(0x1000);
    GIVES(hipErrorInvalidValue, hipMemset(at, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemsetAsync(at, 1, 64, nullptr));
    GIVES(hipErrorInvalidValue, hipMemset2D(at, 16, 1, 16, 4));
    GIVES(hipErrorInvalidValue, hipMemset3D(make_hipPitchedPtr(at, 16, 16, 4), 1, make_hipExtent(16, 4, 2)));
}
CASE(null_is_invalid)
{
    GIVES(hipErrorInvalidValue, hipMemset(nullptr, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemsetAsync(nullptr, 1, 64, nullptr));
    GIVES(hipErrorInvalidValue, hipMemsetD8(nullptr, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemsetD16(nullptr, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemsetD32(nullptr, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemset2D(nullptr, 16, 1, 16, 4));
    GIVES(hipErrorInvalidValue, hipMemset3D(make_hipPitchedPtr(nullptr, 16, 16, 4), 1, make_hipExtent(16, 4, 2)));
}
CASE(freed_memory_is_invalid)
{
    void *at;
    CHECK(hipMalloc(&at, 4096));
    CHECK(hipFree(at));
    GIVES(hipErrorInvalidValue, hipMemset(at, 1, 64));
    GIVES(hipErrorInvalidValue, hipMemsetD32(at, 1, 16));
}
CASE(beyond_the_end_is_invalid)
{
    Device<char> d(1000, 0);
    GIVES(hipErrorInvalidValue, hipMemset(d, 1, 1001));
    GIVES(hipErrorInvalidValue, hipMemset(d.at + 999, 1, 2));
    GIVES(hipErrorInvalidValue, hipMemset(d, 1, HUGE));
    GIVES(hipErrorInvalidValue, hipMemsetAsync(d, 1, 1001, nullptr));
    GIVES(hipErrorInvalidValue, hipMemsetD8(d.at, 1, 1001));
    GIVES(hipErrorInvalidValue, hipMemsetD16(d.at, 1, 501));
    GIVES(hipErrorInvalidValue, hipMemsetD32(d.at, 1, 251));
    GIVES(hipErrorInvalidValue, hipMemset2D(d, 100, 1, 100, 11));
    GIVES(hipErrorInvalidValue, hipMemset3D(make_hipPitchedPtr(d.at, 100, 100, 5), 1, make_hipExtent(100, 5, 3)));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(0));
}
ALONE(huge_extents_are_invalid)
{
    Device<char> d(1000, 0);
    GIVES(hipErrorInvalidValue, hipMemset2D(d, 100, 1, HUGE, 1));
    GIVES(hipErrorInvalidValue, hipMemset2D(d, 100, 1, 100, HUGE));
    GIVES(hipErrorInvalidValue, hipMemset2D(d, HUGE, 1, HUGE, HUGE));
    hipPitchedPtr place = make_hipPitchedPtr(d.at, 100, 100, 5);
    GIVES(hipErrorInvalidValue, hipMemset3D(place, 1, make_hipExtent(HUGE, 1, 1)));
    GIVES(hipErrorInvalidValue, hipMemset3D(place, 1, make_hipExtent(1, HUGE, 1)));
    GIVES(hipErrorInvalidValue, hipMemset3D(place, 1, make_hipExtent(1, 1, HUGE)));
    GIVES(hipErrorInvalidValue, hipMemset3D(place, 1, make_hipExtent(HUGE, HUGE, HUGE)));
    GIVES(hipErrorInvalidValue, hipMemset3DAsync(place, 1, make_hipExtent(HUGE, HUGE, HUGE), nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(0));
}
CASE(pitch_below_width_is_invalid)
{
    Device<char> d(1000, 0);
    GIVES(hipErrorInvalidValue, hipMemset2D(d, 10, 1, 20, 2));
    GIVES(hipErrorInvalidValue, hipMemset2DAsync(d, 10, 1, 20, 2, nullptr));
    GIVES(hipErrorInvalidValue, hipMemset3D(make_hipPitchedPtr(d.at, 10, 20, 2), 1, make_hipExtent(20, 2, 2)));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(0));
}
CASE(nothing_to_fill_is_done)
{
    Device<char> d(1000, 3);
    CHECK(hipMemset(d, 1, 0));
    CHECK(hipMemset(nullptr, 1, 0));
    CHECK(hipMemsetD32(d.at, 1, 0));
    CHECK(hipMemset2D(d, 100, 1, 0, 5));
    CHECK(hipMemset2D(d, 100, 1, 5, 0));
    CHECK(hipMemset3D(make_hipPitchedPtr(d.at, 100, 100, 5), 1, make_hipExtent(0, 5, 2)));
    CHECK(hipMemset3D(make_hipPitchedPtr(d.at, 100, 100, 5), 1, make_hipExtent(5, 0, 2)));
    CHECK(hipMemset3D(make_hipPitchedPtr(d.at, 100, 100, 5), 1, make_hipExtent(5, 5, 0)));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(3));
}
CASE(a_byte_of_the_value_is_taken)
{
    Device<unsigned char> d(100, 0);
    CHECK(hipMemset(d, 0x1234, 100));
    REQUIRE(d.all_are(0x34));
    CHECK(hipMemset(d, -1, 100));
    REQUIRE(d.all_are(0xFF));
}
CASE(odd_places_and_sizes)
{
    for (size_t start : {0, 1, 3, 7})
        for (size_t bytes : {1, 2, 5, 9, 33}) {
            Device<unsigned char> d(64, 0);
            CHECK(hipMemset(d.at + start, 7, bytes));
            CHECK(hipDeviceSynchronize());
            std::vector<unsigned char> result = d.host();
            for (size_t i = 0; i < 64; i++)
                EQUAL(int(i >= start && i < start + bytes ? 7 : 0), int(result[i]));
        }
}
CASE(elements)
{
    Device<unsigned> d(8, 0u);
    CHECK(hipMemsetD8(d.at, 0xAB, 32));
    REQUIRE(d.all_are(0xABABABAB));
    CHECK(hipMemsetD16(d.at, 0xABCD, 16));
    REQUIRE(d.all_are(0xABCDABCD));
    CHECK(hipMemsetD32(d.at, int(0xABCD1234), 8));
    REQUIRE(d.all_are(0xABCD1234));
}
CASE(rows)
{
    Device<unsigned char> d(100, 0);
    CHECK(hipMemset2D(d, 10, 7, 4, 10));
    CHECK(hipDeviceSynchronize());
    std::vector<unsigned char> result = d.host();
    for (size_t i = 0; i < 100; i++)
        EQUAL(i % 10 < 4 ? 7 : 0, int(result[i]));
}
CASE(last_row_need_not_be_whole)
{
    Device<unsigned char> d(94, 0);
    CHECK(hipMemset2D(d, 10, 7, 4, 10));
    CHECK(hipDeviceSynchronize());
    EQUAL(7, int(d.host()[93]));
}
CASE(boxes)
{
    hipPitchedPtr made;
    CHECK(hipMalloc3D(&made, make_hipExtent(20, 6, 4)));
    std::vector<unsigned char> result(made.pitch * 6 * 4);
    CHECK(hipMemset(made.ptr, 0, result.size()));
    CHECK(hipMemset3D(made, 7, make_hipExtent(5, 3, 2)));
    CHECK(hipMemcpy(result.data(), made.ptr, result.size(), hipMemcpyDeviceToHost));
    for (size_t z = 0; z < 4; z++)
        for (size_t y = 0; y < 6; y++)
            for (size_t x = 0; x < 20; x++)
                EQUAL(x < 5 && y < 3 && z < 2 ? 7 : 0, int(result[(z * 6 + y) * made.pitch + x]));
    CHECK(hipFree(made.ptr));
}
CASE(every_kind_of_memory)
{
    Pinned<char> p(64, 0);
    CHECK(hipMemset(p, 3, 64));
    CHECK(hipDeviceSynchronize());
    REQUIRE(p.all_are(3));
    Managed<char> m(64);
    CHECK(hipMemset(m, 4, 64));
    CHECK(hipDeviceSynchronize());
    EQUAL(4, int(m[63]));
    std::vector<char> host(4096, 0);
    CHECK(hipHostRegister(host.data(), host.size(), hipHostRegisterDefault));
    CHECK(hipMemset(host.data(), 5, host.size()));
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostUnregister(host.data()));
    REQUIRE(host == std::vector<char>(4096, 5));
}
#if HIP_VERSION_MAJOR >= 7
CASE(rows_of_elements)
{
    Device<unsigned> d(32, 0u);
    CHECK(hipMemsetD2D32(d.at, 32, 9, 4, 4));
    CHECK(hipDeviceSynchronize());
    std::vector<unsigned> result = d.host();
    for (size_t i = 0; i < 32; i++)
        EQUAL(i % 8 < 4 ? 9u : 0u, result[i]);
    d.fill(0);
    CHECK(hipMemsetD2D16(d.at, 32, 0x102, 8, 4));
    CHECK(hipDeviceSynchronize());
    EQUAL(0x01020102u, d.host()[0]);
    EQUAL(0u, d.host()[4]);
    CHECK(hipMemsetD2D8(d.at, 32, 5, 16, 4));
    CHECK(hipDeviceSynchronize());
    EQUAL(0x05050505u, d.host()[8]);
    EQUAL(0u, d.host()[12]);
}
#endif
