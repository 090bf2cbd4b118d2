// Textures, surfaces and arrays with levels: there are none on a device without images, as its attributes say; every function is
// there, refuses what HIP refuses anywhere, and says hipErrorNotSupported else.
#include "array.h"

#include <unistd.h>

static textureReference reference;
static const hipTextureObject_t TEXTURE = reinterpret_cast<hipTextureObject_t>(0x1234);
static const hipMipmappedArray_t LEVELS = reinterpret_cast<hipMipmappedArray_t>(0x1234);

CASE(attributes_say_so)
{
    for (hipDeviceAttribute_t attribute : {hipDeviceAttributeImageSupport, hipDeviceAttributeMaxTexture1DWidth,
                                           hipDeviceAttributeMaxTexture2DWidth, hipDeviceAttributeMaxTexture2DHeight,
                                           hipDeviceAttributeMaxTexture3DWidth}) {
        int value = 7;
        CHECK(hipDeviceGetAttribute(&value, attribute, 0));
        EQUAL(0, value);
    }
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    REQUIRE(!properties.maxTexture1D && !properties.maxTexture2D[0] && !properties.maxTexture3D[2]);
}
CASE(objects)
{
    Array array(ints(), 8);
    hipTextureObject_t texture = nullptr;
    hipResourceDesc resource = {};
    resource.resType = hipResourceTypeArray;
    resource.res.array.array = array;
    hipTextureDesc sampling = {};
    hipResourceViewDesc view;
    GIVES(hipErrorNotSupported, hipCreateTextureObject(&texture, &resource, &sampling, nullptr));
    GIVES(hipErrorNotSupported, hipDestroyTextureObject(TEXTURE));
    CHECK(hipDestroyTextureObject(nullptr));
    GIVES(hipErrorNotSupported, hipGetTextureObjectResourceDesc(&resource, TEXTURE));
    GIVES(hipErrorNotSupported, hipGetTextureObjectResourceViewDesc(&view, TEXTURE));
    GIVES(hipErrorNotSupported, hipGetTextureObjectTextureDesc(&sampling, TEXTURE));
    GIVES(hipErrorInvalidValue, hipGetTextureObjectResourceDesc(nullptr, TEXTURE));
    GIVES(hipErrorInvalidValue, hipGetTextureObjectTextureDesc(&sampling, nullptr));
    hipSurfaceObject_t surface = nullptr;
    GIVES(hipErrorNotSupported, hipCreateSurfaceObject(&surface, &resource));
    GIVES(hipErrorInvalidValue, hipCreateSurfaceObject(nullptr, &resource));
    GIVES(hipErrorInvalidValue, hipCreateSurfaceObject(&surface, nullptr));
    CHECK(hipDestroySurfaceObject(nullptr));
}
CASE(objects_of_the_driver)
{
    hipTextureObject_t texture;
    HIP_RESOURCE_DESC resource = {};
    HIP_TEXTURE_DESC sampling = {};
    HIP_RESOURCE_VIEW_DESC view;
    GIVES(hipErrorNotSupported, hipTexObjectCreate(&texture, &resource, &sampling, nullptr));
    GIVES(hipErrorInvalidValue, hipTexObjectCreate(nullptr, &resource, &sampling, nullptr));
    GIVES(hipErrorInvalidValue, hipTexObjectCreate(&texture, nullptr, &sampling, nullptr));
    GIVES(hipErrorInvalidValue, hipTexObjectCreate(&texture, &resource, nullptr, nullptr));
    GIVES(hipErrorNotSupported, hipTexObjectDestroy(TEXTURE));
    GIVES(hipErrorNotSupported, hipTexObjectGetResourceDesc(&resource, TEXTURE));
    GIVES(hipErrorNotSupported, hipTexObjectGetResourceViewDesc(&view, TEXTURE));
    GIVES(hipErrorNotSupported, hipTexObjectGetTextureDesc(&sampling, TEXTURE));
    GIVES(hipErrorInvalidValue, hipTexObjectGetTextureDesc(nullptr, TEXTURE));
}
CASE(arrays_with_levels)
{
    hipMipmappedArray_t levels;
    hipArray_t level;
    hipChannelFormatDesc desc = ints();
    HIP_ARRAY3D_DESCRIPTOR box = {64, 64, 0, HIP_AD_FORMAT_FLOAT, 1, 0};
    GIVES(hipErrorNotSupported, hipMallocMipmappedArray(&levels, &desc, make_hipExtent(64, 64, 0), 4, 0));
    GIVES(hipErrorInvalidValue, hipMallocMipmappedArray(nullptr, &desc, make_hipExtent(64, 64, 0), 4, 0));
    GIVES(hipErrorInvalidValue, hipMallocMipmappedArray(&levels, nullptr, make_hipExtent(64, 64, 0), 4, 0));
    GIVES(hipErrorNotSupported, hipMipmappedArrayCreate(&levels, &box, 4));
    GIVES(hipErrorInvalidValue, hipFreeMipmappedArray(nullptr));
    GIVES(hipErrorInvalidValue, hipMipmappedArrayDestroy(nullptr));
    GIVES(hipErrorInvalidValue, hipGetMipmappedArrayLevel(nullptr, LEVELS, 0));
    GIVES(hipErrorInvalidHandle, hipGetMipmappedArrayLevel(&level, nullptr, 0));
    GIVES(hipErrorNotSupported, hipGetMipmappedArrayLevel(&level, LEVELS, 0));
    GIVES(hipErrorNotSupported, hipMipmappedArrayGetLevel(&level, LEVELS, 0));
}
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
CASE(references)
{
    Array array(ints(), 8);
    hipChannelFormatDesc desc = ints();
    Device<int> d(64);
    size_t offset = 0;
    const textureReference *found;
    textureReference *in_module;
    GIVES(hipErrorNotSupported, hipBindTexture(&offset, &reference, d.at, &desc, 256));
    GIVES(hipErrorInvalidValue, hipBindTexture(&offset, nullptr, d.at, &desc, 256));
    GIVES(hipErrorInvalidValue, hipBindTexture(&offset, &reference, nullptr, &desc, 256));
    GIVES(hipErrorNotSupported, hipBindTexture2D(&offset, &reference, d.at, &desc, 8, 8, 32));
    GIVES(hipErrorNotSupported, hipBindTextureToArray(&reference, array, &desc));
    GIVES(hipErrorInvalidValue, hipBindTextureToArray(&reference, nullptr, &desc));
    GIVES(hipErrorNotSupported, hipBindTextureToMipmappedArray(&reference, LEVELS, &desc));
    GIVES(hipErrorNotSupported, hipUnbindTexture(&reference));
    GIVES(hipErrorInvalidValue, hipUnbindTexture(nullptr));
    GIVES(hipErrorNotSupported, hipGetTextureReference(&found, &reference));
    GIVES(hipErrorNotSupported, hipGetTextureAlignmentOffset(&offset, &reference));
    GIVES(hipErrorInvalidHandle, hipModuleGetTexRef(&in_module, nullptr, "name"));
    GIVES(hipErrorInvalidValue, hipModuleGetTexRef(nullptr, nullptr, "name"));
}
CASE(references_are_set)
{
    Array array(ints(), 8);
    float color[4] = {};
    HIP_ARRAY_DESCRIPTOR desc = {};
    GIVES(hipErrorNotSupported, hipTexRefSetAddress(nullptr, &reference, nullptr, 0));
    GIVES(hipErrorNotSupported, hipTexRefSetAddress2D(&reference, &desc, nullptr, 0));
    GIVES(hipErrorNotSupported, hipTexRefSetAddressMode(&reference, 2, hipAddressModeWrap));
    GIVES(hipErrorInvalidValue, hipTexRefSetAddressMode(&reference, 3, hipAddressModeWrap));
    GIVES(hipErrorNotSupported, hipTexRefSetArray(&reference, array, HIP_TRSA_OVERRIDE_FORMAT));
    GIVES(hipErrorInvalidValue, hipTexRefSetArray(&reference, array, 0));
    GIVES(hipErrorNotSupported, hipTexRefSetBorderColor(&reference, color));
    GIVES(hipErrorNotSupported, hipTexRefSetFilterMode(&reference, hipFilterModePoint));
    GIVES(hipErrorNotSupported, hipTexRefSetFlags(&reference, 0));
    GIVES(hipErrorNotSupported, hipTexRefSetFormat(&reference, HIP_AD_FORMAT_FLOAT, 1));
    GIVES(hipErrorNotSupported, hipTexRefSetMaxAnisotropy(&reference, 1));
    GIVES(hipErrorNotSupported, hipTexRefSetMipmapFilterMode(&reference, hipFilterModePoint));
    GIVES(hipErrorNotSupported, hipTexRefSetMipmapLevelBias(&reference, 1));
    GIVES(hipErrorNotSupported, hipTexRefSetMipmapLevelClamp(&reference, 1, 2));
    GIVES(hipErrorNotSupported, hipTexRefSetMipmappedArray(&reference, LEVELS, HIP_TRSA_OVERRIDE_FORMAT));
    GIVES(hipErrorInvalidValue, hipTexRefSetFlags(nullptr, 0));
}
CASE(references_are_asked)
{
    hipDeviceptr_t address;
    hipTextureAddressMode mode;
    hipTextureFilterMode filter;
    hipArray_t array;
    hipMipmappedArray_t levels;
    hipArray_Format format;
    unsigned flags;
    int number;
    float low, high, color[4];
    size_t width;
    hipChannelFormatDesc desc = ints();
    GIVES(hipErrorNotSupported, hipTexRefGetAddress(&address, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetAddressMode(&mode, &reference, 0));
    GIVES(hipErrorNotSupported, hipTexRefGetArray(&array, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetBorderColor(color, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetFilterMode(&filter, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetFlags(&flags, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetFormat(&format, &number, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetMaxAnisotropy(&number, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetMipMappedArray(&levels, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetMipmapFilterMode(&filter, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetMipmapLevelBias(&low, &reference));
    GIVES(hipErrorNotSupported, hipTexRefGetMipmapLevelClamp(&low, &high, &reference));
    GIVES(hipErrorInvalidValue, hipTexRefGetAddress(nullptr, &reference));
    GIVES(hipErrorInvalidValue, hipTexRefGetFlags(&flags, nullptr));
    GIVES(hipErrorNotSupported, hipDeviceGetTexture1DLinearMaxWidth(&width, &desc, 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetTexture1DLinearMaxWidth(nullptr, &desc, 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetTexture1DLinearMaxWidth(&width, nullptr, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceGetTexture1DLinearMaxWidth(&width, &desc, 99));
}
// What is refused by a check is an error of the program's, about which stderr says nothing.
CASE(refused_in_silence)
{
    std::FILE *file = std::tmpfile();
    REQUIRE(file);
    int before = dup(2);
    dup2(fileno(file), 2);
    hipError_t error = hipTexRefSetFlags(&reference, 0);
    dup2(before, 2);
    close(before);
    bool silent = lseek(fileno(file), 0, SEEK_END) == 0;
    std::fclose(file);
    GIVES(hipErrorNotSupported, error);
    REQUIRE(silent);
}
