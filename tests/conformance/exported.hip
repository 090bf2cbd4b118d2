// Names that AMD's library exports, whatever they do, and what those answer that have nothing to do here.
#include "resources.h"

#include <dlfcn.h>

static void exported(std::initializer_list<const char *> names)
{
    std::string missing;
    for (const char *name : names)
        if (!dlsym(RTLD_DEFAULT, name))
            missing += std::string(" ") + name;
    if (!missing.empty())
        conformance::fail(__FILE__, __LINE__, "not exported:" + missing);
}
CASE(of_the_first_releases)
{
    exported({"hipHccModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipExtLaunchKernel", "hipModuleLaunchKernel"});
}
CASE(of_texture_references)
{
    exported({"hipTexRefGetAddress", "hipTexRefGetAddressMode", "hipTexRefGetArray", "hipTexRefGetBorderColor", "hipTexRefGetFilterMode",
              "hipTexRefGetFlags", "hipTexRefGetFormat", "hipTexRefGetMaxAnisotropy", "hipTexRefGetMipMappedArray",
              "hipTexRefGetMipmapFilterMode", "hipTexRefGetMipmapLevelBias", "hipTexRefGetMipmapLevelClamp"});
}
#if HIP_VERSION_MAJOR >= 6
CASE(of_later_releases)
{
    exported({"hipChooseDeviceR0000", "hipChooseDeviceR0600", "hipGetDevicePropertiesR0000", "hipGetDevicePropertiesR0600",
              "hipGetProcAddress", "hipDeviceGetTexture1DLinearMaxWidth", "hipPointerSetAttribute", "hipExtHostAlloc"});
}
CASE(addresses_by_name)
{
    void *found = nullptr;
    hipDriverProcAddressQueryResult status;
    CHECK(hipGetProcAddress("hipMalloc", &found, HIP_VERSION_MAJOR * 100, 0, &status));
    REQUIRE(found != nullptr);
    GIVES(hipErrorInvalidValue, hipGetProcAddress(nullptr, &found, 600, 0, &status));
    GIVES(hipErrorInvalidValue, hipGetProcAddress("hipMalloc", nullptr, 600, 0, &status));
    REQUIRE(hipGetProcAddress("hipNoSuchFunction", &found, 600, 0, &status) != hipSuccess);
}
#endif
CASE(external_semaphores_refuse_null)
{
    hipExternalSemaphore_t semaphore;
    hipExternalSemaphoreSignalParams signal = {};
    hipExternalSemaphoreWaitParams wait = {};
    GIVES(hipErrorInvalidValue, hipImportExternalSemaphore(nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipImportExternalSemaphore(&semaphore, nullptr));
    GIVES(hipErrorInvalidValue, hipSignalExternalSemaphoresAsync(nullptr, &signal, 1, nullptr));
    GIVES(hipErrorInvalidValue, hipWaitExternalSemaphoresAsync(nullptr, &wait, 1, nullptr));
    GIVES(hipErrorInvalidValue, hipDestroyExternalSemaphore(nullptr));
    semaphore = nullptr;
    GIVES(hipErrorInvalidValue, hipSignalExternalSemaphoresAsync(&semaphore, &signal, 1, nullptr));
    GIVES(hipErrorInvalidValue, hipWaitExternalSemaphoresAsync(&semaphore, &wait, 1, nullptr));
}
CASE(external_memory_refuses_null)
{
    hipExternalMemory_t memory;
    void *at;
    hipExternalMemoryBufferDesc desc = {};
    GIVES(hipErrorInvalidValue, hipImportExternalMemory(nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipImportExternalMemory(&memory, nullptr));
    GIVES(hipErrorInvalidValue, hipExternalMemoryGetMappedBuffer(&at, nullptr, &desc));
    GIVES(hipErrorInvalidValue, hipDestroyExternalMemory(nullptr));
}
CASE(textures_where_there_are_no_images)
{
    int images = -1;
    CHECK(hipDeviceGetAttribute(&images, hipDeviceAttributeImageSupport, 0));
    hipTextureObject_t texture = nullptr;
    hipResourceDesc resource = {};
    hipTextureDesc description = {};
    Device<float> d(64, 0.0f);
    resource.resType = hipResourceTypeLinear;
    resource.res.linear.devPtr = d;
    resource.res.linear.desc = hipCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = d.bytes();
    hipError_t error = hipCreateTextureObject(&texture, &resource, &description, nullptr);
    if (!images)
        EQUAL(hipErrorNotSupported, error);
    else
        CHECK(error);
}
