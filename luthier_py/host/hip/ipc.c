/* Memory and pools as programs share them: handles for them, and what is behind handles. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pools.h"
#include "streams.h"

/* Memory of the device alone: what is the host's can be shared by itself. */
hipError_t hipIpcGetMemHandle(struct memory_handle *handle, void *address)
{
    struct allocation found;
    if (!memory_find(address, &found) || found.kind != KIND_DEVICE)
        return hipErrorInvalidValue;
    return handle_make(handle, found.address, found.bytes, (uintptr_t)address - found.address, found.id);
}

hipError_t hipIpcOpenMemHandle(void **address, struct memory_handle handle, unsigned flags)
{
    (void)flags;
    if (handle_is_event(&handle))
        return hipErrorInvalidValue;
    return handle_is_own(&handle) ? hipErrorInvalidContext : opened_open(&handle, NULL, address);
}

hipError_t hipIpcCloseMemHandle(void *address)
{
    struct allocation found;
    if (!memory_find(address, &found) || found.kind != KIND_OPENED || found.pool)
        return hipErrorInvalidValue;
    hipError_t error = streams_wait(-1);
    return error ? error : opened_close(found.address);
}

/* Pools: a descriptor names the pool, and what is exported of it is opened one by one. */

static const uint64_t MARK = 0x316c6f6f70687475;

hipError_t hipMemPoolExportToShareableHandle(void *shared, struct pool *pool, int type, unsigned flags)
{
    (void)flags;
    if (type != FILE_DESCRIPTOR || pool->handle_types != type)
        return hipErrorInvalidValue;
    int file = memfd_create("luthier-pool", 0); /* the program's own, and that of what it starts */
    if (file < 0)
        return hipErrorOutOfMemory;
    if (write(file, &MARK, sizeof MARK) != sizeof MARK) {
        close(file);
        return hipErrorOutOfMemory;
    }
    memcpy(shared, &file, sizeof file);
    return hipSuccess;
}

hipError_t hipMemPoolImportFromShareableHandle(struct pool **pool, void *shared, int type, unsigned flags)
{
    uint64_t mark = 0;
    (void)type, (void)flags;
    if (pread((int)(intptr_t)shared, &mark, sizeof mark, 0) != sizeof mark || mark != MARK)
        return hipErrorInvalidValue;
    *pool = pool_add((struct pool){.device = device_current(), .imported = true});
    return *pool ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipMemPoolExportPointer(struct memory_handle *exported, void *address)
{
    struct allocation found;
    bool good = memory_find(address, &found) && found.kind == KIND_DEVICE && found.pool && found.pool->handle_types;
    if (!good)
        return hipErrorInvalidValue;
    return handle_make(exported, found.address, found.bytes, (uintptr_t)address - found.address, found.id);
}

hipError_t hipMemPoolImportPointer(void **address, struct pool *pool, const struct memory_handle *exported)
{
    return pool->imported ? opened_open(exported, pool, address) : hipErrorInvalidValue;
}
