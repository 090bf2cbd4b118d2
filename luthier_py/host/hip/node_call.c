/* Nodes of host functions, and empty ones. */
#include "graph.h"

static hipError_t prepare_call(void *params, struct content *content)
{
    const struct call_params *call = params;
    if (!call->function)
        return hipErrorInvalidValue;
    *content = (struct content){.operation = {OPERATION_CALL, .call = {call->function, call->data}}};
    return hipSuccess;
}

static void describe_call(FILE *out, const struct content *content, unsigned flags)
{
    enum { VERBOSE = 1, HOST = 1 << 5 };
    if (flags & (VERBOSE | HOST))
        fprintf(out, "\\n%p(%p)", (void *)content->operation.call.function, content->operation.call.data);
}

const struct node_kind CALL_KIND = {NODE_CALL, "HOST", "rectangle", .prepare = prepare_call, .carry_out = node_put_operation,
                                    .describe = describe_call};

hipError_t hipGraphAddHostNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                               const struct call_params *params)
{
    struct content content;
    hipError_t error = prepare_call((void *)params, &content);
    return node_add(node, graph, before, count, &CALL_KIND, error, &content);
}

hipError_t hipGraphHostNodeGetParams(struct node *node, struct call_params *params)
{
    if (!is_of(node, NODE_CALL))
        return hipErrorInvalidValue;
    *params = (struct call_params){node->content.operation.call.function, node->content.operation.call.data};
    return hipSuccess;
}

hipError_t hipGraphHostNodeSetParams(struct node *node, const struct call_params *params)
{
    struct content content;
    hipError_t error = prepare_call((void *)params, &content);
    return node_set(node, &CALL_KIND, error, &content);
}

hipError_t hipGraphExecHostNodeSetParams(struct graph *executable, struct node *node, const struct call_params *params)
{
    struct content content;
    hipError_t error = prepare_call((void *)params, &content);
    return exec_set(executable, node, &CALL_KIND, error, &content);
}

/* Empty nodes. */

const struct node_kind EMPTY_KIND = {NODE_EMPTY, .label = "EMPTY", .shape = "rectangle"};

hipError_t hipGraphAddEmptyNode(struct node **node, struct graph *graph, struct node *const *before, size_t count)
{
    return node_add(node, graph, before, count, &EMPTY_KIND, hipSuccess, &(struct content){.operation.kind = OPERATION_NOTHING});
}
