/* Graphs as programs build them: made, joined, cloned, dismantled, and queried. */
#include "checks.h"
#include "graph.h"
#include "streams.h"

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

/* Nodes of any kind, by their types. */

static const struct node_kind *kind_of(int type)
{
    static const struct node_kind *const KINDS[NODE_TYPES] = {
        [NODE_LAUNCH] = &LAUNCH_KIND, [NODE_COPY] = &COPY_KIND, [NODE_FILL] = &FILL_KIND, [NODE_CALL] = &CALL_KIND,
        [NODE_GRAPH] = &GRAPH_KIND, [NODE_EMPTY] = &EMPTY_KIND, [NODE_WAIT] = &WAIT_KIND, [NODE_RECORD] = &RECORD_KIND,
        [NODE_SIGNAL_SEMAPHORES] = &SIGNAL_KIND, [NODE_WAIT_SEMAPHORES] = &WAIT_SEMAPHORES_KIND,
        [NODE_ALLOCATE] = &ALLOCATE_KIND, [NODE_FREE] = &FREE_KIND, [NODE_BATCH] = &BATCH_KIND};
    return type >= 0 && type < NODE_TYPES ? KINDS[type] : NULL;
}

/* HIP 5 counts types from 1, but has none of these functions. */

static hipError_t prepare(struct node_params *params, struct content *content)
{
    const struct node_kind *kind = kind_of(params->type);
    *content = (struct content){.operation.kind = OPERATION_NOTHING};
    if (!kind)
        return hipErrorInvalidValue;
    return kind->prepare ? kind->prepare(params->content + kind->params_at, content) : hipErrorNotSupported;
}

hipError_t hipGraphAddNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                           struct node_params *params)
{
    struct content content;
    hipError_t error = params->type == NODE_EMPTY || params->type == NODE_BATCH ? hipErrorInvalidValue : prepare(params, &content);
    return node_add(node, graph, before, count, kind_of(params->type), error, &content);
}

/* What a node allocates or frees stays as it was made. */
static hipError_t prepare_change(struct node_params *params, struct content *content)
{
    if (params->type == NODE_ALLOCATE || params->type == NODE_FREE)
        return hipErrorNotSupported;
    return params->type == NODE_EMPTY || params->type == NODE_BATCH ? hipErrorInvalidValue : prepare(params, content);
}

hipError_t hipGraphNodeSetParams(struct node *node, struct node_params *params)
{
    struct content content;
    hipError_t error = prepare_change(params, &content);
    return node_set(node, kind_of(params->type), error, &content);
}

hipError_t hipGraphExecNodeSetParams(struct graph *executable, struct node *node, struct node_params *params)
{
    struct content content;
    struct graph *child = *(struct graph **)params->content;
    if (params->type == NODE_GRAPH)
        return handle_is(child, HANDLE_GRAPH) ? hipGraphExecChildGraphNodeSetParams(executable, node, child) : hipErrorInvalidValue;
    hipError_t error = prepare_change(params, &content);
    return exec_set(executable, node, kind_of(params->type), error, &content);
}

/* hipGraphDebugDotPrint: a graph in the language of Graphviz, with its children as separate graphs. */

enum { HANDLES = 1 << 10, VERBOSE = 1 };

static void print_node(FILE *out, const struct node *node, unsigned flags)
{
    const struct node_kind *kind = node->kind;
    fprintf(out, "\"graph_%llu_node_%llu\" [style=\"solid\", shape=\"%s\", label=\"%llu\\n%s", (unsigned long long)node->graph->id,
            (unsigned long long)node->id, kind->shape, (unsigned long long)node->id, kind->label);
    if (flags & (HANDLES | VERBOSE))
        fprintf(out, "\\nnode %p", (const void *)node);
    if (kind->describe)
        kind->describe(out, &node->content, flags);
    if (is_of(node, NODE_GRAPH))
        fprintf(out, "\\ngraph_%llu", (unsigned long long)node->content.child->id);
    fprintf(out, "\"];\n");
}

static void print_edges(FILE *out, const struct node *node)
{
    for (size_t i = 0; i < node->after.count; i++)
        fprintf(out, "\"graph_%llu_node_%llu\" -> \"graph_%llu_node_%llu\";\n", (unsigned long long)node->graph->id,
                (unsigned long long)node->id, (unsigned long long)node->graph->id, (unsigned long long)node->after.at[i]->id);
}

static void print_graph(FILE *out, const struct graph *graph, unsigned flags)
{
    fprintf(out, "subgraph cluster_%llu {\nlabel=\"graph_%llu\";\n", (unsigned long long)graph->id, (unsigned long long)graph->id);
    for (size_t i = 0; i < graph->nodes.count; i++)
        print_node(out, graph->nodes.at[i], flags);
    for (size_t i = 0; i < graph->nodes.count; i++)
        print_edges(out, graph->nodes.at[i]);
    fprintf(out, "}\n");
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (is_of(graph->nodes.at[i], NODE_GRAPH))
            print_graph(out, graph->nodes.at[i]->content.child, flags);
}

hipError_t hipGraphDebugDotPrint(struct graph *graph, const char *path, unsigned flags)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return hipErrorOperatingSystem;
    fprintf(out, "digraph dot {\n");
    print_graph(out, graph, flags);
    fprintf(out, "}\n");
    return fclose(out) ? hipErrorOperatingSystem : hipSuccess;
}
