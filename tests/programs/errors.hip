// Mistakes get the error that the real runtime gives, and the program goes on.
#include <hip/hip_runtime.h>
#include <cstring>
#include "check.h"

__global__ void nothing(int *) {}

int main()
{
    int count, device = -1, *memory;
    CHECK(hipGetDeviceCount(&count));
    REQUIRE(count == 1);
    REQUIRE(hipSetDevice(5) == hipErrorInvalidDevice);
    REQUIRE(hipPeekAtLastError() == hipErrorInvalidDevice);
    REQUIRE(hipGetLastError() == hipErrorInvalidDevice);
    REQUIRE(hipGetLastError() == hipSuccess);
    CHECK(hipGetDevice(&device));
    REQUIRE(device == 0);
    CHECK(hipMalloc(&memory, 64));
    char host[128] = {};
    REQUIRE(hipMemcpy(memory, host, 128, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    REQUIRE(hipMemcpy(memory, host, 16, static_cast<hipMemcpyKind>(77)) == hipErrorInvalidMemcpyDirection);
    REQUIRE(hipMalloc(reinterpret_cast<void **>(&memory) + 0, size_t(1) << 50) == hipErrorOutOfMemory);
    REQUIRE(hipFree(host) == hipErrorInvalidValue);
    CHECK(hipFree(nullptr));
    (void)hipGetLastError();
    nothing<<<1, 2048>>>(nullptr);
    REQUIRE(hipGetLastError() == hipErrorInvalidConfiguration);
    nothing<<<0, 64>>>(nullptr);
    REQUIRE(hipGetLastError() == hipErrorInvalidConfiguration);
    nothing<<<1, 64>>>(nullptr);
    CHECK(hipGetLastError());
    CHECK(hipDeviceSynchronize());
    hipModule_t module;
    REQUIRE(hipModuleLoad(&module, "/does/not/exist") == hipErrorFileNotFound);
    REQUIRE(hipModuleLoadData(&module, "this is no code object, whatever its length") == hipErrorInvalidImage);
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    int wave;
    CHECK(hipDeviceGetAttribute(&wave, hipDeviceAttributeWarpSize, 0));
    REQUIRE(properties.warpSize == wave && properties.maxThreadsPerBlock == 1024);
    REQUIRE(std::strncmp(properties.gcnArchName, "gfx", 3) == 0 && properties.totalGlobalMem > 0);
    REQUIRE(properties.maxThreadsPerMultiProcessor > 0 && properties.sharedMemPerBlock >= 65536 && properties.isLargeBar);
    REQUIRE(std::strcmp(hipGetErrorName(hipErrorNotReady), "hipErrorNotReady") == 0);
    size_t free_bytes, total_bytes;
    CHECK(hipMemGetInfo(&free_bytes, &total_bytes));
    REQUIRE(free_bytes <= total_bytes && total_bytes == properties.totalGlobalMem);
    return passed();
}
