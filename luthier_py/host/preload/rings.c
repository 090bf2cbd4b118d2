/* Memory of channels at the level of HIP. */
#include "channels.h"
#include "preloaded.h"

enum { PORTABLE = 1, MAPPED = 2, COHERENT = 0x40000000 }; /* of hipHostMalloc */

/* The device is the current one. */
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

static bool write_device(void *to, const void *from, size_t bytes)
{
    return tool_copies(to, from, bytes, COPY_TO_DEVICE) == hipSuccess;
}

static bool read_device(void *to, const void *from, size_t bytes)
{
    return tool_copies(to, from, bytes, COPY_TO_HOST) == hipSuccess;
}

static void free_device(void *memory) { REAL(hipFree)(memory); }
static void free_shared(void *memory) { REAL(hipHostFree)(memory); }

void *ring_head(const struct declared *about, int device)
{
    static const struct channel_memory memory = {device_memory, shared_memory, write_device, read_device, free_device,
                                                 free_shared};
    return channel_head(about, device, &memory);
}
