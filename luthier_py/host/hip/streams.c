/* Streams: those that programs create, and one of each thread; which of them a handle means. */
#include <stdlib.h>

#include "captures.h"
#include "checks.h"
#include "device.h"
#include "streams.h"

enum { LEAST_PRIORITY = 1, GREATEST_PRIORITY = -1 };

static _Atomic uint64_t next_id;
static _Thread_local bool default_is_own;
static _Thread_local struct stream *own_streams[MAX_DEVICES];
static pthread_key_t own_key; /* its destructor ends a thread's streams */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave(struct stream *stream)
{
    work_wait(&stream->last);
    stream_leave(stream);
    capture_leave(stream);
    free(stream->mask);
    free(stream);
}

static void leave_own(void *streams)
{
    for (int i = 0; i < MAX_DEVICES; i++) {
        struct stream *stream = ((struct stream **)streams)[i];
        ((struct stream **)streams)[i] = NULL; /* another destructor may ask for a new one */
        if (stream)
            leave(stream);
    }
}

static void prepare(void)
{
    for (int i = 0; i < MAX_DEVICES; i++) {
        stream_null(i)->device = i;
        stream_enter(stream_null(i));
    }
    pthread_key_create(&own_key, leave_own);
}

static struct stream *make(unsigned flags, int priority)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->flags = flags;
    stream->priority = priority > LEAST_PRIORITY ? LEAST_PRIORITY : priority < GREATEST_PRIORITY ? GREATEST_PRIORITY : priority;
    stream->id = ++next_id;
    stream->device = device_current();
    stream_enter(stream);
    return stream;
}

static struct stream *own_stream(void)
{
    struct stream **own = &own_streams[device_current()];
    if (!*own) {
        *own = make(0, 0);
        pthread_setspecific(own_key, own_streams);
    }
    return *own;
}

struct stream *stream_of(stream_t handle)
{
    pthread_once(&once, prepare);
    if ((uintptr_t)handle == STREAM_PER_THREAD || (!handle && default_is_own))
        return own_stream();
    if ((uintptr_t)handle <= STREAM_LEGACY)
        return stream_null(device_current());
    return handle_is(handle, HANDLE_STREAM) ? handle : NULL;
}

bool default_stream_of_thread(bool on)
{
    bool before = default_is_own;
    default_is_own = on;
    return before;
}

int stream_device(stream_t handle)
{
    const struct stream *stream = stream_of(handle);
    return stream ? stream->device : device_current();
}

hipError_t hipStreamCreateWithPriority(stream_t *handle, unsigned flags, int priority)
{
    pthread_once(&once, prepare);
    struct stream *stream = make(flags, priority);
    if (!stream)
        return hipErrorOutOfMemory;
    if (!handle_add(stream, HANDLE_STREAM)) {
        leave(stream);
        return hipErrorOutOfMemory;
    }
    *handle = stream;
    return hipSuccess;
}

hipError_t hipStreamCreate(stream_t *handle) { return hipStreamCreateWithPriority(handle, 0, 0); }
hipError_t hipStreamCreateWithFlags(stream_t *handle, unsigned flags) { return hipStreamCreateWithPriority(handle, flags, 0); }

hipError_t hipStreamDestroy(stream_t handle)
{
    if ((uintptr_t)handle <= STREAM_PER_THREAD)
        return hipErrorInvalidHandle;
    if (!handle_remove(handle, HANDLE_STREAM))
        return hipErrorContextIsDestroyed;
    leave(handle);
    return hipSuccess;
}

void streams_reset(int device)
{
    const void **all;
    size_t count = handles_of(HANDLE_STREAM, &all);
    for (size_t i = 0; i < count; i++)
        if (((const struct stream *)all[i])->device == device)
            hipStreamDestroy((stream_t)all[i]);
    free(all);
}

hipError_t hipStreamSynchronize(stream_t handle)
{
    struct stream *stream = stream_of(handle);
    hipError_t error = capture_forbids_asking(stream);
    return error ? error : stream_wait(stream);
}

hipError_t hipStreamQuery(stream_t handle)
{
    struct stream *stream = stream_of(handle);
    hipError_t error = capture_forbids_asking(stream);
    return error ? error : stream_finished(stream) || device_lost() ? device_wait(0) : hipErrorNotReady;
}

/* The default stream has none to report, as in AMD's runtime. */
hipError_t hipStreamGetFlags(stream_t handle, unsigned *flags)
{
    if (stream_is_null(stream_of(handle)))
        return hipErrorInvalidValue;
    *flags = stream_of(handle)->flags;
    return hipSuccess;
}

hipError_t hipStreamGetPriority(stream_t handle, int *priority)
{
    *priority = stream_of(handle)->priority;
    return hipSuccess;
}

hipError_t hipStreamGetId(stream_t handle, unsigned long long *id)
{
    const struct stream *stream = stream_of(handle);
    if (!stream)
        return hipErrorInvalidHandle;
    *id = stream->id;
    return hipSuccess;
}

hipError_t hipStreamGetDevice(stream_t handle, int *device)
{
    *device = stream_device(handle);
    return hipSuccess;
}

int hipGetStreamDeviceId(stream_t handle) { return stream_of(handle) ? stream_device(handle) : -1; }

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = LEAST_PRIORITY;
    if (greatest)
        *greatest = GREATEST_PRIORITY;
    return hipSuccess;
}

hipError_t hipDeviceSynchronize(void)
{
    hipError_t error = capture_forbids_waiting();
    return error ? error : streams_wait(device_current());
}
