/* Streams that are captured: what is put on them becomes nodes of a graph. */
#include <stdlib.h>

#include "graph.h"

enum { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1 };

static enum node_type type_of(const struct operation *operation)
{
    static const enum node_type TYPES[] = {
        [OPERATION_LAUNCH] = NODE_LAUNCH, [OPERATION_COPY] = NODE_COPY, [OPERATION_FILL] = NODE_FILL, [OPERATION_CALL] = NODE_CALL};
    return TYPES[operation->kind];
}

hipError_t capture_operation(struct stream *stream, struct operation *operation)
{
    struct node *node;
    if (operation->kind == OPERATION_NOTHING)
        return hipSuccess;
    hipError_t error = graph_add(stream->capture, type_of(operation), operation, stream->tails.at, stream->tails.count, &node);
    stream->tails.count = error ? stream->tails.count : 0;
    return error ? error : nodes_add(&stream->tails, &node, 1);
}

hipError_t capture_join(struct graph *graph, const struct nodes *after, struct stream *stream)
{
    if (stream->capture && stream->capture != graph)
        return hipErrorStreamCaptureMerge;
    if (!stream->capture) {
        stream->capture = graph;
        stream->captured = graph->captured;
        graph->captured = stream;
    }
    return nodes_add(&stream->tails, after->at, after->count);
}

void capture_leave(struct stream *stream)
{
    struct stream **place = stream->capture ? &stream->capture->captured : NULL;
    for (; place && *place; place = &(*place)->captured)
        if (*place == stream) {
            *place = stream->captured;
            break;
        }
    stream->capture = NULL;
    nodes_clear(&stream->tails);
}

static hipError_t begin(stream_t handle, struct graph *graph, const struct nodes *after)
{
    struct stream *stream = stream_of(handle);
    if (stream_is_null(stream))
        return hipErrorStreamCaptureUnsupported;
    if (stream->capture)
        return hipErrorIllegalState;
    hipError_t error = graph ? hipSuccess : hipGraphCreate(&graph, 0);
    if (error)
        return error;
    graph->origin = handle;
    return capture_join(graph, after, stream);
}

hipError_t hipStreamBeginCapture(stream_t handle, int mode)
{
    (void)mode;
    return begin(handle, NULL, &(struct nodes){NULL, 0, 0});
}

hipError_t hipStreamBeginCaptureToGraph(stream_t handle, struct graph *graph, struct node *const *before, const void *edges,
                                        size_t count, int mode)
{
    (void)mode, (void)edges;
    for (size_t i = 0; i < count; i++)
        if (!before || !handle_is(before[i], HANDLE_NODE) || before[i]->graph != graph)
            return hipErrorInvalidValue;
    return begin(handle, graph, &(struct nodes){(struct node **)before, count, count});
}

hipError_t hipStreamEndCapture(stream_t handle, struct graph **graph)
{
    struct stream *stream = stream_of(handle);
    if (!stream->capture)
        return hipErrorIllegalState;
    if (stream->capture->origin != handle)
        return hipErrorStreamCaptureUnmatched;
    *graph = stream->capture;
    while ((*graph)->captured)
        capture_leave((*graph)->captured);
    return hipSuccess;
}

hipError_t hipStreamIsCapturing(stream_t handle, int *status)
{
    return hipStreamGetCaptureInfo_v2(handle, status, NULL, NULL, NULL, NULL);
}

hipError_t hipStreamGetCaptureInfo(stream_t handle, int *status, unsigned long long *id)
{
    return hipStreamGetCaptureInfo_v2(handle, status, id, NULL, NULL, NULL);
}

hipError_t hipStreamGetCaptureInfo_v2(stream_t handle, int *status, unsigned long long *id, struct graph **graph,
                                      struct node *const **tails, size_t *count)
{
    const struct stream *stream = stream_of(handle);
    *status = stream->capture ? CAPTURE_ACTIVE : CAPTURE_NONE;
    if (stream->capture && id)
        *id = (uintptr_t)stream->capture;
    if (stream->capture && graph)
        *graph = stream->capture;
    if (stream->capture && tails)
        *tails = stream->tails.at;
    if (stream->capture && count)
        *count = stream->tails.count;
    return hipSuccess;
}

hipError_t hipStreamUpdateCaptureDependencies(stream_t handle, struct node **tails, size_t count, unsigned flags)
{
    enum { ADD = 0, SET = 1 };
    struct stream *stream = stream_of(handle);
    if (!stream->capture)
        return hipErrorIllegalState;
    for (size_t i = 0; i < count; i++)
        if (!tails || !handle_is(tails[i], HANDLE_NODE) || tails[i]->graph != stream->capture)
            return hipErrorInvalidValue;
    if (flags > SET)
        return hipErrorInvalidValue;
    stream->tails.count = flags == SET ? 0 : stream->tails.count;
    return nodes_add(&stream->tails, tails, count);
}

hipError_t hipThreadExchangeStreamCaptureMode(int *mode) { return (void)mode, hipSuccess; }

/* No mode forbids anything yet. */
hipError_t check_unsafe(void) { return hipSuccess; }
hipError_t check_legacy(void) { return hipSuccess; }
hipError_t check_recorded(stream_t stream) { return (void)stream, hipSuccess; }
