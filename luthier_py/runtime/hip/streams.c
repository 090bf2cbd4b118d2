/* Streams, events, host functions on streams. All launches run in one order, so streams need no scheduling. */
#include <stdlib.h>

#include "luthier.h"

enum { STREAM_MAGIC = 0x5354524d, EVENT_MAGIC = 0x45564e54, NON_BLOCKING = 1, DISABLE_TIMING = 2 };

static struct stream null_streams[MAX_DEVICES] = {[0 ... MAX_DEVICES - 1] = {
    .magic = STREAM_MAGIC, .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER}};
static _Atomic uint64_t next_id;

struct event {
    uint32_t magic;
    unsigned flags;
    bool recorded;
    uint64_t ticket;       /* it has happened when this is done */
    uint64_t time;         /* nanoseconds, if it had happened when it was recorded */
    uint64_t *stamp;       /* else the worker writes the time here */
    struct graph *capture; /* it was recorded on a stream that was being captured */
    struct nodes tails;    /* and what was before it there */
};

struct stream *stream_of(stream_t handle)
{
    if ((uintptr_t)handle <= 2) /* the default stream, and its names hipStreamLegacy and hipStreamPerThread */
        return &null_streams[device_current()];
    return handle->magic == STREAM_MAGIC ? handle : NULL;
}

static bool is_null(const struct stream *stream) { return stream >= null_streams && stream < null_streams + MAX_DEVICES; }

int stream_device(stream_t handle)
{
    const struct stream *stream = stream_of(handle);
    return !stream || is_null(stream) ? device_current() : stream->device;
}

/* Blocking streams and the default stream wait for each other. */
uint64_t stream_horizon(struct stream *stream)
{
    if (is_null(stream))
        return device_submitted();
    uint64_t last = stream->last, default_last = null_streams[stream->device].last;
    return stream->flags & NON_BLOCKING || last > default_last ? last : default_last;
}

hipError_t stream_settle(struct stream *stream)
{
    hipError_t error = device_ready();
    if (error)
        return error; /* in a child of fork there is no thread that could return */
    pthread_mutex_lock(&stream->lock);
    while (stream->calls)
        pthread_cond_wait(&stream->idle, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return hipSuccess;
}

hipError_t stream_wait(struct stream *stream)
{
    stream_settle(stream);
    return device_wait(stream_horizon(stream));
}

hipError_t hipStreamCreateWithPriority(stream_t *handle, unsigned flags, int priority)
{
    hipError_t error = device_ready();
    if (error || !handle || flags > NON_BLOCKING)
        return note(error ? error : hipErrorInvalidValue);
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return note(hipErrorOutOfMemory);
    stream->magic = STREAM_MAGIC;
    stream->flags = flags;
    stream->priority = priority > 1 ? 1 : priority < -1 ? -1 : priority;
    stream->id = ++next_id;
    stream->device = device_current();
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->idle, NULL);
    *handle = stream;
    return hipSuccess;
}

hipError_t hipStreamCreate(stream_t *handle) { return hipStreamCreateWithPriority(handle, 0, 0); }
hipError_t hipStreamCreateWithFlags(stream_t *handle, unsigned flags) { return hipStreamCreateWithPriority(handle, flags, 0); }

hipError_t hipStreamDestroy(stream_t handle)
{
    struct stream *stream = stream_of(handle);
    if (!stream || is_null(stream))
        return note(hipErrorInvalidHandle);
    stream_settle(stream);
    capture_leave(stream);
    stream->magic = 0;
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->idle);
    free(stream);
    return hipSuccess;
}

hipError_t hipStreamSynchronize(stream_t handle)
{
    struct stream *stream = stream_of(handle);
    hipError_t error = device_ready();
    if (error || !stream)
        return note(error ? error : hipErrorInvalidHandle);
    return note(stream->capture ? hipErrorStreamCaptureUnsupported : stream_wait(stream));
}

hipError_t hipStreamQuery(stream_t handle)
{
    struct stream *stream = stream_of(handle);
    hipError_t error = device_ready();
    if (error || !stream)
        return note(error ? error : hipErrorInvalidHandle);
    pthread_mutex_lock(&stream->lock);
    bool idle = stream->calls == 0 && device_done(stream_horizon(stream));
    pthread_mutex_unlock(&stream->lock);
    return note(idle ? device_wait(0) : hipErrorNotReady);
}

hipError_t hipStreamGetFlags(stream_t handle, unsigned *flags)
{
    const struct stream *stream = stream_of(handle);
    if (!stream || !flags)
        return note(stream ? hipErrorInvalidValue : hipErrorInvalidHandle);
    *flags = stream->flags;
    return hipSuccess;
}

hipError_t hipStreamGetPriority(stream_t handle, int *priority)
{
    const struct stream *stream = stream_of(handle);
    if (!stream || !priority)
        return note(stream ? hipErrorInvalidValue : hipErrorInvalidHandle);
    *priority = stream->priority;
    return hipSuccess;
}

