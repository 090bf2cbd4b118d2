/* Memory as programs share it: handles for it, and memory behind handles. */
#include "luthier.h"

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
