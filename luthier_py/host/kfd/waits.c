/* Ioctls about events: one is made, changed, or waited for, until the worker is gone. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "events.h"

enum { PATIENCE = 100 * 1000 * 1000 }; /* nanoseconds until it is looked whether the worker is still there */
static const uint64_t EVENTS_TAG = 2ul << 62; /* KFD_MMAP_TYPE_EVENTS */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int create(struct create_event *args)
{
    static uint32_t last;
    pthread_mutex_lock(&lock);
    uint32_t id = 0;
    for (uint32_t tried = 1; !id && tried < EVENTS; tried++)
        if (event_of(last = last % (EVENTS - 1) + 1)->state == UNUSED)
            id = last;
    if (id) {
        struct event *event = event_of(id);
        event->type = args->type;
        event->times = 0;
        memset(event->data, 0, sizeof event->data);
        event->state = UNSET | (args->auto_reset ? AUTO : 0);
    }
    pthread_mutex_unlock(&lock);
    if (!id)
        return ENOSPC;
    args->event = args->slot = args->trigger_data = id;
    if (args->page)
        driver_tell(MESSAGE_EVENT_PAGE, &(struct part){&args->page, 8}, 1);
    if (args->type == SIGNAL_EVENT || args->type == DEBUG_EVENT) /* which have a slot */
        args->page = EVENTS_TAG;
    return 0;
}

/* Whether an event is met, for a wait that began when it had been set `since` times. Setting it wakes all threads that
 * wait; if none does, it stays set, for the first to come if a wait resets it (amdkfd, set_event). */
static bool met(struct event *event, uint32_t since)
{
    uint32_t state = event->state;
    if (event->times != since)
        return true;
    if (state == (SET | AUTO))
        return atomic_compare_exchange_strong(&event->state, &state, UNSET | AUTO);
    return state == SET;
}

/* How often a signal's event was set, as the caller saw it last, from 1 on (version 1.14); 0: it does not ask. */
static uint64_t age_of(const struct event *event, const struct event_data *row)
{
    uint64_t age = 0;
    if (event->type == SIGNAL_EVENT)
        memcpy(&age, row->data, sizeof age);
    return age;
}

/* What the caller gets from an event that was met. */
static void tell(struct event *event, struct event_data *row)
{
    uint64_t age = age_of(event, row);
    if (!age) {
        memcpy(row->data, event->data, sizeof event->data);
        return;
    }
    uint32_t state = SET | AUTO; /* need not be met again: the next wait has an age, too */
    atomic_compare_exchange_strong(&event->state, &state, UNSET | AUTO);
    age = (uint64_t)event->times + 1;
    memcpy(row->data, &age, sizeof age);
}

struct waiting { struct event_data *rows; uint32_t *since; bool *done; uint32_t count; bool all; };

/* Begin to wait; false: there is no such event. */
static bool begin(const struct waiting *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        struct event *event = event_of(w->rows[i].event);
        if (!event || event->state == UNUSED) {
            while (i--)
                event_of(w->rows[i].event)->waiting--;
            return false;
        }
        uint64_t age = age_of(event, &w->rows[i]);
        /* Before the worker sees a waiting thread: see its Events.set. */
        w->since[i] = age ? (uint32_t)age - 1 : event->times;
        event->waiting++;
    }
    return true;
}

static void end(const struct waiting *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        event_of(w->rows[i].event)->waiting--;
}

/* 1: the wait is over; -1: an event was destroyed. */
static int look(const struct waiting *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        struct event *event = event_of(w->rows[i].event);
        if (event->state == UNUSED)
            return -1;
        if (!w->done[i] && (w->all || !count) && met(event, w->since[i])) {
            w->done[i] = true;
            tell(event, &w->rows[i]);
        }
        count += w->done[i];
    }
    return w->all ? count == w->count : count > 0;
}

/* -> result, or -1 when the worker is gone. `milliseconds`: UINT32_MAX is for ever. */
static int wait_until(const struct waiting *w, uint32_t milliseconds)
{
    struct timespec now, until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000;
    for (;;) {
        uint32_t doorbell = control()->doorbell;
        int seen = look(w);
        if (seen)
            return seen > 0 ? WAIT_COMPLETE : WAIT_FAIL;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left = (until.tv_sec - now.tv_sec) * 1000000000l + until.tv_nsec - now.tv_nsec;
        if (milliseconds != UINT32_MAX && left <= 0)
            return WAIT_TIMEOUT;
        int64_t most = milliseconds != UINT32_MAX && left < PATIENCE ? left : PATIENCE;
        syscall(SYS_futex, &control()->doorbell, FUTEX_WAIT, doorbell, &(struct timespec){.tv_nsec = most}, NULL, 0);
        if (driver_ended() && (seen = look(w)) <= 0)
            return -1;
    }
}

static int wait_for(struct wait_events *args)
{
    size_t bytes = args->count * sizeof(struct event_data);
    void *given = (void *)(uintptr_t)args->events;
    if (!args->count || args->count > EVENTS)
        return EINVAL;
    struct waiting w = {malloc(bytes), calloc(args->count, sizeof(uint32_t)), calloc(args->count, sizeof(bool)), args->count, args->all};
    int error = !w.rows || !w.since || !w.done ? ENOMEM : !read_safely(w.rows, given, bytes) ? EFAULT : begin(&w) ? 0 : EINVAL;
    args->result = WAIT_FAIL;
    if (!error) {
        int result = wait_until(&w, args->milliseconds);
        end(&w);
        error = result < 0 || result == WAIT_FAIL ? EIO : 0;
        args->result = result < 0 ? WAIT_FAIL : (uint32_t)result;
    }
    if (!error && args->result == WAIT_COMPLETE && !write_safely(given, w.rows, bytes))
        error = EFAULT;
    free(w.rows);
    free(w.since);
    free(w.done);
    return error;
}

int event_ioctl(unsigned number, void *args)
{
    uint32_t id;
    memcpy(&id, args, sizeof id);
    switch (number) {
    case CREATE_EVENT: return create(args);
    case DESTROY_EVENT: return event_change(id, UNUSED);
    case SET_EVENT: return event_change(id, SET);
    case RESET_EVENT: return event_change(id, UNSET);
    case WAIT_EVENTS: return wait_for(args);
    default: return -1;
    }
}

void waits_after_fork(void) { pthread_mutex_init(&lock, NULL); }
