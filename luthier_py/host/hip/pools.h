/* What free_lists.c, pools.c and ipc.c share. */
#ifndef POOLS_H
#define POOLS_H

#include "device.h"
#include "memory.h"

enum pool_attribute { /* hipMemPoolAttr: the first three are int, the others uint64_t */
    FOLLOW_EVENTS = 1, ALLOW_CHANCE, ALLOW_DEPENDENCIES, THRESHOLD, RESERVED_NOW, RESERVED_HIGH, USED_NOW, USED_HIGH, POOL_ATTRIBUTES
};
enum { ON_DEVICE = 1, FILE_DESCRIPTOR = 1 };             /* hipMemLocationType, hipMemAllocationHandleType */
enum { NO_ACCESS = 0, READ_ONLY = 1, READ_WRITE = 3 };   /* hipMemAccessFlags */

struct pool_properties { int allocation_type, handle_types; struct location location; void *security; size_t most; };
struct access { struct location location; int flags; };

/* Free; unused when `freed` is done (NULL: it is now). */
struct block { struct block *next; struct allocation memory; struct work *freed; };
struct pool {
    int device, handle_types;
    bool imported, destroyed;
    uint64_t most, attributes[POOL_ATTRIBUTES];
    int access[MAX_DEVICES];
    struct block *free;
    struct pool *next;
};

extern pthread_mutex_t pooling; /* all pools change under it */

struct pool *pool_add(struct pool with); /* NULL: out of memory */
/* The lock is held. */
void pool_begin(struct pool *pool, int device);
void pool_count(struct pool *pool, enum pool_attribute now, int64_t bytes);
bool pool_give_back(struct pool *pool, uint64_t hold); /* what is done, until the pool has no more than this */
void pools_settle_all(void);
/* A free block of this size, taken out; one that the stream would have to wait for if `any`. */
struct block *pool_take_block(struct pool *pool, size_t bytes, const struct stream *stream, bool any);

#endif
