/* Memory that pools keep: freed, and not given back to the device yet. See pools.c. */
#include <stdlib.h>

#include "checks.h"
#include "pools.h"
#include "streams.h"

static struct pool *pools;                 /* all of them */
static atomic_size_t kept;                 /* free blocks */
pthread_mutex_t pooling = PTHREAD_MUTEX_INITIALIZER;

void pools_after_fork(void)
{
    pthread_mutex_init(&pooling, NULL);
    pools = NULL;
    kept = 0;
}

/* The lock is held from here on. */

void pool_count(struct pool *pool, enum pool_attribute now, int64_t bytes)
{
    pool->attributes[now] += (uint64_t)bytes;
    if (pool->attributes[now] > pool->attributes[now + 1])
        pool->attributes[now + 1] = pool->attributes[now];
}

void pool_begin(struct pool *pool, int device)
{
    pool->device = device;
    pool->access[device] = READ_WRITE;
    for (int i = FOLLOW_EVENTS; i <= ALLOW_DEPENDENCIES; i++)
        pool->attributes[i] = 1;
    pool->next = pools;
    pools = pool;
}

static void give_back_block(struct pool *pool, struct block **place)
{
    struct block *block = *place;
    *place = block->next;
    pool_count(pool, RESERVED_NOW, -(int64_t)block->memory.bytes);
    memory_unmake(block->memory);
    work_exchange(&block->freed, NULL);
    free(block);
    kept--;
}

/* What is done, until the pool has no more than this. */
bool pool_give_back(struct pool *pool, uint64_t hold)
{
    bool any = false;
    for (struct block **place = &pool->free; *place && pool->attributes[RESERVED_NOW] > hold;)
        if (work_finished(&(*place)->freed)) {
            give_back_block(pool, place);
            any = true;
        } else
            place = &(*place)->next;
    return any;
}

/* A destroyed pool is freed when nothing of it is left. */
static void settle(struct pool **place)
{
    struct pool *pool = *place;
    pool_give_back(pool, pool->destroyed ? 0 : pool->attributes[THRESHOLD]);
    if (pool->destroyed && !pool->attributes[RESERVED_NOW]) {
        *place = pool->next;
        free(pool);
    }
}

void pools_settle_all(void)
{
    for (struct pool **place = &pools, *pool; (pool = *place);) {
        settle(place);
        if (*place == pool)
            place = &pool->next;
    }
}

static bool may_use(const struct pool *pool, const struct block *block, const struct stream *stream)
{
    return work_precedes(&block->freed, stream, pool->attributes[FOLLOW_EVENTS]) ||
           (pool->attributes[ALLOW_CHANCE] && work_finished(&block->freed));
}

/* A free block of this size, taken out; one that the stream would have to wait for if `any`. */
struct block *pool_take_block(struct pool *pool, size_t bytes, const struct stream *stream, bool any)
{
    for (struct block **place = &pool->free; *place; place = &(*place)->next) {
        struct block *block = *place;
        if (block->memory.bytes == bytes && (any || may_use(pool, block, stream))) {
            *place = block->next;
            kept--;
            return block;
        }
    }
    return NULL;
}

/* Up to here. */

void pools_settle(void)
{
    reservations_settle();
    if (!kept)
        return;
    pthread_mutex_lock(&pooling);
    pools_settle_all();
    pthread_mutex_unlock(&pooling);
}

bool pools_give_back(void)
{
    bool any = reservations_settle();
    pthread_mutex_lock(&pooling);
    for (struct pool *pool = pools; pool; pool = pool->next)
        any |= pool_give_back(pool, 0);
    pthread_mutex_unlock(&pooling);
    return any;
}

void pool_take_back(struct allocation memory, struct work *freed)
{
    struct pool *pool = memory.pool;
    struct block *block = calloc(1, sizeof *block);
    if (!block) { /* it is not cached */
        work_await(&freed);
        work_exchange(&freed, NULL);
        memory_unmake(memory);
    }
    pthread_mutex_lock(&pooling);
    pool_count(pool, USED_NOW, -(int64_t)memory.bytes);
    if (block) {
        memory.leaving = memory.synchronous = false;
        *block = (struct block){pool->free, memory, freed};
        pool->free = block;
        kept++;
    } else
        pool_count(pool, RESERVED_NOW, -(int64_t)memory.bytes);
    pthread_mutex_unlock(&pooling);
}

struct pool *pool_add(struct pool with)
{
    struct pool *made = calloc(1, sizeof *made);
    if (!made || !handle_add(made, HANDLE_POOL)) {
        free(made);
        return NULL;
    }
    *made = with;
    pthread_mutex_lock(&pooling);
    pool_begin(made, with.device);
    pthread_mutex_unlock(&pooling);
    return made;
}
