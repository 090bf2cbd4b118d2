/* Events: works on streams that programs can ask about. */
#include <stdlib.h>

#include "luthier.h"

enum { DISABLE_TIMING = 2, INTERPROCESS = 4, EXTERNAL = 1 };
static const unsigned RELEASES = 0xe0000000; /* to device, to system, to none: one of them */

struct event {
    unsigned flags;
    int device;
    bool recorded;
    struct work *work;     /* when it was recorded last */
    struct graph *capture; /* it was recorded on a stream that was being captured */
    struct nodes tails;    /* and what was before it there */
};

hipError_t hipEventCreateWithFlags(event_t *handle, unsigned flags)
{
    unsigned releases = flags & RELEASES;
    if ((flags & INTERPROCESS && !(flags & DISABLE_TIMING)) || releases & (releases - 1))
        return hipErrorInvalidValue;
    struct event *event = calloc(1, sizeof *event);
    if (!event || !handle_add(event, HANDLE_EVENT)) {
        free(event);
        return hipErrorOutOfMemory;
    }
    event->flags = flags;
    event->device = device_current();
    *handle = event;
    return hipSuccess;
}

hipError_t hipEventCreate(event_t *handle) { return hipEventCreateWithFlags(handle, 0); }

hipError_t hipEventDestroy(event_t event)
{
    if (!handle_remove(event, HANDLE_EVENT))
        return hipErrorContextIsDestroyed;
    work_exchange(&event->work, NULL);
    nodes_clear(&event->tails);
    free(event);
    return hipSuccess;
}

hipError_t hipEventRecordWithFlags(event_t event, stream_t handle, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    struct operation operation = {OPERATION_RECORD, .record = {!(event->flags & DISABLE_TIMING)}};
    struct work *work;
    (void)flags;
    if (stream->device != event->device)
        return hipErrorInvalidHandle;
    event->capture = stream->capture;
    event->tails.count = 0;
    if (stream->capture)
        return nodes_add(&event->tails, stream->tails.at, stream->tails.count);
    hipError_t error = work_put(stream, &operation, NULL, false, &work);
    if (error)
        return error;
    work_exchange(&event->work, work);
    event->recorded = true;
    return hipSuccess;
}

hipError_t hipEventRecord(event_t event, stream_t handle) { return hipEventRecordWithFlags(event, handle, 0); }

hipError_t hipEventSynchronize(event_t event) { return event->capture ? hipErrorCapturedEvent : work_wait(&event->work); }

hipError_t hipEventQuery(event_t event)
{
    if (event->capture)
        return hipErrorCapturedEvent;
    return work_finished(&event->work) ? device_wait(0) : hipErrorNotReady;
}

hipError_t hipEventElapsedTime(float *milliseconds, event_t start, event_t stop)
{
    if (start->capture || stop->capture)
        return hipErrorCapturedEvent;
    if (!start->recorded || !stop->recorded || (start->flags | stop->flags) & DISABLE_TIMING || start->device != stop->device)
        return hipErrorInvalidHandle;
    if (!work_finished(&start->work) || !work_finished(&stop->work))
        return hipErrorNotReady;
    *milliseconds = (float)((double)work_time(&stop->work) - (double)work_time(&start->work)) * 1e-6f;
    return hipSuccess;
}

hipError_t event_wait_for(struct stream *stream, event_t event)
{
    struct operation nothing = {.kind = OPERATION_NOTHING};
    struct work *work = work_hold(&event->work);
    hipError_t error = work ? work_put(stream, &nothing, work, false, NULL) : hipSuccess;
    work_exchange(&work, NULL);
    return error;
}

hipError_t hipStreamWaitEvent(stream_t handle, event_t event, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    (void)flags;
    if (event->capture) /* forked from a stream that is being captured: the same graph */
        return capture_join(event->capture, &event->tails, stream);
    return event_wait_for(stream, event);
}
