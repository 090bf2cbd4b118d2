// Functions looked up by name, and names by number.
#include "resources.h"

#include <dlfcn.h>

extern "C" const char *hipApiName(uint32_t id);

#if HIP_VERSION >= 60100000
CASE(functions_by_name)
{
    void *found = nullptr;
    hipDriverProcAddressQueryResult status = HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    CHECK(hipGetProcAddress("hipGetDeviceCount", &found, HIP_VERSION / 100000, 0, &status));
    EQUAL(int(HIP_GET_PROC_ADDRESS_SUCCESS), int(status));
    int count = 0;
    CHECK(reinterpret_cast<hipError_t (*)(int *)>(found)(&count));
    EQUAL(1, count);
    CHECK(hipGetProcAddress("hipFree", &found, HIP_VERSION / 100000, 0, nullptr));
}
CASE(functions_that_are_not_there)
{
    void *found = nullptr;
    hipDriverProcAddressQueryResult status = HIP_GET_PROC_ADDRESS_SUCCESS;
    GIVES(hipErrorInvalidValue, hipGetProcAddress("hipNoSuchFunction", &found, 700, 0, &status));
    EQUAL(int(HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND), int(status));
    GIVES(hipErrorInvalidValue, hipGetProcAddress("", &found, 700, 0, &status));
    GIVES(hipErrorInvalidValue, hipGetProcAddress(nullptr, &found, 700, 0, &status));
    GIVES(hipErrorInvalidValue, hipGetProcAddress("hipFree", nullptr, 700, 0, &status));
    GIVES(hipErrorInvalidValue, hipGetProcAddress("hipFree", &found, 700, 3, &status));
}
CASE(functions_of_the_version_that_is_asked_for)
{
    void *older = nullptr, *newer = nullptr;
    CHECK(hipGetProcAddress("hipGetDeviceProperties", &older, 502, 0, nullptr));
    CHECK(hipGetProcAddress("hipGetDeviceProperties", &newer, 600, 0, nullptr));
    REQUIRE(older != newer);
    REQUIRE(newer == dlsym(RTLD_DEFAULT, "hipGetDevicePropertiesR0600"));
}
CASE(functions_whose_default_stream_is_of_the_thread)
{
    void *of_thread = nullptr, *other = nullptr;
    CHECK(hipGetProcAddress("hipStreamQuery", &of_thread, 700, 2, nullptr));
    REQUIRE(of_thread == dlsym(RTLD_DEFAULT, "hipStreamQuery_spt"));
    CHECK(hipGetProcAddress("hipStreamQuery", &other, 700, 1, nullptr));
    REQUIRE(other != of_thread);
    CHECK(hipGetProcAddress("hipGetDeviceCount", &other, 700, 2, nullptr));
}
#endif

#if HIP_VERSION >= 70100000
CASE(driver_entry_points)
{
    void *found = nullptr;
    hipDriverEntryPointQueryResult status = hipDriverEntryPointSymbolNotFound;
    for (unsigned flags : {hipEnableDefault, hipEnableLegacyStream, hipEnablePerThreadDefaultStream}) {
        CHECK(hipGetDriverEntryPoint("hipGetDeviceCount", &found, flags, &status));
        EQUAL(int(hipDriverEntryPointSuccess), int(status));
        CHECK(hipGetDriverEntryPoint_spt("hipGetDeviceCount", &found, flags, &status));
    }
    CHECK(hipGetDriverEntryPoint_spt("hipStreamQuery", &found, hipEnableDefault, nullptr));
    REQUIRE(found == dlsym(RTLD_DEFAULT, "hipStreamQuery_spt"));
    CHECK(hipGetDriverEntryPoint("hipStreamQuery", &found, hipEnableDefault, nullptr));
    REQUIRE(found == dlsym(RTLD_DEFAULT, "hipStreamQuery"));
    GIVES(hipErrorInvalidValue, hipGetDriverEntryPoint("", &found, hipEnableDefault, &status));
    GIVES(hipErrorInvalidValue, hipGetDriverEntryPoint("hipFree", nullptr, hipEnableDefault, &status));
    GIVES(hipErrorInvalidValue, hipGetDriverEntryPoint("hipFree", &found, ~0ull, &status));
    GIVES(hipErrorInvalidValue, hipGetDriverEntryPoint("hipNoSuchFunction", &found, hipEnableDefault, &status));
    EQUAL(int(hipDriverEntryPointSymbolNotFound), int(status));
}
#endif

CASE(names_of_functions)
{
    REQUIRE(hipApiName(1) == std::string("__hipPopCallConfiguration"));
    REQUIRE(hipApiName(0) == std::string("unknown"));
    REQUIRE(hipApiName(1u << 30) == std::string("unknown"));
}
