// Arrays: channel descriptors; arrays of one, two and three dimensions, copies to and from them; what they refuse.
#include "resources.h"

constexpr size_t HUGE = ~size_t(0);

static hipChannelFormatDesc words() { return hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindUnsigned); }

struct Array {
    hipArray_t handle = nullptr;
    Array(size_t width, size_t height)
    {
        hipChannelFormatDesc desc = words();
        CHECK(hipMallocArray(&handle, &desc, width, height, hipArrayDefault));
    }
    Array(size_t width, size_t height, size_t depth)
    {
        hipChannelFormatDesc desc = words();
        CHECK(hipMalloc3DArray(&handle, &desc, make_hipExtent(width, height, depth), hipArrayDefault));
    }
    ~Array() { (void)hipFreeArray(handle); }
    Array(const Array &) = delete;
    operator hipArray_t() const { return handle; }
};
static std::vector<unsigned> counted(size_t count)
{
    std::vector<unsigned> made(count);
    for (size_t i = 0; i < count; i++)
        made[i] = unsigned(i + 1);
    return made;
}
static void is(const hipChannelFormatDesc &d, int x, int y, int z, int w, hipChannelFormatKind kind)
{
    EQUAL(x, d.x);
    EQUAL(y, d.y);
    EQUAL(z, d.z);
    EQUAL(w, d.w);
    EQUAL(kind, d.f);
}

