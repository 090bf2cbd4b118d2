/* Nodes of events. They are the program's: one that is gone when the graph is launched is an error then. */
#include "checks.h"
#include "graph.h"
#include "streams.h"

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

const struct node_kind WAIT_KIND = {NODE_WAIT, "EVENT_WAIT", "rectangle", .prepare = prepare_event, .carry_out = wait_for,
                                    .describe = describe_event};
const struct node_kind RECORD_KIND = {NODE_RECORD, "EVENT_RECORD", "rectangle", .prepare = prepare_event, .carry_out = record,
                                      .describe = describe_event};

#define EVENT_NODES(own, add, get, set, exec_set_event)                                                                    \
    hipError_t add(struct node **node, struct graph *graph, struct node *const *before, size_t count, event_t event)       \
    {                                                                                                                      \
        struct content content;                                                                                            \
        hipError_t error = content_of(event, &content);                                                                    \
        return node_add(node, graph, before, count, &own, error, &content);                                                \
    }                                                                                                                      \
    hipError_t get(struct node *node, event_t *event)                                                                      \
    {                                                                                                                      \
        if (node->kind != &own)                                                                                            \
            return hipErrorInvalidValue;                                                                                   \
        *event = node->content.event;                                                                                      \
        return hipSuccess;                                                                                                 \
    }                                                                                                                      \
    hipError_t set(struct node *node, event_t event)                                                                       \
    {                                                                                                                      \
        struct content content;                                                                                            \
        hipError_t error = content_of(event, &content);                                                                    \
        return node_set(node, &own, error, &content);                                                                      \
    }                                                                                                                      \
    hipError_t exec_set_event(struct graph *executable, struct node *node, event_t event)                                  \
    {                                                                                                                      \
        struct content content;                                                                                            \
        hipError_t error = content_of(event, &content);                                                                    \
        return exec_set(executable, node, &own, error, &content);                                                          \
    }
EVENT_NODES(RECORD_KIND, hipGraphAddEventRecordNode, hipGraphEventRecordNodeGetEvent, hipGraphEventRecordNodeSetEvent,
            hipGraphExecEventRecordNodeSetEvent)
EVENT_NODES(WAIT_KIND, hipGraphAddEventWaitNode, hipGraphEventWaitNodeGetEvent, hipGraphEventWaitNodeSetEvent,
            hipGraphExecEventWaitNodeSetEvent)
