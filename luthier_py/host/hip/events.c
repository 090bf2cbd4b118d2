/* Events: works on streams that programs can ask about. */
#include <stdlib.h>

#include "captures.h"
#include "checks.h"
#include "device.h"
#include "events.h"
#include "streams.h"

static const unsigned RELEASES = 0xe0000000; /* to device, to system, to none: one of them */

/* Takes what is shared. */
static hipError_t make(event_t *handle, unsigned flags, struct shared_event *shared)
{
    struct event *event = calloc(1, sizeof *event);
    if (!event || !handle_add(event, HANDLE_EVENT)) {
        free(event);
        shared_event_free(shared);
        return hipErrorOutOfMemory;
    }
    event->flags = flags;
    event->device = device_current();
    event->shared = shared;
    *handle = event;
    return hipSuccess;
}

hipError_t hipEventCreateWithFlags(event_t *handle, unsigned flags)
{
    struct shared_event *shared = NULL;
    unsigned releases = flags & RELEASES;
    if ((flags & INTERPROCESS && !(flags & DISABLE_TIMING)) || releases & (releases - 1))
        return hipErrorInvalidValue;
    hipError_t error = flags & INTERPROCESS ? shared_event_make(&shared) : hipSuccess;
    return error ? error : make(handle, flags, shared);
}

hipError_t hipEventCreate(event_t *handle) { return hipEventCreateWithFlags(handle, 0); }

hipError_t hipEventDestroy(event_t event)
{
    if (!handle_remove(event, HANDLE_EVENT))
        return hipErrorContextIsDestroyed;
    work_exchange(&event->work, NULL);
    nodes_clear(&event->tails);
    shared_event_free(event->shared);
    free(event);
    return hipSuccess;
}

hipError_t hipEventRecordWithFlags(event_t event, stream_t handle, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    if (stream->device != event->device)
        return hipErrorInvalidHandle;
    if (!stream->capture)
        return event_record_on(stream, event);
    if (flags & EVENT_EXTERNAL)
        return capture_event(stream, event, false);
    event->capture = capture_number(stream);
    event->tails.count = 0;
    return nodes_add(&event->tails, stream->tails.at, stream->tails.count);
}

hipError_t hipEventRecord(event_t event, stream_t handle) { return hipEventRecordWithFlags(event, handle, 0); }

/* A query of what a capture has recorded ends that; and a capture may forbid all queries. */
static hipError_t check_question(const struct event *event)
{
    if (capture_goes_on(event->capture, true))
        return hipErrorCapturedEvent;
    return event->recorded && !event->of_default ? check_unsafe() : hipSuccess;
}

hipError_t hipEventSynchronize(event_t event)
{
    hipError_t error = check_question(event);
    if (error)
        return error;
    if (event->shared)
        shared_event_wait(event->shared);
    return work_wait(&event->work);
}

hipError_t hipEventQuery(event_t event)
{
    hipError_t error = check_question(event);
    if (error)
        return error;
    bool done = event->shared ? shared_event_done(event->shared) : work_finished(&event->work);
    return done || device_lost() ? device_wait(0) : hipErrorNotReady;
}

hipError_t hipEventElapsedTime(float *milliseconds, event_t start, event_t stop)
{
    if (capture_goes_on(start->capture, false) || capture_goes_on(stop->capture, false))
        return hipErrorCapturedEvent;
    if (!start->recorded || !stop->recorded || (start->flags | stop->flags) & DISABLE_TIMING || start->device != stop->device)
        return hipErrorInvalidHandle;
    if (!work_finished(&start->work) || !work_finished(&stop->work))
        return hipErrorNotReady;
    *milliseconds = (float)((double)work_time(&stop->work) - (double)work_time(&start->work)) * 1e-6f;
    return hipSuccess;
}

hipError_t hipStreamWaitEvent(stream_t handle, event_t event, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    if (flags & EVENT_EXTERNAL && stream->capture)
        return capture_event(stream, event, true);
    if (capture_goes_on(event->capture, false)) /* forked from a stream that is being captured: the same graph */
        return capture_join(event->capture, &event->tails, stream);
    return event_wait_for(stream, event);
}

/* Other programs. */

hipError_t hipIpcGetEventHandle(struct memory_handle *handle, event_t event)
{
    if (!event)
        return hipErrorInvalidValue;
    return event->shared ? shared_event_describe(event->shared, handle) : hipErrorInvalidConfiguration;
}

hipError_t hipIpcOpenEventHandle(event_t *handle, struct memory_handle shared)
{
    struct shared_event *event;
    hipError_t error = shared_event_open(&event, &shared);
    return error ? error : make(handle, DISABLE_TIMING | INTERPROCESS, event);
}
