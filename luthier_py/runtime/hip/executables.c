/* Graphs as programs: instantiated, changed node by node, launched. */
#include <stdlib.h>

#include "graph.h"

enum { UPDATED = 0, UPDATE_FAILED = 1, TOPOLOGY_CHANGED = 2, TYPE_CHANGED = 3, INVALID_STRUCTURE = 2 };

hipError_t hipGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags)
{
    hipError_t error = graph_copy(executable, graph, HANDLE_EXEC);
    if (!error)
        (*executable)->flags = flags;
    return error;
}

hipError_t hipGraphInstantiate(struct graph **executable, struct graph *graph, struct node **bad, char *log, size_t log_bytes)
{
    if (bad)
        *bad = NULL;
    if (log && log_bytes)
        *log = 0;
    return hipGraphInstantiateWithFlags(executable, graph, 0);
}

hipError_t hipGraphInstantiateWithParams(struct graph **executable, struct graph *graph, struct instantiate_params *params)
{
    hipError_t error = hipGraphInstantiateWithFlags(executable, graph, params->flags);
    params->bad = NULL;
    params->result = error ? INVALID_STRUCTURE : 0;
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
    graph_destroy(executable);
    return hipSuccess;
}

hipError_t hipGraphUpload(struct graph *executable, stream_t handle)
{
    (void)executable, (void)handle;
    return hipSuccess;
}

static hipError_t perform_copy(stream_t handle, const struct operation *operation)
{
    struct operation copy;
    hipError_t error = operation_copy(&copy, operation);
    return error ? error : perform(handle, &copy);
}

static hipError_t carry_out(const struct node *node, stream_t handle)
{
    switch (node->type) {
    case NODE_GRAPH: return hipGraphLaunch(node->child, handle);
    case NODE_EMPTY: return hipSuccess;
    case NODE_WAIT: return hipStreamWaitEvent(handle, node->event, 0);
    case NODE_RECORD: return hipEventRecord(node->event, handle);
    default: return node->off ? hipSuccess : perform_copy(handle, &node->operation);
    }
}

hipError_t hipGraphLaunch(struct graph *executable, stream_t handle)
{
    hipError_t error = hipSuccess;
    for (size_t i = 0; !error && i < executable->nodes.count; i++)
        error = carry_out(executable->nodes.at[i], handle);
    return error;
}

hipError_t hipGraphNodeSetEnabled(struct graph *executable, struct node *node, unsigned on)
{
    struct node *own = node_in(executable, node);
    if (!own || own->type > NODE_FILL)
        return hipErrorInvalidValue;
    own->off = !on;
    return hipSuccess;
}

hipError_t hipGraphNodeGetEnabled(struct graph *executable, struct node *node, unsigned *on)
{
    const struct node *own = node_in(executable, node);
    if (!own)
        return hipErrorInvalidValue;
    *on = !own->off;
    return hipSuccess;
}

/* What differs so much that an executable cannot take the other graph's place. */
static int difference(const struct graph *graph, const struct graph *other, struct node **bad)
{
    *bad = NULL;
    if (graph->nodes.count != other->nodes.count)
        return TOPOLOGY_CHANGED;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *a = graph->nodes.at[i], *b = other->nodes.at[i];
        *bad = (struct node *)b->origin;
        if (a->type != b->type)
            return TYPE_CHANGED;
        if (a->before.count != b->before.count)
            return TOPOLOGY_CHANGED;
        if (a->child && difference(a->child, b->child, &(struct node *){NULL}) != UPDATED)
            return TOPOLOGY_CHANGED;
    }
    *bad = NULL;
    return UPDATED;
}

static void exchange(struct graph *graph, struct graph *other)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        struct node *a = graph->nodes.at[i], *b = other->nodes.at[i];
        struct operation operation = a->operation;
        a->operation = b->operation;
        b->operation = operation;
        a->event = b->event;
        if (a->child)
            exchange(a->child, b->child);
    }
}

hipError_t hipGraphExecUpdate(struct graph *executable, struct graph *graph, struct node **bad, int *result)
{
    struct graph *update;
    *result = graph_copy(&update, graph, HANDLE_EXEC) ? UPDATE_FAILED : UPDATED;
    if (*result != UPDATED)
        return hipErrorGraphExecUpdateFailure;
    *result = difference(executable, update, bad);
    if (*result == UPDATED)
        exchange(executable, update);
    graph_destroy(update);
    return *result == UPDATED ? hipSuccess : hipErrorGraphExecUpdateFailure;
}
