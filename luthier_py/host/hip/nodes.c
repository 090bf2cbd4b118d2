/* Graphs as data: nodes, edges, order, copies. See graph.h. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "graph.h"
#include "streams.h"

static _Atomic uint64_t next_id = 1;

bool nodes_have(const struct nodes *nodes, const struct node *node)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->at[i] == node)
            return true;
    return false;
}

static hipError_t append(struct nodes *nodes, struct node *node)
{
    if (nodes->count == nodes->room) {
        size_t room = 2 * nodes->room + 2;
        struct node **larger = realloc(nodes->at, room * sizeof *larger);
        if (!larger)
            return hipErrorOutOfMemory;
        nodes->at = larger;
        nodes->room = room;
    }
    nodes->at[nodes->count++] = node;
    return hipSuccess;
}

hipError_t nodes_add(struct nodes *nodes, struct node *const *more, size_t count)
{
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < count && !error; i++)
        if (!nodes_have(nodes, more[i]))
            error = append(nodes, more[i]);
    return error;
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

bool nodes_are_of(struct node *const *nodes, size_t count, const struct graph *graph)
{
    bool good = nodes || !count;
    for (size_t i = 0; good && i < count; i++) {
        good = handle_is(nodes[i], HANDLE_NODE) && nodes[i]->graph == graph;
        for (size_t j = 0; good && j < i; j++)
            good = nodes[j] != nodes[i];
    }
    return good;
}

/* Edges. */

hipError_t nodes_link(struct node *from, struct node *to)
{
    hipError_t error = append(&to->before, from);
    if (!error && (error = append(&from->after, to)))
        to->before.count--;
    return error;
}

bool nodes_unlink(struct node *from, struct node *to)
{
    return nodes_remove(&from->after, to) && nodes_remove(&to->before, from);
}

/* Nodes. */

void content_discard(const struct node_kind *kind, struct content *content)
{
    if (kind->discard)
        kind->discard(content);
    operation_discard(&content->operation);
}

static void discard(struct node *node)
{
    content_discard(node->kind, &node->content);
    nodes_clear(&node->before);
    nodes_clear(&node->after);
    handle_remove(node, HANDLE_NODE);
    free(node);
}

void node_destroy(struct node *node)
{
    while (node->before.count)
        nodes_unlink(node->before.at[0], node);
    while (node->after.count)
        nodes_unlink(node, node->after.at[0]);
    nodes_remove(&node->graph->nodes, node);
    discard(node);
}

hipError_t graph_add(struct graph *graph, const struct node_kind *kind, struct content *content, struct node *const *before,
                     size_t count, struct node **result)
{
    struct node *node = calloc(1, sizeof *node);
    if (!node) {
        content_discard(kind, content);
        return hipErrorOutOfMemory;
    }
    *node = (struct node){.id = next_id++, .kind = kind, .graph = graph, .content = *content};
    hipError_t error = append(&graph->nodes, node);
    if (error) {
        discard(node);
        return error;
    }
    for (size_t i = 0; i < count && !error; i++)
        error = nodes_link(before[i], node);
    if (!error && !graph->ready && !handle_add(node, HANDLE_NODE))
        error = hipErrorOutOfMemory;
    if (error)
        node_destroy(node);
    else
        *result = node;
    return error;
}

hipError_t node_add(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                    const struct node_kind *kind, hipError_t error, struct content *content)
{
    if (error)
        return error;
    if (nodes_are_of(before, count, graph))
        return graph_add(graph, kind, content, before, count, node);
    content_discard(kind, content);
    return hipErrorInvalidValue;
}

hipError_t node_set(struct node *node, const struct node_kind *kind, hipError_t error, struct content *content)
{
    if (error)
        return error;
    if (node->kind != kind) {
        content_discard(kind, content);
        return hipErrorInvalidValue;
    }
    if (kind->keep)
        kind->keep(content, &node->content);
    content_discard(kind, &node->content);
    node->content = *content;
    return hipSuccess;
}

hipError_t exec_set(struct graph *executable, struct node *node, const struct node_kind *kind, hipError_t error,
                    struct content *content)
{
    if (error)
        return error;
    struct node *own = node->kind == kind ? node_in(executable, node) : NULL;
    error = !own ? hipErrorInvalidValue : kind->fits ? kind->fits(&own->content, content) : hipSuccess;
    if (!error)
        return node_set(own, kind, hipSuccess, content);
    content_discard(kind, content);
    return error;
}

