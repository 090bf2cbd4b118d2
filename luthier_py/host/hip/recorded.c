/* Events on streams, whoever puts them there: recorded, and waited for. */
#include "events.h"

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
