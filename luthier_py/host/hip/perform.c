/* Operations of programs: put on streams, or recorded in the graph that a stream is captured into. */
#include <stdlib.h>

#include "captures.h"
#include "device.h"
#include "streams.h"

hipError_t perform(stream_t handle, struct operation *operation)
{
    struct stream *stream = stream_of(handle);
    if (stream && stream->capture)
        return capture_operation(stream, operation);
    bool wait = operation->kind == OPERATION_COPY && operation->copy.pageable;
    if (stream)
        return work_put(stream, operation, NULL, wait, NULL);
    operation_discard(operation);
    return hipErrorContextIsDestroyed;
}

hipError_t perform_and_wait(stream_t handle, struct operation *operation)
{
    struct stream *stream = stream_of(handle);
    return stream && !stream->capture ? work_put(stream, operation, NULL, true, NULL) : perform(handle, operation);
}

/* Host functions on streams. */

hipError_t hipLaunchHostFunc(stream_t handle, void (*function)(void *), void *data)
{
    struct operation operation = {OPERATION_CALL, .call = {function, data}};
    return perform(handle, &operation);
}

struct callback { stream_t stream; stream_callback function; void *data; };

static void run_callback(void *data)
{
    struct callback *callback = data;
    callback->function(callback->stream, device_wait(0), callback->data);
    free(callback);
}

hipError_t hipStreamAddCallback(stream_t handle, stream_callback function, void *data, unsigned flags)
{
    (void)flags;
    if (stream_of(handle)->capture)
        return capture_forbids_asking(stream_of(handle));
    struct callback *callback = malloc(sizeof *callback);
    if (!callback)
        return hipErrorOutOfMemory;
    *callback = (struct callback){handle, function, data};
    hipError_t error = hipLaunchHostFunc(handle, run_callback, callback);
    if (error)
        free(callback);
    return error;
}
