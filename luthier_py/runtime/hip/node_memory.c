/* Nodes that allocate and free. An address is reserved when its node is made, and stays the same for all launches until no
 * node names it any more; whether a launch has allocated it and nobody has freed it since is known as soon as these are asked
 * for, whenever they come about. hipFree and hipFreeAsync free it as well, and keep the address for the nodes. When the last
 * node is gone, the memory goes as soon as what was before its last free is done; nobody waits for that.
 */
#include <stdlib.h>

#include "graph.h"

enum { PINNED = 1, ON_DEVICE = 1 };
enum { USED_NOW, USED_HIGH, RESERVED_NOW, RESERVED_HIGH }; /* hipGraphMemAttributeType */

struct reservation {
    struct reservation *next;
    void *address;
    size_t bytes;
    int device;
    unsigned nodes;        /* that allocate or free it */
    bool live, has_free;   /* allocated, and not freed; a node frees it */
    unsigned makers, freers; /* executables that allocate it, and that free it */
    struct work *freed;      /* after which nobody uses it; NULL: nobody does */
};

static struct reservation *reservations;
static struct reservation *leaving; /* that nothing names any more, until their memory has gone */
static uint64_t used[MAX_DEVICES], highest[MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all this */

static struct reservation *find(const void *address)
{
    struct reservation *found = reservations;
    while (found && found->address != address)
        found = found->next;
    return found;
}

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
    pthread_mutex_lock(&lock);
    reservation->next = reservations;
    reservations = reservation;
    pthread_mutex_unlock(&lock);
    *made = reservation;
    return hipSuccess;
}

static hipError_t become(struct reservation *reservation, bool live)
{
    if (reservation->live == live)
        return hipErrorInvalidValue;
    uint64_t *now = &used[reservation->device], *high = &highest[reservation->device];
    reservation->live = live;
    *now = live ? *now + reservation->bytes : *now - reservation->bytes;
    *high = *now > *high ? *now : *high;
    return hipSuccess;
}

static void take_out(const struct reservation *reservation)
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
    for (struct reservation **place = &leaving, *gone; (gone = *place);) {
        if (!work_finished(&gone->freed)) {
            place = &gone->next;
            continue;
        }
        *place = gone->next;
        memory_release(gone->address);
        work_exchange(&gone->freed, NULL);
        free(gone);
        any = true;
    }
    return any;
}

bool graph_memory_settle(void)
{
    pthread_mutex_lock(&lock);
    bool any = settle();
    pthread_mutex_unlock(&lock);
    return any;
}

static struct reservation *hold(struct reservation *reservation)
{
    pthread_mutex_lock(&lock);
    if (reservation)
        reservation->nodes++;
    pthread_mutex_unlock(&lock);
    return reservation;
}

static void let_go(struct reservation *reservation)
{
    if (!reservation)
        return;
    pthread_mutex_lock(&lock);
    if (!--reservation->nodes && !reservation->live) {
        take_out(reservation);
        reservation->next = leaving;
        leaving = reservation;
        memory_mark_leaving(reservation->address, true);
        settle();
    }
    pthread_mutex_unlock(&lock);
}

static hipError_t become_live(struct reservation *reservation)
{
    pthread_mutex_lock(&lock);
    hipError_t error = become(reservation, true);
    pthread_mutex_unlock(&lock);
    return error;
}

/* Takes the reference. */
static hipError_t become_free(struct reservation *reservation, struct work *freed)
{
    pthread_mutex_lock(&lock);
    hipError_t error = become(reservation, false);
    work_exchange(&reservation->freed, freed);
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    struct reservation *found = find(address);
    bool named = found && found->nodes, live = found && found->live;
    if (found && !named) { /* memory like any other from now on */
        become(found, false);
        take_out(found);
        work_exchange(&found->freed, NULL);
        free(found);
    }
    pthread_mutex_unlock(&lock);
    if (!named)
        return false;
    *error = !live ? hipErrorInvalidValue : stream ? free_on(found, stream) : streams_wait(-1);
    if (live && !stream && !*error)
        *error = become_free(found, NULL);
    return true;
}

