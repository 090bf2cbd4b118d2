/* What nodes put on streams. A launch leaves copies of its operations there: the executable may change or go at once. */
#include "graph.h"

hipError_t operation_put(struct stream *stream, const struct operation *operation)
{
    struct operation copy;
    hipError_t error = operation_copy(&copy, operation);
    bool wait = operation->kind == OPERATION_COPY && operation->copy.pageable; /* as perform.c */
    return error ? error : work_put(stream, &copy, NULL, wait, NULL);
}

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
