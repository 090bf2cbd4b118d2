/* Graphs as programs build them: made, joined, cloned, taken apart, and asked. */
#include "graph.h"

hipError_t hipGraphCreate(struct graph **graph, unsigned flags)
{
    struct graph *made = graph_new(false);
    (void)flags;
    if (!made)
        return hipErrorOutOfMemory;
    *graph = made;
    return hipSuccess;
}

hipError_t hipGraphDestroy(struct graph *graph)
{
    if (!handle_is(graph, HANDLE_GRAPH))
        return hipErrorIllegalState;
    if (graph->owned)
        return hipErrorInvalidValue;
    if (capture_has(graph))
        return hipErrorStreamCaptureUnsupported;
    graph_destroy(graph);
    return hipSuccess;
}

hipError_t hipGraphClone(struct graph **clone, struct graph *graph)
{
    return graph_has_memory(graph) ? hipErrorNotSupported : graph_copy(clone, graph, false);
}

hipError_t hipGraphNodeFindInClone(struct node **node, struct node *origin, struct graph *clone)
{
    struct node *found = clone->origin == origin->graph->id ? node_in(clone, origin) : NULL;
    if (!found)
        return hipErrorInvalidValue;
    *node = found;
    return hipSuccess;
}

hipError_t hipGraphDestroyNode(struct node *node)
{
    if (is_of(node, NODE_ALLOCATE) || is_of(node, NODE_FREE))
        return hipErrorNotSupported;
    if (capture_has(node->graph))
        return hipErrorStreamCaptureUnsupported;
    node_destroy(node);
    return hipSuccess;
}

/* Edges. */

static bool joinable(const struct graph *graph, struct node *const *from, struct node *const *to, size_t count)
{
    bool good = count == 0 || (from && to);
    for (size_t i = 0; good && i < count; i++)
        good = nodes_are_of(&from[i], 1, graph) && nodes_are_of(&to[i], 1, graph) && from[i] != to[i];
    return good;
}

hipError_t hipGraphAddDependencies(struct graph *graph, struct node *const *from, struct node *const *to, size_t count)
{
    hipError_t error = joinable(graph, from, to, count) ? hipSuccess : hipErrorInvalidValue;
    for (size_t i = 0; i < count && !error; i++)
        error = nodes_have(&from[i]->after, to[i]) ? hipErrorInvalidValue : nodes_link(from[i], to[i]);
    return error;
}

hipError_t hipGraphRemoveDependencies(struct graph *graph, struct node *const *from, struct node *const *to, size_t count)
{
    hipError_t error = joinable(graph, from, to, count) ? hipSuccess : hipErrorInvalidValue;
    for (size_t i = 0; i < count && !error; i++)
        error = nodes_unlink(from[i], to[i]) ? hipSuccess : hipErrorInvalidValue;
    return error;
}

/* Questions. */

/* The number of nodes without a place for them; else as many as fit, and NULL in the rest. */
static hipError_t give(const struct nodes *nodes, struct node **places, size_t *count)
{
    size_t room = *count;
    *count = !places || nodes->count < room ? nodes->count : room;
    for (size_t i = 0; places && i < room; i++)
        places[i] = i < nodes->count ? nodes->at[i] : NULL;
    return hipSuccess;
}

static hipError_t give_and_clear(struct nodes *nodes, struct node **places, size_t *count)
{
    give(nodes, places, count);
    nodes_clear(nodes);
    return hipSuccess;
}

hipError_t hipGraphGetNodes(struct graph *graph, struct node **nodes, size_t *count)
{
    struct nodes ordered;
    return graph_order(graph, &ordered) ? give_and_clear(&ordered, nodes, count) : hipErrorInvalidValue;
}

hipError_t hipGraphGetRootNodes(struct graph *graph, struct node **nodes, size_t *count)
{
    struct nodes roots = {NULL, 0, 0};
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < graph->nodes.count && !error; i++)
        if (!graph->nodes.at[i]->before.count)
            error = nodes_add(&roots, &graph->nodes.at[i], 1);
    hipError_t given = give_and_clear(&roots, nodes, count);
    return error ? error : given;
}

hipError_t hipGraphNodeGetDependencies(struct node *node, struct node **nodes, size_t *count)
{
    return give(&node->before, nodes, count);
}

hipError_t hipGraphNodeGetDependentNodes(struct node *node, struct node **nodes, size_t *count)
{
    return give(&node->after, nodes, count);
}

hipError_t hipGraphGetEdges(struct graph *graph, struct node **from, struct node **to, size_t *count)
{
    if (!from != !to)
        return hipErrorInvalidValue;
    size_t room = from ? *count : 0, found = 0;
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (size_t j = 0; j < graph->nodes.at[i]->after.count; j++, found++)
            if (found < room) {
                from[found] = graph->nodes.at[i];
                to[found] = graph->nodes.at[i]->after.at[j];
            }
    for (size_t i = found; i < room; i++)
        from[i] = to[i] = NULL;
    *count = from && found > room ? room : found;
    return hipSuccess;
}

hipError_t hipGraphNodeGetType(struct node *node, int *type)
{
    *type = (int)node->kind->type + (ABI_MAJOR == 5); /* which counted from 1 */
    return hipSuccess;
}
