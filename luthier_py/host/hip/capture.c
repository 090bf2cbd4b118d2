/* Captures as programs begin and end them, and what they may ask of them. */
#include "capture.h"
#include "streams.h"

enum { NONE = 0, ACTIVE = 1, INVALIDATED = 2 };        /* hipStreamCaptureStatus */
enum { ADD_TAILS = 0, SET_TAILS = 1 };                 /* hipStreamUpdateCaptureDependenciesFlags */

hipError_t hipStreamBeginCapture(stream_t handle, int mode) { return capture_begin(stream_of(handle), NULL, mode); }

hipError_t hipStreamBeginCaptureToGraph(stream_t handle, struct graph *graph, struct node *const *before, const void *edges,
                                        size_t count, int mode)
{
    struct stream *stream = stream_of(handle);
    if (edges)
        return hipErrorNotSupported;
    if (!before != !count || !nodes_are_of(before, count, graph))
        return hipErrorInvalidValue;
    hipError_t error = capture_begin(stream, graph, mode);
    return error ? error : nodes_add(&stream->tails, before, count);
}

/* What other streams have recorded must come before the origin's next node, but for what was set aside. */
static bool is_joined(const struct capture *capture)
{
    for (size_t i = 0; i < capture->graph->nodes.count; i++) {
        const struct node *node = capture->graph->nodes.at[i];
        if (node->recorded == capture->id && !node->after.count && !nodes_have(&capture->origin->tails, node) &&
            !nodes_have(&capture->set_aside, node))
            return false;
    }
    return true;
}

hipError_t hipStreamEndCapture(stream_t handle, struct graph **graph)
{
    struct stream *stream = stream_of(handle);
    struct capture *capture = stream->capture;
    if (!capture)
        return hipErrorIllegalState;
    if (capture->origin != stream)
        return hipErrorStreamCaptureUnmatched;
    if (capture->mode != RELAXED && !capture_is_own(capture))
        return hipErrorStreamCaptureWrongThread;
    hipError_t error = capture->invalid ? hipErrorStreamCaptureInvalidated
                       : !is_joined(capture) ? hipErrorStreamCaptureUnjoined
                                             : hipSuccess;
    *graph = error ? NULL : capture->graph;
    capture_end(capture, !error);
    return error;
}

/* Questions. */

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
    const struct capture *capture = stream->capture;
    if (stream_is_null(stream) && captures_wait_for_default())
        return hipErrorStreamCaptureImplicit;
    *status = !capture ? NONE : capture->invalid ? INVALIDATED : ACTIVE;
    if (*status != ACTIVE)
        return hipSuccess;
    if (id)
        *id = capture->id;
    if (graph)
        *graph = capture->graph;
    if (tails)
        *tails = stream->tails.at;
    if (count)
        *count = stream->tails.count;
    return hipSuccess;
}

hipError_t hipStreamUpdateCaptureDependencies(stream_t handle, struct node **tails, size_t count, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    struct capture *capture = stream->capture;
    if (!capture)
        return hipErrorIllegalState;
    if (flags > SET_TAILS || !nodes_are_of(tails, count, capture->graph))
        return hipErrorInvalidValue;
    hipError_t error = flags == SET_TAILS ? nodes_add(&capture->set_aside, stream->tails.at, stream->tails.count) : hipSuccess;
    if (flags == SET_TAILS && !error)
        stream->tails.count = 0;
    return error ? error : nodes_add(&stream->tails, tails, count);
}
