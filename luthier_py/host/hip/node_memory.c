/* Nodes that allocate and free. An address is reserved when its node is made, and stays the same for all launches until
 * no node names it any more; whether a launch has allocated it and nothing has freed it since is known as soon as these
 * are requested, whenever they happen. hipFree and hipFreeAsync free it as well, and keep the address for the nodes.
 * When the last node is destroyed, the memory is freed as soon as what preceded its last free is done; no thread waits
 * for that.
 */
#include <stdlib.h>

#include "memory.h"
#include "reservations.h"
#include "streams.h"

enum { PINNED = 1, ON_DEVICE = 1 };
enum { USED_NOW, USED_HIGH, RESERVED_NOW, RESERVED_HIGH }; /* hipGraphMemAttributeType */

static hipError_t reserve(size_t bytes, int device, struct reservation **made)
{
    struct reservation *reservation = calloc(1, sizeof *reservation);
    int current = device_current();
    if (!reservation)
        return hipErrorOutOfMemory;
    *reservation = (struct reservation){.bytes = bytes, .device = device, .nodes = 1};
    device_make_current(device);
    hipError_t error = memory_allocate(&reservation->address, bytes, KIND_DEVICE, 0, NULL);
    device_make_current(current);
    if (error) {
        free(reservation);
        return error;
    }
    pthread_mutex_lock(&reserving);
    reservation->next = reservations;
    reservations = reservation;
    pthread_mutex_unlock(&reserving);
    *made = reservation;
    return hipSuccess;
}

static hipError_t become_live(struct reservation *reservation)
{
    pthread_mutex_lock(&reserving);
    hipError_t error = reservation_become(reservation, true);
    pthread_mutex_unlock(&reserving);
    return error;
}

/* Takes the reference. */
static hipError_t become_free(struct reservation *reservation, struct work *freed)
{
    pthread_mutex_lock(&reserving);
    hipError_t error = reservation_become(reservation, false);
    work_exchange(&reservation->freed, freed);
    pthread_mutex_unlock(&reserving);
    return error;
}

/* It is free when what is on the stream now is done. */
static hipError_t free_on(struct reservation *reservation, struct stream *stream)
{
    struct work *freed = NULL;
    hipError_t error = work_put(stream, &(struct operation){.kind = OPERATION_NOTHING}, NULL, false, &freed);
    return error ? error : become_free(reservation, freed);
}

bool graph_memory_free(void *address, struct stream *stream, hipError_t *error)
{
    pthread_mutex_lock(&reserving);
    struct reservation *found = reservation_find(address);
    bool named = found && found->nodes, live = found && found->live;
    if (found && !named) { /* memory like any other from now on */
        reservation_become(found, false);
        reservation_leave(found);
        work_exchange(&found->freed, NULL);
        free(found);
    }
    pthread_mutex_unlock(&reserving);
    if (!named)
        return false;
    *error = !live ? hipErrorInvalidValue : stream ? free_on(found, stream) : streams_wait(-1);
    if (live && !stream && !*error)
        *error = become_free(found, NULL);
    return true;
}

/* Nodes that allocate. */

hipError_t allocation_prepare(struct allocate_params *params, struct content *content)
{
    struct reservation *memory;
    params->address = NULL;
    if (!params->bytes || params->pool.allocation_type != PINNED || params->pool.location_type != ON_DEVICE ||
        device_check(params->pool.device) != hipSuccess)
        return hipErrorInvalidValue;
    hipError_t error = reserve(params->bytes, params->pool.device, &memory);
    if (error)
        return error;
    params->address = memory->address;
    *content = (struct content){.allocate = {*params, memory}};
    return hipSuccess;
}

static hipError_t prepare(void *params, struct content *content) { return allocation_prepare(params, content); }

static hipError_t copy(struct content *to, const struct content *from, bool ready)
{
    (void)ready;
    to->allocate.memory = reservation_hold(from->allocate.memory);
    return hipSuccess;
}

static void discard(struct content *content) { reservation_let_go(content->allocate.memory); }

static hipError_t carry_out(const struct node *node, struct stream *stream)
{
    (void)stream;
    return become_live(node->content.allocate.memory);
}

/* An executable keeps its memory. */
static hipError_t fits(const struct content *old, const struct content *other)
{
    return old->allocate.memory == other->allocate.memory ? hipSuccess : hipErrorInvalidValue;
}

static void describe(FILE *out, const struct content *content, unsigned flags)
{
    (void)flags;
    fprintf(out, "\\n%p,%zu", content->allocate.params.address, content->allocate.params.bytes);
}

const struct node_kind ALLOCATE_KIND = {NODE_ALLOCATE, "MEM_ALLOC", "rectangle", false, 0, prepare, copy, discard, NULL, fits,
                                        carry_out, describe};

hipError_t hipGraphAddMemAllocNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                   struct allocate_params *params)
{
    struct content content;
    hipError_t error = allocation_prepare(params, &content);
    return node_add(node, graph, before, count, &ALLOCATE_KIND, error, &content);
}

hipError_t hipGraphMemAllocNodeGetParams(struct node *node, struct allocate_params *params)
{
    if (!is_of(node, NODE_ALLOCATE))
        return hipErrorInvalidValue;
    *params = node->content.allocate.params;
    return hipSuccess;
}

