/* Operations of programs: put on streams, or kept in the graph that a stream is captured into. */
#include "luthier.h"

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