void graph_memory_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    reservations = leaving = NULL;
    for (int i = 0; i < MAX_DEVICES; i++)
        used[i] = highest[i] = 0;
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
    to->allocate.memory = hold(from->allocate.memory);
    return hipSuccess;
}

static void discard(struct content *content) { let_go(content->allocate.memory); }

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

const struct node_kind ALLOCATE_KIND = {"MEM_ALLOC", "rectangle", false, 0, prepare, copy, discard, NULL, fits, carry_out,
                                        describe};

hipError_t hipGraphAddMemAllocNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                   struct allocate_params *params)
{
    struct content content;
    hipError_t error = allocation_prepare(params, &content);
    return node_add(node, graph, before, count, NODE_ALLOCATE, error, &content);
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
    pthread_mutex_lock(&lock);
    struct reservation *found = find(address);
    bool good = found && !found->has_free;
    if (good) {
        found->nodes++;
        found->has_free = true;
        *content = (struct content){.free = {address, found}};
    }
    pthread_mutex_unlock(&lock);
    return good ? hipSuccess : hipErrorInvalidValue;
}

static hipError_t prepare_free(void *params, struct content *content) { return release_prepare(*(void **)params, content); }

static hipError_t copy_free(struct content *to, const struct content *from, bool ready)
{
    (void)ready;
    to->free.memory = hold(from->free.memory);
    return hipSuccess;
}

static void discard_free(struct content *content) { let_go(content->free.memory); }

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

const struct node_kind FREE_KIND = {"MEM_FREE", "rectangle", false, 0, prepare_free, copy_free, discard_free, NULL, fits_free,
                                    carry_out_free, describe_free};

hipError_t hipGraphAddMemFreeNode(struct node **node, struct graph *graph, struct node *const *before, size_t count, void *address)
{
    struct content content;
    if (before && !count)
        return hipErrorInvalidValue;
    if (!nodes_are_of(before, count, graph)) /* before the address has its node */
        return hipErrorInvalidValue;
    hipError_t error = release_prepare(address, &content);
    return node_add(node, graph, before, count, NODE_FREE, error, &content);
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
    return node->type == NODE_ALLOCATE ? node->content.allocate.memory : node->type == NODE_FREE ? node->content.free.memory : NULL;
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
    return node->type == NODE_ALLOCATE ? &of(node)->makers : &of(node)->freers;
}

hipError_t memory_instantiated(const struct graph *executable)
{
    hipError_t error = hipSuccess;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < executable->nodes.count; i++)
        if (of(executable->nodes.at[i]) && (*executables_of(executable->nodes.at[i]))++)
            error = hipErrorNotSupported;
    pthread_mutex_unlock(&lock);
    return error;
}

void memory_ended(const struct graph *executable)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < executable->nodes.count; i++)
        if (of(executable->nodes.at[i]))
            --*executables_of(executable->nodes.at[i]);
    pthread_mutex_unlock(&lock);
}

hipError_t memory_nodes_start(const struct graph *executable)
{
    hipError_t error = hipSuccess;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < executable->nodes.count && !error; i++) {
        const struct node *node = executable->nodes.at[i];
        if (node->type == NODE_ALLOCATE && of(node)->live)
            error = executable->flags & FLAG_AUTO_FREE ? become(of(node), false) : hipErrorInvalidValue;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* What a device has for graphs: nothing is kept beyond what is used. */

hipError_t hipDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    pthread_mutex_lock(&lock);
    *(uint64_t *)value = attribute == USED_NOW || attribute == RESERVED_NOW ? used[device] : highest[device];
    pthread_mutex_unlock(&lock);
    return hipSuccess;
}

hipError_t hipDeviceSetGraphMemAttribute(int device, int attribute, void *value)
{
    if (attribute == USED_NOW || attribute == RESERVED_NOW || *(uint64_t *)value)
        return hipErrorInvalidValue; /* the highest may be set back, nothing else */
    pthread_mutex_lock(&lock);
    highest[device] = used[device];
    pthread_mutex_unlock(&lock);
    return hipSuccess;
}

hipError_t hipDeviceGraphMemTrim(int device) { return (void)device, hipSuccess; }
