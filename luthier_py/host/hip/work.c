/* What is put on streams, and who carries it out.
 *
 * A work is an operation on a stream. It has passed when it was carried out in this process, or was handed to the worker as
 * `command`; it is finished when the worker has done that command, too. Works of a stream pass in their order. Launches go to
 * the worker as soon as all before them has passed, since the worker keeps the order of commands. Host functions are done in this
 * process, once all before them is finished. So are copies and fills where all before them is finished already, or the memory
 * is not the worker's; others go to the worker as launches do.
 *
 * A call waits only where HIP says that it does: it carries its work out if that can be done at once. Else a
 * thread does that as soon as it can: each stream on which something is left has one that drives it, and only that one touches
 * the head of its queue. Host functions run on such threads alone.
 *
 * Works are numbered in the order in which they are put; what comes after what is in order.c.
 */
#include <stdlib.h>

#include "device.h"
#include "work.h"

static struct stream *streams; /* all there are */
static uint64_t numbers;

void work_after_fork(void)
{
    pthread_mutex_init(&engine, NULL);
    pthread_cond_init(&idled, NULL);
    streams = NULL;
    drivers_after_fork();
}

static void lock(void) { pthread_mutex_lock(&engine); }
static void unlock(void) { pthread_mutex_unlock(&engine); }

/* Whether the stream is still there on which a work was put. */
static bool stream_lives(const struct work *work)
{
    for (const struct stream *s = streams; s; s = s->next)
        if (s == work->stream && s->id == work->stream_id)
            return true;
    return false;
}

/* `other`: NULL, or on a stream that is still there. */
static void note_order(const struct work *work, const struct work *other)
{
    if (other && other->stream != work->stream)
        order_note(work->stream, work->number, other->stream, other->number);
}

static hipError_t depend(struct work *work, struct work *other)
{
    if (is_finished(other))
        return hipSuccess;
    struct work **larger = realloc(work->after, (work->after_count + 1) * sizeof *larger);
    if (!larger)
        return hipErrorOutOfMemory;
    work->after = larger;
    work->after[work->after_count++] = hold_work(other);
    return hipSuccess;
}

/* The last of a stream that is there. */
static hipError_t come_after(struct work *work, struct work *last)
{
    note_order(work, last);
    return depend(work, last);
}

/* Blocking streams and the default stream of a device wait for each other. */
static hipError_t come_after_others(struct work *work)
{
    const struct stream *own = work->stream;
    hipError_t error = hipSuccess;
    if (!stream_is_null(own))
        return stream_is_blocking(own) ? come_after(work, stream_null(own->device)->last) : hipSuccess;
    for (const struct stream *s = streams; s && !error; s = s->next)
        if (s != own && s->device == own->device && stream_is_blocking(s))
            error = come_after(work, s->last);
    return error;
}

static struct work *new_work(struct stream *stream, const struct operation *operation)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->stream = stream;
    work->stream_id = stream->id;
    work->operation = *operation;
    trace_asked(work);
    pthread_cond_init(&work->passing, NULL);
    work->references = 2; /* of the queue, and of the stream as its last */
    if (operation->kind == OPERATION_RECORD && operation->record.timed)
        work->stamp = stamp_take();
    return work;
}

static hipError_t put(struct stream *stream, struct work *work, struct work *after)
{
    work->number = ++numbers;
    hipError_t error = come_after_others(work);
    if (!error)
        error = depend(work, after);
    if (error)
        return error;
    if (after && stream_lives(after)) /* an event's work may be of a stream that is gone */
        note_order(work, after);
    struct work **end = &stream->first;
    if (stream->first)
        end = &stream->end->next;
    *end = stream->end = work;
    let_work_go(stream->last);
    stream->last = work;
    return hipSuccess;
}

static hipError_t await(struct work *work)
{
    while (!work->passed)
        pthread_cond_wait(&work->passing, &engine);
    hipError_t error = work->error;
    uint64_t command = work->command;
    unlock();
    hipError_t failure = device_wait(command);
    lock();
    return error ? error : failure;
}

