/* Memory pools: allocation in stream order, by waiting for the stream; what an application asks of a pool is counted. */
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

enum attribute { /* hipMemPoolAttr: the first three are int, the others uint64_t */
    REUSE_FIRST = 1, REUSE_LAST = 3, RELEASE_THRESHOLD, RESERVED_NOW, RESERVED_HIGH, USED_NOW, USED_HIGH, ATTRIBUTES
};

struct pool { bool ready; uint64_t attributes[ATTRIBUTES]; };
struct pool_properties { int allocation_type, handle_types, location_type, device; void *security; size_t most; };
struct access { int location_type, device, flags; };

enum { READ_WRITE = 3 };

static struct pool own[MAX_DEVICES];       /* of each device */
static struct pool *chosen[MAX_DEVICES];   /* instead of it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void move(struct pool *pool, enum attribute now, int64_t bytes)
{
    pool->attributes[now] += (uint64_t)bytes;
    if (pool->attributes[now] > pool->attributes[now + 1])
        pool->attributes[now + 1] = pool->attributes[now];
}

void pool_count(struct pool *pool, int64_t bytes)
{
    if (!pool)
        return;
    pthread_mutex_lock(&lock);
    move(pool, USED_NOW, bytes);
    move(pool, RESERVED_NOW, bytes); /* nothing is kept for later */
    pthread_mutex_unlock(&lock);
}

static struct pool *prepared(struct pool *pool)
{
    pthread_mutex_lock(&lock);
    for (int i = REUSE_FIRST; !pool->ready && i <= REUSE_LAST; i++)
        pool->attributes[i] = 1;
    if (!pool->ready)
        handle_add(pool, HANDLE_POOL);
    pool->ready = true;
    pthread_mutex_unlock(&lock);
    return pool;
}

static struct pool *pool_of(int device) { return chosen[device] ? chosen[device] : prepared(&own[device]); }

static bool is_own(const struct pool *pool) { return pool >= own && pool < own + MAX_DEVICES; }

hipError_t hipDeviceGetDefaultMemPool(struct pool **pool, int device)
{
    *pool = prepared(&own[device]);
    return hipSuccess;
}

hipError_t hipDeviceGetMemPool(struct pool **pool, int device)
{
    *pool = pool_of(device);
    return hipSuccess;
}

hipError_t hipDeviceSetMemPool(int device, struct pool *pool)
{
    chosen[device] = pool;
    return hipSuccess;
}

hipError_t hipMemPoolCreate(struct pool **pool, const struct pool_properties *properties)
{
    enum { PINNED = 1, ON_DEVICE = 1 };
    if (properties->allocation_type != PINNED || properties->location_type != ON_DEVICE)
        return hipErrorInvalidValue;
    hipError_t error = device_check(properties->device);
    if (error || properties->handle_types) /* pools that other processes see */
        return error ? error : hipErrorNotSupported;
    struct pool *made = calloc(1, sizeof *made);
    if (!made || !handle_add(made, HANDLE_POOL)) {
        free(made);
        return hipErrorOutOfMemory;
    }
    *pool = prepared(made);
    return hipSuccess;
}

hipError_t hipMemPoolDestroy(struct pool *pool)
{
    if (is_own(pool) || !handle_remove(pool, HANDLE_POOL))
        return hipErrorInvalidValue;
    for (int i = 0; i < MAX_DEVICES; i++)
        if (chosen[i] == pool)
            chosen[i] = NULL;
    memory_leave(pool);
    free(pool);
    return hipSuccess;
}

hipError_t hipMemPoolTrimTo(struct pool *pool, size_t bytes) { return (void)pool, (void)bytes, hipSuccess; }

hipError_t hipMemPoolSetAttribute(struct pool *pool, int attribute, const void *value)
{
    uint64_t wide = 0;
    memcpy(&wide, value, attribute <= REUSE_LAST ? sizeof(int) : sizeof wide);
    if (attribute == RESERVED_NOW || attribute == USED_NOW || ((attribute == RESERVED_HIGH || attribute == USED_HIGH) && wide))
        return hipErrorInvalidValue; /* these are counted; the highest may only be set back */
    pthread_mutex_lock(&lock);
    pool->attributes[attribute] = attribute > RELEASE_THRESHOLD ? pool->attributes[attribute - 1] : wide;
    pthread_mutex_unlock(&lock);
    return hipSuccess;
}

hipError_t hipMemPoolGetAttribute(struct pool *pool, int attribute, void *value)
{
    pthread_mutex_lock(&lock);
    memcpy(value, &pool->attributes[attribute], attribute <= REUSE_LAST ? sizeof(int) : sizeof(uint64_t));
    pthread_mutex_unlock(&lock);
    return hipSuccess;
}

/* All devices see all memory, always. */
hipError_t hipMemPoolSetAccess(struct pool *pool, const struct access *access, size_t count)
{
    bool good = access || !count;
    (void)pool;
    for (size_t i = 0; good && i < count; i++)
        good = access[i].flags == READ_WRITE;
    return good ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipMemPoolGetAccess(int *flags, struct pool *pool, const void *location)
{
    (void)pool, (void)location;
    *flags = READ_WRITE;
    return hipSuccess;
}

hipError_t hipMallocFromPoolAsync(void **address, size_t bytes, struct pool *pool, stream_t stream)
{
    struct stream *own = stream_of(stream);
    return own->capture && bytes ? capture_allocation(own, bytes, address) : memory_allocate(address, bytes, KIND_DEVICE, 0, pool);
}

hipError_t hipMallocAsync(void **address, size_t bytes, stream_t stream)
{
    return hipMallocFromPoolAsync(address, bytes, pool_of(stream_device(stream)), stream);
}

hipError_t hipFreeAsync(void *address, stream_t stream)
{
    struct operation operation = {OPERATION_FREE, .free = {address}};
    hipError_t error;
    if (stream_of(stream)->capture)
        return capture_release(stream_of(stream), address);
    if (graph_memory_free(address, &error))
        return error;
    if (!memory_known(address, 1))
        return hipErrorInvalidValue;
    memory_leave_pool(address);
    return perform(stream, &operation);
}
