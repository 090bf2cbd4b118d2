/* Devices: what they are called and what they can. */
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "device.h"

enum { HIP_VERSION = ABI_MAJOR == 5 ? 50221153 : ABI_MAJOR == 6 ? 60443482 : 70152802 };

static hipError_t answer(int *place, int value) { return *place = value, hipSuccess; }

hipError_t hipInit(unsigned flags) { return (void)flags, hipSuccess; }
hipError_t hipDriverGetVersion(int *version) { return answer(version, HIP_VERSION); }
hipError_t hipRuntimeGetVersion(int *version) { return answer(version, HIP_VERSION); }

hipError_t hipGetDeviceCount(int *count)
{
    hipError_t error = device_ready();
    *count = error ? 0 : device_count();
    return error;
}

static _Thread_local bool chosen; /* by hipSetDevice */

hipError_t hipSetDevice(int device)
{
    chosen = true;
    device_make_current(device);
    return hipSuccess;
}

/* The first is used by threads that have chosen none. */
hipError_t hipSetValidDevices(int *devices, int count)
{
    if (!between(count, 0, device_count()) || (count && !devices))
        return hipErrorInvalidValue;
    for (int i = 0; i < count; i++)
        if (device_check(devices[i]))
            return hipErrorInvalidDevice;
    if (!chosen)
        device_make_current(count ? devices[0] : 0);
    return hipSuccess;
}

hipError_t hipGetDevice(int *device) { return answer(device, device_current()); }
hipError_t hipDeviceGet(int *device, int ordinal) { return answer(device, ordinal); }
hipError_t hipChooseDevice(int *device, const void *properties) { return (void)properties, hipGetDevice(device); }

hipError_t hipDeviceGetName(char *name, int size, int device)
{
    if (size < 1)
        return hipErrorInvalidValue;
    snprintf(name, (size_t)size, "%.*s", (int)device_facts(device)->name_bytes, device_facts(device)->name);
    return hipSuccess;
}

hipError_t hipDeviceGetUuid(char *uuid, int device)
{
    enum { NAME_BYTES = 256 }; /* it follows the name, since HIP 6 */
    memcpy(uuid, (const char *)device_facts(device)->properties[1] + NAME_BYTES, 16);
    return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, int attribute, int device)
{
    const struct device_facts *facts = device_facts(device);
    for (uint32_t i = 0; i < facts->attribute_count; i++)
        if (facts->attributes[2 * i] == attribute)
            return answer(value, facts->attributes[2 * i + 1]);
    return hipErrorInvalidValue;
}

static unsigned bus_of(int device)
{
    enum { PCI_BUS_ID = 67 };
    int bus = 0;
    (void)hipDeviceGetAttribute(&bus, PCI_BUS_ID, device);
    return (unsigned)bus;
}

hipError_t hipDeviceGetPCIBusId(char *id, int size, int device)
{
    enum { BYTES = sizeof "0000:00:00.0" };
    if (size < 1)
        return hipErrorInvalidValue;
    snprintf(id, (size_t)size, "0000:%02x:00.0", bus_of(device)); /* as much as there is room for */
    return size < BYTES ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *id)
{
    unsigned domain, bus, slot, function;
    if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 || domain || slot)
        return hipErrorInvalidValue;
    for (int each = 0; each < device_count(); each++)
        if (bus_of(each) == bus)
            return answer(device, each);
    return hipErrorInvalidValue;
}

hipError_t hipDeviceTotalMem(size_t *bytes, int device)
{
    *bytes = device_facts(device)->memory_bytes;
    return hipSuccess;
}

hipError_t hipDeviceComputeCapability(int *major, int *minor, int device)
{
    enum { MAJOR = 23, MINOR = 61 };
    hipError_t error = hipDeviceGetAttribute(major, MAJOR, device);
    return error ? error : hipDeviceGetAttribute(minor, MINOR, device);
}

static hipError_t properties_of(void *properties, int device, int form)
{
    memcpy(properties, device_facts(device)->properties[form], device_facts(device)->properties_bytes[form]);
    return hipSuccess;
}

hipError_t hipGetDeviceProperties(void *properties, int device) { return properties_of(properties, device, 0); }
hipError_t hipGetDevicePropertiesR0600(void *properties, int device) { return properties_of(properties, device, 1); }

/* Nothing profiles here; a tool that is preloaded sees these calls before us. */
hipError_t hipProfilerStart(void) { return hipSuccess; }
hipError_t hipProfilerStop(void) { return hipSuccess; }