hipError_t work_put(struct stream *stream, struct operation *operation, struct work *after, bool wait, struct work **made)
{
    hipError_t error = device_ready();
    struct work *work = error ? NULL : new_work(stream, operation);
    if (!work) {
        operation_discard(operation);
        return error ? error : hipErrorOutOfMemory;
    }
    stream_begin(stream);
    lock();
    error = put(stream, work, after);
    stream_end(stream);
    if (error) {
        operation_discard(operation);
        work->references = 1;
        let_work_go(work);
        unlock();
        return error;
    }
    hold_work(work);
    if (!stream->driven) {
        stream->driven = true;
        drive(stream, work, wait);
    }
    error = wait ? await(work) : work->passed ? work->error : hipSuccess;
    if (made && !error)
        *made = hold_work(work);
    let_work_go(work);
    unlock();
    return error;
}

bool work_finished(struct work *const *place)
{
    lock();
    bool done = is_finished(*place);
    unlock();
    return done;
}

hipError_t work_await(struct work *const *place)
{
    lock();
    struct work *work = hold_work(*place);
    hipError_t error = work ? await(work) : device_wait(0);
    let_work_go(work);
    unlock();
    return error;
}

bool work_precedes(struct work *const *place, const struct stream *stream, bool across)
{
    lock();
    const struct work *work = *place;
    bool before = !work || order_holds(stream, UINT64_MAX, work->stream, work->number, across ? DETOURS : 0);
    unlock();
    return before;
}

struct work *work_hold(struct work *const *place)
{
    lock();
    struct work *work = hold_work(*place);
    unlock();
    return work;
}

void work_exchange(struct work **place, struct work *work)
{
    lock();
    struct work *before = *place;
    *place = work;
    let_work_go(before);
    unlock();
}

hipError_t operation_put(struct stream *stream, const struct operation *operation)
{
    struct operation copy;
    hipError_t error = operation_copy(&copy, operation);
    bool wait = operation->kind == OPERATION_COPY && operation->copy.pageable; /* as perform.c */
    return error ? error : work_put(stream, &copy, NULL, wait, NULL);
}

uint64_t work_time(struct work *const *place)
{
    lock();
    const struct work *work = *place;
    uint64_t time = !work ? 0 : work->time || !work->stamp ? work->time : *work->stamp;
    unlock();
    return time;
}

/* Streams. */

void stream_begin(struct stream *stream) { pthread_mutex_lock(&stream->turn); }
void stream_end(struct stream *stream) { pthread_mutex_unlock(&stream->turn); }

void stream_enter(struct stream *stream)
{
    pthread_mutexattr_t again;
    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&stream->turn, &again);
    pthread_mutexattr_destroy(&again);
    lock();
    stream->next = streams;
    streams = stream;
    unlock();
}

void stream_leave(struct stream *stream)
{
    lock();
    while (stream->driven)
        pthread_cond_wait(&idled, &engine);
    for (struct stream **place = &streams; *place; place = &(*place)->next)
        if (*place == stream) {
            *place = stream->next;
            break;
        }
    for (struct stream *s = streams; s; s = s->next)
        order_forget(s, stream);
    order_clear(stream);
    let_work_go(stream->last);
    stream->last = NULL;
    unlock();
    pthread_mutex_destroy(&stream->turn);
}

static bool is_of(const struct stream *stream, int device) { return device < 0 || stream->device == device; }

hipError_t streams_await(int device)
{
    size_t count = 0, held = 0;
    hipError_t error = device_ready();
    if (error)
        return error; /* in a child of fork there is no thread that could carry out anything */
    lock();
    for (const struct stream *s = streams; s; s = s->next)
        count++;
    struct work **all = calloc(count + 1, sizeof *all);
    for (const struct stream *s = streams; s && all; s = s->next)
        if (is_of(s, device) && !is_finished(s->last))
            all[held++] = hold_work(s->last);
    for (size_t i = 0; i < held; i++) {
        await(all[i]);
        let_work_go(all[i]);
    }
    unlock();
    free(all);
    return all ? device_wait(0) : hipErrorOutOfMemory;
}

bool stream_finished(const struct stream *stream)
{
    lock();
    bool done = is_finished(stream->last);
    if (stream_is_null(stream))
        for (const struct stream *s = streams; s && done; s = s->next)
            if (s->device == stream->device && stream_is_blocking(s))
                done = is_finished(s->last);
    unlock();
    return done;
}
