/* Programs wait for streams, after which pools give back what they need not keep; streams record events and wait for them,
 * for a program or a graph. */
#include "events.h"
#include "memory.h"
#include "streams.h"

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

/* Events on streams. */

hipError_t event_record_on(struct stream *stream, event_t event)
{
    struct operation operation = {OPERATION_RECORD, .record = {!(event->flags & DISABLE_TIMING)}};
    struct work *work;
    if (event->shared)
        return shared_event_record(event->shared, stream);
    hipError_t error = work_put(stream, &operation, NULL, false, &work);
    if (error)
        return error;
    work_exchange(&event->work, work);
    event->capture = 0;
    event->recorded = true;
    event->of_default = stream_is_null(stream);
    return hipSuccess;
}

hipError_t event_wait_for(struct stream *stream, event_t event)
{
    struct operation nothing = {.kind = OPERATION_NOTHING};
    if (event->shared)
        return shared_event_wait_for(event->shared, stream);
    struct work *work = work_hold(&event->work);
    hipError_t error = work ? work_put(stream, &nothing, work, false, NULL) : hipSuccess;
    work_exchange(&work, NULL);
    return error;
}
