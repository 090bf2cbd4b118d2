/* The calls of a HIP program that a tool must see: registration, modules, launches, and the ways to look them up.
 *
 * Every function here has the runtime's signature and passes its arguments on; a launch is offered to the tool first.
 */
#include "preloaded.h"

#include <dlfcn.h>
#include <string.h>

hipError_t hipProfilerStart(void)
{
    tool_active(true);
    return REAL(hipProfilerStart)();
}

hipError_t hipProfilerStop(void)
{
    tool_active(false);
    return REAL(hipProfilerStop)();
}

/* A reset frees everything on the device, copies too; they are made again when needed. */
hipError_t hipDeviceReset(void)
{
    copies_collect();
    graphs_drop();
    copies_drop();
    return REAL(hipDeviceReset)();
}

/* Another stream may get its handle, whose launches are in no order with those that it has left behind. */
hipError_t hipStreamDestroy(stream_t stream)
{
    told_stream_gone();
    return REAL(hipStreamDestroy)(stream);
}

/* Above the deepest stacks is the tools' memory (binary/loader/codeobject.py, MOST_STACK_BYTES). */
hipError_t hipDeviceSetLimit(int limit, size_t value)
{
    enum { STACK_LIMIT = 0, MOST_STACK_BYTES = 16384 };
    if (limit == STACK_LIMIT && value > MOST_STACK_BYTES)
        return hipErrorInvalidValue;
    return REAL(hipDeviceSetLimit)(limit, value);
}

/* Functions that are looked up at run time. The runtime's own table gives the runtime's; ours come first. */

hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    hipError_t error = REAL(hipGetProcAddress)(symbol, function, version, flags, status);
    void *own = NULL;
    if (!error && symbol && (own = dlsym(used_runtime() ? used_runtime() : RTLD_DEFAULT, symbol)))
        *function = own;
    return error;
}

const struct own_function OWN[] = {
#define OURS(name) {#name, (void *)name}
    OURS(__hipRegisterFatBinary), OURS(__hipRegisterFunction), OURS(__hipRegisterVar), OURS(__hipRegisterManagedVar),
    OURS(hipModuleLoadData), OURS(hipModuleLoadDataEx), OURS(hipModuleLoadFatBinary),
    OURS(hipModuleLoad), OURS(hipModuleUnload), OURS(hipLibraryLoadData), OURS(hipLibraryLoadFromFile),
    OURS(hipLibraryGetKernel), OURS(hipLibraryUnload), OURS(hipModuleGetFunction), OURS(hipGetFuncBySymbol), OURS(hipLaunchKernel),
    OURS(hipLaunchKernel_spt), OURS(hipLaunchCooperativeKernel), OURS(hipLaunchCooperativeKernel_spt),
    OURS(hipLaunchKernelExC), OURS(hipModuleLaunchKernel), OURS(hipModuleLaunchCooperativeKernel), OURS(hipDrvLaunchKernelEx),
    OURS(hipExtLaunchKernel), OURS(hipExtModuleLaunchKernel), OURS(hipHccModuleLaunchKernel),
    OURS(hipLaunchCooperativeKernelMultiDevice), OURS(hipExtLaunchMultiKernelMultiDevice),
    OURS(hipModuleLaunchCooperativeKernelMultiDevice), OURS(hipProfilerStart), OURS(hipProfilerStop),
    OURS(hipGetProcAddress), OURS(hipStreamBeginCapture), OURS(hipStreamBeginCapture_spt), OURS(hipStreamBeginCaptureToGraph),
    OURS(hipStreamEndCapture), OURS(hipStreamEndCapture_spt), OURS(hipGraphInstantiate), OURS(hipGraphInstantiateWithFlags),
    OURS(hipGraphInstantiateWithParams), OURS(hipGraphExecDestroy), OURS(hipGraphLaunch), OURS(hipGraphLaunch_spt),
    OURS(hipGraphAddKernelNode),
    OURS(hipGraphKernelNodeSetParams), OURS(hipGraphExecUpdate), OURS(hipGraphExecKernelNodeSetParams), OURS(hipGraphNodeSetEnabled),
    OURS(hipGraphExecMemcpyNodeSetParams), OURS(hipGraphExecMemcpyNodeSetParams1D), OURS(hipGraphExecMemsetNodeSetParams),
    OURS(hipGraphExecHostNodeSetParams), OURS(hipGraphExecNodeSetParams), OURS(hipGraphExecChildGraphNodeSetParams),
    OURS(hipGraphExecMemcpyNodeSetParamsFromSymbol), OURS(hipGraphExecMemcpyNodeSetParamsToSymbol),
    OURS(hipGraphExecEventRecordNodeSetEvent), OURS(hipGraphExecEventWaitNodeSetEvent),
    OURS(hipGraphExecExternalSemaphoresSignalNodeSetParams), OURS(hipGraphExecExternalSemaphoresWaitNodeSetParams),
    OURS(hipGraphExecBatchMemOpNodeSetParams), OURS(hipDrvGraphExecMemcpyNodeSetParams), OURS(hipDrvGraphExecMemsetNodeSetParams),
    OURS(hipMalloc), OURS(hipExtMallocWithFlags), OURS(hipMallocManaged), OURS(hipMallocPitch),
    OURS(hipMemAllocPitch), OURS(hipMalloc3D), OURS(hipHostMalloc), OURS(hipHostAlloc), OURS(hipMallocHost),
    OURS(hipMallocAsync), OURS(hipMallocFromPoolAsync), OURS(hipFree), OURS(hipHostFree), OURS(hipFreeAsync),
    OURS(hipHostRegister), OURS(hipHostUnregister), OURS(hipMemMap), OURS(hipMemUnmap),
    OURS(hipIpcOpenMemHandle), OURS(hipIpcCloseMemHandle), OURS(hipMemPoolImportPointer),
    OURS(hipGraphAddMemAllocNode), OURS(hipGetSymbolAddress), OURS(hipModuleGetGlobal),
    OURS(hipDeviceReset), OURS(hipStreamDestroy), OURS(hipDeviceSetLimit),
};
const size_t OWN_COUNT = sizeof OWN / sizeof *OWN;

/* A program that opens the runtime itself gets our functions for those of its names that we have. The last call is a
 * jump, so that RTLD_NEXT still means the caller's next: a counter of how often it returned would make it a call. */
__attribute__((no_profile_instrument_function)) API void *dlsym(void *restrict handle, const char *restrict name)
{
    void *mark = handle == RTLD_NEXT ? NULL : own_mark(handle, name);
    if (mark)
        return mark;
    if (handle != RTLD_NEXT && (strncmp(name, "hip", 3) == 0 || strncmp(name, "__hip", 5) == 0)) {
        void *theirs = next_dlsym()(handle, name);
        for (size_t i = 0; theirs && i < OWN_COUNT; i++)
            if (strcmp(OWN[i].name, name) == 0) {
                if (handle != RTLD_DEFAULT && theirs != OWN[i].function) /* which the program's own handle leads to */
                    use_runtime(handle);
                return OWN[i].function;
            }
        if (theirs)
            return theirs;
    }
    return next_dlsym()(handle, name);
}
