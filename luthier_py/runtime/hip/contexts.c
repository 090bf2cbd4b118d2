/* Contexts, one for each device, and what programs set of a device. */
#include <stdlib.h>

#include "luthier.h"

enum limit { STACK_BYTES, PRINTF_BYTES, HEAP_BYTES, LIMITS, ALL_LIMITS = 0x1003 };
enum { CACHE_PREFER_NONE = 0, BANKS_OF_FOUR_BYTES = 1, SCHEDULING = 7 };

static char contexts[MAX_DEVICES]; /* an address here is the handle of that device's context */
static _Thread_local int pushed[16], pushed_count; /* devices below the current one */
static unsigned device_flags[MAX_DEVICES];
static atomic_bool sees[MAX_DEVICES][MAX_DEVICES];
static _Atomic size_t limits[LIMITS] = {1024, 4 << 20, 8 << 20};

hipError_t hipDeviceReset(void) { return hipDeviceSynchronize(); }

hipError_t hipGetDeviceFlags(unsigned *flags)
{
    *flags = device_flags[device_current()] & SCHEDULING;
    return hipSuccess;
}

hipError_t hipSetDeviceFlags(unsigned flags) { return device_flags[device_current()] = flags, hipSuccess; }

hipError_t hipDeviceGetCacheConfig(int *config) { return *config = CACHE_PREFER_NONE, hipSuccess; }
hipError_t hipDeviceSetCacheConfig(int config) { return (void)config, hipSuccess; }
hipError_t hipDeviceGetSharedMemConfig(int *config) { return *config = BANKS_OF_FOUR_BYTES, hipSuccess; }
hipError_t hipDeviceSetSharedMemConfig(int config) { return (void)config, hipSuccess; }

hipError_t hipDeviceGetLimit(size_t *value, int limit)
{
    if (limit < 0 || limit >= LIMITS)
        return hipErrorUnsupportedLimit;
    *value = limits[limit];
    return hipSuccess;
}

/* Remembered: stacks are as deep as a kernel needs, and buffers as large. */
hipError_t hipDeviceSetLimit(int limit, size_t value)
{
    if (limit < 0 || limit >= ALL_LIMITS)
        return hipErrorInvalidValue;
    if (limit != STACK_BYTES && limit != HEAP_BYTES)
        return hipErrorUnsupportedLimit;
    limits[limit] = value;
    return hipSuccess;
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
    if (attribute < PERFORMANCE_RANK || attribute > ARRAY_ACCESS || device == peer)
        return hipErrorInvalidValue;
    *value = attribute == ACCESS_SUPPORTED || attribute == NATIVE_ATOMICS;
    return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int device = device_current();
    (void)flags;
    if (device == peer)
        return hipErrorInvalidDevice;
    return atomic_exchange(&sees[device][peer], true) ? hipErrorPeerAccessAlreadyEnabled : hipSuccess;
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
    return atomic_exchange(&sees[device_current()][peer], false) ? hipSuccess : hipErrorPeerAccessNotEnabled;
}

static hipError_t give_context(void **result, int device)
{
    *result = &contexts[device];
    return hipSuccess;
}

static bool is_context(const void *which) { return (const char *)which >= contexts && (const char *)which < contexts + device_count(); }

static hipError_t enter(const void *which, bool push)
{
    if (!is_context(which))
        return which ? hipErrorInvalidContext : hipSuccess;
    if (push && pushed_count < (int)(sizeof pushed / sizeof *pushed))
        pushed[pushed_count++] = device_current();
    device_make_current((int)((const char *)which - contexts));
    return hipSuccess;
}

hipError_t hipCtxCreate(void **result, unsigned flags, int device)
{
    (void)flags;
    hipError_t error = give_context(result, device);
    return error ? error : enter(*result, true);
}

hipError_t hipCtxDestroy(void *which) { return is_context(which) ? hipSuccess : hipErrorInvalidValue; }
hipError_t hipCtxPushCurrent(void *which) { return enter(which, true); }
hipError_t hipCtxSetCurrent(void *which) { return enter(which, false); }

hipError_t hipCtxPopCurrent(void **result)
{
    hipError_t error = result ? give_context(result, device_current()) : hipSuccess;
    if (!error && pushed_count)
        device_make_current(pushed[--pushed_count]);
    return error;
}

hipError_t hipCtxGetCurrent(void **result) { return give_context(result, device_current()); }
hipError_t hipCtxGetDevice(int *device) { return hipGetDevice(device); }
hipError_t hipDevicePrimaryCtxRetain(void **result, int device) { return give_context(result, device); }
hipError_t hipDevicePrimaryCtxRelease(int device) { return (void)device, hipSuccess; }
hipError_t hipDevicePrimaryCtxReset(int device) { return (void)device, hipSuccess; }
hipError_t hipDevicePrimaryCtxSetFlags(int device, unsigned flags) { return device_flags[device] = flags, hipSuccess; }

hipError_t hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = device_flags[device];
    *active = 1;
    return hipSuccess;
}
