/* What programs set of a device; contexts, one for each device. */
#include <stdlib.h>

#include "checks.h"
#include "device.h"
#include "memory.h"
#include "streams.h"

enum limit { STACK_BYTES = 0, HEAP_BYTES = 2, LIMITS, ALL_LIMITS = 0x1003 };
enum { CACHE_PREFER_NONE = 0, BANKS_OF_FOUR_BYTES = 1, SCHEDULING = 7, PUSHED = 64 };
enum { LINK_PCIE = 2 }; /* hsa_amd_link_info_type_t */

static char contexts[MAX_DEVICES]; /* an address here is the handle of that device's context */
static _Thread_local int pushed[PUSHED], pushed_count; /* devices below the current one */
static unsigned device_flags[MAX_DEVICES];
static atomic_bool sees[MAX_DEVICES][MAX_DEVICES];
static _Atomic size_t limits[LIMITS] = {[STACK_BYTES] = 1024, [HEAP_BYTES] = 8 << 20};

/* Streams and device memory go; modules, pinned and managed memory stay. */
hipError_t hipDeviceReset(void)
{
    hipError_t error = hipDeviceSynchronize();
    streams_reset(device_current());
    memory_reset(device_current());
    device_flags[device_current()] = 0;
    return error;
}

hipError_t hipGetDeviceFlags(unsigned *flags)
{
    *flags = device_flags[device_current()];
    return hipSuccess;
}

/* How threads wait: one way at most. Only that is remembered. */
hipError_t hipSetDeviceFlags(unsigned flags)
{
    unsigned scheduling = flags & SCHEDULING;
    if (scheduling & (scheduling - 1))
        return hipErrorInvalidValue;
    device_flags[device_current()] = scheduling;
    return hipSuccess;
}

hipError_t hipDeviceGetCacheConfig(int *config) { return *config = CACHE_PREFER_NONE, hipSuccess; }
hipError_t hipDeviceSetCacheConfig(int config) { return (void)config, hipSuccess; }
hipError_t hipDeviceGetSharedMemConfig(int *config) { return *config = BANKS_OF_FOUR_BYTES, hipSuccess; }
hipError_t hipDeviceSetSharedMemConfig(int config) { return (void)config, hipSuccess; }

hipError_t hipDeviceGetLimit(size_t *value, int limit)
{
    if (limit != STACK_BYTES && limit != HEAP_BYTES)
        return hipErrorUnsupportedLimit;
    *value = limits[limit];
    return hipSuccess;
}

/* Stacks are as deep as a kernel needs, whatever is said here; what kernels allocate from begins with the heap's limit. */
hipError_t hipDeviceSetLimit(int limit, size_t value)
{
    if (limit >= ALL_LIMITS)
        return hipErrorInvalidValue;
    if (limit != STACK_BYTES && limit != HEAP_BYTES)
        return hipErrorUnsupportedLimit;
    hipError_t error = hipSuccess;
    if (limit == HEAP_BYTES)
        error = device_ask(MESSAGE_HEAP, (uint64_t[]){(uint64_t)device_current(), value}, 2, NULL);
    if (!error)
        limits[limit] = value;
    return error;
}

/* Every device reaches all memory; what is switched on is only remembered. */
hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer;
    return hipSuccess;
}

hipError_t hipDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
    enum { PERFORMANCE_RANK, ACCESS_SUPPORTED, NATIVE_ATOMICS, ARRAY_ACCESS };
    const int values[] = {[PERFORMANCE_RANK] = LINK_PCIE, [ACCESS_SUPPORTED] = 1, [NATIVE_ATOMICS] = 1, [ARRAY_ACCESS] = 1};
    if (device == peer)
        return hipErrorInvalidDevice;
    if (!between(attribute, PERFORMANCE_RANK, ARRAY_ACCESS))
        return hipErrorInvalidValue;
    *value = values[attribute];
    return hipSuccess;
}

