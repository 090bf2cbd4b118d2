// Arrays: which there may be, what they say of themselves, and how they end.
#include "array.h"

constexpr size_t HUGE = ~size_t(0);
static const hipChannelFormatKind KINDS[] = {hipChannelFormatKindSigned, hipChannelFormatKindUnsigned, hipChannelFormatKindFloat};

static bool same(hipChannelFormatDesc a, hipChannelFormatDesc b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w && a.f == b.f;
}
static hipError_t makes(hipChannelFormatDesc desc, hipExtent extent, unsigned flags = hipArrayDefault)
{
    hipArray_t array = nullptr;
    hipError_t error = hipMalloc3DArray(&array, &desc, extent, flags);
    if (!error)
        CHECK(hipFreeArray(array));
    return error;
}

CASE(channels_are_given_by_value)
{
    hipChannelFormatDesc desc = hipCreateChannelDesc(1, 2, 3, 4, hipChannelFormatKindFloat);
    REQUIRE(desc.x == 1 && desc.y == 2 && desc.z == 3 && desc.w == 4 && desc.f == hipChannelFormatKindFloat);
    REQUIRE(same(hipCreateChannelDesc<float4>(), hipCreateChannelDesc(32, 32, 32, 32, hipChannelFormatKindFloat)));
    REQUIRE(same(hipCreateChannelDesc<uchar2>(), hipCreateChannelDesc(8, 8, 0, 0, hipChannelFormatKindUnsigned)));
}
CASE(every_format_that_images_have)
{
    for (hipChannelFormatKind kind : KINDS)
        for (int bits : {8, 16, 32})
            for (int channels = 1; channels <= 4; channels++) {
                hipChannelFormatDesc desc = hipCreateChannelDesc(bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                                                                 channels > 3 ? bits : 0, kind);
                bool good = channels != 3 && !(bits == 8 && kind == hipChannelFormatKindFloat);
                GIVES(good ? hipSuccess : hipErrorInvalidValue, makes(desc, make_hipExtent(16, 4, 0)));
            }
}
CASE(odd_channels_are_invalid)
{
    for (hipChannelFormatKind kind : KINDS) {
        for (int bits : {-1, 0, 10, 64, 100})
            GIVES(hipErrorInvalidValue, makes(hipCreateChannelDesc(bits, bits, bits, bits, kind), make_hipExtent(6, 0, 0)));
        GIVES(hipErrorInvalidValue, makes(hipCreateChannelDesc(0, 32, 0, 0, kind), make_hipExtent(6, 0, 0)));
        GIVES(hipErrorInvalidValue, makes(hipCreateChannelDesc(32, 0, 32, 0, kind), make_hipExtent(6, 0, 0)));
        GIVES(hipErrorInvalidValue, makes(hipCreateChannelDesc(32, 32, 0, 32, kind), make_hipExtent(6, 0, 0)));
        GIVES(hipErrorInvalidValue, makes(hipCreateChannelDesc(32, 16, 0, 0, kind), make_hipExtent(6, 0, 0)));
    }
    GIVES(hipErrorInvalidValue, makes(hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindNone), make_hipExtent(6, 0, 0)));
    GIVES(hipErrorInvalidValue, makes(hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKind(0xBEEF)), make_hipExtent(6, 0, 0)));
}
CASE(shapes)
{
    CHECK(makes(ints(), make_hipExtent(64, 0, 0)));
    CHECK(makes(ints(), make_hipExtent(64, 64, 0)));
    CHECK(makes(ints(), make_hipExtent(64, 64, 64)));
    CHECK(makes(ints(), make_hipExtent(64, 0, 6), hipArrayLayered));
    CHECK(makes(ints(), make_hipExtent(64, 64, 6), hipArrayLayered));
    CHECK(makes(ints(), make_hipExtent(64, 64, 0), hipArraySurfaceLoadStore));
    CHECK(makes(ints(), make_hipExtent(64, 64, 0), hipArrayTextureGather));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(0, 0, 0)));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(0, 64, 0)));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(0, 6, 6)));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(6, 0, 6)));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(6, 6, 0), hipArrayLayered));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(64, 0, 0), hipArrayTextureGather));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(64, 64, 64), hipArrayTextureGather));
}
CASE(flags_must_be_known)
{
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(6, 6, 6), 0xDEADBEEF));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(6, 6, 6), hipArrayCubemap));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(6, 6, 0), 16));
}
CASE(huge_arrays_are_invalid)
{
    for (hipExtent extent : {make_hipExtent(HUGE, 0, 0), make_hipExtent(6, HUGE, 0), make_hipExtent(6, 6, HUGE),
                             make_hipExtent(HUGE, HUGE, HUGE), make_hipExtent(16385, 0, 0), make_hipExtent(64, 16385, 0),
                             make_hipExtent(2049, 6, 6), make_hipExtent(6, 2049, 6), make_hipExtent(6, 6, 2049),
                             make_hipExtent((size_t(1) << 32) + 4, 0, 0)})
        GIVES(hipErrorInvalidValue, makes(ints(), extent));
    GIVES(hipErrorInvalidValue, makes(ints(), make_hipExtent(6, 6, 2049), hipArrayLayered));
    CHECK(makes(ints(), make_hipExtent(16384, 0, 0)));
    CHECK(makes(ints(), make_hipExtent(6, 6, 2048)));
}
CASE(more_than_there_is)
{
    hipChannelFormatDesc desc = hipCreateChannelDesc(32, 32, 32, 32, hipChannelFormatKindFloat);
    GIVES(hipErrorOutOfMemory, makes(desc, make_hipExtent(2048, 2048, 2048)));
}
CASE(null_is_invalid)
{
    hipArray_t array;
    hipChannelFormatDesc desc = ints();
    HIP_ARRAY_DESCRIPTOR rows = {6, 6, HIP_AD_FORMAT_FLOAT, 1};
    HIP_ARRAY3D_DESCRIPTOR box = {6, 6, 6, HIP_AD_FORMAT_FLOAT, 1, 0};
    GIVES(hipErrorInvalidValue, hipMallocArray(nullptr, &desc, 6, 6, 0));
    GIVES(hipErrorInvalidValue, hipMallocArray(&array, nullptr, 6, 6, 0));
    GIVES(hipErrorInvalidValue, hipMalloc3DArray(nullptr, &desc, make_hipExtent(6, 6, 6), 0));
    GIVES(hipErrorInvalidValue, hipMalloc3DArray(&array, nullptr, make_hipExtent(6, 6, 6), 0));
    GIVES(hipErrorInvalidValue, hipArrayCreate(nullptr, &rows));
    GIVES(hipErrorInvalidValue, hipArrayCreate(&array, nullptr));
    GIVES(hipErrorInvalidValue, hipArray3DCreate(nullptr, &box));
    GIVES(hipErrorInvalidValue, hipArray3DCreate(&array, nullptr));
    GIVES(hipErrorInvalidValue, hipFreeArray(nullptr));
    GIVES(hipErrorInvalidValue, hipArrayDestroy(nullptr));
}
CASE(freed_once)
{
    hipArray_t array;
    hipChannelFormatDesc desc = ints();
    hipExtent extent;
    CHECK(hipMallocArray(&array, &desc, 6, 6, hipArrayDefault));
    CHECK(hipFreeArray(array));
    GIVES(hipErrorContextIsDestroyed, hipFreeArray(array));
    GIVES(hipErrorContextIsDestroyed, hipArrayDestroy(array));
    GIVES(hipErrorContextIsDestroyed, hipFreeArray(reinterpret_cast<hipArray_t>(0xFFFF)));
    GIVES(hipErrorInvalidHandle, hipArrayGetInfo(nullptr, &extent, nullptr, array));
    GIVES(hipErrorInvalidHandle, hipGetChannelDesc(&desc, array));
    int host[6];
    GIVES(hipErrorInvalidHandle, hipMemcpy2DFromArray(host, 24, array, 0, 0, 24, 1, hipMemcpyDeviceToHost));
    GIVES(hipErrorInvalidValue, hipMemcpyAtoH(host, array, 0, 24));
}
CASE(memory_comes_back)
{
    size_t before, during, after, total;
    CHECK(hipMemGetInfo(&before, &total));
    {
        Array array(ints(), 1024, 1024);
        CHECK(hipMemGetInfo(&during, &total));
        REQUIRE(before - during >= size_t(4) << 20);
    }
    CHECK(hipMemGetInfo(&after, &total));
    EQUAL(before, after);
}
CASE(information)
{
    hipChannelFormatDesc wanted = hipCreateChannelDesc(16, 16, 0, 0, hipChannelFormatKindFloat), desc;
    Array array(wanted, 12, 5, 3, hipArrayLayered);
    hipExtent extent;
    unsigned flags = 77;
    CHECK(hipArrayGetInfo(&desc, &extent, &flags, array));
    REQUIRE(same(desc, wanted) && extent.width == 12 && extent.height == 5 && extent.depth == 3);
    EQUAL(unsigned(hipArrayLayered), flags);
    CHECK(hipArrayGetInfo(nullptr, nullptr, nullptr, array));
    desc = {};
    CHECK(hipGetChannelDesc(&desc, array));
    REQUIRE(same(desc, wanted));
    HIP_ARRAY3D_DESCRIPTOR box;
    CHECK(hipArray3DGetDescriptor(&box, array));
    REQUIRE(box.Width == 12 && box.Height == 5 && box.Depth == 3 && box.Format == HIP_AD_FORMAT_HALF && box.NumChannels == 2);
    EQUAL(unsigned(hipArrayLayered), box.Flags);
    GIVES(hipErrorInvalidHandle, hipArrayGetInfo(&desc, &extent, &flags, nullptr));
    GIVES(hipErrorInvalidHandle, hipArray3DGetDescriptor(&box, nullptr));
    GIVES(hipErrorInvalidValue, hipArray3DGetDescriptor(nullptr, array));
    GIVES(hipErrorInvalidValue, hipGetChannelDesc(nullptr, array));
    GIVES(hipErrorInvalidHandle, hipGetChannelDesc(&desc, nullptr));
}
CASE(descriptors_of_the_driver)
{
    HIP_ARRAY_DESCRIPTOR wanted = {12, 5, HIP_AD_FORMAT_UNSIGNED_INT8, 4}, desc = {};
    hipArray_t array;
    CHECK(hipArrayCreate(&array, &wanted));
    CHECK(hipArrayGetDescriptor(&desc, array));
    REQUIRE(desc.Width == 12 && desc.Height == 5 && desc.Format == HIP_AD_FORMAT_UNSIGNED_INT8 && desc.NumChannels == 4);
    GIVES(hipErrorInvalidValue, hipArrayGetDescriptor(nullptr, array));
    GIVES(hipErrorInvalidHandle, hipArrayGetDescriptor(&desc, nullptr));
    hipChannelFormatDesc channels;
    CHECK(hipGetChannelDesc(&channels, array));
    REQUIRE(same(channels, hipCreateChannelDesc(8, 8, 8, 8, hipChannelFormatKindUnsigned)));
    CHECK(hipArrayDestroy(array));
    for (unsigned count : {0u, 3u, 5u}) {
        desc = wanted, desc.NumChannels = count;
        GIVES(hipErrorInvalidValue, hipArrayCreate(&array, &desc));
    }
    desc = wanted, desc.Format = hipArray_Format(0xBEEF);
    GIVES(hipErrorInvalidValue, hipArrayCreate(&array, &desc));
    desc = wanted, desc.Width = 0;
    GIVES(hipErrorInvalidValue, hipArrayCreate(&array, &desc));
    HIP_ARRAY3D_DESCRIPTOR box = {6, 0, 6, HIP_AD_FORMAT_FLOAT, 1, 0};
    GIVES(hipErrorInvalidValue, hipArray3DCreate(&array, &box));
    box.Flags = hipArrayLayered;
    CHECK(hipArray3DCreate(&array, &box));
    CHECK(hipFreeArray(array));
}
