// Launches: dimensions, arguments, dynamic shared memory, cooperative ones; what they refuse.
#include "own_module.h"

#include <climits>

// Of hip/hip_ext.h, which not every package of headers has.
extern "C" hipError_t hipExtModuleLaunchKernel(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t,
                                               hipStream_t, void **, void **, hipEvent_t, hipEvent_t, uint32_t);

extern "C" __global__ void nothing() {}
extern "C" __global__ void write_42(int *to) { *to = 42; }
extern "C" __global__ void sum(char a, double b, short c, long *to) { *to = long(a + b + c); }
extern "C" __global__ void __launch_bounds__(64) small() {}
extern "C" __global__ void grid(unsigned *to)
{
    to[0] = gridDim.x, to[1] = gridDim.y, to[2] = gridDim.z;
    to[3] = blockDim.x, to[4] = blockDim.y, to[5] = blockDim.z;
}
extern "C" __global__ void dynamic(int *to)
{
    extern __shared__ int shared[];
    shared[threadIdx.x] = int(threadIdx.x);
    __syncthreads();
    to[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

constexpr unsigned LDS = 65536;

// (grid, block, LDS) that no launch has.
struct Shape {
    unsigned grid[3], block[3];
};
static const Shape EMPTY[] = {{{0, 1, 1}, {1, 1, 1}}, {{1, 0, 1}, {1, 1, 1}}, {{1, 1, 0}, {1, 1, 1}},
                              {{1, 1, 1}, {0, 1, 1}}, {{1, 1, 1}, {1, 0, 1}}, {{1, 1, 1}, {1, 1, 0}}};
static const Shape LARGE_BLOCKS[] = {{{1, 1, 1}, {1025, 1, 1}}, {{1, 1, 1}, {1, 1025, 1}}, {{1, 1, 1}, {1, 1, 1025}},
                                     {{1, 1, 1}, {11, 11, 11}}, {{1, 1, 1}, {64, 64, 1}}};
static const Shape LARGE_GRIDS[] = {{{unsigned(INT_MAX) + 1, 1, 1}, {1, 1, 1}}, {{1, 65537, 1}, {1, 1, 1}}, {{1, 1, 65537}, {1, 1, 1}}};

static hipError_t by_module(hipFunction_t f, const Shape &s, unsigned lds = 0)
{
    return hipModuleLaunchKernel(f, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], lds, nullptr, nullptr, nullptr);
}
static hipError_t by_symbol(const Shape &s, size_t lds = 0)
{
    return hipLaunchKernel(reinterpret_cast<const void *>(nothing), dim3(s.grid[0], s.grid[1], s.grid[2]),
                           dim3(s.block[0], s.block[1], s.block[2]), nullptr, lds, nullptr);
}
static hipError_t together(const Shape &s, unsigned lds = 0)
{
    return hipLaunchCooperativeKernel(reinterpret_cast<const void *>(nothing), dim3(s.grid[0], s.grid[1], s.grid[2]),
                                      dim3(s.block[0], s.block[1], s.block[2]), nullptr, lds, nullptr);
}

CASE(module_launch_refuses_empty_shapes)
{
    Module module;
    for (const Shape &shape : EMPTY)
        GIVES(hipErrorInvalidValue, by_module(module.function("nothing"), shape));
}
CASE(module_launch_refuses_large_blocks)
{
    Module module;
    for (const Shape &shape : LARGE_BLOCKS)
        GIVES(hipErrorInvalidValue, by_module(module.function("nothing"), shape));
}
ALONE(module_launch_refuses_large_grids) // 2^31 work-groups run for a long time
{
    Module module;
    for (const Shape &shape : LARGE_GRIDS)
        GIVES(hipErrorInvalidValue, by_module(module.function("nothing"), shape));
}
CASE(module_launch_refuses_more_items_than_32_bits_count)
{
    Module module;
    GIVES(hipErrorInvalidValue, by_module(module.function("nothing"), {{1u << 30, 1, 1}, {8, 1, 1}}));
}
CASE(module_launch_refuses_too_much_shared_memory)
{
    Module module;
    GIVES(hipErrorInvalidValue, by_module(module.function("nothing"), {{1, 1, 1}, {1, 1, 1}}, LDS + 1));
}
CASE(module_launch_takes_largest_shapes)
{
    Module module;
    hipFunction_t f = module.function("nothing");
    CHECK(by_module(f, {{1, 1, 1}, {1024, 1, 1}}));
    CHECK(by_module(f, {{1, 1, 1}, {1, 1024, 1}}));
    CHECK(by_module(f, {{1, 1, 1}, {1, 1, 1024}}));
    CHECK(by_module(f, {{1, 1, 1}, {1, 1, 1}}, LDS));
    CHECK(hipDeviceSynchronize());
}
CASE(module_launch_refuses_two_kinds_of_arguments)
{
    Module module;
    Device<int> d(1, 0);
    hipFunction_t f = module.function("write_42");
    void *arguments[] = {&d.at};
    size_t bytes = sizeof d.at;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &d.at, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
    GIVES(hipErrorInvalidValue, hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, extra));
    GIVES(hipErrorInvalidValue, hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    GIVES(hipErrorInvalidValue,
          hipExtModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, extra, nullptr, nullptr, 0));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(0));
    CHECK(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(42));
}
CASE(module_launch_refuses_extra_that_is_none)
{
    Module module;
    Device<int> d(1, 0);
    void *nonsense[] = {&d.at, &d.at, &d.at, &d.at, &d.at}, *end[] = {HIP_LAUNCH_PARAM_END, nullptr, nullptr, nullptr, nullptr};
    hipFunction_t f = module.function("write_42");
    GIVES(hipErrorInvalidValue, hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nonsense));
    GIVES(hipErrorInvalidValue, hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, end));
    CHECK(hipDeviceSynchronize());
}
CASE(arguments_of_all_sizes)
{
    Module module;
    Device<long> d(1, 0);
    char a = 1;
    double b = 20;
    short c = 300;
    void *arguments[] = {&a, &b, &c, &d.at};
    CHECK(hipModuleLaunchKernel(module.function("sum"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(321));
}
CASE(launch_bounds_are_kept)
{
    Module module;
    hipError_t error = by_module(module.function("small"), {{1, 1, 1}, {65, 1, 1}});
    GIVES(hipErrorLaunchFailure, error);
    CHECK(hipDeviceSynchronize()); // refused, not run: the device is well
    CHECK(by_module(module.function("small"), {{1, 1, 1}, {64, 1, 1}}));
}
CASE(extended_launch_counts_items)
{
    Module module;
    Device<unsigned> d(6, 0u);
    void *arguments[] = {&d.at};
    CHECK(hipExtModuleLaunchKernel(module.function("grid"), 8, 6, 4, 4, 3, 2, 0, nullptr, arguments, nullptr, nullptr, nullptr, 0));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.host() == std::vector<unsigned>{2, 2, 2, 4, 3, 2});
}
CASE(extended_launch_refuses)
{
    Module module;
    hipFunction_t f = module.function("nothing");
    for (const Shape &s : EMPTY) {
        hipError_t error = hipExtModuleLaunchKernel(f, s.grid[0] * s.block[0], s.grid[1] * s.block[1], s.grid[2] * s.block[2], s.block[0],
                                                    s.block[1], s.block[2], 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
        REQUIRE(error == hipErrorInvalidValue || error == hipErrorInvalidConfiguration); // 1 in AMD's tests of 2023, 9 in clr
    }
    GIVES(hipErrorInvalidHandle, hipExtModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0));
}
CASE(launch_refuses_empty_shapes)
{
    for (const Shape &shape : EMPTY)
        GIVES(hipErrorInvalidConfiguration, by_symbol(shape));
}
CASE(launch_refuses_large_blocks)
{
    for (const Shape &shape : LARGE_BLOCKS)
        GIVES(hipErrorInvalidConfiguration, by_symbol(shape));
}
CASE(launch_refuses_more_items_than_32_bits_count)
{
    GIVES(hipErrorInvalidConfiguration, by_symbol({{1u << 30, 1, 1}, {8, 1, 1}}));
}
CASE(launch_refuses_too_much_shared_memory) { GIVES(hipErrorInvalidValue, by_symbol({{1, 1, 1}, {1, 1, 1}}, LDS + 1)); }
CASE(refused_launches_leave_their_error)
{
    nothing<<<1, 2048>>>();
    EQUAL(hipErrorInvalidConfiguration, hipPeekAtLastError());
    EQUAL(hipErrorInvalidConfiguration, hipGetLastError());
    EQUAL(hipSuccess, hipGetLastError());
    nothing<<<1, 64>>>();
    EQUAL(hipSuccess, hipGetLastError());
}
CASE(kernels_know_their_shape)
{
    Device<unsigned> d(6, 0u);
    grid<<<dim3(2, 3, 4), dim3(5, 6, 7)>>>(d);
    REQUIRE(d.host() == std::vector<unsigned>{2, 3, 4, 5, 6, 7});
}
CASE(dynamic_shared_memory)
{
    Device<int> d(64, 0);
    dynamic<<<1, 64, 256>>>(d);
    CHECK(hipGetLastError());
    std::vector<int> result = d.host();
    for (int i = 0; i < 64; i++)
        EQUAL(63 - i, result[size_t(i)]);
}
CASE(cooperative_refuses_shapes)
{
    for (const Shape &shape : EMPTY)
        GIVES(hipErrorInvalidConfiguration, together(shape));
    for (const Shape &shape : LARGE_BLOCKS)
        GIVES(hipErrorInvalidConfiguration, together(shape));
    GIVES(hipErrorInvalidDeviceFunction, hipLaunchCooperativeKernel(static_cast<const void *>(nullptr), dim3(1), dim3(1), nullptr, 0, nullptr));
}
CASE(cooperative_refuses_what_does_not_fit_at_once)
{
    int units, blocks;
    CHECK(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 64, 0));
    unsigned most = unsigned(units * blocks);
    GIVES(hipErrorCooperativeLaunchTooLarge, together({{most + 1, 1, 1}, {64, 1, 1}}));
    CHECK(together({{most, 1, 1}, {64, 1, 1}}));
    CHECK(hipDeviceSynchronize());
    GIVES(hipErrorCooperativeLaunchTooLarge, together({{1, 1, 1}, {1, 1, 1}}, LDS + 1));
}
#if HIP_VERSION_MAJOR >= 6
CASE(cooperative_module_launch)
{
    Module module;
    hipFunction_t f = module.function("nothing");
    auto run = [f](const Shape &s, unsigned lds) {
        return hipModuleLaunchCooperativeKernel(f, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], lds, nullptr, nullptr);
    };
    for (const Shape &shape : EMPTY)
        GIVES(hipErrorInvalidValue, run(shape, 0));
    for (const Shape &shape : LARGE_BLOCKS)
        GIVES(hipErrorInvalidValue, run(shape, 0));
    GIVES(hipErrorInvalidValue, run({{1, 1, 1}, {1, 1, 1}}, LDS + 1));
    GIVES(hipErrorCooperativeLaunchTooLarge, run({{1u << 20, 1, 1}, {64, 1, 1}}, 0));
    CHECK(run({{2, 1, 1}, {64, 1, 1}}, 0));
    CHECK(hipDeviceSynchronize());
    GIVES(hipErrorInvalidHandle, hipModuleLaunchCooperativeKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
}
#endif
CASE(several_devices_with_one)
{
    Stream s;
    Device<int> d(1, 0);
    void *arguments[] = {&d.at};
    hipLaunchParams params = {};
    params.func = reinterpret_cast<void *>(write_42);
    params.gridDim = params.blockDim = dim3(1);
    params.args = arguments;
    params.stream = s;
    CHECK(hipLaunchCooperativeKernelMultiDevice(&params, 1, 0));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(d.all_are(42));
    d.fill(0);
    CHECK(hipExtLaunchMultiKernelMultiDevice(&params, 1, 0));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(d.all_are(42));
}
CASE(several_devices_refuse)
{
    Stream s;
    hipLaunchParams params = {};
    params.func = reinterpret_cast<void *>(nothing);
    params.gridDim = params.blockDim = dim3(1);
    params.stream = s;
    hipLaunchParams twice[] = {params, params}, other = params;
    using Launch = hipError_t (*)(hipLaunchParams *, int, unsigned);
    for (Launch launch : {Launch(hipLaunchCooperativeKernelMultiDevice), Launch(hipExtLaunchMultiKernelMultiDevice)}) {
        GIVES(hipErrorInvalidValue, launch(nullptr, 1, 0));
        GIVES(hipErrorInvalidValue, launch(&params, 0, 0));
        GIVES(hipErrorInvalidValue, launch(&params, 1, 4));
        hipError_t error = launch(twice, 2, 0); // more than there are: 101 in clr, 1 in AMD's tests of 2024
        REQUIRE(error == hipErrorInvalidDevice || error == hipErrorInvalidValue);
        other = params, other.stream = nullptr;
        GIVES(hipErrorInvalidHandle, launch(&other, 1, 0));
        other = params, other.func = nullptr;
        GIVES(hipErrorInvalidDeviceFunction, launch(&other, 1, 0));
        other = params, other.blockDim = dim3(0);
        GIVES(hipErrorInvalidConfiguration, launch(&other, 1, 0));
    }
}
#if HIP_VERSION_MAJOR >= 6
CASE(several_devices_with_a_module)
{
    Stream s;
    Module module;
    Device<int> d(1, 0);
    void *arguments[] = {&d.at};
    hipFunctionLaunchParams params = {};
    params.function = module.function("write_42");
    params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    params.hStream = s;
    CHECK(hipModuleLaunchCooperativeKernelMultiDevice(&params, 1, 0));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(d.all_are(42));
    GIVES(hipErrorInvalidValue, hipModuleLaunchCooperativeKernelMultiDevice(nullptr, 1, 0));
    GIVES(hipErrorInvalidValue, hipModuleLaunchCooperativeKernelMultiDevice(&params, 0, 0));
    GIVES(hipErrorInvalidValue, hipModuleLaunchCooperativeKernelMultiDevice(&params, 1, 4));
}
#endif
#if HIP_VERSION_MAJOR >= 7
CASE(launch_with_a_configuration)
{
    Device<int> d(1, 0);
    void *arguments[] = {&d.at};
    hipLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    CHECK(hipLaunchKernelExC(&config, reinterpret_cast<const void *>(write_42), arguments));
    CHECK(hipDeviceSynchronize());
    REQUIRE(d.all_are(42));
    GIVES(hipErrorInvalidConfiguration, hipLaunchKernelExC(nullptr, reinterpret_cast<const void *>(nothing), nullptr));
    GIVES(hipErrorInvalidDeviceFunction, hipLaunchKernelExC(&config, nullptr, nullptr));
    Module module;
    HIP_LAUNCH_CONFIG driver = {};
    driver.gridDimX = driver.gridDimY = driver.gridDimZ = driver.blockDimX = driver.blockDimY = driver.blockDimZ = 1;
    CHECK(hipDrvLaunchKernelEx(&driver, module.function("nothing"), nullptr, nullptr));
    GIVES(hipErrorInvalidHandle, hipDrvLaunchKernelEx(&driver, nullptr, nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipDrvLaunchKernelEx(nullptr, module.function("nothing"), nullptr, nullptr));
}
#endif
CASE(function_attributes)
{
    hipFuncAttributes a = {};
    const void *symbol = reinterpret_cast<const void *>(nothing);
    int major, minor, host;
    CHECK(hipFuncGetAttributes(&a, symbol));
    CHECK(hipDeviceComputeCapability(&major, &minor, 0));
    EQUAL(10 * major + minor, a.binaryVersion);
    EQUAL(10 * major + minor, a.ptxVersion);
    EQUAL(1024, a.maxThreadsPerBlock);
    EQUAL(0u, a.sharedSizeBytes);
    EQUAL(0u, a.localSizeBytes);
    EQUAL(int(LDS), a.maxDynamicSharedSizeBytes);
    CHECK(hipFuncGetAttributes(&a, reinterpret_cast<const void *>(small)));
    EQUAL(64, a.maxThreadsPerBlock);
    GIVES(hipErrorInvalidValue, hipFuncGetAttributes(nullptr, symbol));
    GIVES(hipErrorInvalidDeviceFunction, hipFuncGetAttributes(&a, nullptr));
    GIVES(hipErrorInvalidDeviceFunction, hipFuncGetAttributes(&a, &host));
}
CASE(function_attributes_are_set)
{
    const void *symbol = reinterpret_cast<const void *>(dynamic);
    CHECK(hipFuncSetAttribute(symbol, hipFuncAttributeMaxDynamicSharedMemorySize, 1024));
    CHECK(hipFuncSetAttribute(symbol, hipFuncAttributePreferredSharedMemoryCarveout, 50));
    GIVES(hipErrorInvalidDeviceFunction, hipFuncSetAttribute(nullptr, hipFuncAttributeMaxDynamicSharedMemorySize, 1024));
    GIVES(hipErrorInvalidValue, hipFuncSetAttribute(symbol, hipFuncAttributeMaxDynamicSharedMemorySize, -1));
    GIVES(hipErrorInvalidValue, hipFuncSetAttribute(symbol, hipFuncAttributeMaxDynamicSharedMemorySize, int(LDS) + 1));
    GIVES(hipErrorInvalidValue, hipFuncSetAttribute(symbol, hipFuncAttributePreferredSharedMemoryCarveout, 101));
    GIVES(hipErrorInvalidValue, hipFuncSetAttribute(symbol, hipFuncAttributePreferredSharedMemoryCarveout, -2));
    GIVES(hipErrorInvalidValue, hipFuncSetAttribute(symbol, hipFuncAttribute(-1), 0));
    CHECK(hipFuncSetCacheConfig(symbol, hipFuncCachePreferL1));
    CHECK(hipFuncSetSharedMemConfig(symbol, hipSharedMemBankSizeFourByte));
    GIVES(hipErrorInvalidDeviceFunction, hipFuncSetCacheConfig(nullptr, hipFuncCachePreferL1));
    GIVES(hipErrorInvalidValue, hipFuncSetCacheConfig(symbol, hipFuncCache_t(-1)));
    GIVES(hipErrorInvalidDeviceFunction, hipFuncSetSharedMemConfig(nullptr, hipSharedMemBankSizeFourByte));
    GIVES(hipErrorInvalidValue, hipFuncSetSharedMemConfig(symbol, hipSharedMemConfig(-1)));
}
CASE(events_of_an_extended_launch_must_be_events)
{
    hipEvent_t bad = reinterpret_cast<hipEvent_t>(0xFFFF);
    const void *symbol = reinterpret_cast<const void *>(nothing);
    GIVES(hipErrorInvalidValue, hipExtLaunchKernel(symbol, dim3(1), dim3(1), nullptr, 0, nullptr, bad, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipExtLaunchKernel(symbol, dim3(1), dim3(1), nullptr, 0, nullptr, nullptr, bad, 0));
}
