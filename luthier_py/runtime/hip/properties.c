/* The one device: its properties, contexts that are always the same, and the names of errors. */
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

static char context; /* of the device; its address is the handle */
static unsigned device_flags;

static hipError_t ready_for(int device)
{
    hipError_t error = device_ready();
    return error ? error : device == 0 ? hipSuccess : hipErrorInvalidDevice;
}

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
        *count = error ? 0 : 1;
    return note(count ? error : hipErrorInvalidValue);
}

hipError_t hipSetDevice(int device) { return note(ready_for(device)); }
hipError_t hipSetValidDevices(int *devices, int count) { return note(devices || !count ? hipSuccess : hipErrorInvalidValue); }

hipError_t hipGetDevice(int *device)
{
    hipError_t error = device_ready();
    return error ? note(error) : answer(device, 0);
}

hipError_t hipDeviceGet(int *device, int ordinal)
{
    hipError_t error = ready_for(ordinal);
    return error ? note(error) : answer(device, ordinal);
}

hipError_t hipChooseDevice(int *device, const void *properties) { return properties ? hipGetDevice(device) : note(hipErrorInvalidValue); }

hipError_t hipDeviceGetName(char *name, int size, int device)
{
    hipError_t error = ready_for(device);
    if (error || !name || size < 1)
        return note(error ? error : hipErrorInvalidValue);
    snprintf(name, (size_t)size, "%.*s", (int)facts.name_bytes, facts.name);
    return hipSuccess;
}

hipError_t hipDeviceGetUuid(char *uuid, int device)
{
    hipError_t error = ready_for(device);
    if (error || !uuid)
        return note(error ? error : hipErrorInvalidValue);
    memcpy(uuid, "LUTHIER-EMULATOR", 16);
    return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char *id, int size, int device)
{
    hipError_t error = ready_for(device);
    if (error || !id || size < 1)
        return note(error ? error : hipErrorInvalidValue);
    snprintf(id, (size_t)size, "0000:00:00.0");
    return hipSuccess;
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *id) { return id ? hipGetDevice(device) : note(hipErrorInvalidValue); }

hipError_t hipDeviceTotalMem(size_t *bytes, int device)
{
    hipError_t error = ready_for(device);
    if (error || !bytes)
        return note(error ? error : hipErrorInvalidValue);
    *bytes = facts.memory_bytes;
    return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, int attribute, int device)
{
    hipError_t error = ready_for(device);
    for (uint32_t i = 0; !error && i < facts.attribute_count; i++)
        if (facts.attributes[2 * i] == attribute)
            return answer(value, facts.attributes[2 * i + 1]);
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
    hipError_t error = ready_for(device);
    if (error || !properties)
        return note(error ? error : hipErrorInvalidValue);
    memcpy(properties, facts.properties[form], facts.properties_bytes[form]);
    return hipSuccess;
}

hipError_t hipGetDeviceProperties(void *properties, int device) { return properties_of(properties, device, 0); }
hipError_t hipGetDevicePropertiesR0600(void *properties, int device) { return properties_of(properties, device, 1); }

hipError_t hipDeviceReset(void) { return hipDeviceSynchronize(); }

hipError_t hipGetDeviceFlags(unsigned *flags)
{
    if (!flags)
        return note(hipErrorInvalidValue);
    *flags = device_flags;
    return hipSuccess;
}

hipError_t hipSetDeviceFlags(unsigned flags) { return device_flags = flags, hipSuccess; }

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

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    return device || peer ? note(hipErrorInvalidDevice) : answer(can, 0);
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) { return (void)peer, (void)flags, note(hipErrorInvalidDevice); }
hipError_t hipDeviceDisablePeerAccess(int peer) { return (void)peer, note(hipErrorPeerAccessNotEnabled); }

static hipError_t give_context(void **result)
{
    hipError_t error = device_ready();
    if (error || !result)
        return note(error ? error : hipErrorInvalidValue);
    *result = &context;
    return hipSuccess;
}

hipError_t hipCtxCreate(void **result, unsigned flags, int device)
{
    (void)flags;
    return device ? note(hipErrorInvalidDevice) : give_context(result);
}

static hipError_t check_context(const void *which) { return note(!which || which == &context ? hipSuccess : hipErrorInvalidContext); }

hipError_t hipCtxDestroy(void *which) { return which ? check_context(which) : note(hipErrorInvalidValue); }
hipError_t hipCtxPushCurrent(void *which) { return check_context(which); }
hipError_t hipCtxPopCurrent(void **result) { return result ? give_context(result) : hipSuccess; }
hipError_t hipCtxSetCurrent(void *which) { return check_context(which); }
hipError_t hipCtxGetCurrent(void **result) { return give_context(result); }
hipError_t hipCtxGetDevice(int *device) { return hipGetDevice(device); }

hipError_t hipDevicePrimaryCtxRetain(void **result, int device)
{
    return device ? note(hipErrorInvalidDevice) : give_context(result);
}

hipError_t hipDevicePrimaryCtxRelease(int device) { return note(ready_for(device)); }
hipError_t hipDevicePrimaryCtxReset(int device) { return note(ready_for(device)); }
hipError_t hipDevicePrimaryCtxSetFlags(int device, unsigned flags) { return (void)flags, note(ready_for(device)); }

hipError_t hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    if (flags)
        *flags = 0;
    return device ? note(hipErrorInvalidDevice) : answer(active, 1);
}

/* Nothing profiles here; a tool that is preloaded sees these calls before us. */
hipError_t hipProfilerStart(void) { return note(device_ready()); }
hipError_t hipProfilerStop(void) { return note(device_ready()); }

const char *hipApiName(unsigned id) { return (void)id, "unknown"; }
