/* Waiting for streams; then pools give back what they need not keep. */
#include "luthier.h"

static hipError_t settled(hipError_t error)
{
    pools_settle();
    return error;
}

hipError_t work_wait(struct work *const *place) { return settled(work_await(place)); }
hipError_t streams_wait(int device) { return settled(streams_await(device)); }

/* On a default stream this is for all streams that it waits for. */
hipError_t stream_wait(struct stream *stream)
{
    if (!stream_is_null(stream))
        return work_wait(&stream->last);
    return settled(work_put(stream, &(struct operation){.kind = OPERATION_NOTHING}, NULL, true, NULL));
}