hipError_t hipStreamGetId(stream_t handle, unsigned long long *id)
{
    const struct stream *stream = stream_of(handle);
    if (!stream || !id)
        return note(stream ? hipErrorInvalidValue : hipErrorInvalidHandle);
    *id = stream->id;
    return hipSuccess;
}

hipError_t hipStreamGetDevice(stream_t handle, int *device)
{
    if (!stream_of(handle) || !device)
        return note(device ? hipErrorInvalidHandle : hipErrorInvalidValue);
    *device = stream_device(handle);
    return hipSuccess;
}

int hipGetStreamDeviceId(stream_t handle) { return stream_of(handle) ? stream_device(handle) : -1; }

hipError_t hipStreamAttachMemAsync(stream_t handle, void *address, size_t bytes, unsigned flags)
{
    (void)flags;
    return note(!stream_of(handle) ? hipErrorInvalidHandle : memory_valid(address, bytes) ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipLaunchHostFunc(stream_t handle, void (*function)(void *), void *data)
{
    if (!function)
        return note(hipErrorInvalidValue);
    struct operation operation = {OPERATION_CALL, .call = {function, data}};
    return note(perform(handle, &operation));
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
    struct callback *callback = function && !flags ? malloc(sizeof *callback) : NULL;
    if (!callback)
        return note(hipErrorInvalidValue);
    *callback = (struct callback){handle, function, data};
    hipError_t error = hipLaunchHostFunc(handle, run_callback, callback);
    if (error)
        free(callback);
    return error;
}

/* Events. */

static bool is_event(event_t event) { return event && event->magic == EVENT_MAGIC; }

hipError_t hipEventCreateWithFlags(event_t *handle, unsigned flags)
{
    hipError_t error = device_ready();
    if (error || !handle)
        return note(error ? error : hipErrorInvalidValue);
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return note(hipErrorOutOfMemory);
    event->magic = EVENT_MAGIC;
    event->flags = flags;
    *handle = event;
    return hipSuccess;
}

hipError_t hipEventCreate(event_t *handle) { return hipEventCreateWithFlags(handle, 0); }

hipError_t hipEventDestroy(event_t event)
{
    if (!is_event(event))
        return note(hipErrorInvalidHandle);
    if (event->stamp) {
        device_wait(event->ticket);
        stamp_give(event->stamp);
    }
    event->magic = 0;
    nodes_clear(&event->tails);
    free(event);
    return hipSuccess;
}

hipError_t hipEventRecord(event_t event, stream_t handle)
{
    struct stream *stream = stream_of(handle);
    if (!is_event(event) || !stream)
        return note(hipErrorInvalidHandle);
    event->capture = stream->capture;
    event->tails.count = 0;
    if (stream->capture)
        return note(nodes_add(&event->tails, stream->tails.at, stream->tails.count));
    stream_settle(stream);
    event->recorded = true;
    event->ticket = stream_horizon(stream);
    if (!event->stamp)
        event->stamp = stamp_take();
    if (device_done(event->ticket) || !event->stamp) {
        hipError_t error = device_wait(event->ticket);
        event->time = nanoseconds();
        return note(error);
    }
    event->time = 0;
    uint64_t place = (uintptr_t)event->stamp;
    hipError_t error = device_submit(MESSAGE_STAMP, &(struct part){&place, sizeof place}, 1, &event->ticket);
    if (!error)
        stream->last = event->ticket;
    return note(error);
}

hipError_t hipEventRecordWithFlags(event_t event, stream_t handle, unsigned flags) { return (void)flags, hipEventRecord(event, handle); }

hipError_t hipEventSynchronize(event_t event)
{
    if (!is_event(event))
        return note(hipErrorInvalidHandle);
    return note(event->recorded ? device_wait(event->ticket) : hipSuccess);
}

hipError_t hipEventQuery(event_t event)
{
    if (!is_event(event))
        return note(hipErrorInvalidHandle);
    return note(!event->recorded ? hipSuccess : device_done(event->ticket) ? device_wait(0) : hipErrorNotReady);
}

hipError_t hipEventElapsedTime(float *milliseconds, event_t start, event_t stop)
{
    if (!milliseconds)
        return note(hipErrorInvalidValue);
    if (!is_event(start) || !is_event(stop) || !start->recorded || !stop->recorded ||
        (start->flags | stop->flags) & DISABLE_TIMING)
        return note(hipErrorInvalidHandle);
    if (!device_done(start->ticket) || !device_done(stop->ticket))
        return note(hipErrorNotReady);
    hipError_t error = device_ready();
    if (error)
        return note(error);
    uint64_t from = start->time ? start->time : *start->stamp, to = stop->time ? stop->time : *stop->stamp;
    *milliseconds = (float)((double)to - (double)from) * 1e-6f;
    return hipSuccess;
}

hipError_t hipStreamWaitEvent(stream_t handle, event_t event, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    (void)flags;
    if (!is_event(event) || !stream)
        return note(hipErrorInvalidHandle);
    if (event->capture) /* forked from a stream that is being captured: the same graph */
        return note(capture_join(event->capture, &event->tails, stream));
    if (event->recorded && event->ticket > stream->last)
        stream->last = event->ticket;
    return hipSuccess;
}
