/* What reservations.c and node_memory.c share. */
#ifndef RESERVATIONS_H
#define RESERVATIONS_H

#include "device.h"
#include "graph.h"

struct reservation {
    struct reservation *next;
    void *address;
    size_t bytes;
    int device;
    unsigned nodes;        /* that allocate or free it */
    bool live, has_free;   /* allocated, and not freed; a node frees it */
    unsigned makers, freers; /* executables that allocate it, and that free it */
    struct work *freed;      /* after which it is unused; NULL: it is now */
};

extern struct reservation *reservations;
extern uint64_t graph_used[MAX_DEVICES], graph_highest[MAX_DEVICES];
extern pthread_mutex_t reserving; /* of all this */

/* The lock is held. */
struct reservation *reservation_find(const void *address);
hipError_t reservation_become(struct reservation *reservation, bool live);
void reservation_leave(const struct reservation *reservation); /* the list */

/* It is not. */
struct reservation *reservation_hold(struct reservation *reservation);
void reservation_let_go(struct reservation *reservation);

#endif
