/* What the tool lets HIP do (host/tool/driver.h): by calls of whichever runtime there is, in the order of streams. */
#include "preloaded.h"

#include <stdio.h>
#include <stdlib.h>

enum { PORTABLE = 1, MAPPED = 2, COHERENT = 0x40000000 }; /* of hipHostMalloc */

static bool describe(int device, uint32_t *form, char properties[static PROPERTIES_BYTES])
{
    bool newer = real_function("hipGetDevicePropertiesR0600") != NULL;
    *form = newer ? FORM_R0600 : FORM_R0000;
    return (newer ? REAL(hipGetDevicePropertiesR0600)(properties, device) : REAL(hipGetDeviceProperties)(properties, device)) ==
           hipSuccess;
}

static bool find_initial(const struct copy *copy, const char *variable, void **address)
{
    char *name;
    size_t bytes;
    if (asprintf(&name, "%s.initial", variable) < 0)
        return false;
    bool good = REAL(hipModuleGetGlobal)(address, &bytes, copy->module, name) == hipSuccess;
    free(name);
    return good;
}

static bool find(const struct loaded *loaded, const struct declared *declared, struct tool_variable *variable)
{
    const struct copy *copy = (const struct copy *)loaded;
    bool initial = variable->role == STATE && declared->number;
    return REAL(hipModuleGetGlobal)(&variable->address, &variable->bytes, copy->module, declared->name) == hipSuccess &&
           (!initial || find_initial(copy, declared->name, &variable->initial));
}

static bool write_device(void *to, const void *from, size_t bytes)
{
    return tool_copies(to, from, bytes, COPY_TO_DEVICE) == hipSuccess;
}

static bool read_device(void *to, const void *from, size_t bytes)
{
    return tool_copies(to, from, bytes, COPY_TO_HOST) == hipSuccess;
}

static bool set(void *to, const uint32_t *words, size_t count, void *stream)
{
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = REAL(hipMemsetD32Async)((uint32_t *)to + i, (int)words[i], 1, stream) == hipSuccess;
    return good;
}

static bool reset(const struct tool_variable *variable, void *stream)
{
    hipError_t error = variable->initial
        ? REAL(hipMemcpyAsync)(variable->address, variable->initial, variable->bytes, COPY_ON_DEVICE, stream)
        : REAL(hipMemsetAsync)(variable->address, 0, variable->bytes, stream);
    return error == hipSuccess;
}

/* The device is the current one, as it is wherever a copy is loaded. */
static void *device_memory(int device, size_t bytes)
{
    void *memory = NULL;
    (void)device;
    return REAL(hipMalloc)(&memory, bytes) == hipSuccess ? memory : NULL;
}

static void *shared_memory(int device, size_t bytes)
{
    void *memory = NULL;
    (void)device;
    return REAL(hipHostMalloc)(&memory, bytes, PORTABLE | MAPPED | COHERENT) == hipSuccess ? memory : NULL;
}

static void *buffer(int device, size_t bytes)
{
    (void)device;
    return malloc(bytes + 1);
}

static void free_device(void *memory) { REAL(hipFree)(memory); }
static void free_shared(void *memory) { REAL(hipHostFree)(memory); }

__attribute__((constructor)) static void drive(void)
{
    static const struct driver hip = {
        .describe = describe, .find = find, .write = write_device, .read = read_device, .set = set, .reset = reset,
        .allocate = sized_allocate, .release = sized_release, .table = allocations_table, .buffer = buffer, .free_buffer = free,
        .device = device_memory, .shared = shared_memory, .free_device = free_device, .free_shared = free_shared,
        .counted = told_waited};
    drive_by(&hip);
}
