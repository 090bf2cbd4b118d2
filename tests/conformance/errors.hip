// Errors: names, texts, and what is remembered of them.
#include "resources.h"

struct Known {
    hipError_t error;
    const char *name, *text;
};
// The texts of AMD's runtime (ROCm/clr, hipamd/src/hip_error.cpp).
static const Known ALL[] = {
#define KNOWN(name, text) {name, #name, text},
    KNOWN(hipSuccess, "no error")
    KNOWN(hipErrorInvalidValue, "invalid argument")
    KNOWN(hipErrorOutOfMemory, "out of memory")
    KNOWN(hipErrorNotInitialized, "initialization error")
    KNOWN(hipErrorDeinitialized, "driver shutting down")
    KNOWN(hipErrorProfilerDisabled, "profiler disabled while using external profiling tool")
    KNOWN(hipErrorProfilerNotInitialized, "profiler is not initialized")
    KNOWN(hipErrorProfilerAlreadyStarted, "profiler already started")
    KNOWN(hipErrorProfilerAlreadyStopped, "profiler already stopped")
    KNOWN(hipErrorInvalidConfiguration, "invalid configuration argument")
    KNOWN(hipErrorInvalidPitchValue, "invalid pitch argument")
    KNOWN(hipErrorInvalidSymbol, "invalid device symbol")
    KNOWN(hipErrorInvalidDevicePointer, "invalid device pointer")
    KNOWN(hipErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")
    KNOWN(hipErrorInsufficientDriver, "driver version is insufficient for runtime version")
    KNOWN(hipErrorMissingConfiguration, "__global__ function call is not configured")
    KNOWN(hipErrorPriorLaunchFailure, "unspecified launch failure in prior launch")
    KNOWN(hipErrorInvalidDeviceFunction, "invalid device function")
    KNOWN(hipErrorNoDevice, "no ROCm-capable device is detected")
    KNOWN(hipErrorInvalidDevice, "invalid device ordinal")
    KNOWN(hipErrorInvalidImage, "device kernel image is invalid")
    KNOWN(hipErrorInvalidContext, "invalid device context")
    KNOWN(hipErrorContextAlreadyCurrent, "context is already current context")
    KNOWN(hipErrorMapFailed, "mapping of buffer object failed")
    KNOWN(hipErrorUnmapFailed, "unmapping of buffer object failed")
    KNOWN(hipErrorArrayIsMapped, "array is mapped")
    KNOWN(hipErrorAlreadyMapped, "resource already mapped")
    KNOWN(hipErrorNoBinaryForGpu, "no kernel image is available for execution on the device")
    KNOWN(hipErrorAlreadyAcquired, "resource already acquired")
    KNOWN(hipErrorNotMapped, "resource not mapped")
    KNOWN(hipErrorNotMappedAsArray, "resource not mapped as array")
    KNOWN(hipErrorNotMappedAsPointer, "resource not mapped as pointer")
    KNOWN(hipErrorECCNotCorrectable, "uncorrectable ECC error encountered")
    KNOWN(hipErrorUnsupportedLimit, "limit is not supported on this architecture")
    KNOWN(hipErrorContextAlreadyInUse, "exclusive-thread device already in use by a different thread")
    KNOWN(hipErrorPeerAccessUnsupported, "peer access is not supported between these two devices")
    KNOWN(hipErrorInvalidKernelFile, "invalid kernel file")
    KNOWN(hipErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context")
    KNOWN(hipErrorInvalidSource, "device kernel image is invalid")
    KNOWN(hipErrorFileNotFound, "file not found")
    KNOWN(hipErrorSharedObjectSymbolNotFound, "shared object symbol not found")
    KNOWN(hipErrorSharedObjectInitFailed, "shared object initialization failed")
    KNOWN(hipErrorOperatingSystem, "OS call failed or operation not supported on this OS")
    KNOWN(hipErrorInvalidHandle, "invalid resource handle")
    KNOWN(hipErrorIllegalState, "the operation cannot be performed in the present state")
    KNOWN(hipErrorNotFound, "named symbol not found")
    KNOWN(hipErrorNotReady, "device not ready")
    KNOWN(hipErrorIllegalAddress, "an illegal memory access was encountered")
    KNOWN(hipErrorLaunchOutOfResources, "too many resources requested for launch")
    KNOWN(hipErrorLaunchTimeOut, "the launch timed out and was terminated")
    KNOWN(hipErrorPeerAccessAlreadyEnabled, "peer access is already enabled")
    KNOWN(hipErrorPeerAccessNotEnabled, "peer access has not been enabled")
    KNOWN(hipErrorSetOnActiveProcess, "cannot set while device is active in this process")
    KNOWN(hipErrorContextIsDestroyed, "context is destroyed")
    KNOWN(hipErrorAssert, "device-side assert triggered")
    KNOWN(hipErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped")
    KNOWN(hipErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region")
    KNOWN(hipErrorLaunchFailure, "unspecified launch failure")
    KNOWN(hipErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch")
    KNOWN(hipErrorNotSupported, "operation not supported")
    KNOWN(hipErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")
    KNOWN(hipErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")
    KNOWN(hipErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences")
    KNOWN(hipErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")
    KNOWN(hipErrorStreamCaptureUnjoined, "capturing stream has unjoined work")
    KNOWN(hipErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")
    KNOWN(hipErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream")
    KNOWN(hipErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream")
    KNOWN(hipErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread")
    KNOWN(hipErrorGraphExecUpdateFailure, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update")
#if HIP_VERSION_MAJOR >= 7
    KNOWN(hipErrorInvalidChannelDescriptor, "invalid resource description of texture passed to the api")
    KNOWN(hipErrorInvalidTexture, "invalid texture object passed to the api")
#endif
    KNOWN(hipErrorUnknown, "unknown error")
    KNOWN(hipErrorRuntimeMemory, "runtime memory call returned error")
    KNOWN(hipErrorRuntimeOther, "runtime call other than memory returned error")
#undef KNOWN
};

static void same(const char *wanted, const char *got)
{
    if (!got || std::strcmp(wanted, got))
        conformance::fail(__FILE__, __LINE__, std::string("\"") + (got ? got : "null") + "\", not \"" + wanted + "\"");
}
CASE(names)
{
    for (const Known &known : ALL)
        same(known.name, hipGetErrorName(known.error));
}
CASE(texts)
{
    for (const Known &known : ALL)
        same(known.text, hipGetErrorString(known.error));
}
CASE(none_of_these)
{
    for (int value : {-1, 10, 998, 2000, 1 << 30}) {
        same("hipErrorUnknown", hipGetErrorName(hipError_t(value)));
        same("unknown error", hipGetErrorString(hipError_t(value)));
    }
}
#if HIP_VERSION_MAJOR >= 6
CASE(driver_names_and_texts)
{
    for (const Known &known : ALL) {
        const char *name = nullptr, *text = nullptr;
        CHECK(hipDrvGetErrorName(known.error, &name));
        same(known.name, name);
        CHECK(hipDrvGetErrorString(known.error, &text));
        same(known.text, text);
    }
}
CASE(driver_names_refuse)
{
    const char *name;
    GIVES(hipErrorInvalidValue, hipDrvGetErrorName(hipSuccess, nullptr));
    GIVES(hipErrorInvalidValue, hipDrvGetErrorString(hipSuccess, nullptr));
    GIVES(hipErrorInvalidValue, hipDrvGetErrorName(hipError_t(-1), &name));
    GIVES(hipErrorInvalidValue, hipDrvGetErrorString(hipError_t(-1), &name));
    GIVES(hipErrorInvalidValue, hipDrvGetErrorName(hipError_t(2000), &name));
}
#endif
CASE(the_last_error_is_kept)
{
    GIVES(hipErrorInvalidValue, hipMalloc(nullptr, 1));
    EQUAL(hipErrorInvalidValue, hipPeekAtLastError());
    EQUAL(hipErrorInvalidValue, hipPeekAtLastError());
    EQUAL(hipErrorInvalidValue, hipGetLastError());
    EQUAL(hipSuccess, hipGetLastError());
    EQUAL(hipSuccess, hipPeekAtLastError());
}
#if HIP_VERSION_MAJOR >= 7
CASE(success_does_not_clear_it) // since HIP 7; before, every call left its own result
{
    GIVES(hipErrorInvalidDevice, hipSetDevice(99));
    int device;
    CHECK(hipGetDevice(&device));
    EQUAL(hipErrorInvalidDevice, hipGetLastError());
}
#endif
CASE(the_newest_error_is_kept)
{
    GIVES(hipErrorInvalidDevice, hipSetDevice(99));
    GIVES(hipErrorInvalidValue, hipMalloc(nullptr, 1));
    EQUAL(hipErrorInvalidValue, hipGetLastError());
}
CASE(threads_have_errors_of_their_own)
{
    GIVES(hipErrorInvalidValue, hipMalloc(nullptr, 1));
    hipError_t theirs = hipErrorUnknown, after = hipErrorUnknown;
    std::thread([&] {
        theirs = hipGetLastError();
        (void)hipSetDevice(99);
        after = hipGetLastError();
    }).join();
    EQUAL(hipSuccess, theirs);
    EQUAL(hipErrorInvalidDevice, after);
    EQUAL(hipErrorInvalidValue, hipGetLastError());
}
