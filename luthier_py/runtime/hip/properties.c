/* Devices: their properties, contexts, one for each, access of one to another's memory; and the names of errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

enum { HIP_VERSION = ABI_MAJOR == 5 ? 50221153 : ABI_MAJOR == 6 ? 60443482 : 70152802 };

static const struct { hipError_t value; const char *name, *text; } ERRORS[] = {
#define ERROR(value, name, text) {name, #name, text},
    ALL_ERRORS(ERROR)
#undef ERROR
};

static char contexts[MAX_DEVICES]; /* an address here is the handle of that device's context */
static _Thread_local int pushed[16], pushed_count; /* devices below the current one */
static unsigned device_flags[MAX_DEVICES];
static atomic_bool sees[MAX_DEVICES][MAX_DEVICES];

static hipError_t answer(int *place, int value)
{
    if (!place)
        return note(hipErrorInvalidValue);
    *place = value;
    return hipSuccess;
}

const char *hipGetErrorName(hipError_t error)
{
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].value == error)
            return ERRORS[i].name;
    return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error)
{
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].value == error)
            return ERRORS[i].text;
    return "unknown error";
}

hipError_t hipDrvGetErrorName(hipError_t error, const char **name)
{
    if (!name)
        return note(hipErrorInvalidValue);
    *name = hipGetErrorName(error);
    return hipSuccess;
}

hipError_t hipDrvGetErrorString(hipError_t error, const char **text)
{
    if (!text)
        return note(hipErrorInvalidValue);
    *text = hipGetErrorString(error);
    return hipSuccess;
}

/* Said once for each function, by the stubs of what is not implemented. */
hipError_t not_supported(const char *name, atomic_flag *said)
{
    if (!atomic_flag_test_and_set(said))
        say("luthier: %s is not supported by the emulator's HIP runtime", name);
    return note(hipErrorNotSupported);
}

hipError_t hipInit(unsigned flags) { return note(flags ? hipErrorInvalidValue : device_ready()); }
hipError_t hipDriverGetVersion(int *version) { return answer(version, HIP_VERSION); }
hipError_t hipRuntimeGetVersion(int *version) { return answer(version, HIP_VERSION); }

hipError_t hipGetDeviceCount(int *count)
{
    hipError_t error = device_ready();
    if (count)
        *count = error ? 0 : device_count();
    return note(count ? error : hipErrorInvalidValue);
}

hipError_t hipSetDevice(int device)
{
    hipError_t error = device_check(device);
    if (!error)
        device_make_current(device);
    return note(error);
}

hipError_t hipSetValidDevices(int *devices, int count) { return note(devices || !count ? hipSuccess : hipErrorInvalidValue); }

hipError_t hipGetDevice(int *device)
{
    hipError_t error = device_ready();
    return error ? note(error) : answer(device, device_current());
}

hipError_t hipDeviceGet(int *device, int ordinal)
{
    hipError_t error = device_check(ordinal);
    return error ? note(error) : answer(device, ordinal);
}

hipError_t hipChooseDevice(int *device, const void *properties) { return properties ? hipGetDevice(device) : note(hipErrorInvalidValue); }

hipError_t hipDeviceGetName(char *name, int size, int device)
{
    hipError_t error = device_check(device);
    if (error || !name || size < 1)
        return note(error ? error : hipErrorInvalidValue);
    snprintf(name, (size_t)size, "%.*s", (int)device_facts(device)->name_bytes, device_facts(device)->name);
    return hipSuccess;
}

hipError_t hipDeviceGetUuid(char *uuid, int device)
{
    hipError_t error = device_check(device);
    if (error || !uuid)
        return note(error ? error : hipErrorInvalidValue);
    memcpy(uuid, "LUTHIER-EMULATOR", 16);
    uuid[15] = (char)(uuid[15] + device);
    return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char *id, int size, int device)
{
    hipError_t error = device_check(device);
    if (error || !id || size < 1)
        return note(error ? error : hipErrorInvalidValue);
    snprintf(id, (size_t)size, "0000:%02x:00.0", (unsigned)device);
    return hipSuccess;
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *id)
{
    unsigned bus;
    if (!id || sscanf(id, "%*x:%x:%*x.%*x", &bus) != 1)
        return note(hipErrorInvalidValue);
    return hipDeviceGet(device, (int)bus);
}

hipError_t hipDeviceTotalMem(size_t *bytes, int device)
{
    hipError_t error = device_check(device);
    if (error || !bytes)
        return note(error ? error : hipErrorInvalidValue);
    *bytes = device_facts(device)->memory_bytes;
    return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, int attribute, int device)
{
    hipError_t error = device_check(device);
    const struct device_facts *facts = error ? NULL : device_facts(device);
    for (uint32_t i = 0; facts && i < facts->attribute_count; i++)
        if (facts->attributes[2 * i] == attribute)
            return answer(value, facts->attributes[2 * i + 1]);
    return note(error ? error : hipErrorInvalidValue);
}

