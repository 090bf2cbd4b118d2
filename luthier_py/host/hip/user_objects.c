/* User objects: what a program wants destroyed when no graph, executable or launch needs it any more. */
#include <limits.h>
#include <stdlib.h>

#include "checks.h"
#include "graph.h"
#include "streams.h"

enum { NO_DESTRUCTOR_SYNC = 1, MOVE = 1 };

struct user_object { unsigned count; void (*destroy)(void *); void *data; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all counts */

/* Without the lock. What was destroyed is no object any more, and to release it is nothing. */
static void release(struct user_object *object, unsigned count)
{
    pthread_mutex_lock(&lock);
    bool some = handle_is(object, HANDLE_OBJECT) && count <= object->count;
    object = some ? object : NULL;
    bool last = object && !(object->count -= count);
    if (last)
        handle_remove(object, HANDLE_OBJECT);
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    object->destroy(object->data);
    free(object);
}

static bool retain(struct user_object *object, unsigned count)
{
    pthread_mutex_lock(&lock);
    bool there = handle_is(object, HANDLE_OBJECT);
    if (there)
        object->count += count;
    pthread_mutex_unlock(&lock);
    return there;
}

hipError_t hipUserObjectCreate(struct user_object **object, void *data, void (*destroy)(void *), unsigned count, unsigned flags)
{
    (void)flags;
    struct user_object *made = calloc(1, sizeof *made);
    if (!made || !handle_add(made, HANDLE_OBJECT)) {
        free(made);
        return hipErrorOutOfMemory;
    }
    *made = (struct user_object){count, destroy, data};
    *object = made;
    return hipSuccess;
}

hipError_t hipUserObjectRetain(struct user_object *object, unsigned count) { return retain(object, count), hipSuccess; }
hipError_t hipUserObjectRelease(struct user_object *object, unsigned count) { return release(object, count), hipSuccess; }

/* Graphs that hold them. */

static struct holding *holding_of(const struct graph *graph, const struct user_object *object)
{
    for (size_t i = 0; i < graph->holding_count; i++)
        if (graph->holdings[i].object == object)
            return &graph->holdings[i];
    return NULL;
}

static hipError_t add_holding(struct graph *graph, struct user_object *object, unsigned count)
{
    struct holding *holding = holding_of(graph, object);
    if (holding) {
        holding->count += count;
        return hipSuccess;
    }
    struct holding *larger = realloc(graph->holdings, (graph->holding_count + 1) * sizeof *larger);
    if (!larger)
        return hipErrorOutOfMemory;
    graph->holdings = larger;
    larger[graph->holding_count++] = (struct holding){object, count};
    return hipSuccess;
}

hipError_t hipGraphRetainUserObject(struct graph *graph, struct user_object *object, unsigned count, unsigned flags)
{
    bool there = flags & MOVE ? handle_is(object, HANDLE_OBJECT) : retain(object, count);
    return there ? add_holding(graph, object, count) : hipSuccess;
}

hipError_t hipGraphReleaseUserObject(struct graph *graph, struct user_object *object, unsigned count)
{
    struct holding *holding = holding_of(graph, object);
    if (!holding || holding->count < count)
        return hipSuccess;
    holding->count -= count;
    if (!holding->count)
        *holding = graph->holdings[--graph->holding_count];
    release(object, count);
    return hipSuccess;
}

hipError_t objects_copy(struct graph *to, const struct graph *from)
{
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < from->holding_count && !error; i++)
        if (retain(from->holdings[i].object, 1))
            error = add_holding(to, from->holdings[i].object, 1);
    return error;
}

void objects_let_go(struct graph *graph)
{
    for (size_t i = 0; i < graph->holding_count; i++)
        release(graph->holdings[i].object, graph->holdings[i].count);
    free(graph->holdings);
}

static void release_one(void *object) { release(object, 1); }

hipError_t objects_hold_while(const struct graph *executable, struct stream *stream)
{
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < executable->holding_count && !error; i++) {
        struct user_object *object = executable->holdings[i].object;
        if (!retain(object, 1))
            continue;
        error = operation_put(stream, &(struct operation){OPERATION_CALL, .call = {release_one, object}});
        if (error)
            release(object, 1);
    }
    return error;
}