hipError_t hipExtGetLinkTypeAndHopCount(int device, int peer, uint32_t *type, uint32_t *hops)
{
    if (device == peer || device < 0 || peer < 0)
        return hipErrorInvalidValue;
    if (device >= device_count() || peer >= device_count())
        return hipErrorInvalidDevice;
    *type = LINK_PCIE;
    *hops = 1;
    return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int device = device_current();
    (void)flags;
    if (device == peer || device_check(peer))
        return hipErrorInvalidDevice;
    return atomic_exchange(&sees[device][peer], true) ? hipErrorPeerAccessAlreadyEnabled : hipSuccess;
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
    if (peer == device_current())
        return hipErrorInvalidDevice;
    return atomic_exchange(&sees[device_current()][peer], false) ? hipSuccess : hipErrorPeerAccessNotEnabled;
}

/* Contexts: a thread has a stack of them, as in CUDA. What AMD's runtime refuses of them is refused here. */

static hipError_t give_context(void **result, int device)
{
    *result = &contexts[device];
    return hipSuccess;
}

static bool is_context(const void *which) { return (const char *)which >= contexts && (const char *)which < contexts + device_count(); }

static hipError_t enter(const void *which, bool push)
{
    if (!is_context(which))
        return hipErrorInvalidContext;
    if (push && pushed_count == PUSHED)
        return hipErrorOutOfMemory;
    if (push)
        pushed[pushed_count++] = device_current();
    device_make_current((int)((const char *)which - contexts));
    return hipSuccess;
}

hipError_t hipCtxCreate(void **result, unsigned flags, int device)
{
    if (device_check(device))
        return hipErrorInvalidValue;
    device_flags[device] = flags;
    give_context(result, device);
    return enter(*result, true);
}

hipError_t hipCtxPopCurrent(void **result)
{
    if (!pushed_count)
        return hipErrorInvalidContext;
    if (result)
        give_context(result, device_current());
    device_make_current(pushed[--pushed_count]);
    return hipSuccess;
}

/* Removes the current one, if it is pushed; the device's own stays. */
hipError_t hipCtxDestroy(void *which)
{
    if (!is_context(which))
        return which ? hipErrorInvalidContext : hipErrorInvalidValue;
    return pushed_count && which == &contexts[device_current()] ? hipCtxPopCurrent(NULL) : hipSuccess;
}

hipError_t hipCtxPushCurrent(void *which) { return enter(which, true); }

hipError_t hipCtxSetCurrent(void *which)
{
    if (!which)
        return pushed_count ? hipCtxPopCurrent(NULL) : hipSuccess;
    return enter(which, pushed_count == 0);
}

hipError_t hipCtxGetCurrent(void **result) { return give_context(result, device_current()); }
hipError_t hipCtxGetDevice(int *device) { return hipGetDevice(device); }
hipError_t hipCtxSynchronize(void) { return hipErrorNotSupported; }
hipError_t hipCtxGetApiVersion(void *which, unsigned *version) { return (void)which, (void)version, hipErrorNotSupported; }
hipError_t hipCtxGetFlags(unsigned *flags) { return (void)flags, hipErrorNotSupported; }
hipError_t hipCtxGetCacheConfig(int *config) { return (void)config, hipErrorNotSupported; }
hipError_t hipCtxSetCacheConfig(int config) { return (void)config, hipErrorNotSupported; }
hipError_t hipCtxGetSharedMemConfig(int *config) { return hipDeviceGetSharedMemConfig(config); }
hipError_t hipCtxSetSharedMemConfig(int config) { return (void)config, hipErrorNotSupported; }
hipError_t hipCtxEnablePeerAccess(void *peer, unsigned flags) { return (void)peer, (void)flags, hipSuccess; }
hipError_t hipCtxDisablePeerAccess(void *peer) { return (void)peer, hipSuccess; }
hipError_t hipDevicePrimaryCtxRetain(void **result, int device) { return give_context(result, device); }
hipError_t hipDevicePrimaryCtxRelease(int device) { return (void)device, hipSuccess; }
hipError_t hipDevicePrimaryCtxReset(int device) { return (void)device, hipSuccess; }
hipError_t hipDevicePrimaryCtxSetFlags(int device, unsigned flags) { return (void)device, (void)flags, hipErrorContextAlreadyInUse; }

hipError_t hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    (void)device;
    if (flags)
        *flags = 0;
    if (active)
        *active = 1;
    return hipSuccess;
}