hipError_t hipDeviceComputeCapability(int *major, int *minor, int device)
{
    enum { MAJOR = 23, MINOR = 61 };
    hipError_t error = hipDeviceGetAttribute(major, MAJOR, device);
    return error ? error : hipDeviceGetAttribute(minor, MINOR, device);
}

static hipError_t properties_of(void *properties, int device, int form)
{
    hipError_t error = device_check(device);
    if (error || !properties)
        return note(error ? error : hipErrorInvalidValue);
    memcpy(properties, device_facts(device)->properties[form], device_facts(device)->properties_bytes[form]);
    return hipSuccess;
}

hipError_t hipGetDeviceProperties(void *properties, int device) { return properties_of(properties, device, 0); }
hipError_t hipGetDevicePropertiesR0600(void *properties, int device) { return properties_of(properties, device, 1); }

hipError_t hipDeviceReset(void) { return hipDeviceSynchronize(); }

hipError_t hipGetDeviceFlags(unsigned *flags)
{
    if (!flags)
        return note(hipErrorInvalidValue);
    *flags = device_flags[device_current()];
    return hipSuccess;
}

hipError_t hipSetDeviceFlags(unsigned flags) { return device_flags[device_current()] = flags, hipSuccess; }

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 1;
    if (greatest)
        *greatest = -1;
    return note(device_ready());
}

hipError_t hipDeviceGetCacheConfig(int *config) { return answer(config, 0); }
hipError_t hipDeviceSetCacheConfig(int config) { return (void)config, note(device_ready()); }
hipError_t hipDeviceGetSharedMemConfig(int *config) { return answer(config, 1); }
hipError_t hipDeviceSetSharedMemConfig(int config) { return (void)config, note(device_ready()); }

hipError_t hipDeviceGetLimit(size_t *value, int limit)
{
    static const size_t LIMITS[] = {1024, 0, 0}; /* stack, printf, heap */
    if (!value || limit < 0 || limit >= 3)
        return note(value ? hipErrorUnsupportedLimit : hipErrorInvalidValue);
    *value = LIMITS[limit];
    return hipSuccess;
}

hipError_t hipDeviceSetLimit(int limit, size_t value) { return (void)value, note(limit ? hipErrorUnsupportedLimit : hipSuccess); }

/* Every device reaches all memory; what is switched on is only remembered. */
static hipError_t check_peer(int device, int peer)
{
    hipError_t error = device_check(device);
    return error ? error : device_check(peer);
}

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    hipError_t error = check_peer(device, peer);
    return error ? note(error) : answer(can, device != peer);
}

hipError_t hipDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
    enum { PERFORMANCE_RANK, ACCESS_SUPPORTED, NATIVE_ATOMICS, ARRAY_ACCESS };
    hipError_t error = check_peer(device, peer);
    if (error || attribute < PERFORMANCE_RANK || attribute > ARRAY_ACCESS || device == peer)
        return note(error ? error : hipErrorInvalidValue);
    return answer(value, attribute == ACCESS_SUPPORTED || attribute == NATIVE_ATOMICS);
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int device = device_current();
    hipError_t error = check_peer(device, peer);
    if (error || flags || device == peer)
        return note(error ? error : flags ? hipErrorInvalidValue : hipErrorInvalidDevice);
    return note(atomic_exchange(&sees[device][peer], true) ? hipErrorPeerAccessAlreadyEnabled : hipSuccess);
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
    hipError_t error = check_peer(device_current(), peer);
    if (error)
        return note(error);
    return note(atomic_exchange(&sees[device_current()][peer], false) ? hipSuccess : hipErrorPeerAccessNotEnabled);
}

static hipError_t give_context(void **result, int device)
{
    hipError_t error = device_check(device);
    if (error || !result)
        return note(error ? error : hipErrorInvalidValue);
    *result = &contexts[device];
    return hipSuccess;
}

static bool is_context(const void *which) { return (const char *)which >= contexts && (const char *)which < contexts + device_count(); }

static hipError_t enter(const void *which, bool push)
{
    if (!is_context(which))
        return note(which ? hipErrorInvalidContext : hipSuccess);
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

hipError_t hipCtxDestroy(void *which) { return note(is_context(which) ? hipSuccess : hipErrorInvalidValue); }
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
hipError_t hipDevicePrimaryCtxRelease(int device) { return note(device_check(device)); }
hipError_t hipDevicePrimaryCtxReset(int device) { return note(device_check(device)); }
hipError_t hipDevicePrimaryCtxSetFlags(int device, unsigned flags) { return (void)flags, note(device_check(device)); }

hipError_t hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    hipError_t error = device_check(device);
    if (flags)
        *flags = 0;
    return error ? note(error) : answer(active, 1);
}

/* Nothing profiles here; a tool that is preloaded sees these calls before us. */
hipError_t hipProfilerStart(void) { return note(device_ready()); }
hipError_t hipProfilerStop(void) { return note(device_ready()); }

const char *hipApiName(unsigned id) { return (void)id, "unknown"; }
