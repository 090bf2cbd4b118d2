#include "handles.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct entry { const void *handle; int kind; };

static struct entry *entries; /* open addressing, by address */
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child of fork has the table whole. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

static size_t home(const void *handle, size_t of) { return ((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15u % of; }

static struct entry *place_of(struct entry *table, size_t of, const void *handle)
{
    size_t at = home(handle, of);
    while (table[at].handle && table[at].handle != handle)
        at = (at + 1) % of;
    return &table[at];
}

static bool grow(void)
{
    size_t larger = room ? 2 * room : 256;
    struct entry *table = calloc(larger, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < room; i++)
        if (entries[i].handle)
            *place_of(table, larger, entries[i].handle) = entries[i];
    free(entries);
    entries = table;
    room = larger;
    return true;
}

bool handle_add(const void *handle, int kind)
{
    pthread_once(&once, survive_forks);
    pthread_mutex_lock(&lock);
    bool good = handle && (2 * count < room || grow());
    if (good) {
        struct entry *place = place_of(entries, room, handle);
        count += !place->handle;
        *place = (struct entry){handle, kind};
    }
    pthread_mutex_unlock(&lock);
    return good;
}

bool handle_is(const void *handle, int kind)
{
    pthread_mutex_lock(&lock);
    const struct entry *place = room ? place_of(entries, room, handle) : NULL;
    bool found = handle && place && place->handle && place->kind == kind;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Those behind a hole that could have stood in it move up, so that a search may end at the next hole. */
static void close_hole(size_t hole)
{
    for (size_t at = (hole + 1) % room; entries[at].handle; at = (at + 1) % room)
        if ((at + room - home(entries[at].handle, room)) % room >= (at + room - hole) % room) {
            entries[hole] = entries[at];
            entries[at].handle = NULL;
            hole = at;
        }
}

bool handle_remove(const void *handle, int kind)
{
    pthread_mutex_lock(&lock);
    struct entry *place = room ? place_of(entries, room, handle) : NULL;
    bool found = handle && place && place->handle && place->kind == kind;
    if (found) {
        place->handle = NULL;
        count--;
        close_hole((size_t)(place - entries));
    }
    pthread_mutex_unlock(&lock);
    return found;
}

size_t handles_of(int kind, const void ***found)
{
    size_t some = 0;
    pthread_mutex_lock(&lock);
    *found = malloc((count + 1) * sizeof **found);
    for (size_t i = 0; i < room && *found; i++)
        if (entries[i].handle && entries[i].kind == kind)
            (*found)[some++] = entries[i].handle;
    pthread_mutex_unlock(&lock);
    return some;
}
