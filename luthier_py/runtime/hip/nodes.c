/* Graphs as data: nodes, edges, copies, questions. See graph.h. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

static bool is_node(const struct node *node) { return handle_is(node, HANDLE_NODE); }

static bool nodes_have(const struct nodes *nodes, const struct node *node)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->at[i] == node)
            return true;
    return false;
}

hipError_t nodes_add(struct nodes *nodes, struct node *const *more, size_t count)
{
    if (nodes->count + count > nodes->room) {
        size_t room = 2 * (nodes->count + count) + 2;
        struct node **larger = realloc(nodes->at, room * sizeof *larger);
        if (!larger)
            return hipErrorOutOfMemory;
        nodes->at = larger;
        nodes->room = room;
    }
    for (size_t i = 0; i < count; i++)
        if (!nodes_have(nodes, more[i]))
            nodes->at[nodes->count++] = more[i];
    return hipSuccess;
}

static bool nodes_remove(struct nodes *nodes, const struct node *node)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->at[i] == node) {
            memmove(nodes->at + i, nodes->at + i + 1, (--nodes->count - i) * sizeof *nodes->at);
            return true;
        }
    return false;
}

void nodes_clear(struct nodes *nodes)
{
    free(nodes->at);
    *nodes = (struct nodes){NULL, 0, 0};
}

void node_set(struct node *node, const struct operation *operation)
{
    operation_discard(&node->operation);
    node->operation = *operation;
    free(node->args);
    node->args = NULL;
}

static void node_discard(struct node *node)
{
    operation_discard(&node->operation);
    free(node->args);
    nodes_clear(&node->before);
    if (node->child)
        graph_destroy(node->child);
    handle_remove(node, HANDLE_NODE);
    free(node);
}

void graph_destroy(struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        node_discard(graph->nodes.at[i]);
    nodes_clear(&graph->nodes);
    handle_remove(graph, HANDLE_GRAPH);
    handle_remove(graph, HANDLE_EXEC);
    free(graph);
}

static struct graph *graph_new(enum handle_kind kind)
{
    struct graph *graph = calloc(1, sizeof *graph);
    if (graph && handle_add(graph, kind))
        return graph;
    free(graph);
    return NULL;
}

hipError_t graph_add(struct graph *graph, enum node_type type, const struct operation *operation,
                     struct node *const *before, size_t count, struct node **result)
{
    struct operation own = operation ? *operation : (struct operation){.kind = OPERATION_NOTHING};
    struct node *node = calloc(1, sizeof *node);
    if (!node) {
        operation_discard(&own);
        return hipErrorOutOfMemory;
    }
    *node = (struct node){.type = type, .graph = graph, .operation = own};
    hipError_t error = nodes_add(&node->before, before, count);
    if (!error)
        error = nodes_add(&graph->nodes, &node, 1);
    if (!error && !handle_add(node, HANDLE_NODE)) {
        graph->nodes.count--;
        error = hipErrorOutOfMemory;
    }
    if (error)
        node_discard(node);
    else
        *result = node;
    return error;
}

/* Copies. */

struct node *node_in(const struct graph *copy, const struct node *origin)
{
    for (size_t i = 0; i < copy->nodes.count; i++)
        if (copy->nodes.at[i]->origin == origin)
            return copy->nodes.at[i];
    return NULL;
}

static hipError_t node_copy(struct graph *graph, struct node *node, enum handle_kind kind)
{
    struct operation operation;
    struct node *copy;
    hipError_t error = operation_copy(&operation, &node->operation);
    if (!error)
        error = graph_add(graph, node->type, &operation, NULL, 0, &copy);
    if (error)
        return error;
    node->copy = copy;
    copy->origin = node;
    copy->event = node->event;
    copy->off = node->off;
    return node->child ? graph_copy(&copy->child, node->child, kind) : hipSuccess;
}

/* Whether all that it comes after has been copied. */
static bool is_next(const struct node *node)
{
    for (size_t i = 0; i < node->before.count; i++)
        if (!node->before.at[i]->copy)
            return false;
    return !node->copy;
}

static hipError_t copy_ordered(struct graph *copy, const struct graph *graph)
{
    const struct nodes *all = &graph->nodes;
    hipError_t error = hipSuccess;
    for (size_t before = SIZE_MAX; before != copy->nodes.count && copy->nodes.count < all->count && !error;) {
        before = copy->nodes.count;
        for (size_t i = 0; i < all->count && !error; i++)
            if (is_next(all->at[i]))
                error = node_copy(copy, all->at[i], HANDLE_EXEC);
    }
    return error ? error : copy->nodes.count < all->count ? hipErrorInvalidValue : hipSuccess; /* a circle */
}

static hipError_t copy_edges(const struct graph *graph)
{
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *node = graph->nodes.at[i];
        for (size_t j = 0; j < node->before.count && !error; j++)
            error = nodes_add(&node->copy->before, &node->before.at[j]->copy, 1);
    }
    return error;
}

