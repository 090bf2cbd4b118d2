/* Device, host and managed memory: all of it in the arena, so that every address is good on both sides. */
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

enum { PITCH = 256 };
enum { TYPE_HOST = ABI_MAJOR > 5 ? 1 : 0, TYPE_DEVICE = ABI_MAJOR > 5 ? 2 : 1, TYPE_MANAGED = ABI_MAJOR > 5 ? 3 : 1 };

static struct allocation *table; /* by address */
static size_t table_count, table_room;
static size_t used[MAX_DEVICES]; /* of each device's own memory */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Index of the first allocation that begins after `address`. */
static size_t after(uintptr_t address)
{
    size_t low = 0, high = table_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What hipMemGetInfo counts; all else is the host's. */
static bool on_device(enum kind kind) { return kind == KIND_DEVICE || kind == KIND_VARIABLE; }

/* Whether a device has room for this much more, which is taken. */
static bool take_room(int device, size_t bytes)
{
    pthread_mutex_lock(&lock);
    uint64_t total = device_facts(device)->memory_bytes;
    bool room = !bytes || (used[device] <= total && bytes <= total - used[device]);
    used[device] += room ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return room;
}

static void give_room(int device, size_t bytes)
{
    pthread_mutex_lock(&lock);
    used[device] -= bytes;
    pthread_mutex_unlock(&lock);
}

void memory_add(struct allocation allocation)
{
    pthread_mutex_lock(&lock);
    if (allocation.kind == KIND_VARIABLE)
        used[allocation.device] += allocation.bytes;
    if (table_count == table_room) {
        size_t room = table_room ? 2 * table_room : 64;
        struct allocation *larger = realloc(table, room * sizeof *table);
        if (!larger) {
            pthread_mutex_unlock(&lock);
            return;
        }
        table = larger;
        table_room = room;
    }
    size_t place = after(allocation.address);
    memmove(table + place + 1, table + place, (table_count - place) * sizeof *table);
    table[place] = allocation;
    table_count++;
    pthread_mutex_unlock(&lock);
}

bool memory_remove(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    size_t place = after(address);
    bool found = place > 0 && table[place - 1].address == address;
    if (found) {
        if (on_device(table[place - 1].kind))
            used[table[place - 1].device] -= table[place - 1].bytes;
        memmove(table + place - 1, table + place, (table_count - place) * sizeof *table);
        table_count--;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* A child has none of it. */
void memory_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    table_count = 0;
    memset(used, 0, sizeof used);
}

/* What is left of a pool that is destroyed belongs to none. */
void memory_leave(const struct pool *pool)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < table_count; i++)
        if (table[i].pool == pool)
            table[i].pool = NULL;
    pthread_mutex_unlock(&lock);
}

/* What is about to be freed counts for its pool no longer. */
void memory_leave_pool(const void *address)
{
    struct pool *pool = NULL;
    size_t bytes = 0;
    pthread_mutex_lock(&lock);
    size_t place = after((uintptr_t)address);
    if (place > 0 && table[place - 1].address == (uintptr_t)address) {
        pool = table[place - 1].pool;
        bytes = table[place - 1].bytes;
        table[place - 1].pool = NULL;
    }
    pthread_mutex_unlock(&lock);
    pool_count(pool, -(int64_t)bytes);
}

bool memory_find(const void *address, struct allocation *found)
{
    uintptr_t host = 0, device = in_arena(address) ? (uintptr_t)address : pinned_device(address, &host);
    pthread_mutex_lock(&lock);
    size_t place = after(device);
    bool inside = place > 0 && device - table[place - 1].address < table[place - 1].bytes;
    if (inside) {
        *found = table[place - 1];
        found->host = host;
    }
    pthread_mutex_unlock(&lock);
    return inside;
}

bool memory_known(const void *address, size_t bytes)
{
    struct allocation found;
    if (!memory_find(address, &found))
        return false;
    uintptr_t start = found.host ? found.host : found.address;
    return bytes <= found.bytes - ((uintptr_t)address - start);
}

bool memory_valid(const void *address, size_t bytes) { return in_arena(address) ? memory_known(address, bytes) : address || !bytes; }

hipError_t memory_allocate(void **address, size_t bytes, enum kind kind, unsigned flags, struct pool *pool)
{
    *address = NULL;
    hipError_t error = device_ready();
    if (error || bytes == 0)
        return error;
    uint64_t place;
    int device = device_current();
    size_t own = on_device(kind) ? bytes : 0;
    if (!take_room(device, own))
        return hipErrorOutOfMemory;
    error = device_ask(MESSAGE_ALLOCATE, &(uint64_t){bytes}, 1, &place);
    if (error) {
        give_room(device, own);
        return error;
    }
    *address = (void *)(uintptr_t)place;
    memory_add((struct allocation){place, bytes, kind, flags, device, pool, 0});
    pool_count(pool, (int64_t)bytes);
    return hipSuccess;
}

/* Whether an address is that of memory that can be freed. */
static bool find_whole(const void *address, struct allocation *found)
{
    return memory_find(address, found) && found->address == (uintptr_t)address && found->kind <= KIND_MANAGED;
}

