/* Nodes of memory operations in batches, and of external semaphores, of which there are none here: these nodes can be made
 * and queried, and a launch with a semaphore in them is an error.
 */
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "streams.h"

static hipError_t copy_operations(struct content *content, const struct memory_operation *operations)
{
    size_t bytes = content->batch.count * sizeof *operations;
    content->batch.operations = malloc(bytes);
    if (!content->batch.operations)
        return hipErrorOutOfMemory;
    memcpy(content->batch.operations, operations, bytes);
    return hipSuccess;
}

static hipError_t prepare(const struct batch_params *params, struct content *content)
{
    if (!params->count || params->count > MOST_OPERATIONS || !params->operations || params->flags || !params->context)
        return hipErrorInvalidValue;
    *content = (struct content){.batch = *params};
    return copy_operations(content, params->operations);
}

static hipError_t copy(struct content *to, const struct content *from, bool ready)
{
    (void)ready;
    return copy_operations(to, from->batch.operations);
}

static void discard(struct content *content) { free(content->batch.operations); }

static hipError_t carry_out(const struct node *node, struct stream *stream)
{
    struct operation call;
    hipError_t error = words_prepare(node->content.batch.operations, node->content.batch.count, &call);
    if (error)
        return error;
    error = operation_put(stream, &call);
    if (error)
        free(call.call.data);
    return error;
}

const struct node_kind BATCH_KIND = {NODE_BATCH, "BATCH_MEM_OP", "rectangle", .copy = copy, .discard = discard,
                                     .carry_out = carry_out};

hipError_t hipGraphAddBatchMemOpNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                     const struct batch_params *params)
{
    struct content content;
    hipError_t error = prepare(params, &content);
    return node_add(node, graph, before, count, &BATCH_KIND, error, &content);
}

hipError_t hipGraphBatchMemOpNodeGetParams(struct node *node, struct batch_params *params)
{
    if (!is_of(node, NODE_BATCH))
        return hipErrorInvalidValue;
    *params = node->content.batch;
    return hipSuccess;
}

hipError_t hipGraphBatchMemOpNodeSetParams(struct node *node, const struct batch_params *params)
{
    struct content content;
    hipError_t error = prepare(params, &content);
    return node_set(node, &BATCH_KIND, error, &content);
}

hipError_t hipGraphExecBatchMemOpNodeSetParams(struct graph *executable, struct node *node, const struct batch_params *params)
{
    struct content content;
    hipError_t error = prepare(params, &content);
    return exec_set(executable, node, &BATCH_KIND, error, &content);
}

/* External semaphores. */

static hipError_t refuse(const struct node *node, struct stream *stream)
{
    (void)stream;
    return node->content.semaphores.count ? hipErrorInvalidValue : hipSuccess;
}

const struct node_kind SIGNAL_KIND = {NODE_SIGNAL_SEMAPHORES, "EXTERNAL_SEMAPHORE_SIGNAL", "rectangle", .carry_out = refuse};
const struct node_kind WAIT_SEMAPHORES_KIND = {NODE_WAIT_SEMAPHORES, "EXTERNAL_SEMAPHORE_WAIT", "rectangle", .carry_out = refuse};

#define SEMAPHORE_NODES(own, add, get, set, set_in_executable)                                                             \
    hipError_t add(struct node **node, struct graph *graph, struct node *const *before, size_t count,                      \
                   const struct semaphore_params *params)                                                                  \
    {                                                                                                                      \
        return node_add(node, graph, before, count, &own, hipSuccess, &(struct content){.semaphores = *params});           \
    }                                                                                                                      \
    hipError_t get(struct node *node, struct semaphore_params *params)                                                     \
    {                                                                                                                      \
        if (node->kind != &own)                                                                                            \
            return hipErrorInvalidValue;                                                                                   \
        *params = node->content.semaphores;                                                                                \
        return hipSuccess;                                                                                                 \
    }                                                                                                                      \
    hipError_t set(struct node *node, const struct semaphore_params *params)                                               \
    {                                                                                                                      \
        return node_set(node, &own, hipSuccess, &(struct content){.semaphores = *params});                                 \
    }                                                                                                                      \
    hipError_t set_in_executable(struct graph *executable, struct node *node, const struct semaphore_params *params)       \
    {                                                                                                                      \
        return exec_set(executable, node, &own, hipSuccess, &(struct content){.semaphores = *params});                     \
    }
SEMAPHORE_NODES(SIGNAL_KIND, hipGraphAddExternalSemaphoresSignalNode, hipGraphExternalSemaphoresSignalNodeGetParams,
                hipGraphExternalSemaphoresSignalNodeSetParams, hipGraphExecExternalSemaphoresSignalNodeSetParams)
SEMAPHORE_NODES(WAIT_SEMAPHORES_KIND, hipGraphAddExternalSemaphoresWaitNode, hipGraphExternalSemaphoresWaitNodeGetParams,
                hipGraphExternalSemaphoresWaitNodeSetParams, hipGraphExecExternalSemaphoresWaitNodeSetParams)