hipError_t graph_copy(struct graph **result, const struct graph *graph, enum handle_kind kind)
{
    struct graph *copy = graph_new(kind);
    hipError_t error = hipSuccess;
    if (!copy)
        return hipErrorOutOfMemory;
    for (size_t i = 0; i < graph->nodes.count; i++)
        graph->nodes.at[i]->copy = NULL;
    if (kind == HANDLE_EXEC)
        error = copy_ordered(copy, graph);
    else
        for (size_t i = 0; i < graph->nodes.count && !error; i++)
            error = node_copy(copy, graph->nodes.at[i], kind);
    if (!error)
        error = copy_edges(graph);
    if (error)
        graph_destroy(copy);
    else
        *result = copy;
    return error;
}

/* The functions of the API. */

hipError_t hipGraphCreate(struct graph **graph, unsigned flags)
{
    (void)flags;
    *graph = graph_new(HANDLE_GRAPH);
    return *graph ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipGraphDestroy(struct graph *graph)
{
    if (!handle_remove(graph, HANDLE_GRAPH))
        return hipErrorInvalidValue;
    graph_destroy(graph);
    return hipSuccess;
}

hipError_t hipGraphClone(struct graph **clone, struct graph *graph)
{
    return graph_copy(clone, graph, HANDLE_GRAPH);
}

hipError_t hipGraphNodeFindInClone(struct node **node, struct node *origin, struct graph *clone)
{
    *node = node_in(clone, origin);
    return *node ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipGraphDestroyNode(struct node *node)
{
    struct nodes *all = &node->graph->nodes;
    nodes_remove(all, node);
    for (size_t i = 0; i < all->count; i++)
        nodes_remove(&all->at[i]->before, node);
    node_discard(node);
    return hipSuccess;
}

static bool joinable(const struct graph *graph, struct node *const *from, struct node *const *to, size_t count)
{
    bool good = count == 0 || (from && to);
    for (size_t i = 0; good && i < count; i++)
        good = is_node(from[i]) && is_node(to[i]) && from[i] != to[i] && from[i]->graph == graph && to[i]->graph == graph;
    return good;
}

hipError_t hipGraphAddDependencies(struct graph *graph, struct node *const *from, struct node *const *to, size_t count)
{
    hipError_t error = joinable(graph, from, to, count) ? hipSuccess : hipErrorInvalidValue;
    for (size_t i = 0; i < count && !error; i++)
        error = nodes_have(&to[i]->before, from[i]) ? hipErrorInvalidValue : nodes_add(&to[i]->before, &from[i], 1);
    return error;
}

hipError_t hipGraphRemoveDependencies(struct graph *graph, struct node *const *from, struct node *const *to, size_t count)
{
    hipError_t error = joinable(graph, from, to, count) ? hipSuccess : hipErrorInvalidValue;
    for (size_t i = 0; i < count && !error; i++)
        error = nodes_remove(&to[i]->before, from[i]) ? hipSuccess : hipErrorInvalidValue;
    return error;
}

/* The number of nodes without a place for them; else as many as fit, and NULL in the rest. */
static hipError_t give(const struct nodes *nodes, struct node **places, size_t *count)
{
    size_t room = *count;
    *count = !places || nodes->count < room ? nodes->count : room;
    for (size_t i = 0; places && i < room; i++)
        places[i] = i < nodes->count ? nodes->at[i] : NULL;
    return hipSuccess;
}

hipError_t hipGraphGetNodes(struct graph *graph, struct node **nodes, size_t *count)
{
    return give(&graph->nodes, nodes, count);
}

hipError_t hipGraphNodeGetDependencies(struct node *node, struct node **nodes, size_t *count)
{
    return give(&node->before, nodes, count);
}

/* The nodes for which `wanted` says yes. */
static hipError_t give_some(const struct graph *graph, bool (*wanted)(const struct node *, const struct node *),
                            const struct node *about, struct node **places, size_t *count)
{
    struct nodes found = {NULL, 0, 0};
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < graph->nodes.count && !error; i++)
        if (wanted(graph->nodes.at[i], about))
            error = nodes_add(&found, &graph->nodes.at[i], 1);
    if (!error)
        error = give(&found, places, count);
    nodes_clear(&found);
    return error;
}

static bool is_root(const struct node *node, const struct node *about) { return (void)about, node->before.count == 0; }
static bool depends(const struct node *node, const struct node *about) { return nodes_have(&node->before, about); }

hipError_t hipGraphGetRootNodes(struct graph *graph, struct node **nodes, size_t *count)
{
    return give_some(graph, is_root, NULL, nodes, count);
}

hipError_t hipGraphNodeGetDependentNodes(struct node *node, struct node **nodes, size_t *count)
{
    return give_some(node->graph, depends, node, nodes, count);
}

hipError_t hipGraphGetEdges(struct graph *graph, struct node **from, struct node **to, size_t *count)
{
    if (!from != !to)
        return hipErrorInvalidValue;
    size_t room = from ? *count : 0, found = 0;
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (size_t j = 0; j < graph->nodes.at[i]->before.count; j++, found++)
            if (found < room) {
                from[found] = graph->nodes.at[i]->before.at[j];
                to[found] = graph->nodes.at[i];
            }
    for (size_t i = found; i < room; i++)
        from[i] = to[i] = NULL;
    *count = from && found > room ? room : found;
    return hipSuccess;
}

hipError_t hipGraphNodeGetType(struct node *node, int *type)
{
    *type = (int)node->type + (ABI_MAJOR == 5); /* which counted from 1 */
    return hipSuccess;
}