/* Nodes that free what nodes of any graph allocate; each address has one. */

hipError_t release_prepare(void *address, struct content *content)
{
    pthread_mutex_lock(&reserving);
    struct reservation *found = reservation_find(address);
    bool good = found && !found->has_free;
    if (good) {
        found->nodes++;
        found->has_free = true;
        *content = (struct content){.free = {address, found}};
    }
    pthread_mutex_unlock(&reserving);
    return good ? hipSuccess : hipErrorInvalidValue;
}

static hipError_t prepare_free(void *params, struct content *content) { return release_prepare(*(void **)params, content); }

static hipError_t copy_free(struct content *to, const struct content *from, bool ready)
{
    (void)ready;
    to->free.memory = reservation_hold(from->free.memory);
    return hipSuccess;
}

static void discard_free(struct content *content) { reservation_let_go(content->free.memory); }

static hipError_t carry_out_free(const struct node *node, struct stream *stream)
{
    return free_on(node->content.free.memory, stream);
}

static hipError_t fits_free(const struct content *old, const struct content *other)
{
    return old->free.memory == other->free.memory ? hipSuccess : hipErrorInvalidValue;
}

static void describe_free(FILE *out, const struct content *content, unsigned flags)
{
    (void)flags;
    fprintf(out, "\\n%p", content->free.address);
}

const struct node_kind FREE_KIND = {NODE_FREE, "MEM_FREE", "rectangle", false, 0, prepare_free, copy_free, discard_free, NULL,
                                    fits_free, carry_out_free, describe_free};

hipError_t hipGraphAddMemFreeNode(struct node **node, struct graph *graph, struct node *const *before, size_t count, void *address)
{
    struct content content;
    if (before && !count)
        return hipErrorInvalidValue;
    if (!nodes_are_of(before, count, graph)) /* before the address has its node */
        return hipErrorInvalidValue;
    hipError_t error = release_prepare(address, &content);
    return node_add(node, graph, before, count, &FREE_KIND, error, &content);
}

hipError_t hipDrvGraphAddMemFreeNode(struct node **node, struct graph *graph, struct node *const *before, size_t count, void *address)
{
    return hipGraphAddMemFreeNode(node, graph, before, count, address);
}

hipError_t hipGraphMemFreeNodeGetParams(struct node *node, void *address)
{
    if (!is_of(node, NODE_FREE))
        return hipErrorInvalidValue;
    *(void **)address = node->content.free.address;
    return hipSuccess;
}

/* Graphs with such nodes. */

static struct reservation *of(const struct node *node)
{
    return is_of(node, NODE_ALLOCATE) ? node->content.allocate.memory : is_of(node, NODE_FREE) ? node->content.free.memory : NULL;
}

bool graph_has_memory(const struct graph *graph)
{
    bool found = false;
    for (size_t i = 0; i < graph->nodes.count && !found; i++)
        found = of(graph->nodes.at[i]) != NULL;
    return found;
}

static unsigned *executables_of(const struct node *node)
{
    return is_of(node, NODE_ALLOCATE) ? &of(node)->makers : &of(node)->freers;
}

hipError_t memory_instantiated(const struct graph *executable)
{
    hipError_t error = hipSuccess;
    pthread_mutex_lock(&reserving);
    for (size_t i = 0; i < executable->nodes.count; i++)
        if (of(executable->nodes.at[i]) && (*executables_of(executable->nodes.at[i]))++)
            error = hipErrorNotSupported;
    pthread_mutex_unlock(&reserving);
    return error;
}

void memory_ended(const struct graph *executable)
{
    pthread_mutex_lock(&reserving);
    for (size_t i = 0; i < executable->nodes.count; i++)
        if (of(executable->nodes.at[i]))
            --*executables_of(executable->nodes.at[i]);
    pthread_mutex_unlock(&reserving);
}

hipError_t memory_nodes_start(const struct graph *executable)
{
    hipError_t error = hipSuccess;
    pthread_mutex_lock(&reserving);
    for (size_t i = 0; i < executable->nodes.count && !error; i++) {
        const struct node *node = executable->nodes.at[i];
        if (is_of(node, NODE_ALLOCATE) && of(node)->live)
            error = executable->flags & FLAG_AUTO_FREE ? reservation_become(of(node), false) : hipErrorInvalidValue;
    }
    pthread_mutex_unlock(&reserving);
    return error;
}

/* What a device has for graphs: nothing is cached beyond what is used. */

hipError_t hipDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    pthread_mutex_lock(&reserving);
    *(uint64_t *)value = attribute == USED_NOW || attribute == RESERVED_NOW ? graph_used[device] : graph_highest[device];
    pthread_mutex_unlock(&reserving);
    return hipSuccess;
}

hipError_t hipDeviceSetGraphMemAttribute(int device, int attribute, void *value)
{
    if (attribute == USED_NOW || attribute == RESERVED_NOW || *(uint64_t *)value)
        return hipErrorInvalidValue; /* the highest may be set back, nothing else */
    pthread_mutex_lock(&reserving);
    graph_highest[device] = graph_used[device];
    pthread_mutex_unlock(&reserving);
    return hipSuccess;
}

hipError_t hipDeviceGraphMemTrim(int device) { return (void)device, hipSuccess; }
