/* The kinds of nodes by their types, for the functions that take any. */
#include "graph.h"

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
