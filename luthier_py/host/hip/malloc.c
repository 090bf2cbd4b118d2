/* Memory as programs ask for it, and give it back. */
#include <stdlib.h>

#include "device.h"
#include "memory.h"

enum { PITCH = 256 };

hipError_t hipMalloc(void **address, size_t bytes) { return memory_allocate(address, bytes, KIND_DEVICE, 0, NULL); }

hipError_t hipExtMallocWithFlags(void **address, size_t bytes, unsigned flags)
{
    enum { SIGNAL_MEMORY = 2, SIGNAL_BYTES = 8 };
    if (flags == SIGNAL_MEMORY && bytes != SIGNAL_BYTES)
        return hipErrorInvalidValue;
    return memory_allocate(address, bytes, KIND_DEVICE, flags, NULL);
}

hipError_t hipMallocManaged(void **address, size_t bytes, unsigned flags)
{
    return bytes ? memory_allocate(address, bytes, KIND_MANAGED, flags, NULL) : hipErrorInvalidValue;
}

hipError_t hipHostMalloc(void **address, size_t bytes, unsigned flags)
{
    static const unsigned COHERENCE = 0xc0000000; /* coherent and not coherent: one of them */
    if ((flags & COHERENCE) == COHERENCE)
        return hipErrorInvalidValue;
    return memory_allocate(address, bytes, KIND_HOST, flags, NULL);
}

hipError_t hipHostAlloc(void **address, size_t bytes, unsigned flags)
{
    enum { PORTABLE_MAPPED_COMBINED = 7 };
    return ABI_MAJOR > 6 && flags > PORTABLE_MAPPED_COMBINED ? hipErrorInvalidValue : hipHostMalloc(address, bytes, flags);
}

hipError_t hipMallocHost(void **address, size_t bytes) { return hipHostMalloc(address, bytes, 0); }

hipError_t hipMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    size_t all;
    if (width > SIZE_MAX - PITCH || __builtin_mul_overflow(width + PITCH, height, &all))
        return hipErrorOutOfMemory;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return hipMalloc(address, *pitch * height);
}

hipError_t hipMemAllocPitch(void **address, size_t *pitch, size_t width, size_t height, unsigned element_bytes)
{
    if (!width || !height || (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
        return hipErrorInvalidValue;
    return hipMallocPitch(address, pitch, width, height);
}

hipError_t hipMalloc3D(struct pitched *pitched, struct extent extent)
{
    size_t rows;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
        return hipErrorOutOfMemory;
    pitched->width = extent.width;
    pitched->height = extent.height;
    return hipMallocPitch(&pitched->address, &pitched->pitch, extent.width, rows);
}

hipError_t hipFree(void *address)
{
    hipError_t error;
    return graph_memory_free(address, NULL, &error) ? error : memory_free(address);
}

hipError_t hipHostFree(void *address) { return memory_free(address); }

hipError_t hipHostGetDevicePointer(void **device_address, void *host_address, unsigned flags)
{
    struct allocation found;
    (void)flags;
    if (!memory_find(host_address, &found) || found.kind == KIND_DEVICE)
        return hipErrorInvalidValue;
    *device_address = (char *)host_address + (found.host ? found.address - found.host : 0);
    return hipSuccess;
}

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    int device = device_current();
    if (free_bytes)
        *free_bytes = memory_left(device);
    if (total_bytes)
        *total_bytes = device_facts(device)->memory_bytes;
    return hipSuccess;
}

void memory_reset(int device)
{
    void **all;
    size_t count = memory_of(device, &all);
    for (size_t i = 0; i < count; i++)
        hipFree(all[i]);
    free(all);
}
