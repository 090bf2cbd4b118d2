// Ways to launch beside the usual ones: configurations with attributes, hipHccModuleLaunchKernel, lists for one device.
#include "own_module.h"

extern "C" hipError_t hipHccModuleLaunchKernel(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t,
                                               hipStream_t, void **, void **, hipEvent_t, hipEvent_t);
extern "C" hipError_t hipExtModuleLaunchKernel(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t,
                                               hipStream_t, void **, void **, hipEvent_t, hipEvent_t, uint32_t);
// As programs call it that were compiled with the headers of HIP 5.
hipError_t hipHccModuleLaunchKernel_5(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t, hipStream_t, void **,
                                      void **, hipEvent_t, hipEvent_t)
    __asm__("_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_");

extern "C" __global__ void nothing() {}
extern "C" __global__ void count(int *to) { atomicAdd(to, 1); }
extern "C" __global__ void __launch_bounds__(64) small() {}

static const void *COUNT = reinterpret_cast<const void *>(count), *NOTHING = reinterpret_cast<const void *>(nothing);

CASE(unmangled_and_mangled)
{
    Module module;
    Device<int> d(1, 0);
    int *at = d;
    void *args[] = {&at};
    hipFunction_t f = module.function("count");
    CHECK(hipHccModuleLaunchKernel(f, 64, 1, 1, 32, 1, 1, 0, nullptr, args, nullptr, nullptr, nullptr));
    CHECK(hipHccModuleLaunchKernel_5(f, 64, 1, 1, 32, 1, 1, 0, nullptr, args, nullptr, nullptr, nullptr));
    REQUIRE(d.all_are(128));
}
CASE(grids_are_whole_groups)
{
    Module module;
    hipFunction_t f = module.function("nothing");
    auto launch = [&](uint32_t x, uint32_t y) {
        return hipExtModuleLaunchKernel(f, x, y, 1, 32, 2, 1, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
    };
    CHECK(launch(64, 4));
    GIVES(hipErrorInvalidValue, launch(65, 4));
    GIVES(hipErrorInvalidValue, launch(64, 5));
    CHECK(hipDeviceSynchronize());
}
CASE(groups_are_no_larger_than_grids)
{
    Module module;
    Device<int> d(1, 0);
    int *at = d;
    void *args[] = {&at};
    CHECK(hipExtModuleLaunchKernel(module.function("count"), 16, 1, 1, 64, 1, 1, 0, nullptr, args, nullptr, nullptr, nullptr, 0));
    REQUIRE(d.all_are(16));
}
CASE(groups_that_no_device_takes) // as hipExtModuleLaunchKernel: hipErrorInvalidConfiguration since HIP 7 (clr), 1 before
{
    Module module;
    hipFunction_t f = module.function("nothing");
    for (uint32_t block : {0u, 2048u, ~0u})
        GIVES(hipErrorInvalidConfiguration,
              hipHccModuleLaunchKernel(f, 64, 1, 1, block, 1, 1, 0, nullptr, nullptr, nullptr, nullptr, nullptr));
}
CASE(events_around_a_launch)
{
    Module module;
    Stream s;
    Event start, stop;
    float elapsed = -1;
    CHECK(hipExtModuleLaunchKernel(module.function("nothing"), 64, 1, 1, 64, 1, 1, 0, s, nullptr, nullptr, start, stop, 0));
    CHECK(hipEventSynchronize(stop));
    CHECK(hipEventElapsedTime(&elapsed, start, stop));
    REQUIRE(elapsed >= 0);
}
CASE(refused_launches_record_nothing)
{
    Module module;
    Event start, stop;
    float elapsed;
    GIVES(hipErrorInvalidConfiguration,
          hipExtModuleLaunchKernel(module.function("nothing"), 0, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr, start, stop, 0));
    GIVES(hipErrorInvalidHandle, hipEventElapsedTime(&elapsed, start, stop));
}
CASE(buffers_in_another_order)
{
    Module module;
    int *at = nullptr;
    size_t bytes = sizeof at;
    void *swapped[] = {HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_BUFFER_POINTER, &at, HIP_LAUNCH_PARAM_END};
    void *unwanted[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &at, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
    GIVES(hipErrorInvalidValue, hipModuleLaunchKernel(module.function("count"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, swapped));
    GIVES(hipErrorLaunchOutOfResources, hipModuleLaunchKernel(module.function("nothing"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, unwanted));
    bytes = 0;
    GIVES(hipErrorInvalidValue, hipModuleLaunchKernel(module.function("count"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, unwanted));
    CHECK(hipModuleLaunchKernel(module.function("nothing"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, unwanted));
}

#if HIP_VERSION >= 70100000
CASE(attributes_of_a_configuration)
{
    Device<int> d(1, 0);
    int *at = d;
    void *args[] = {&at};
    hipLaunchAttribute attribute = {};
    hipLaunchConfig_t config = {};
    config.gridDim = dim3(2), config.blockDim = dim3(32), config.attrs = &attribute;
    CHECK(hipLaunchKernelExC(&config, COUNT, args));
    config.numAttrs = 1;
    attribute.id = hipLaunchAttributeCooperative;
    GIVES(hipErrorInvalidConfiguration, hipLaunchKernelExC(&config, COUNT, args));
    attribute.value.cooperative = 1;
    CHECK(hipLaunchKernelExC(&config, COUNT, args));
    attribute.id = hipLaunchAttributePriority;
    GIVES(hipErrorInvalidConfiguration, hipLaunchKernelExC(&config, COUNT, args));
    GIVES(hipErrorInvalidConfiguration, hipLaunchKernelExC(nullptr, COUNT, args));
    GIVES(hipErrorInvalidDeviceFunction, hipLaunchKernelExC(&config, nullptr, args));
    REQUIRE(d.all_are(128));
}
CASE(cooperative_attributes_are_checked)
{
    hipLaunchAttribute attribute = {};
    attribute.id = hipLaunchAttributeCooperative, attribute.value.cooperative = 1;
    hipLaunchConfig_t config = {};
    config.gridDim = dim3(1 << 20), config.blockDim = dim3(64), config.attrs = &attribute, config.numAttrs = 1;
    GIVES(hipErrorCooperativeLaunchTooLarge, hipLaunchKernelExC(&config, NOTHING, nullptr));
    Module module;
    HIP_LAUNCH_CONFIG of_module = {};
    of_module.gridDimX = 1 << 20, of_module.gridDimY = of_module.gridDimZ = 1;
    of_module.blockDimX = 64, of_module.blockDimY = of_module.blockDimZ = 1;
    of_module.attrs = &attribute, of_module.numAttrs = 1;
    hipFunction_t f = module.function("nothing");
    GIVES(hipErrorCooperativeLaunchTooLarge, hipDrvLaunchKernelEx(&of_module, f, nullptr, nullptr));
    of_module.gridDimX = 2;
    CHECK(hipDrvLaunchKernelEx(&of_module, f, nullptr, nullptr));
    of_module.gridDimX = 0;
    GIVES(hipErrorInvalidConfiguration, hipDrvLaunchKernelEx(&of_module, f, nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipDrvLaunchKernelEx(nullptr, f, nullptr, nullptr));
    GIVES(hipErrorInvalidHandle, hipDrvLaunchKernelEx(&of_module, nullptr, nullptr, nullptr));
}
#endif

CASE(a_kernel_of_a_module_is_a_function)
{
    Module module;
    Device<int> d(1, 0);
    int *at = d;
    void *args[] = {&at};
    CHECK(hipLaunchKernel(reinterpret_cast<const void *>(module.function("count")), dim3(1), dim3(64), args, 0, nullptr));
    REQUIRE(d.all_are(64));
}
CASE(lists_without_a_stream_of_their_own)
{
    hipLaunchParams list = {const_cast<void *>(NOTHING), dim3(1), dim3(64), nullptr, 0, nullptr};
    GIVES(hipErrorInvalidHandle, hipExtLaunchMultiKernelMultiDevice(&list, 1, 0));
    list.stream = reinterpret_cast<hipStream_t>(0xFFFF);
    GIVES(hipErrorInvalidValue, hipExtLaunchMultiKernelMultiDevice(&list, 1, 0));
    Stream s;
    list.stream = s;
    CHECK(hipExtLaunchMultiKernelMultiDevice(&list, 1, 3));
    list.blockDim = dim3(0);
    GIVES(hipErrorInvalidConfiguration, hipExtLaunchMultiKernelMultiDevice(&list, 1, 0));
    list.func = nullptr;
    GIVES(hipErrorInvalidDeviceFunction, hipExtLaunchMultiKernelMultiDevice(&list, 1, 0));
}
CASE(lists_wait_for_what_they_launch)
{
    Device<int> d(1, 0);
    Stream s;
    int *at = d;
    void *args[] = {&at};
    hipLaunchParams list = {const_cast<void *>(COUNT), dim3(64), dim3(64), args, 0, s};
    CHECK(hipLaunchCooperativeKernelMultiDevice(&list, 1, 0));
    CHECK(hipStreamQuery(s));
    REQUIRE(d.all_are(4096));
}
CASE(lists_are_not_captured)
{
    Stream s;
    hipGraph_t graph = nullptr;
    hipLaunchParams list = {const_cast<void *>(NOTHING), dim3(1), dim3(64), nullptr, 0, s};
    CHECK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
    GIVES(hipErrorStreamCaptureUnsupported, hipExtLaunchMultiKernelMultiDevice(&list, 1, 0));
    (void)hipStreamEndCapture(s, &graph);
    if (graph)
        (void)hipGraphDestroy(graph);
}