hipError_t memory_release(void *address)
{
    struct allocation found;
    if (!find_whole(address, &found) || !memory_remove(found.address))
        return hipErrorInvalidValue;
    pool_count(found.pool, -(int64_t)found.bytes);
    return device_ask(MESSAGE_FREE, &(uint64_t){found.address}, 1, NULL);
}

hipError_t memory_free(void *address)
{
    struct allocation found;
    hipError_t error = device_ready();
    if (error || !address)
        return error;
    if (!find_whole(address, &found))
        return hipErrorInvalidValue;
    error = streams_wait(-1);
    hipError_t freed = memory_release(address);
    return error ? error : freed;
}

hipError_t hipMalloc(void **address, size_t bytes) { return memory_allocate(address, bytes, KIND_DEVICE, 0, NULL); }

hipError_t hipExtMallocWithFlags(void **address, size_t bytes, unsigned flags)
{
    return memory_allocate(address, bytes, KIND_DEVICE, flags, NULL);
}

hipError_t hipMallocManaged(void **address, size_t bytes, unsigned flags)
{
    return memory_allocate(address, bytes, KIND_MANAGED, flags, NULL);
}

hipError_t hipHostMalloc(void **address, size_t bytes, unsigned flags)
{
    return memory_allocate(address, bytes, KIND_HOST, flags, NULL);
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
    (void)element_bytes;
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
    return graph_memory_free(address, &error) ? error : memory_free(address);
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

hipError_t hipHostGetFlags(unsigned *flags, void *address)
{
    struct allocation found;
    if (!memory_find(address, &found) || (found.kind != KIND_HOST && found.kind != KIND_PINNED))
        return hipErrorInvalidValue;
    *flags = found.flags;
    return hipSuccess;
}

hipError_t hipPointerGetAttributes(struct pointer_attributes *attributes, const void *address)
{
    struct allocation found;
    memset(attributes, 0, sizeof *attributes);
    if (!memory_find(address, &found)) {
        attributes->device = ABI_MAJOR > 5 ? -2 : 0;
        return ABI_MAJOR > 5 && address ? hipSuccess : hipErrorInvalidValue;
    }
    bool device = on_device(found.kind);
    attributes->type = device ? TYPE_DEVICE : found.kind == KIND_MANAGED ? TYPE_MANAGED : TYPE_HOST;
    attributes->device_address = (char *)address + (found.host ? found.address - found.host : 0);
    attributes->host_address = device ? NULL : (void *)address;
    attributes->device = found.device;
    attributes->managed = found.kind == KIND_MANAGED;
    attributes->flags = found.flags;
    return hipSuccess;
}

hipError_t hipPointerGetAttribute(void *data, int attribute, void *address)
{
    enum { MEMORY_TYPE = 2, DEVICE_POINTER, HOST_POINTER, IS_MANAGED = 8, ORDINAL, RANGE_START = 11, RANGE_SIZE };
    struct pointer_attributes all;
    struct allocation found;
    if (!memory_find(address, &found))
        return hipErrorInvalidValue;
    hipPointerGetAttributes(&all, address);
    switch (attribute) {
    case MEMORY_TYPE: memcpy(data, &all.type, sizeof all.type); return hipSuccess;
    case DEVICE_POINTER: memcpy(data, &all.device_address, sizeof(void *)); return hipSuccess;
    case HOST_POINTER: memcpy(data, &all.host_address, sizeof(void *)); return hipSuccess;
    case IS_MANAGED: memcpy(data, &(bool){all.managed}, sizeof(bool)); return hipSuccess;
    case ORDINAL: memcpy(data, &all.device, sizeof all.device); return hipSuccess;
    case RANGE_START: memcpy(data, found.host ? &found.host : &found.address, sizeof found.address); return hipSuccess;
    case RANGE_SIZE: memcpy(data, &found.bytes, sizeof found.bytes); return hipSuccess;
    default: return hipErrorInvalidValue;
    }
}

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    int device = device_current();
    pthread_mutex_lock(&lock);
    *total_bytes = device_facts(device)->memory_bytes;
    *free_bytes = used[device] < *total_bytes ? *total_bytes - used[device] : 0;
    pthread_mutex_unlock(&lock);
    return hipSuccess;
}

hipError_t hipMemPtrGetInfo(void *address, size_t *bytes)
{
    void *base;
    return hipMemGetAddressRange(&base, bytes, address);
}

hipError_t hipMemGetAddressRange(void **base, size_t *bytes, void *address)
{
    struct allocation found;
    if (!memory_find(address, &found))
        return hipErrorInvalidValue;
    *base = (void *)(found.host ? found.host : found.address);
    *bytes = found.bytes;
    return hipSuccess;
}

hipError_t hipMemPrefetchAsync(const void *address, size_t bytes, int device, stream_t stream)
{
    (void)device, (void)stream;
    return memory_valid(address, bytes) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipMemAdvise(const void *address, size_t bytes, int advice, int device)
{
    (void)advice, (void)device;
    return memory_valid(address, bytes) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipStreamAttachMemAsync(stream_t stream, void *address, size_t bytes, unsigned flags)
{
    (void)stream, (void)flags;
    return memory_known(address, bytes) ? hipSuccess : hipErrorInvalidValue;
}
