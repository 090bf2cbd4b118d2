/* Nodes of memory operations in batches, and of external semaphores, of which there are none here: these nodes can be made
 * and asked, and a launch with a semaphore in them is an error.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graph.h"

enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5, MOST_OPERATIONS = 256 }; /* hipStreamBatchMemOpType */
enum { WAIT_AT_LEAST, WAIT_EQUAL, WAIT_AND, WAIT_NOR };

static hipError_t copy_operations(struct content *content, const struct batch_operation *operations)
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

static uint64_t mask_of(const struct batch_operation *operation)
{
    return operation->kind == WAIT_64 || operation->kind == WRITE_64 ? UINT64_MAX : UINT32_MAX;
}

static uint64_t load(const struct batch_operation *operation)
{
    return operation->kind == WAIT_64 ? atomic_load((_Atomic uint64_t *)operation->address)
                                      : atomic_load((_Atomic uint32_t *)operation->address);
}

static bool is_there(const struct batch_operation *operation)
{
    uint64_t value = load(operation), wanted = operation->value & mask_of(operation);
    bool answers[] = {[WAIT_AT_LEAST] = value >= wanted, [WAIT_EQUAL] = value == wanted, [WAIT_AND] = (value & wanted) != 0,
                      [WAIT_NOR] = (~(value | wanted) & mask_of(operation)) != 0};
    return operation->flags <= WAIT_NOR && answers[operation->flags];
}

static void carry_out_one(const struct batch_operation *operation)
{
    static const struct timespec MOMENT = {0, 50000};
    if (operation->kind == WRITE_64)
        atomic_store((_Atomic uint64_t *)operation->address, operation->value);
    else if (operation->kind == WRITE_32)
        atomic_store((_Atomic uint32_t *)operation->address, (uint32_t)operation->value);
    else
        while (!is_there(operation) && device_wait(0) == hipSuccess)
            nanosleep(&MOMENT, NULL);
}

struct run { unsigned count; struct batch_operation operations[]; };

static void run_batch(void *data)
{
    struct run *run = data;
    for (unsigned i = 0; i < run->count; i++)
        carry_out_one(&run->operations[i]);
    free(run);
}

static bool sound(const struct batch_operation *operation)
{
    bool waits = operation->kind == WAIT_32 || operation->kind == WAIT_64;
    bool known = waits || operation->kind == WRITE_32 || operation->kind == WRITE_64;
    return known && memory_known(operation->address, mask_of(operation) == UINT64_MAX ? 8 : 4) &&
           (!waits || operation->flags <= WAIT_NOR);
}

/* On a thread that may wait, as host functions are. */
static hipError_t carry_out(const struct node *node, struct stream *stream)
{
    const struct batch_params *batch = &node->content.batch;
    for (unsigned i = 0; i < batch->count; i++)
        if (!sound(&batch->operations[i]))
            return hipErrorInvalidValue;
    struct run *run = malloc(sizeof *run + batch->count * sizeof *run->operations);
    if (!run)
        return hipErrorOutOfMemory;
    run->count = batch->count;
    memcpy(run->operations, batch->operations, batch->count * sizeof *run->operations);
    hipError_t error = operation_put(stream, &(struct operation){OPERATION_CALL, .call = {run_batch, run}});
    if (error)
        free(run);
    return error;
}

const struct node_kind BATCH_KIND = {"BATCH_MEM_OP", "rectangle", .copy = copy, .discard = discard, .carry_out = carry_out};

hipError_t hipGraphAddBatchMemOpNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                     const struct batch_params *params)
{
    struct content content;
    hipError_t error = prepare(params, &content);
    return node_add(node, graph, before, count, NODE_BATCH, error, &content);
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
    return node_set(node, NODE_BATCH, error, &content);
}

hipError_t hipGraphExecBatchMemOpNodeSetParams(struct graph *executable, struct node *node, const struct batch_params *params)
{
    struct content content;
    hipError_t error = prepare(params, &content);
    return exec_set(executable, node, NODE_BATCH, error, &content);
}

/* External semaphores. */

static hipError_t refuse(const struct node *node, struct stream *stream)
{
    (void)stream;
    return node->content.semaphores.count ? hipErrorInvalidValue : hipSuccess;
}

const struct node_kind SIGNAL_KIND = {"EXTERNAL_SEMAPHORE_SIGNAL", "rectangle", .carry_out = refuse};
const struct node_kind WAIT_SEMAPHORES_KIND = {"EXTERNAL_SEMAPHORE_WAIT", "rectangle", .carry_out = refuse};

#define SEMAPHORE_NODES(type, add, get, set, set_in_executable)                                                            \
    hipError_t add(struct node **node, struct graph *graph, struct node *const *before, size_t count,                      \
                   const struct semaphore_params *params)                                                                  \
    {                                                                                                                      \
        return node_add(node, graph, before, count, type, hipSuccess, &(struct content){.semaphores = *params});           \
    }                                                                                                                      \
    hipError_t get(struct node *node, struct semaphore_params *params)                                                     \
    {                                                                                                                      \
        if (!is_of(node, type))                                                                                            \
            return hipErrorInvalidValue;                                                                                   \
        *params = node->content.semaphores;                                                                                \
        return hipSuccess;                                                                                                 \
    }                                                                                                                      \
    hipError_t set(struct node *node, const struct semaphore_params *params)                                               \
    {                                                                                                                      \
        return node_set(node, type, hipSuccess, &(struct content){.semaphores = *params});                                 \
    }                                                                                                                      \
    hipError_t set_in_executable(struct graph *executable, struct node *node, const struct semaphore_params *params)       \
    {                                                                                                                      \
        return exec_set(executable, node, type, hipSuccess, &(struct content){.semaphores = *params});                     \
    }
SEMAPHORE_NODES(NODE_SIGNAL_SEMAPHORES, hipGraphAddExternalSemaphoresSignalNode, hipGraphExternalSemaphoresSignalNodeGetParams,
                hipGraphExternalSemaphoresSignalNodeSetParams, hipGraphExecExternalSemaphoresSignalNodeSetParams)
SEMAPHORE_NODES(NODE_WAIT_SEMAPHORES, hipGraphAddExternalSemaphoresWaitNode, hipGraphExternalSemaphoresWaitNodeGetParams,
                hipGraphExternalSemaphoresWaitNodeSetParams, hipGraphExecExternalSemaphoresWaitNodeSetParams)
