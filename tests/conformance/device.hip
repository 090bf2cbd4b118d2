// The device: count, properties and attributes, which agree; limits, flags, contexts, peers, versions, bus ids, names of calls.
#include "resources.h"

#include <algorithm>

static hipDeviceProp_t properties()
{
    hipDeviceProp_t made;
    CHECK(hipGetDeviceProperties(&made, 0));
    return made;
}
static int attribute(hipDeviceAttribute_t which)
{
    int value = -12345;
    hipError_t error = hipDeviceGetAttribute(&value, which, 0);
    if (error != hipSuccess)
        conformance::fail(__FILE__, __LINE__, "attribute " + std::to_string(int(which)) + " gave " + conformance::named(error));
    return value;
}
// The attribute is what the property says, cut to what an int holds.
template <typename T> static void agrees(hipDeviceAttribute_t which, T property, const char *name)
{
    int value = attribute(which), wanted = int(std::min<long long>((long long)property, 0x7FFFFFFF));
    if (value != wanted)
        conformance::fail(__FILE__, __LINE__, std::string(name) + " is " + std::to_string(value) + ", the property " + std::to_string(wanted));
}
#define AGREES(name, property) agrees(hipDeviceAttribute##name, properties().property, #name)

CASE(count)
{
    int count = -1;
    CHECK(hipGetDeviceCount(&count));
    EQUAL(1, count);
    GIVES(hipErrorInvalidValue, hipGetDeviceCount(nullptr));
}
CASE(current)
{
    int device = -1;
    CHECK(hipGetDevice(&device));
    EQUAL(0, device);
    CHECK(hipSetDevice(0));
    GIVES(hipErrorInvalidDevice, hipSetDevice(-1));
    GIVES(hipErrorInvalidDevice, hipSetDevice(1));
    GIVES(hipErrorInvalidValue, hipGetDevice(nullptr));
    CHECK(hipDeviceGet(&device, 0));
    EQUAL(0, device);
    GIVES(hipErrorInvalidDevice, hipDeviceGet(&device, 1));
    GIVES(hipErrorInvalidDevice, hipDeviceGet(&device, -1));
    GIVES(hipErrorInvalidValue, hipDeviceGet(nullptr, 0));
}
CASE(attributes_refuse)
{
    int value;
    GIVES(hipErrorInvalidValue, hipDeviceGetAttribute(nullptr, hipDeviceAttributeWarpSize, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, -1));
    GIVES(hipErrorInvalidDevice, hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 1));
    GIVES(hipErrorInvalidValue, hipDeviceGetAttribute(&value, hipDeviceAttribute_t(-1), 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetAttribute(&value, hipDeviceAttribute_t(9000), 0));
    hipDeviceProp_t made;
    GIVES(hipErrorInvalidValue, hipGetDeviceProperties(nullptr, 0));
    GIVES(hipErrorInvalidDevice, hipGetDeviceProperties(&made, -1));
    GIVES(hipErrorInvalidDevice, hipGetDeviceProperties(&made, 1));
}
#if HIP_VERSION_MAJOR >= 7
CASE(attributes_of_the_engine)
{
    AGREES(AsyncEngineCount, asyncEngineCount);
    AGREES(ClockRate, clockRate);
    AGREES(ComputeCapabilityMajor, major);
    AGREES(ComputeCapabilityMinor, minor);
    AGREES(ComputeMode, computeMode);
    AGREES(ComputePreemptionSupported, computePreemptionSupported);
    AGREES(ConcurrentKernels, concurrentKernels);
    AGREES(CooperativeLaunch, cooperativeLaunch);
    AGREES(CooperativeMultiDeviceLaunch, cooperativeMultiDeviceLaunch);
    AGREES(CooperativeMultiDeviceUnmatchedFunc, cooperativeMultiDeviceUnmatchedFunc);
    AGREES(CooperativeMultiDeviceUnmatchedGridDim, cooperativeMultiDeviceUnmatchedGridDim);
    AGREES(CooperativeMultiDeviceUnmatchedBlockDim, cooperativeMultiDeviceUnmatchedBlockDim);
    AGREES(CooperativeMultiDeviceUnmatchedSharedMem, cooperativeMultiDeviceUnmatchedSharedMem);
    AGREES(DeviceOverlap, deviceOverlap);
    AGREES(Integrated, integrated);
    AGREES(IsMultiGpuBoard, isMultiGpuBoard);
    AGREES(KernelExecTimeout, kernelExecTimeoutEnabled);
    AGREES(LuidDeviceNodeMask, luidDeviceNodeMask);
    AGREES(MaxBlocksPerMultiProcessor, maxBlocksPerMultiProcessor);
    AGREES(MaxBlockDimX, maxThreadsDim[0]);
    AGREES(MaxBlockDimY, maxThreadsDim[1]);
    AGREES(MaxBlockDimZ, maxThreadsDim[2]);
    AGREES(MaxGridDimX, maxGridSize[0]);
    AGREES(MaxGridDimY, maxGridSize[1]);
    AGREES(MaxGridDimZ, maxGridSize[2]);
    AGREES(MaxThreadsPerBlock, maxThreadsPerBlock);
    AGREES(MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor);
    AGREES(MultiGpuBoardGroupID, multiGpuBoardGroupID);
    AGREES(MultiprocessorCount, multiProcessorCount);
    AGREES(PciBusId, pciBusID);
    AGREES(PciDeviceId, pciDeviceID);
    AGREES(PciDomainId, pciDomainID);
    AGREES(MaxRegistersPerBlock, regsPerBlock);
    AGREES(MaxRegistersPerMultiprocessor, regsPerMultiprocessor);
    AGREES(StreamPrioritiesSupported, streamPrioritiesSupported);
    AGREES(WarpSize, warpSize);
    AGREES(AsicRevision, asicRevision);
}
CASE(attributes_of_memory)
{
    AGREES(EccEnabled, ECCEnabled);
    AGREES(AccessPolicyMaxWindowSize, accessPolicyMaxWindowSize);
    AGREES(CanMapHostMemory, canMapHostMemory);
    AGREES(CanUseHostPointerForRegisteredMem, canUseHostPointerForRegisteredMem);
    AGREES(ConcurrentManagedAccess, concurrentManagedAccess);
    AGREES(DirectManagedMemAccessFromHost, directManagedMemAccessFromHost);
    AGREES(GlobalL1CacheSupported, globalL1CacheSupported);
    AGREES(HostNativeAtomicSupported, hostNativeAtomicSupported);
    AGREES(L2CacheSize, l2CacheSize);
    AGREES(LocalL1CacheSupported, localL1CacheSupported);
    AGREES(ManagedMemory, managedMemory);
    AGREES(MaxPitch, memPitch);
    AGREES(MemoryBusWidth, memoryBusWidth);
    AGREES(MemoryClockRate, memoryClockRate);
    AGREES(PageableMemoryAccess, pageableMemoryAccess);
    AGREES(PageableMemoryAccessUsesHostPageTables, pageableMemoryAccessUsesHostPageTables);
    AGREES(PersistingL2CacheMaxSize, persistingL2CacheMaxSize);
    AGREES(ReservedSharedMemPerBlock, reservedSharedMemPerBlock);
    AGREES(MaxSharedMemoryPerBlock, sharedMemPerBlock);
    AGREES(SharedMemPerBlockOptin, sharedMemPerBlockOptin);
    AGREES(SharedMemPerMultiprocessor, sharedMemPerMultiprocessor);
    AGREES(MaxSharedMemoryPerMultiprocessor, maxSharedMemoryPerMultiProcessor);
    AGREES(TotalConstantMemory, totalConstMem);
    AGREES(TotalGlobalMem, totalGlobalMem);
    AGREES(UnifiedAddressing, unifiedAddressing);
    AGREES(MemoryPoolsSupported, memoryPoolsSupported);
    AGREES(HostRegisterSupported, hostRegisterSupported);
    AGREES(MemoryPoolSupportedHandleTypes, memoryPoolSupportedHandleTypes);
    AGREES(IsLargeBar, isLargeBar);
}
CASE(attributes_of_images)
{
    AGREES(MaxSurface1D, maxSurface1D);
    AGREES(MaxTexture1DWidth, maxTexture1D);
    AGREES(MaxTexture1DLinear, maxTexture1DLinear);
    AGREES(MaxTexture1DMipmap, maxTexture1DMipmap);
    AGREES(MaxTexture2DWidth, maxTexture2D[0]);
    AGREES(MaxTexture2DHeight, maxTexture2D[1]);
    AGREES(MaxTexture3DWidth, maxTexture3D[0]);
    AGREES(MaxTexture3DHeight, maxTexture3D[1]);
    AGREES(MaxTexture3DDepth, maxTexture3D[2]);
    AGREES(MaxTextureCubemap, maxTextureCubemap);
    AGREES(SurfaceAlignment, surfaceAlignment);
    AGREES(TextureAlignment, textureAlignment);
    AGREES(TexturePitchAlignment, texturePitchAlignment);
}
CASE(attributes_without_a_property)
{
    EQUAL(1, attribute(hipDeviceAttributeVirtualMemoryManagementSupported));
    EQUAL(1, attribute(hipDeviceAttributeCanUseStreamWaitValue));
    EQUAL(1, attribute(hipDeviceAttributeFineGrainSupport));
    EQUAL(0, attribute(hipDeviceAttributeImageSupport)); // CDNA has none
    EQUAL(1, attribute(hipDeviceAttributeNumberOfXccs));
    EQUAL(1, attribute(hipDeviceAttributeUnifiedAddressing));
    EQUAL(attribute(hipDeviceAttributeMultiprocessorCount), attribute(hipDeviceAttributePhysicalMultiProcessorCount));
    EQUAL(512, attribute(hipDeviceAttributeMaxAvailableVgprsPerThread)); // of gfx90a
    REQUIRE(attribute(hipDeviceAttributePciChipId) >= 0);
}
CASE(attributes_that_no_runtime_knows) // "Cuda only" in the header: hipErrorInvalidValue in clr
{
    int value;
    for (hipDeviceAttribute_t which :
         {hipDeviceAttributeLuid, hipDeviceAttributeSingleToDoublePrecisionPerfRatio, hipDeviceAttributeTccDriver,
          hipDeviceAttributeUnused1, hipDeviceAttributeUnused2, hipDeviceAttributeMaxThreadsDim,
          hipDeviceAttributeMaxSurface1DLayered, hipDeviceAttributeMaxTexture2DGather, hipDeviceAttributeMaxTexture3DAlt})
        GIVES(hipErrorInvalidValue, hipDeviceGetAttribute(&value, which, 0));
}
#endif
CASE(clocks)
{
    hipDeviceProp_t p = properties();
    REQUIRE(p.clockRate > 0);
    EQUAL(p.clockRate, attribute(hipDeviceAttributeClockRate));
#if HIP_VERSION_MAJOR >= 6
    EQUAL(100000, attribute(hipDeviceAttributeWallClockRate)); // kHz: the reference clock of MI200
#endif
}
CASE(native_atomics_of_the_host) { EQUAL(1, attribute(hipDeviceAttributeHostNativeAtomicSupported)); }
CASE(no_images)
{
    EQUAL(0, attribute(hipDeviceAttributeImageSupport)); // gfx90a has no image instructions
}
CASE(architecture_flags)
{
    hipDeviceArch_t arch = properties().arch;
    REQUIRE(arch.hasGlobalInt32Atomics && arch.hasGlobalFloatAtomicExch && arch.hasSharedInt32Atomics);
    REQUIRE(arch.hasSharedFloatAtomicExch && arch.hasFloatAtomicAdd && arch.hasGlobalInt64Atomics && arch.hasSharedInt64Atomics);
    REQUIRE(arch.hasDoubles && arch.hasWarpVote && arch.hasWarpBallot && arch.hasWarpShuffle);
    REQUIRE(arch.hasThreadFenceSystem && arch.has3dGrid);
    EQUAL(0u, unsigned(arch.hasFunnelShift));
    EQUAL(0u, unsigned(arch.hasSyncThreadsExt));
    EQUAL(0u, unsigned(arch.hasSurfaceFuncs));
    EQUAL(0u, unsigned(arch.hasDynamicParallelism));
}
CASE(properties_are_plausible)
{
    hipDeviceProp_t p = properties();
    REQUIRE(p.name[0] != 0);
    EQUAL(0, std::strncmp("gfx90a", p.gcnArchName, 6));
    EQUAL(9, p.major);
    EQUAL(0, p.minor);
    EQUAL(64, p.warpSize);
    EQUAL(1024, p.maxThreadsPerBlock);
    EQUAL(65536u, p.sharedMemPerBlock);
    EQUAL(2048, p.maxThreadsPerMultiProcessor);
    REQUIRE(p.totalGlobalMem > 0 && p.multiProcessorCount > 0 && p.memPitch > 0);
    EQUAL(0x7FFFFFFF, p.maxGridSize[0]);
    EQUAL(65536, p.maxGridSize[1]);
    EQUAL(65536, p.maxGridSize[2]);
    EQUAL(1, p.canMapHostMemory);
}
CASE(calls_agree_with_properties)
{
    hipDeviceProp_t p = properties();
    size_t bytes = 0;
    int major = -1, minor = -1;
    char name[256], small[5];
    CHECK(hipDeviceTotalMem(&bytes, 0));
    EQUAL(p.totalGlobalMem, bytes);
    CHECK(hipDeviceComputeCapability(&major, &minor, 0));
    EQUAL(p.major, major);
    EQUAL(p.minor, minor);
    CHECK(hipDeviceGetName(name, sizeof name, 0));
    EQUAL(0, std::strcmp(p.name, name));
    CHECK(hipDeviceGetName(small, sizeof small, 0));
    EQUAL(0, std::strncmp(p.name, small, 4));
    EQUAL(0, int(small[4]));
#if HIP_VERSION_MAJOR >= 6
    hipUUID id;
    CHECK(hipDeviceGetUuid(&id, 0));
    EQUAL(0, std::memcmp(id.bytes, p.uuid.bytes, sizeof id.bytes));
    GIVES(hipErrorInvalidValue, hipDeviceGetUuid(nullptr, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceGetUuid(&id, 1));
#endif
}
CASE(calls_refuse)
{
    size_t bytes;
    int major, minor;
    char name[256];
    GIVES(hipErrorInvalidValue, hipDeviceTotalMem(nullptr, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceTotalMem(&bytes, 1));
    GIVES(hipErrorInvalidDevice, hipDeviceTotalMem(&bytes, -1));
    GIVES(hipErrorInvalidValue, hipDeviceComputeCapability(nullptr, &minor, 0));
    GIVES(hipErrorInvalidValue, hipDeviceComputeCapability(&major, nullptr, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceComputeCapability(&major, &minor, 1));
    GIVES(hipErrorInvalidValue, hipDeviceGetName(nullptr, 256, 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetName(name, 0, 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetName(name, -1, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceGetName(name, 256, 1));
}
CASE(bus_id)
{
    hipDeviceProp_t p = properties();
    char id[64] = {}, wanted[64];
    int device = -1;
    CHECK(hipDeviceGetPCIBusId(id, sizeof id, 0));
    std::snprintf(wanted, sizeof wanted, "%04x:%02x:%02x.0", p.pciDomainID, p.pciBusID, p.pciDeviceID);
    EQUAL(0, std::strcmp(wanted, id));
    CHECK(hipDeviceGetByPCIBusId(&device, id));
    EQUAL(0, device);
    GIVES(hipErrorInvalidValue, hipDeviceGetPCIBusId(nullptr, sizeof id, 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetPCIBusId(id, 12, 0));
    GIVES(hipErrorInvalidValue, hipDeviceGetPCIBusId(id, 0, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceGetPCIBusId(id, sizeof id, 1));
    GIVES(hipErrorInvalidValue, hipDeviceGetByPCIBusId(nullptr, wanted));
    GIVES(hipErrorInvalidValue, hipDeviceGetByPCIBusId(&device, nullptr));
    GIVES(hipErrorInvalidValue, hipDeviceGetByPCIBusId(&device, ""));
    GIVES(hipErrorInvalidValue, hipDeviceGetByPCIBusId(&device, "0000:f7:1f.0"));
    GIVES(hipErrorInvalidValue, hipDeviceGetByPCIBusId(&device, "not an id"));
}
CASE(choose)
{
    hipDeviceProp_t wanted = {};
    int device = -1;
    CHECK(hipChooseDevice(&device, &wanted));
    EQUAL(0, device);
    GIVES(hipErrorInvalidValue, hipChooseDevice(nullptr, &wanted));
    GIVES(hipErrorInvalidValue, hipChooseDevice(&device, nullptr));
}
CASE(versions)
{
    int driver = 0, runtime = 0;
    CHECK(hipDriverGetVersion(&driver));
    CHECK(hipRuntimeGetVersion(&runtime));
    EQUAL(driver, runtime);
    EQUAL(HIP_VERSION_MAJOR, runtime / 10000000);
    GIVES(hipErrorInvalidValue, hipDriverGetVersion(nullptr));
    GIVES(hipErrorInvalidValue, hipRuntimeGetVersion(nullptr));
    CHECK(hipInit(0));
    GIVES(hipErrorInvalidValue, hipInit(1));
}
#if HIP_VERSION_MAJOR >= 6
CASE(stack_limit_is_kept)
{
    size_t before = 0, after = 0;
    CHECK(hipDeviceGetLimit(&before, hipLimitStackSize));
    EQUAL(1024u, before);
    CHECK(hipDeviceSetLimit(hipLimitStackSize, 4096));
    CHECK(hipDeviceGetLimit(&after, hipLimitStackSize));
    EQUAL(4096u, after);
    CHECK(hipDeviceSetLimit(hipLimitStackSize, before));
}
CASE(heap_limit_is_kept)
{
    size_t before = 0, after = 0;
    CHECK(hipDeviceGetLimit(&before, hipLimitMallocHeapSize));
    REQUIRE(before > 0);
    CHECK(hipDeviceSetLimit(hipLimitMallocHeapSize, before * 2));
    CHECK(hipDeviceGetLimit(&after, hipLimitMallocHeapSize));
    EQUAL(before * 2, after);
    CHECK(hipDeviceSetLimit(hipLimitMallocHeapSize, before));
}
#endif
CASE(limits_refuse)
{
    size_t value;
    GIVES(hipErrorInvalidValue, hipDeviceGetLimit(nullptr, hipLimitMallocHeapSize));
    REQUIRE(hipDeviceGetLimit(&value, hipLimit_t(0xFFFF)) != hipSuccess);
#if HIP_VERSION_MAJOR >= 6
    GIVES(hipErrorInvalidValue, hipDeviceGetLimit(nullptr, hipLimitStackSize));
    GIVES(hipErrorInvalidValue, hipDeviceSetLimit(hipLimit_t(0xFFFF), 1024));
    GIVES(hipErrorUnsupportedLimit, hipDeviceSetLimit(hipLimit_t(-1), 1024)); // limits are int in AMD's library
    GIVES(hipErrorUnsupportedLimit, hipDeviceSetLimit(hipLimitPrintfFifoSize, 1024));
    GIVES(hipErrorUnsupportedLimit, hipDeviceGetLimit(&value, hipLimitPrintfFifoSize));
#endif
}
ALONE(flags)
{
    unsigned flags = 99;
    CHECK(hipGetDeviceFlags(&flags));
    EQUAL(0u, flags & ~0x1Fu);
    for (unsigned wanted : {unsigned(hipDeviceScheduleSpin), unsigned(hipDeviceScheduleYield), unsigned(hipDeviceScheduleBlockingSync),
                            unsigned(hipDeviceScheduleAuto)}) {
        CHECK(hipSetDeviceFlags(wanted));
        CHECK(hipGetDeviceFlags(&flags));
        EQUAL(wanted, flags & 7u);
    }
    GIVES(hipErrorInvalidValue, hipGetDeviceFlags(nullptr));
    GIVES(hipErrorInvalidValue, hipSetDeviceFlags(0xFFFFFFFF));
    GIVES(hipErrorInvalidValue, hipSetDeviceFlags(hipDeviceScheduleSpin | hipDeviceScheduleYield));
}
CASE(cache_and_shared_memory_configuration)
{
    hipFuncCache_t cache;
    hipSharedMemConfig banks;
    CHECK(hipDeviceGetCacheConfig(&cache));
    EQUAL(hipFuncCachePreferNone, cache);
    CHECK(hipDeviceGetSharedMemConfig(&banks));
    EQUAL(hipSharedMemBankSizeFourByte, banks);
    GIVES(hipErrorInvalidValue, hipDeviceGetCacheConfig(nullptr));
    GIVES(hipErrorInvalidValue, hipDeviceGetSharedMemConfig(nullptr));
    GIVES(hipErrorInvalidValue, hipDeviceSetSharedMemConfig(hipSharedMemConfig(-1)));
    GIVES(hipErrorInvalidValue, hipDeviceSetCacheConfig(hipFuncCache_t(-1)));
}
CASE(peers_of_one_device)
{
    int can = 99;
    CHECK(hipDeviceCanAccessPeer(&can, 0, 0));
    EQUAL(0, can);
    GIVES(hipErrorInvalidValue, hipDeviceCanAccessPeer(nullptr, 0, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceCanAccessPeer(&can, 0, 1));
    GIVES(hipErrorInvalidDevice, hipDeviceCanAccessPeer(&can, -1, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(0, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(1, 0));
    GIVES(hipErrorInvalidValue, hipDeviceEnablePeerAccess(1, 1));
    GIVES(hipErrorInvalidDevice, hipDeviceDisablePeerAccess(0));
    GIVES(hipErrorInvalidDevice, hipDeviceDisablePeerAccess(1));
    GIVES(hipErrorInvalidDevice, hipDeviceGetP2PAttribute(&can, hipDevP2PAttrAccessSupported, 0, 0));
    GIVES(hipErrorInvalidDevice, hipDeviceGetP2PAttribute(&can, hipDevP2PAttrAccessSupported, 0, 1));
    GIVES(hipErrorInvalidValue, hipDeviceGetP2PAttribute(nullptr, hipDevP2PAttrAccessSupported, 0, 1));
}
CASE(links_refuse)
{
    uint32_t type, hops;
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(0, 0, &type, &hops));
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(-1, 0, &type, &hops));
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(0, 1, nullptr, &hops));
    GIVES(hipErrorInvalidValue, hipExtGetLinkTypeAndHopCount(0, 1, &type, nullptr));
    GIVES(hipErrorInvalidDevice, hipExtGetLinkTypeAndHopCount(0, 1, &type, &hops));
}
ALONE(contexts)
{
    hipCtx_t made = nullptr, current = nullptr, popped = nullptr;
    int device = -1;
    CHECK(hipCtxCreate(&made, 0, 0));
    REQUIRE(made != nullptr);
    CHECK(hipCtxGetCurrent(&current));
    REQUIRE(current == made);
    CHECK(hipCtxGetDevice(&device));
    EQUAL(0, device);
    CHECK(hipCtxPushCurrent(made));
    CHECK(hipCtxPopCurrent(&popped));
    REQUIRE(popped == made);
    CHECK(hipCtxSetCurrent(made));
    CHECK(hipCtxDestroy(made));
    GIVES(hipErrorInvalidValue, hipCtxDestroy(nullptr));
    GIVES(hipErrorInvalidContext, hipCtxPushCurrent(nullptr));
    GIVES(hipErrorInvalidValue, hipCtxCreate(&made, 0, 1));
    GIVES(hipErrorInvalidValue, hipCtxGetDevice(nullptr));
}
ALONE(popping_an_empty_stack_of_contexts)
{
    hipCtx_t popped;
    GIVES(hipErrorInvalidContext, hipCtxPopCurrent(&popped));
}
CASE(primary_contexts)
{
    hipCtx_t context = nullptr;
    unsigned flags = 99;
    int active = 99;
    CHECK(hipDevicePrimaryCtxRetain(&context, 0));
    REQUIRE(context != nullptr);
    CHECK(hipDevicePrimaryCtxGetState(0, &flags, &active));
    EQUAL(0u, flags);
    CHECK(hipDevicePrimaryCtxRelease(0));
    GIVES(hipErrorInvalidValue, hipDevicePrimaryCtxRetain(nullptr, 0));
    GIVES(hipErrorInvalidDevice, hipDevicePrimaryCtxRetain(&context, 1));
    GIVES(hipErrorInvalidDevice, hipDevicePrimaryCtxRelease(1));
    GIVES(hipErrorInvalidDevice, hipDevicePrimaryCtxGetState(-1, &flags, &active));
    GIVES(hipErrorContextAlreadyInUse, hipDevicePrimaryCtxSetFlags(0, 0));
    GIVES(hipErrorInvalidDevice, hipDevicePrimaryCtxSetFlags(1, 0));
}
CASE(what_contexts_do_not_have)
{
    unsigned value;
    hipFuncCache_t cache;
    hipSharedMemConfig banks;
    GIVES(hipErrorNotSupported, hipCtxSynchronize());
    GIVES(hipErrorNotSupported, hipCtxGetFlags(&value));
    GIVES(hipErrorNotSupported, hipCtxGetCacheConfig(&cache));
    GIVES(hipErrorNotSupported, hipCtxSetCacheConfig(hipFuncCachePreferL1));
    GIVES(hipErrorNotSupported, hipCtxSetSharedMemConfig(hipSharedMemBankSizeFourByte));
    CHECK(hipCtxGetSharedMemConfig(&banks));
    EQUAL(hipSharedMemBankSizeFourByte, banks);
    hipCtx_t context;
    CHECK(hipDevicePrimaryCtxRetain(&context, 0));
    CHECK(hipCtxEnablePeerAccess(context, 0));
    CHECK(hipCtxDisablePeerAccess(context));
    CHECK(hipDevicePrimaryCtxRelease(0));
}
ALONE(reset_frees_all)
{
    void *at;
    hipStream_t s;
    CHECK(hipMalloc(&at, 4096));
    CHECK(hipStreamCreate(&s));
    CHECK(hipDeviceReset());
    GIVES(hipErrorContextIsDestroyed, hipStreamSynchronize(s));
    GIVES(hipErrorInvalidValue, hipFree(at));
    CHECK(hipMalloc(&at, 4096)); // and the device goes on
    CHECK(hipMemset(at, 1, 4096));
    CHECK(hipFree(at));
}
extern "C" const char *hipApiName(uint32_t id);
CASE(names_of_calls)
{
    bool found = false;
    for (uint32_t id = 0; id < 600 && !found; id++)
        found = !std::strcmp(hipApiName(id), "hipMalloc");
    REQUIRE(found);
    EQUAL(0, std::strcmp("unknown", hipApiName(1u << 20)));
}
