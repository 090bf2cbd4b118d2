/* Graphs as programs: instantiated, changed node by node, launched. */
#include <stdlib.h>

#include "graph.h"

enum { UPDATED = 0, UPDATE_FAILED = 1, TOPOLOGY_CHANGED = 2, TYPE_CHANGED = 3, INVALID_STRUCTURE = 2 };

hipError_t hipGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags)
{
    hipError_t error = executable && graph ? graph_copy(executable, graph, true) : hipErrorInvalidValue;
    if (!error)
        (*executable)->flags = flags;
    return note(error);
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
    if (!params)
        return note(hipErrorInvalidValue);
    hipError_t error = hipGraphInstantiateWithFlags(executable, graph, params->flags);
    params->bad = NULL;
    params->result = error ? INVALID_STRUCTURE : 0;
    return error;
}

hipError_t hipGraphExecGetFlags(struct graph *executable, unsigned long long *flags)
{
    if (!executable || !flags)
        return note(hipErrorInvalidValue);
    *flags = executable->flags;
    return hipSuccess;
}

hipError_t hipGraphExecDestroy(struct graph *executable) { return hipGraphDestroy(executable); }

hipError_t hipGraphUpload(struct graph *executable, stream_t handle)
{
    return note(executable && stream_of(handle) ? hipSuccess : hipErrorInvalidValue);
}

static hipError_t carry_out(const struct node *node, stream_t handle)
{
    switch (node->type) {
    case NODE_GRAPH: return hipGraphLaunch(node->child, handle);
    case NODE_EMPTY: return hipSuccess;
    case NODE_WAIT: return hipStreamWaitEvent(handle, node->event, 0);
    case NODE_RECORD: return hipEventRecord(node->event, handle);
    default: return node->off ? hipSuccess : perform(handle, &node->operation);
    }
}

hipError_t hipGraphLaunch(struct graph *executable, stream_t handle)
{
    hipError_t error = executable ? hipSuccess : hipErrorInvalidValue;
    for (size_t i = 0; !error && i < executable->nodes.count; i++)
        error = carry_out(executable->nodes.at[i], handle);
    return note(error);
}

hipError_t hipGraphNodeSetEnabled(struct graph *executable, struct node *node, unsigned on)
{
    struct node *own = executable ? node_in(executable, node) : NULL;
    if (!own || own->type > NODE_FILL)
        return note(hipErrorInvalidValue);
    own->off = !on;
    return hipSuccess;
}

hipError_t hipGraphNodeGetEnabled(struct graph *executable, struct node *node, unsigned *on)
{
    const struct node *own = executable ? node_in(executable, node) : NULL;
    if (!own || !on)
        return note(hipErrorInvalidValue);
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
    if (!executable || !graph || !bad || !result)
        return note(hipErrorInvalidValue);
    *result = graph_copy(&update, graph, true) ? UPDATE_FAILED : UPDATED;
    if (*result != UPDATED)
        return note(hipErrorGraphExecUpdateFailure);
    *result = difference(executable, update, bad);
    if (*result == UPDATED)
        exchange(executable, update);
    hipGraphDestroy(update);
    return note(*result == UPDATED ? hipSuccess : hipErrorGraphExecUpdateFailure);
}
