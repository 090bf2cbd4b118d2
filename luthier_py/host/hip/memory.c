/* Device, host and managed memory: all of it in the arena, so that every address is good on both sides. */
#include "device.h"
#include "memory.h"
#include "streams.h"

/* What pools keep is given back before there is too little. */
hipError_t memory_make(struct allocation *wanted)
{
    hipError_t error = memory_try(wanted);
    return error == hipErrorOutOfMemory && pools_give_back() ? memory_try(wanted) : error;
}

hipError_t memory_allocate(void **address, size_t bytes, enum kind kind, unsigned flags, struct pool *pool)
{
    struct allocation wanted = {.bytes = bytes, .kind = kind, .flags = flags, .pool = pool};
    *address = NULL;
    hipError_t error = device_ready();
    if (error || bytes == 0)
        return error;
    wanted.device = device_current();
    error = memory_make(&wanted);
    if (error)
        return error;
    if (!memory_add(wanted)) {
        memory_unmake(wanted);
        return hipErrorOutOfMemory;
    }
    *address = (void *)wanted.address;
    return hipSuccess;
}

static hipError_t let_go(struct allocation memory)
{
    if (memory.kind == KIND_MANAGED)
        ranges_forget(memory.address, memory.bytes);
    if (memory.kind == KIND_OPENED)
        return opened_close(memory.address);
    if (!memory.pool)
        return memory_unmake(memory);
    pool_take_back(memory, NULL);
    return hipSuccess;
}

hipError_t memory_release(void *address)
{
    struct allocation memory;
    return memory_take(address, true, &memory) ? let_go(memory) : hipErrorInvalidValue;
}

/* Nobody else can free it from the first moment on; what runs may still use it. */
hipError_t memory_free(void *address)
{
    hipError_t error = device_ready();
    if (error || !address)
        return error;
    if (!memory_mark_leaving(address, true))
        return hipErrorInvalidValue;
    error = streams_wait(-1);
    hipError_t freed = memory_release(address);
    pools_settle();
    return error ? error : freed;
}
