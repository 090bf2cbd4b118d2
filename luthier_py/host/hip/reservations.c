/* Addresses that graphs allocate, and what becomes of their memory. See node_memory.c. */
#include <stdlib.h>

#include "memory.h"
#include "reservations.h"
#include "streams.h"

struct reservation *reservations;
static struct reservation *leaving; /* that nothing names any more, until their memory has gone */
uint64_t graph_used[MAX_DEVICES], graph_highest[MAX_DEVICES];
pthread_mutex_t reserving = PTHREAD_MUTEX_INITIALIZER;

struct reservation *reservation_find(const void *address)
{
    struct reservation *found = reservations;
    while (found && found->address != address)
        found = found->next;
    return found;
}

hipError_t reservation_become(struct reservation *reservation, bool live)
{
    if (reservation->live == live)
        return hipErrorInvalidValue;
    uint64_t *now = &graph_used[reservation->device], *high = &graph_highest[reservation->device];
    reservation->live = live;
    *now = live ? *now + reservation->bytes : *now - reservation->bytes;
    *high = *now > *high ? *now : *high;
    return hipSuccess;
}

void reservation_leave(const struct reservation *reservation)
{
    for (struct reservation **place = &reservations; *place; place = &(*place)->next)
        if (*place == reservation) {
            *place = reservation->next;
            return;
        }
}

/* The lock is held. */
static bool settle(void)
{
    bool any = false;
    struct allocation memory;
    for (struct reservation **place = &leaving, *gone; (gone = *place);) {
        if (!work_finished(&gone->freed)) {
            place = &gone->next;
            continue;
        }
        *place = gone->next;
        if (memory_take(gone->address, true, &memory))
            memory_unmake(memory);
        work_exchange(&gone->freed, NULL);
        free(gone);
        any = true;
    }
    return any;
}

bool reservations_settle(void)
{
    pthread_mutex_lock(&reserving);
    bool any = settle();
    pthread_mutex_unlock(&reserving);
    return any;
}

struct reservation *reservation_hold(struct reservation *reservation)
{
    pthread_mutex_lock(&reserving);
    if (reservation)
        reservation->nodes++;
    pthread_mutex_unlock(&reserving);
    return reservation;
}

void reservation_let_go(struct reservation *reservation)
{
    if (!reservation)
        return;
    pthread_mutex_lock(&reserving);
    if (!--reservation->nodes && !reservation->live) {
        reservation_leave(reservation);
        reservation->next = leaving;
        leaving = reservation;
        memory_mark_leaving(reservation->address, true);
        settle();
    }
    pthread_mutex_unlock(&reserving);
}

void reservations_after_fork(void)
{
    pthread_mutex_init(&reserving, NULL);
    reservations = leaving = NULL;
    for (int i = 0; i < MAX_DEVICES; i++)
        graph_used[i] = graph_highest[i] = 0;
}
