/* The kinds of nodes, and the functions that take any of them; nodes of host functions, events, child graphs, and empty ones. */
#include "graph.h"

const struct node_kind *kind_of(enum node_type type)
{
    static const struct node_kind *const KINDS[NODE_TYPES] = {
        [NODE_LAUNCH] = &LAUNCH_KIND, [NODE_COPY] = &COPY_KIND, [NODE_FILL] = &FILL_KIND, [NODE_CALL] = &CALL_KIND,
        [NODE_GRAPH] = &GRAPH_KIND, [NODE_EMPTY] = &EMPTY_KIND, [NODE_WAIT] = &WAIT_KIND, [NODE_RECORD] = &RECORD_KIND,
        [NODE_SIGNAL_SEMAPHORES] = &SIGNAL_KIND, [NODE_WAIT_SEMAPHORES] = &WAIT_SEMAPHORES_KIND,
        [NODE_ALLOCATE] = &ALLOCATE_KIND, [NODE_FREE] = &FREE_KIND, [NODE_BATCH] = &BATCH_KIND};
    return type >= 0 && type < NODE_TYPES ? KINDS[type] : NULL;
}

/* Any kind. HIP 5 counts types from 1, but has none of these functions. */

static hipError_t prepare(struct node_params *params, struct content *content)
{
    const struct node_kind *kind = kind_of((enum node_type)params->type);
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
    return node_add(node, graph, before, count, (enum node_type)params->type, error, &content);
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
    return node_set(node, (enum node_type)params->type, error, &content);
}

hipError_t hipGraphExecNodeSetParams(struct graph *executable, struct node *node, struct node_params *params)
{
    struct content content;
    struct graph *child = *(struct graph **)params->content;
    if (params->type == NODE_GRAPH)
        return handle_is(child, HANDLE_GRAPH) ? hipGraphExecChildGraphNodeSetParams(executable, node, child) : hipErrorInvalidValue;
    hipError_t error = prepare_change(params, &content);
    return exec_set(executable, node, (enum node_type)params->type, error, &content);
}

/* Host functions. */

static hipError_t prepare_call(void *params, struct content *content)
{
    const struct call_params *call = params;
    if (!call->function)
        return hipErrorInvalidValue;
    *content = (struct content){.operation = {OPERATION_CALL, .call = {call->function, call->data}}};
    return hipSuccess;
}

static hipError_t put(const struct node *node, struct stream *stream) { return operation_put(stream, &node->content.operation); }

static void describe_call(FILE *out, const struct content *content, unsigned flags)
{
    enum { VERBOSE = 1, HOST = 1 << 5 };
    if (flags & (VERBOSE | HOST))
        fprintf(out, "\\n%p(%p)", (void *)content->operation.call.function, content->operation.call.data);
}

const struct node_kind CALL_KIND = {"HOST", "rectangle", .prepare = prepare_call, .carry_out = put, .describe = describe_call};

hipError_t hipGraphAddHostNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                               const struct call_params *params)
{
    struct content content;
    hipError_t error = prepare_call((void *)params, &content);
    return node_add(node, graph, before, count, NODE_CALL, error, &content);
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
    return node_set(node, NODE_CALL, error, &content);
}

hipError_t hipGraphExecHostNodeSetParams(struct graph *executable, struct node *node, const struct call_params *params)
{
    struct content content;
    hipError_t error = prepare_call((void *)params, &content);
    return exec_set(executable, node, NODE_CALL, error, &content);
}

/* Empty nodes. */

const struct node_kind EMPTY_KIND = {.label = "EMPTY", .shape = "rectangle"};

hipError_t hipGraphAddEmptyNode(struct node **node, struct graph *graph, struct node *const *before, size_t count)
{
    return node_add(node, graph, before, count, NODE_EMPTY, hipSuccess, &(struct content){.operation.kind = OPERATION_NOTHING});
}

/* Events. They are the program's: one that is gone when the graph is launched is an error then. */

static hipError_t content_of(event_t event, struct content *content)
{
    *content = (struct content){.event = event};
    return handle_is(event, HANDLE_EVENT) ? hipSuccess : hipErrorInvalidValue;
}

static hipError_t prepare_event(void *params, struct content *content) { return content_of(*(event_t *)params, content); }

static hipError_t wait_for(const struct node *node, struct stream *stream)
{
    bool there = handle_is(node->content.event, HANDLE_EVENT);
    return there ? event_wait_for(stream, node->content.event) : hipErrorContextIsDestroyed;
}

static hipError_t record(const struct node *node, struct stream *stream)
{
    bool there = handle_is(node->content.event, HANDLE_EVENT);
    return there ? event_record_on(stream, node->content.event) : hipErrorContextIsDestroyed;
}

static void describe_event(FILE *out, const struct content *content, unsigned flags)
{
    enum { VERBOSE = 1, EVENT = 1 << 6 };
    if (flags & (VERBOSE | EVENT))
        fprintf(out, "\\nevent %p", (void *)content->event);
}

const struct node_kind WAIT_KIND = {"EVENT_WAIT", "rectangle", .prepare = prepare_event, .carry_out = wait_for,
                                    .describe = describe_event};
const struct node_kind RECORD_KIND = {"EVENT_RECORD", "rectangle", .prepare = prepare_event, .carry_out = record,
                                      .describe = describe_event};

#define EVENT_NODES(type, add, get, set, exec_set_event)                                                                   \
    hipError_t add(struct node **node, struct graph *graph, struct node *const *before, size_t count, event_t event)       \
    {                                                                                                                      \
        struct content content;                                                                                            \
        hipError_t error = content_of(event, &content);                                                                    \
        return node_add(node, graph, before, count, type, error, &content);                                                \
    }                                                                                                                      \
    hipError_t get(struct node *node, event_t *event)                                                                      \
    {                                                                                                                      \
        if (!is_of(node, type))                                                                                            \
            return hipErrorInvalidValue;                                                                                   \
        *event = node->content.event;                                                                                      \
        return hipSuccess;                                                                                                 \
    }                                                                                                                      \
    hipError_t set(struct node *node, event_t event)                                                                       \
    {                                                                                                                      \
        struct content content;                                                                                            \
        hipError_t error = content_of(event, &content);                                                                    \
        return node_set(node, type, error, &content);                                                                      \
    }                                                                                                                      \
    hipError_t exec_set_event(struct graph *executable, struct node *node, event_t event)                                  \
    {                                                                                                                      \
        struct content content;                                                                                            \
        hipError_t error = content_of(event, &content);                                                                    \
        return exec_set(executable, node, type, error, &content);                                                          \
    }
EVENT_NODES(NODE_RECORD, hipGraphAddEventRecordNode, hipGraphEventRecordNodeGetEvent, hipGraphEventRecordNodeSetEvent,
            hipGraphExecEventRecordNodeSetEvent)
EVENT_NODES(NODE_WAIT, hipGraphAddEventWaitNode, hipGraphEventWaitNodeGetEvent, hipGraphEventWaitNodeSetEvent,
            hipGraphExecEventWaitNodeSetEvent)
