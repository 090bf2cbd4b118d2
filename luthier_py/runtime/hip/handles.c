/* Handles that programs hold: what is alive. A handle is looked up here before anybody follows it. */
#include <stdlib.h>

#include "luthier.h"

struct entry { const void *handle; enum handle_kind kind; };

static struct entry *entries; /* open addressing, by address */
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

bool handle_add(const void *handle, enum handle_kind kind)
{
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

bool handle_is(const void *handle, enum handle_kind kind)
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

bool handle_remove(const void *handle, enum handle_kind kind)
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

size_t handles_of(enum handle_kind kind, const void ***found)
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

void handles_after_fork(void) { pthread_mutex_init(&lock, NULL); }

static hipError_t alive(const void *handle, enum handle_kind kind, hipError_t otherwise)
{
    return handle_is(handle, kind) ? hipSuccess : otherwise;
}

hipError_t check_stream(stream_t stream) { return stream_of(stream) ? hipSuccess : hipErrorContextIsDestroyed; }

hipError_t check_event(event_t event)
{
    return event ? alive(event, HANDLE_EVENT, hipErrorContextIsDestroyed) : hipErrorInvalidHandle;
}

hipError_t check_graph(graph_t graph) { return alive(graph, HANDLE_GRAPH, hipErrorInvalidValue); }
hipError_t check_exec(exec_t executable) { return alive(executable, HANDLE_EXEC, hipErrorInvalidValue); }
hipError_t check_node(node_t node) { return alive(node, HANDLE_NODE, hipErrorInvalidValue); }
hipError_t check_module(module_t module) { return alive(module, HANDLE_MODULE, hipErrorInvalidHandle); }
hipError_t check_kernel(kernel_t kernel) { return alive(kernel, HANDLE_KERNEL, hipErrorInvalidHandle); }
hipError_t check_pool(pool_t pool) { return alive(pool, HANDLE_POOL, hipErrorInvalidValue); }
hipError_t check_library(library_t library) { return alive(library, HANDLE_LIBRARY, hipErrorInvalidHandle); }
hipError_t check_array(array_t array) { return alive(array, HANDLE_ARRAY, hipErrorInvalidHandle); }
hipError_t check_backing(backing_t backing) { return alive(backing, HANDLE_BACKING, hipErrorInvalidValue); }
