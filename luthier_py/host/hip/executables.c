/* Graphs as programs: instantiated, launched, with nodes switched off, updated. */
#include <stdlib.h>

#include "captures.h"
#include "checks.h"
#include "graph.h"
#include "streams.h"

enum { INSTANTIATED = 0, NOT_INSTANTIATED = 1 }; /* hipGraphInstantiateResult */
enum { UPDATED = 0, UPDATE_FAILED = 1, TOPOLOGY_CHANGED = 2, TYPE_CHANGED = 3, PARAMETERS_CHANGED = 5 }; /* hipGraphExecUpdateResult */

static hipError_t instantiate(struct graph **executable, const struct graph *graph, unsigned long long flags)
{
    struct graph *made;
    hipError_t error = graph_copy(&made, graph, true);
    if (error)
        return error;
    error = memory_instantiated(made);
    if (error) {
        memory_ended(made);
        graph_destroy(made);
        return error;
    }
    made->flags = flags;
    *executable = made;
    return hipSuccess;
}

hipError_t hipGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags)
{
    return instantiate(executable, graph, flags);
}

hipError_t hipGraphInstantiate(struct graph **executable, struct graph *graph, struct node **bad, char *log, size_t log_bytes)
{
    if (bad)
        *bad = NULL;
    if (log && log_bytes)
        *log = 0;
    return instantiate(executable, graph, 0);
}

hipError_t hipGraphInstantiateWithParams(struct graph **executable, struct graph *graph, struct instantiate_params *params)
{
    unsigned long long flags = params->flags;
    bool known = flags == 0 || flags == FLAG_AUTO_FREE || flags == FLAG_UPLOAD ||
                 flags == FLAG_DEVICE_LAUNCH || flags == FLAG_NODE_PRIORITY;
    hipError_t error = known ? instantiate(executable, graph, flags) : hipErrorInvalidValue;
    params->result = error ? NOT_INSTANTIATED : INSTANTIATED;
    params->bad = NULL;
    return error;
}

hipError_t hipGraphExecGetFlags(struct graph *executable, unsigned long long *flags)
{
    *flags = executable->flags;
    return hipSuccess;
}

hipError_t hipGraphExecDestroy(struct graph *executable)
{
    if (!handle_remove(executable, HANDLE_EXEC))
        return hipErrorInvalidValue;
    memory_ended(executable);
    graph_destroy(executable);
    return hipSuccess;
}

/* There is nothing to send before the launch. */
hipError_t hipGraphUpload(struct graph *executable, stream_t stream) { return (void)executable, (void)stream, hipSuccess; }

hipError_t hipGraphLaunch(struct graph *executable, stream_t handle)
{
    struct stream *stream = stream_of(handle);
    if (stream->capture)
        return capture_graph(stream, executable);
    hipError_t error = memory_nodes_start(executable);
    if (error)
        return error;
    stream_begin(stream); /* all its nodes are one step of the stream */
    error = executable_put(executable, stream);
    if (!error)
        error = objects_hold_while(executable, stream);
    stream_end(stream);
    return error;
}

/* Nodes that are off. */

static struct node *switchable(const struct graph *executable, const struct node *node)
{
    struct node *own = node_in(executable, node);
    return own && own->kind->can_be_off ? own : NULL;
}

hipError_t hipGraphNodeSetEnabled(struct graph *executable, struct node *node, unsigned on)
{
    struct node *own = switchable(executable, node);
    if (!own)
        return hipErrorInvalidValue;
    own->off = !on;
    return hipSuccess;
}

hipError_t hipGraphNodeGetEnabled(struct graph *executable, struct node *node, unsigned *on)
{
    const struct node *own = switchable(executable, node);
    if (!own)
        return hipErrorInvalidValue;
    *on = !own->off;
    return hipSuccess;
}

/* Updates: all of it or nothing. */

static int difference(const struct graph *graph, const struct graph *other, uint64_t *bad)
{
    *bad = 0;
    if (graph->nodes.count != other->nodes.count)
        return TOPOLOGY_CHANGED;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *a = graph->nodes.at[i], *b = other->nodes.at[i];
        uint64_t in_child;
        *bad = b->origin;
        if (a->kind != b->kind)
            return TYPE_CHANGED;
        if (a->before.count != b->before.count)
            return TOPOLOGY_CHANGED;
        if (is_of(a, NODE_GRAPH)) {
            int inner = difference(a->content.child, b->content.child, &in_child);
            if (inner != UPDATED)
                return inner;
        } else if (a->kind->fits && a->kind->fits(&a->content, &b->content) != hipSuccess) {
            return PARAMETERS_CHANGED;
        }
    }
    *bad = 0;
    return UPDATED;
}

static void exchange(struct graph *graph, struct graph *other)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        struct content content = graph->nodes.at[i]->content;
        graph->nodes.at[i]->content = other->nodes.at[i]->content;
        other->nodes.at[i]->content = content;
    }
}

static struct node *node_of(const struct graph *graph, uint64_t id)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i]->id == id)
            return graph->nodes.at[i];
    return NULL;
}

hipError_t hipGraphExecUpdate(struct graph *executable, struct graph *graph, struct node **bad, int *result)
{
    struct graph *update;
    uint64_t where;
    *bad = NULL;
    *result = UPDATE_FAILED;
    if (graph_copy(&update, graph, true) != hipSuccess)
        return hipErrorGraphExecUpdateFailure;
    *result = difference(executable, update, &where);
    *bad = node_of(graph, where);
    if (*result == UPDATED)
        exchange(executable, update);
    graph_destroy(update);
    return *result == UPDATED ? hipSuccess : hipErrorGraphExecUpdateFailure;
}
