/* What pools.c and shared_pools.c share. */
#ifndef POOLS_H
#define POOLS_H

enum pool_attribute { /* hipMemPoolAttr: the first three are int, the others uint64_t */
    FOLLOW_EVENTS = 1, ALLOW_CHANCE, ALLOW_DEPENDENCIES, THRESHOLD, RESERVED_NOW, RESERVED_HIGH, USED_NOW, USED_HIGH, POOL_ATTRIBUTES
};
enum { ON_DEVICE = 1, FILE_DESCRIPTOR = 1 };             /* hipMemLocationType, hipMemAllocationHandleType */
enum { NO_ACCESS = 0, READ_ONLY = 1, READ_WRITE = 3 };   /* hipMemAccessFlags */

struct pool_properties { int allocation_type, handle_types; struct location location; void *security; size_t most; };
struct access { struct location location; int flags; };

/* Free; when `freed` is done, nobody uses it (NULL: nobody does). */
struct block { struct block *next; struct allocation memory; struct work *freed; };
struct pool {
    int device, handle_types;
    bool imported, destroyed;
    uint64_t most, attributes[POOL_ATTRIBUTES];
    int access[MAX_DEVICES];
    struct block *free;
    struct pool *next;
};

struct pool *pool_add(struct pool with); /* NULL: out of memory */

#endif
