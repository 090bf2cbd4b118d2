/* Memory pools: blocks that are cached when they are freed, and allocated again to streams that may use them.
 *
 * A free block records the work after which no stream uses it. The stream of that work may have it at once, others if
 * their next work comes after that one, or if it is done; the program's attributes say which of these count. A block is
 * given for exactly the bytes that it has, so an access beyond what was requested is found. What is above the threshold
 * goes back to the device when a thread has waited for a stream. A pool that was destroyed stays until its last block
 * is back.
 */
#include <stdlib.h>
#include <string.h>

#include "captures.h"
#include "checks.h"
#include "pools.h"
#include "streams.h"

static struct pool own[MAX_DEVICES];       /* of each device */
static struct pool *chosen[MAX_DEVICES];   /* instead of it */

static struct pool *own_pool(int device)
{
    pthread_mutex_lock(&pooling);
    if (!handle_is(&own[device], HANDLE_POOL) && handle_add(&own[device], HANDLE_POOL))
        pool_begin(&own[device], device);
    pthread_mutex_unlock(&pooling);
    return &own[device];
}

static struct pool *pool_of(int device) { return chosen[device] ? chosen[device] : own_pool(device); }

hipError_t hipDeviceGetDefaultMemPool(struct pool **pool, int device)
{
    *pool = own_pool(device);
    return hipSuccess;
}

hipError_t hipDeviceGetMemPool(struct pool **pool, int device)
{
    *pool = pool_of(device);
    return hipSuccess;
}

hipError_t hipDeviceSetMemPool(int device, struct pool *pool)
{
    if (pool->device != device || pool->imported)
        return pool->imported ? hipErrorInvalidValue : hipErrorInvalidDevice;
    chosen[device] = pool;
    return hipSuccess;
}

hipError_t hipMemPoolCreate(struct pool **pool, const struct pool_properties *properties)
{
    enum { PINNED = 1, ON_DEVICE = 1 };
    if (properties->allocation_type != PINNED || properties->location.type != ON_DEVICE)
        return hipErrorInvalidValue;
    hipError_t error = device_check(properties->location.id);
    if (!error && properties->handle_types & ~FILE_DESCRIPTOR)
        error = hipErrorNotSupported;
    if (error)
        return error;
    struct pool with = {.device = properties->location.id, .handle_types = properties->handle_types, .most = properties->most};
    *pool = pool_add(with);
    return *pool ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipMemPoolDestroy(struct pool *pool)
{
    if ((pool >= own && pool < own + MAX_DEVICES) || !handle_remove(pool, HANDLE_POOL))
        return hipErrorInvalidValue;
    pthread_mutex_lock(&pooling);
    for (int i = 0; i < MAX_DEVICES; i++)
        if (chosen[i] == pool)
            chosen[i] = NULL;
    pool->destroyed = true;
    pools_settle_all();
    pthread_mutex_unlock(&pooling);
    return hipSuccess;
}

hipError_t hipMemPoolTrimTo(struct pool *pool, size_t bytes)
{
    pthread_mutex_lock(&pooling);
    pool_give_back(pool, bytes);
    pthread_mutex_unlock(&pooling);
    return hipSuccess;
}

hipError_t hipMemPoolSetAttribute(struct pool *pool, int attribute, const void *value)
{
    uint64_t wide = 0;
    memcpy(&wide, value, attribute <= ALLOW_DEPENDENCIES ? sizeof(int) : sizeof wide);
    if (attribute == RESERVED_NOW || attribute == USED_NOW || ((attribute == RESERVED_HIGH || attribute == USED_HIGH) && wide))
        return hipErrorInvalidValue; /* these are counted; the highest may only be set back */
    pthread_mutex_lock(&pooling);
    pool->attributes[attribute] = wide;
    pthread_mutex_unlock(&pooling);
    return hipSuccess;
}

hipError_t hipMemPoolGetAttribute(struct pool *pool, int attribute, void *value)
{
    pthread_mutex_lock(&pooling);
    memcpy(value, &pool->attributes[attribute], attribute <= ALLOW_DEPENDENCIES ? sizeof(int) : sizeof(uint64_t));
    pthread_mutex_unlock(&pooling);
    return hipSuccess;
}

static hipError_t check_access(const struct pool *pool, const struct access *access)
{
    bool known = access->flags == NO_ACCESS || access->flags == READ_ONLY || access->flags == READ_WRITE;
    if (access->location.type != ON_DEVICE || !known)
        return hipErrorInvalidValue;
    hipError_t error = device_check(access->location.id);
    if (error || access->location.id != pool->device)
        return error;
    static const hipError_t OWN[] = {
        [NO_ACCESS] = hipErrorInvalidDevice, [READ_ONLY] = hipErrorNotSupported, [READ_WRITE] = hipSuccess};
    return OWN[access->flags];
}

/* It is remembered; all devices see all memory, always. */
hipError_t hipMemPoolSetAccess(struct pool *pool, const struct access *access, size_t number)
{
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < number && !error; i++) {
        error = check_access(pool, &access[i]);
        for (size_t k = 0; k < i && !error; k++)
            error = access[k].location.id == access[i].location.id ? hipErrorInvalidValue : hipSuccess;
    }
    for (size_t i = 0; i < number && !error; i++)
        pool->access[access[i].location.id] = access[i].flags;
    return error;
}

