/* Works as they are carried out, one after another on each stream: when one can be, what it comes after, who waits for it.
 *
 * Which are done here, and which by the worker, is said in work.c. The lock is held throughout, but for what takes time.
 */
#include <stdlib.h>

#include "device.h"
#include "traced.h"
#include "work.h"

pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;

bool is_finished(const struct work *work) { return !work || (work->passed && device_done(work->command)); }

struct work *hold_work(struct work *work)
{
    if (work)
        work->references++;
    return work;
}

void let_work_go(struct work *work)
{
    if (!work || --work->references)
        return;
    if (work->stamp)
        stamp_give(work->stamp, work->command);
    for (size_t i = 0; i < work->after_count; i++)
        let_work_go(work->after[i]);
    free(work->after);
    pthread_cond_destroy(&work->passing);
    free(work);
}

static bool is_done_here(const struct work *work)
{
    enum operation_kind kind = work->operation.kind;
    bool timed_here = kind == OPERATION_RECORD && work->operation.record.timed && !work->stamp;
    bool far = (kind == OPERATION_COPY || kind == OPERATION_FILL) && !operation_is_near(&work->operation);
    return far || kind == OPERATION_CALL || kind == OPERATION_FREE || timed_here;
}

/* Which of `after` must have passed first; as many as there are if none. */
static size_t hindrance(const struct work *work)
{
    size_t i = 0;
    while (i < work->after_count && work->after[i]->passed)
        i++;
    return i;
}

/* Of all that it comes after, once that has passed. */
static uint64_t ticket_before(const struct work *work)
{
    uint64_t command = work->stream->command;
    for (size_t i = 0; i < work->after_count; i++)
        if (work->after[i]->command > command)
            command = work->after[i]->command;
    return command;
}

/* Whether it can be carried out now; if `patient`, wait until it can. */
static bool await_turn(const struct work *work, bool patient)
{
    for (;;) {
        uint64_t command = 0;
        if (hindrance(work) == work->after_count) {
            command = is_done_here(work) ? ticket_before(work) : 0;
            if (device_done(command))
                return true;
        }
        if (!patient)
            return false;
        if (!command) {
            pthread_cond_wait(&work->after[hindrance(work)]->passing, &engine);
            continue;
        }
        pthread_mutex_unlock(&engine);
        device_wait(command);
        pthread_mutex_lock(&engine);
    }
}

/* An event gets its time from the worker, if that has not done yet what is before it. */
static hipError_t record(struct work *work, uint64_t before, uint64_t *command)
{
    if (device_done(before) || !work->stamp) {
        work->time = nanoseconds();
        return hipSuccess;
    }
    uint64_t place = (uintptr_t)work->stamp;
    return device_submit(MESSAGE_STAMP, &(struct part){&place, sizeof place}, 1, command);
}

bool step(struct stream *stream, bool patient)
{
    struct work *work = stream->first;
    if (!await_turn(work, patient))
        return false;
    uint64_t before = ticket_before(work), command = before, begin = traced() ? traced_now() : 0;
    pthread_mutex_unlock(&engine);
    hipError_t error = work->operation.kind == OPERATION_RECORD ? record(work, before, &command)
                                                                : operation_carry_out(&work->operation, device_done(before), &command);
    if (traced() && !error)
        trace_work(work, begin, command == before ? 0 : command);
    operation_discard(&work->operation);
    pthread_mutex_lock(&engine);
    work->passed = true;
    work->error = error;
    work->command = stream->command = command;
    for (size_t i = 0; i < work->after_count; i++)
        let_work_go(work->after[i]);
    work->after_count = 0;
    stream->first = work->next;
    pthread_cond_broadcast(&work->passing);
    let_work_go(work);
    return true;
}