CASE(channel_descriptor_is_returned)
{
    is(hipCreateChannelDesc(8, 16, 32, 64, hipChannelFormatKindSigned), 8, 16, 32, 64, hipChannelFormatKindSigned);
    is(hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat), 32, 0, 0, 0, hipChannelFormatKindFloat);
    is(hipCreateChannelDesc(0, 0, 0, 0, hipChannelFormatKindNone), 0, 0, 0, 0, hipChannelFormatKindNone);
}
CASE(channel_descriptors_of_types)
{
    is(hipCreateChannelDesc<char>(), 8, 0, 0, 0, hipChannelFormatKindSigned);
    is(hipCreateChannelDesc<unsigned short>(), 16, 0, 0, 0, hipChannelFormatKindUnsigned);
    is(hipCreateChannelDesc<float>(), 32, 0, 0, 0, hipChannelFormatKindFloat);
    is(hipCreateChannelDesc<uchar4>(), 8, 8, 8, 8, hipChannelFormatKindUnsigned);
    is(hipCreateChannelDesc<float2>(), 32, 32, 0, 0, hipChannelFormatKindFloat);
    is(hipCreateChannelDesc<int4>(), 32, 32, 32, 32, hipChannelFormatKindSigned);
}
CASE(one_dimension)
{
    Array a(16, 0);
    std::vector<unsigned> from = counted(16), to(16);
    CHECK(hipMemcpy2DToArray(a, 0, 0, from.data(), 64, 64, 1, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2DFromArray(to.data(), 64, a, 0, 0, 64, 1, hipMemcpyDeviceToHost));
    REQUIRE(from == to);
}
CASE(two_dimensions)
{
    Array a(16, 8);
    std::vector<unsigned> from = counted(128), to(128);
    CHECK(hipMemcpy2DToArray(a, 0, 0, from.data(), 64, 64, 8, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2DFromArray(to.data(), 64, a, 0, 0, 64, 8, hipMemcpyDeviceToHost));
    REQUIRE(from == to);
}
CASE(a_part_of_two_dimensions)
{
    Array a(16, 8);
    std::vector<unsigned> zero(128), part = counted(6), to(128);
    CHECK(hipMemcpy2DToArray(a, 0, 0, zero.data(), 64, 64, 8, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2DToArray(a, 4 * 4, 2, part.data(), 12, 12, 2, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2DFromArray(to.data(), 64, a, 0, 0, 64, 8, hipMemcpyDeviceToHost));
    for (size_t y = 0; y < 8; y++)
        for (size_t x = 0; x < 16; x++)
            EQUAL(x >= 4 && x < 7 && y >= 2 && y < 4 ? part[(y - 2) * 3 + x - 4] : 0u, to[y * 16 + x]);
    std::vector<unsigned> back(6);
    CHECK(hipMemcpy2DFromArray(back.data(), 12, a, 4 * 4, 2, 12, 2, hipMemcpyDeviceToHost));
    REQUIRE(back == part);
}
CASE(asynchronous_copies)
{
    Stream s;
    Array a(16, 8);
    Pinned<unsigned> from(128, 7u), to(128, 0u);
    CHECK(hipMemcpy2DToArrayAsync(a, 0, 0, from, 64, 64, 8, hipMemcpyHostToDevice, s));
    CHECK(hipMemcpy2DFromArrayAsync(to, 64, a, 0, 0, 64, 8, hipMemcpyDeviceToHost, s));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(to.all_are(7));
}
CASE(device_memory_to_and_from)
{
    Array a(16, 8);
    Device<unsigned> from(128, 5u), to(128, 0u);
    CHECK(hipMemcpy2DToArray(a, 0, 0, from, 64, 64, 8, hipMemcpyDeviceToDevice));
    CHECK(hipMemcpy2DFromArray(to, 64, a, 0, 0, 64, 8, hipMemcpyDeviceToDevice));
    CHECK(hipDeviceSynchronize());
    REQUIRE(to.all_are(5));
}
CASE(three_dimensions)
{
    Array a(4, 3, 2);
    std::vector<unsigned> from = counted(24), to(24);
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(from.data(), 16, 4, 3);
    copy.dstArray = a;
    copy.extent = make_hipExtent(4, 3, 2); // in elements where an array takes part
    copy.kind = hipMemcpyHostToDevice;
    CHECK(hipMemcpy3D(&copy));
    copy = {};
    copy.srcArray = a;
    copy.dstPtr = make_hipPitchedPtr(to.data(), 16, 4, 3);
    copy.extent = make_hipExtent(4, 3, 2);
    copy.kind = hipMemcpyDeviceToHost;
    CHECK(hipMemcpy3D(&copy));
    REQUIRE(from == to);
}
CASE(array_to_array)
{
    Array a(4, 3, 2), b(4, 3, 2);
    std::vector<unsigned> from = counted(24), to(24);
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(from.data(), 16, 4, 3);
    copy.dstArray = a;
    copy.extent = make_hipExtent(4, 3, 2);
    copy.kind = hipMemcpyHostToDevice;
    CHECK(hipMemcpy3D(&copy));
    copy = {};
    copy.srcArray = a;
    copy.dstArray = b;
    copy.extent = make_hipExtent(4, 3, 2);
    copy.kind = hipMemcpyDeviceToDevice;
    CHECK(hipMemcpy3D(&copy));
    copy = {};
    copy.srcArray = b;
    copy.dstPtr = make_hipPitchedPtr(to.data(), 16, 4, 3);
    copy.extent = make_hipExtent(4, 3, 2);
    copy.kind = hipMemcpyDeviceToHost;
    CHECK(hipMemcpy3D(&copy));
    REQUIRE(from == to);
}
CASE(bytes_to_and_from)
{
    Array a(16, 0);
    std::vector<unsigned> from = counted(16), to(16), half(8);
    CHECK(hipMemcpyHtoA(a, 0, from.data(), 64));
    CHECK(hipMemcpyAtoH(to.data(), a, 0, 64));
    REQUIRE(from == to);
    CHECK(hipMemcpyAtoH(half.data(), a, 32, 32));
    EQUAL(9u, half[0]);
}
CASE(whole_arrays_by_count)
{
    Array a(16, 4);
    std::vector<unsigned> from = counted(64), to(64);
    CHECK(hipMemcpyToArray(a, 0, 0, from.data(), 256, hipMemcpyHostToDevice));
    CHECK(hipMemcpyFromArray(to.data(), a, 0, 0, 256, hipMemcpyDeviceToHost));
    REQUIRE(from == to);
}
CASE(driver_arrays)
{
    HIP_ARRAY_DESCRIPTOR flat = {};
    flat.Width = 16;
    flat.Height = 4;
    flat.Format = HIP_AD_FORMAT_UNSIGNED_INT32;
    flat.NumChannels = 1;
    hipArray_t a;
    CHECK(hipArrayCreate(&a, &flat));
    std::vector<unsigned> from = counted(64), to(64);
    hip_Memcpy2D copy = {};
    copy.srcMemoryType = hipMemoryTypeHost;
    copy.srcHost = from.data();
    copy.srcPitch = 64;
    copy.dstMemoryType = hipMemoryTypeArray;
    copy.dstArray = a;
    copy.WidthInBytes = 64;
    copy.Height = 4;
    CHECK(hipMemcpyParam2D(&copy));
    copy = {};
    copy.srcMemoryType = hipMemoryTypeArray;
    copy.srcArray = a;
    copy.dstMemoryType = hipMemoryTypeHost;
    copy.dstHost = to.data();
    copy.dstPitch = 64;
    copy.WidthInBytes = 64;
    copy.Height = 4;
    CHECK(hipMemcpyParam2D(&copy));
    REQUIRE(from == to);
    CHECK(hipArrayDestroy(a));
    HIP_ARRAY3D_DESCRIPTOR deep = {};
    deep.Width = 4;
    deep.Height = 3;
    deep.Depth = 2;
    deep.Format = HIP_AD_FORMAT_FLOAT;
    deep.NumChannels = 4;
    CHECK(hipArray3DCreate(&a, &deep));
    CHECK(hipArrayDestroy(a));
}
CASE(create_refuses)
{
    hipArray_t a;
    hipChannelFormatDesc desc = words(), three = hipCreateChannelDesc(8, 8, 8, 0, hipChannelFormatKindUnsigned);
    hipChannelFormatDesc odd = hipCreateChannelDesc(7, 0, 0, 0, hipChannelFormatKindUnsigned);
    GIVES(hipErrorInvalidValue, hipMallocArray(nullptr, &desc, 16, 16, 0));
    GIVES(hipErrorInvalidValue, hipMallocArray(&a, nullptr, 16, 16, 0));
    GIVES(hipErrorInvalidValue, hipMallocArray(&a, &three, 16, 16, 0));
    GIVES(hipErrorInvalidValue, hipMallocArray(&a, &odd, 16, 16, 0));
    GIVES(hipErrorInvalidValue, hipMallocArray(&a, &desc, 16, 16, 0xDEAD0000));
    REQUIRE(hipMallocArray(&a, &desc, HUGE, 0, 0) != hipSuccess);
    REQUIRE(hipMallocArray(&a, &desc, HUGE, HUGE, 0) != hipSuccess);
    GIVES(hipErrorInvalidValue, hipMalloc3DArray(nullptr, &desc, make_hipExtent(4, 4, 4), 0));
    GIVES(hipErrorInvalidValue, hipMalloc3DArray(&a, nullptr, make_hipExtent(4, 4, 4), 0));
    GIVES(hipErrorInvalidValue, hipMalloc3DArray(&a, &three, make_hipExtent(4, 4, 4), 0));
    HIP_ARRAY_DESCRIPTOR flat = {};
    flat.Width = flat.Height = 4;
    flat.Format = HIP_AD_FORMAT_FLOAT;
    flat.NumChannels = 3;
    GIVES(hipErrorInvalidValue, hipArrayCreate(&a, &flat));
    GIVES(hipErrorInvalidValue, hipArrayCreate(&a, nullptr));
    flat.NumChannels = 1;
    GIVES(hipErrorInvalidValue, hipArrayCreate(nullptr, &flat));
    GIVES(hipErrorInvalidValue, hipArray3DCreate(&a, nullptr));
}
CASE(free_refuses)
{
    GIVES(hipErrorInvalidValue, hipFreeArray(nullptr));
    GIVES(hipErrorInvalidValue, hipArrayDestroy(nullptr));
    hipArray_t a;
    hipChannelFormatDesc desc = words();
    CHECK(hipMallocArray(&a, &desc, 16, 4, hipArrayDefault));
    CHECK(hipFreeArray(a));
    GIVES(hipErrorContextIsDestroyed, hipFreeArray(a));
}
CASE(copies_refuse)
{
    Array a(16, 8);
    std::vector<unsigned> host(128);
    hipMemcpyKind kind = hipMemcpyHostToDevice;
    GIVES(hipErrorInvalidHandle, hipMemcpy2DToArray(nullptr, 0, 0, host.data(), 64, 64, 8, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(a, 0, 0, nullptr, 64, 64, 8, kind));
    GIVES(hipErrorInvalidPitchValue, hipMemcpy2DToArray(a, 0, 0, host.data(), 63, 64, 8, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(a, 4, 0, host.data(), 64, 64, 8, kind));
    GIVES(hipErrorInvalidValue, hipMemcpy2DToArray(a, 0, 1, host.data(), 64, 64, 8, kind));
    GIVES(hipErrorInvalidMemcpyDirection, hipMemcpy2DToArray(a, 0, 0, host.data(), 64, 64, 8, hipMemcpyKind(-1)));
    GIVES(hipErrorInvalidHandle, hipMemcpy2DFromArray(host.data(), 64, nullptr, 0, 0, 64, 8, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidValue, hipMemcpy2DFromArray(nullptr, 64, a, 0, 0, 64, 8, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidPitchValue, hipMemcpy2DFromArray(host.data(), 63, a, 0, 0, 64, 8, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidValue, hipMemcpy2DFromArray(host.data(), 64, a, 4, 0, 64, 8, hipMemcpyDeviceToHost));
}
#if HIP_VERSION_MAJOR >= 6
CASE(what_arrays_say_of_themselves)
{
    Array a(16, 8);
    hipChannelFormatDesc desc = {};
    hipExtent extent = {};
    unsigned flags = 99;
    CHECK(hipArrayGetInfo(&desc, &extent, &flags, a));
    is(desc, 32, 0, 0, 0, hipChannelFormatKindUnsigned);
    EQUAL(16u, extent.width);
    EQUAL(8u, extent.height);
    EQUAL(0u, extent.depth);
    EQUAL(unsigned(hipArrayDefault), flags);
    GIVES(hipErrorInvalidHandle, hipArrayGetInfo(&desc, &extent, &flags, nullptr));
    HIP_ARRAY_DESCRIPTOR flat = {};
    CHECK(hipArrayGetDescriptor(&flat, a));
    EQUAL(16u, flat.Width);
    EQUAL(8u, flat.Height);
    EQUAL(1u, flat.NumChannels);
    EQUAL(HIP_AD_FORMAT_UNSIGNED_INT32, flat.Format);
    GIVES(hipErrorInvalidValue, hipArrayGetDescriptor(nullptr, a));
    GIVES(hipErrorInvalidHandle, hipArrayGetDescriptor(&flat, nullptr));
    HIP_ARRAY3D_DESCRIPTOR deep = {};
    CHECK(hipArray3DGetDescriptor(&deep, a));
    EQUAL(16u, deep.Width);
    GIVES(hipErrorInvalidValue, hipArray3DGetDescriptor(nullptr, a));
    GIVES(hipErrorInvalidHandle, hipArray3DGetDescriptor(&deep, nullptr));
}
#endif
CASE(descriptor_of_an_array)
{
    Array a(16, 8);
    hipChannelFormatDesc desc = {};
    CHECK(hipGetChannelDesc(&desc, a));
    is(desc, 32, 0, 0, 0, hipChannelFormatKindUnsigned);
    GIVES(hipErrorInvalidValue, hipGetChannelDesc(nullptr, a));
    GIVES(hipErrorInvalidHandle, hipGetChannelDesc(&desc, nullptr));
}
