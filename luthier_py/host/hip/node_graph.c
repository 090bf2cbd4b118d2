/* Nodes that are graphs: a clone of the graph that they were made of, with handles for its nodes as those of any graph. */
#include "checks.h"
#include "graph.h"
#include "streams.h"

static hipError_t adopt(const struct graph *child, bool ready, struct content *content)
{
    struct graph *copy;
    hipError_t error = graph_copy(&copy, child, ready);
    if (error)
        return error;
    copy->owned = true;
    *content = (struct content){.child = copy};
    return hipSuccess;
}

static hipError_t prepare(void *params, struct content *content)
{
    const struct graph *child = *(struct graph **)params;
    return child && handle_is(child, HANDLE_GRAPH) ? adopt(child, false, content) : hipErrorInvalidValue;
}

static hipError_t copy(struct content *to, const struct content *from, bool ready) { return adopt(from->child, ready, to); }
static void discard(struct content *content) { graph_destroy(content->child); }
static hipError_t carry_out(const struct node *node, struct stream *stream) { return executable_put(node->content.child, stream); }

/* The same types of nodes in the same order; `other` becomes ready to run. */
static hipError_t fits(const struct content *old, const struct content *other)
{
    struct nodes ordered;
    if (!graph_order(other->child, &ordered))
        return hipErrorUnknown;
    bool same = ordered.count == old->child->nodes.count;
    for (size_t i = 0; same && i < ordered.count; i++)
        same = ordered.at[i]->kind == old->child->nodes.at[i]->kind;
    nodes_clear(&ordered);
    return same ? hipSuccess : hipErrorUnknown;
}

const struct node_kind GRAPH_KIND = {NODE_GRAPH, "GRAPH", "rectangle", .prepare = prepare, .copy = copy, .discard = discard,
                                     .fits = fits, .carry_out = carry_out};

hipError_t hipGraphAddChildGraphNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                     struct graph *child)
{
    struct content content;
    hipError_t error = adopt(child, false, &content);
    return node_add(node, graph, before, count, &GRAPH_KIND, error, &content);
}

hipError_t hipGraphChildGraphNodeGetGraph(struct node *node, struct graph **graph)
{
    if (!is_of(node, NODE_GRAPH))
        return hipErrorInvalidValue;
    *graph = node->content.child;
    return hipSuccess;
}

hipError_t hipGraphExecChildGraphNodeSetParams(struct graph *executable, struct node *node, struct graph *child)
{
    struct content content;
    if (!is_of(node, NODE_GRAPH) || !node_in(executable, node))
        return hipErrorInvalidValue;
    if (child == node->graph)
        return hipErrorUnknown;
    hipError_t error = adopt(child, true, &content);
    return exec_set(executable, node, &GRAPH_KIND, error == hipErrorInvalidValue ? hipErrorUnknown : error, &content);
}