hipError_t hipMemPoolGetAccess(int *flags, struct pool *pool, const struct location *location)
{
    if (location->type != ON_DEVICE || device_check(location->id) != hipSuccess)
        return hipErrorInvalidValue;
    *flags = pool->access[location->id];
    return hipSuccess;
}

static bool fits(struct pool *pool, size_t bytes)
{
    uint64_t reserved = pool->attributes[RESERVED_NOW];
    return !pool->most || (reserved <= pool->most && bytes <= pool->most - reserved);
}

/* A new block; cached ones are freed to make room. */
static hipError_t grow(struct pool *pool, size_t bytes, struct allocation *memory)
{
    pthread_mutex_lock(&pooling);
    bool room = fits(pool, bytes) || (pool_give_back(pool, 0) && fits(pool, bytes));
    if (room)
        pool_count(pool, RESERVED_NOW, (int64_t)bytes);
    pthread_mutex_unlock(&pooling);
    *memory = (struct allocation){.bytes = bytes, .kind = KIND_DEVICE, .device = pool->device, .pool = pool};
    hipError_t error = room ? memory_make(memory) : hipErrorOutOfMemory;
    if (room && error) {
        pthread_mutex_lock(&pooling);
        pool_count(pool, RESERVED_NOW, -(int64_t)bytes);
        pthread_mutex_unlock(&pooling);
    }
    return error;
}

static struct block *find_block(struct pool *pool, size_t bytes, const struct stream *stream, bool any)
{
    pthread_mutex_lock(&pooling);
    struct block *block = pool_take_block(pool, bytes, stream, any);
    pthread_mutex_unlock(&pooling);
    return block;
}

/* For one cached for other streams the stream waits, as the last resort: that delays the program. */
static hipError_t obtain(struct pool *pool, size_t bytes, struct stream *stream, struct allocation *memory)
{
    struct operation nothing = {.kind = OPERATION_NOTHING};
    struct block *block = find_block(pool, bytes, stream, false);
    hipError_t error = block ? hipSuccess : grow(pool, bytes, memory);
    if (error == hipErrorOutOfMemory && pool->attributes[ALLOW_DEPENDENCIES]) {
        block = find_block(pool, bytes, stream, true);
        error = block ? work_put(stream, &nothing, block->freed, false, NULL) : error;
    }
    if (!block)
        return error;
    *memory = block->memory;
    work_exchange(&block->freed, NULL);
    free(block);
    return error;
}

hipError_t hipMallocFromPoolAsync(void **address, size_t bytes, struct pool *pool, stream_t stream)
{
    struct stream *own = stream_of(stream);
    struct allocation memory;
    if (own->capture && bytes)
        return capture_allocation(own, bytes, address);
    *address = NULL;
    if (pool->imported || !bytes)
        return bytes ? hipErrorInvalidValue : hipSuccess;
    hipError_t error = obtain(pool, bytes, own, &memory);
    if (error)
        return error;
    pthread_mutex_lock(&pooling);
    pool_count(pool, USED_NOW, (int64_t)bytes);
    pthread_mutex_unlock(&pooling);
    if (!memory_add(memory)) {
        pool_take_back(memory, NULL);
        return hipErrorOutOfMemory;
    }
    *address = (void *)memory.address;
    return hipSuccess;
}

hipError_t hipMallocAsync(void **address, size_t bytes, stream_t stream)
{
    return hipMallocFromPoolAsync(address, bytes, pool_of(stream_device(stream)), stream);
}

/* It is free as soon as what is on the stream now is done, and known as such from now on. */
static hipError_t free_to_pool(void *address, struct stream *stream)
{
    struct allocation memory;
    struct work *freed = NULL;
    hipError_t error = work_put(stream, &(struct operation){.kind = OPERATION_NOTHING}, NULL, false, &freed);
    if (!error && memory_take(address, false, &memory)) {
        pool_take_back(memory, freed);
        return hipSuccess;
    }
    work_exchange(&freed, NULL);
    return error ? error : hipErrorInvalidValue;
}

hipError_t hipFreeAsync(void *address, stream_t stream)
{
    struct operation operation = {OPERATION_FREE, .free = {memory_release, address}};
    struct stream *of = stream_of(stream);
    struct allocation found;
    hipError_t error = hipSuccess;
    if (of->capture && address)
        return capture_release(of, address);
    if (!address || graph_memory_free(address, of, &error))
        return error;
    if (memory_find(address, &found) && found.pool && found.kind == KIND_DEVICE)
        return free_to_pool(address, of);
    if (!memory_mark_leaving(address, true))
        return hipErrorInvalidValue;
    error = perform(stream, &operation);
    if (error)
        memory_mark_leaving(address, false);
    return error;
}