/* Graphs. */

struct graph *graph_new(bool ready)
{
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph || !handle_add(graph, ready ? HANDLE_EXEC : HANDLE_GRAPH)) {
        free(graph);
        return NULL;
    }
    graph->id = next_id++;
    graph->ready = ready;
    return graph;
}

void graph_destroy(struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        discard(graph->nodes.at[i]);
    nodes_clear(&graph->nodes);
    objects_let_go(graph);
    handle_remove(graph, graph->ready ? HANDLE_EXEC : HANDLE_GRAPH);
    free(graph);
}

/* Level by level, and in each as they were added; the lists of what comes after a node say which is next. */
bool graph_order(const struct graph *graph, struct nodes *ordered)
{
    hipError_t error = hipSuccess;
    *ordered = (struct nodes){NULL, 0, 0};
    for (size_t i = 0; i < graph->nodes.count && !error; i++) {
        struct node *node = graph->nodes.at[i];
        node->left = node->before.count;
        error = node->left ? hipSuccess : append(ordered, node);
    }
    for (size_t i = 0; i < ordered->count && !error; i++)
        for (size_t j = 0; j < ordered->at[i]->after.count && !error; j++) {
            struct node *next = ordered->at[i]->after.at[j];
            error = --next->left ? hipSuccess : append(ordered, next);
        }
    bool all = !error && ordered->count == graph->nodes.count;
    if (!all)
        nodes_clear(ordered);
    return all;
}

/* Copies. */

struct node *node_in(const struct graph *copy, const struct node *origin)
{
    for (size_t i = 0; i < copy->nodes.count; i++)
        if (copy->nodes.at[i]->origin == origin->id)
            return copy->nodes.at[i];
    return NULL;
}

static hipError_t node_copy(struct graph *graph, struct node *node)
{
    struct content content = node->content;
    hipError_t error = operation_copy(&content.operation, &node->content.operation);
    if (!error && node->kind->copy)
        error = node->kind->copy(&content, &node->content, graph->ready);
    if (error) {
        operation_discard(&content.operation);
        return error;
    }
    error = graph_add(graph, node->kind, &content, NULL, 0, &node->copy);
    if (error)
        return error;
    node->copy->origin = node->id;
    node->copy->off = node->off;
    return hipSuccess;
}

static hipError_t copy_edges(const struct graph *graph)
{
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct node *node = graph->nodes.at[i];
        for (size_t j = 0; j < node->before.count && !error; j++)
            error = append(&node->copy->before, node->before.at[j]->copy);
        for (size_t j = 0; j < node->after.count && !error; j++)
            error = append(&node->copy->after, node->after.at[j]->copy);
    }
    return error;
}

hipError_t graph_copy(struct graph **result, const struct graph *graph, bool ready)
{
    struct nodes ordered = {NULL, 0, 0};
    if (ready && !graph_order(graph, &ordered))
        return hipErrorInvalidValue;
    struct graph *copy = graph_new(ready);
    const struct nodes *all = ready ? &ordered : &graph->nodes;
    hipError_t error = copy ? objects_copy(copy, graph) : hipErrorOutOfMemory;
    for (size_t i = 0; i < all->count && !error; i++)
        error = node_copy(copy, all->at[i]);
    if (!error)
        error = copy_edges(graph);
    nodes_clear(&ordered);
    if (error && copy)
        graph_destroy(copy);
    if (error)
        return error;
    copy->origin = graph->id;
    *result = copy;
    return hipSuccess;
}

/* What nodes put on streams. A launch leaves copies of its operations there: the executable may change or go at once. */

hipError_t node_put_operation(const struct node *node, struct stream *stream)
{
    return operation_put(stream, &node->content.operation);
}

hipError_t executable_put(const struct graph *executable, struct stream *stream)
{
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < executable->nodes.count && !error; i++) {
        const struct node *node = executable->nodes.at[i];
        const struct node_kind *kind = node->kind;
        error = node->off || !kind->carry_out ? hipSuccess : kind->carry_out(node, stream);
    }
    return error;
}
