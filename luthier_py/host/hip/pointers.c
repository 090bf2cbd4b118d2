/* What addresses say of the allocations that they are in. */
#include <string.h>

#include "checks.h"
#include "memory.h"

enum { TYPE_HOST = ABI_MAJOR > 5 ? 1 : 0, TYPE_DEVICE = ABI_MAJOR > 5 ? 2 : 1, TYPE_MANAGED = ABI_MAJOR > 5 ? 3 : 1 };
enum { NO_DEVICE = -2 };

hipError_t hipHostGetFlags(unsigned *flags, void *address)
{
    struct allocation found;
    if (!memory_find(address, &found) || (found.kind != KIND_HOST && found.kind != KIND_PINNED))
        return hipErrorInvalidValue;
    *flags = found.flags;
    return hipSuccess;
}

static struct pointer_attributes describe(const struct allocation *found, const void *address)
{
    bool device = memory_is_device(found->kind);
    return (struct pointer_attributes){
        .type = device ? TYPE_DEVICE : found->kind == KIND_MANAGED ? TYPE_MANAGED : TYPE_HOST,
        .device = found->device,
        .device_address = (char *)address + (found->host ? found->address - found->host : 0),
        .host_address = device ? NULL : (void *)address,
        .managed = found->kind == KIND_MANAGED,
        .flags = found->flags,
    };
}

hipError_t hipPointerGetAttributes(struct pointer_attributes *attributes, const void *address)
{
    struct allocation found;
    if (memory_find(address, &found)) {
        *attributes = describe(&found, address);
        return hipSuccess;
    }
    *attributes = (struct pointer_attributes){.device = ABI_MAJOR > 5 ? NO_DEVICE : 0};
    return ABI_MAJOR > (address ? 5 : 6) ? hipSuccess : hipErrorInvalidValue; /* HIP 7 takes null for host memory, too */
}

/* hipPointer_attribute. */
enum attribute {
    CONTEXT = 1, MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER, P2P_TOKENS, SYNCHRONOUS, BUFFER_ID, IS_MANAGED, ORDINAL,
    IS_IPC_CAPABLE, RANGE_START, RANGE_SIZE, MAPPED, HANDLE_TYPES, IS_RDMA_CAPABLE, ACCESS_FLAGS, POOL
};

/* The value of one that is supported, as many bytes as HIP has for it; 0: it is not. */
static size_t value_of(enum attribute attribute, const struct allocation *found, const struct pointer_attributes *all, void *value)
{
#define GIVE(type, ...) (memcpy(value, &(type){(type)(__VA_ARGS__)}, sizeof(type)), sizeof(type))
    switch (attribute) {
    case CONTEXT: return GIVE(void *, NULL);
    case MEMORY_TYPE: return GIVE(uint32_t, all->type);
    case DEVICE_POINTER: return GIVE(void *, all->device_address);
    case HOST_POINTER: return GIVE(void *, all->host_address);
    case SYNCHRONOUS: return GIVE(bool, found->synchronous);
    case BUFFER_ID: return GIVE(uint32_t, found->id);
    case IS_MANAGED: return GIVE(bool, all->managed);
    case ORDINAL: return GIVE(int, all->device);
    case RANGE_START: return GIVE(uintptr_t, found->host ? found->host : found->address);
    case RANGE_SIZE: return GIVE(uint32_t, found->bytes);
    case MAPPED: return GIVE(bool, found->bytes != 0);
    case ACCESS_FLAGS: return GIVE(uint32_t, found->flags);
    default: return 0;
    }
#undef GIVE
}

/* For memory that is not HIP's values are those of nothing. */
static hipError_t ask(void *data, int attribute, const void *address)
{
    struct allocation found = {0};
    struct pointer_attributes all = {.device = NO_DEVICE};
    bool known = memory_find(address, &found);
    if (known)
        all = describe(&found, address);
    uint64_t value = 0;
    size_t bytes = value_of((enum attribute)attribute, &found, &all, &value);
    if (!bytes)
        return between(attribute, CONTEXT, POOL) ? hipErrorNotSupported : hipErrorInvalidValue;
    if (known && attribute == CONTEXT)
        hipDevicePrimaryCtxRetain((void **)&value, found.device);
    memcpy(data, &value, bytes);
    bool good = attribute == ACCESS_FLAGS || (known && (attribute != HOST_POINTER || all.host_address));
    return good ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipPointerGetAttribute(void *data, int attribute, void *address) { return ask(data, attribute, address); }

hipError_t hipDrvPointerGetAttributes(unsigned count, int *attributes, void **data, void *address)
{
    for (unsigned i = 0; i < count; i++)
        if (data[i])
            ask(data[i], attributes[i], address);
    return count ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipPointerSetAttribute(const void *value, int attribute, void *address)
{
    unsigned on;
    memcpy(&on, value, sizeof on);
    if (attribute != SYNCHRONOUS || on > 1)
        return hipErrorInvalidValue;
    return memory_mark_synchronous(address, on) ? hipSuccess : hipErrorInvalidDevicePointer;
}

hipError_t hipMemGetAddressRange(void **base, size_t *bytes, void *address)
{
    struct allocation found;
    if (!memory_find(address, &found))
        return hipErrorNotFound;
    *base = (void *)(found.host ? found.host : found.address);
    *bytes = found.bytes;
    return hipSuccess;
}

hipError_t hipMemPtrGetInfo(void *address, size_t *bytes)
{
    void *base;
    if (!address) /* as hipMalloc gives it for no bytes */
        return *bytes = 0, hipSuccess;
    return hipMemGetAddressRange(&base, bytes, address) ? hipErrorInvalidValue : hipSuccess;
}
