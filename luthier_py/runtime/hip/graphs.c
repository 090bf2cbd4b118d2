/* Graphs at their simplest: what was captured on a stream, in its order, carried out again. */
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

struct graph {
    struct operation *operations;
    size_t count, room;
    stream_t origin;         /* the stream that it is captured from */
    struct stream *captured; /* all streams that are captured into it */
};

enum { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1 };

static void *copied(const void *data, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    return copy ? memcpy(copy, data, bytes) : NULL;
}

hipError_t graph_append(struct graph *graph, const struct operation *operation)
{
    if (graph->count == graph->room) {
        size_t room = graph->room ? 2 * graph->room : 16;
        struct operation *larger = realloc(graph->operations, room * sizeof *larger);
        if (!larger)
            return hipErrorOutOfMemory;
        graph->operations = larger;
        graph->room = room;
    }
    struct operation kept = *operation;
    if (kept.kind == OPERATION_LAUNCH && !(kept.launch.kernarg = copied(kept.launch.kernarg, kept.launch.bytes)))
        return hipErrorOutOfMemory;
    graph->operations[graph->count++] = kept;
    return hipSuccess;
}

void graph_join(struct graph *graph, struct stream *stream)
{
    if (stream->capture == graph)
        return;
    stream->capture = graph;
    stream->captured = graph->captured;
    graph->captured = stream;
}

void graph_leave(struct stream *stream)
{
    struct stream **place = stream->capture ? &stream->capture->captured : NULL;
    for (; place && *place; place = &(*place)->captured)
        if (*place == stream) {
            *place = stream->captured;
            break;
        }
    stream->capture = NULL;
}

hipError_t hipGraphCreate(struct graph **graph, unsigned flags)
{
    if (!graph || flags)
        return note(hipErrorInvalidValue);
    *graph = calloc(1, sizeof **graph);
    return note(*graph ? hipSuccess : hipErrorOutOfMemory);
}

hipError_t hipGraphDestroy(struct graph *graph)
{
    if (!graph)
        return note(hipErrorInvalidValue);
    for (size_t i = 0; i < graph->count; i++)
        if (graph->operations[i].kind == OPERATION_LAUNCH)
            free(graph->operations[i].launch.kernarg);
    free(graph->operations);
    free(graph);
    return hipSuccess;
}

hipError_t hipGraphExecDestroy(struct graph *executable) { return hipGraphDestroy(executable); }

hipError_t hipStreamBeginCapture(stream_t handle, int mode)
{
    struct stream *stream = stream_of(handle);
    (void)mode;
    if (!stream || handle == NULL)
        return note(stream ? hipErrorStreamCaptureUnsupported : hipErrorInvalidHandle);
    if (stream->capture)
        return note(hipErrorIllegalState);
    struct graph *graph;
    hipError_t error = hipGraphCreate(&graph, 0);
    if (error)
        return error;
    graph->origin = handle;
    graph_join(graph, stream);
    return hipSuccess;
}

hipError_t hipStreamEndCapture(stream_t handle, struct graph **graph)
{
    struct stream *stream = stream_of(handle);
    if (!stream || !graph)
        return note(stream ? hipErrorInvalidValue : hipErrorInvalidHandle);
    if (!stream->capture)
        return note(hipErrorIllegalState);
    if (stream->capture->origin != handle)
        return note(hipErrorStreamCaptureUnmatched);
    *graph = stream->capture;
    while ((*graph)->captured)
        graph_leave((*graph)->captured);
    return hipSuccess;
}

hipError_t hipStreamIsCapturing(stream_t handle, int *status)
{
    const struct stream *stream = stream_of(handle);
    if (!stream || !status)
        return note(stream ? hipErrorInvalidValue : hipErrorInvalidHandle);
    *status = stream->capture ? CAPTURE_ACTIVE : CAPTURE_NONE;
    return hipSuccess;
}

hipError_t hipStreamGetCaptureInfo(stream_t handle, int *status, unsigned long long *id)
{
    hipError_t error = hipStreamIsCapturing(handle, status);
    if (!error && id)
        *id = (uintptr_t)stream_of(handle)->capture;
    return error;
}

hipError_t hipThreadExchangeStreamCaptureMode(int *mode) { return note(mode ? hipSuccess : hipErrorInvalidValue); }

hipError_t hipGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags)
{
    (void)flags;
    if (!executable || !graph)
        return note(hipErrorInvalidValue);
    hipError_t error = hipGraphCreate(executable, 0);
    for (size_t i = 0; i < graph->count && !error; i++)
        error = graph_append(*executable, &graph->operations[i]);
    return note(error);
}

hipError_t hipGraphInstantiate(struct graph **executable, struct graph *graph, void **error_node, char *log, size_t log_bytes)
{
    if (error_node)
        *error_node = NULL;
    if (log && log_bytes)
        *log = 0;
    return hipGraphInstantiateWithFlags(executable, graph, 0);
}

hipError_t hipGraphUpload(struct graph *executable, stream_t handle)
{
    return note(executable && stream_of(handle) ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipGraphLaunch(struct graph *executable, stream_t handle)
{
    hipError_t error = executable ? hipSuccess : hipErrorInvalidValue;
    for (size_t i = 0; !error && i < executable->count; i++)
        error = perform(handle, &executable->operations[i]);
    return note(error);
}
