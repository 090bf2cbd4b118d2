/* Events of KFD: words in shared memory, so that waiting is a futex and needs no message. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kfd.h"

enum { UNUSED, UNSET, SET, AUTO = 4 }; /* UNSET and SET may have AUTO: a wait resets them */

struct event { _Atomic uint32_t state; uint32_t type; char data[40]; };
_Static_assert(sizeof(struct event) == 4 * EVENT_WORDS, "as protocol.py has it");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct event *event_of(uint32_t id)
{
    return control() && id && id < EVENTS ? (struct event *)((char *)control() + EVENTS_OFFSET) + id : NULL;
}

static void ring(void)
{
    atomic_fetch_add(&control()->bell, 1);
    syscall(SYS_futex, &control()->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

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
        memset(event->data, 0, sizeof event->data);
        event->state = UNSET | (args->auto_reset ? AUTO : 0);
    }
    pthread_mutex_unlock(&lock);
    if (!id)
        return ENOSPC;
    args->event = args->slot = args->trigger_data = id;
    if (args->page)
        driver_tell(MESSAGE_EVENT_PAGE, &(struct part){&args->page, 8}, 1);
    return 0;
}

static int change(uint32_t id, uint32_t to)
{
    struct event *event = event_of(id);
    if (!event || event->state == UNUSED)
        return EINVAL;
    event->state = to == UNUSED ? UNUSED : to | (event->state & AUTO);
    if (to != UNSET)
        ring();
    return 0;
}

/* One that is set; resets it if a wait does. -1: there is no such event. */
static int taken(uint32_t id, bool look)
{
    struct event *event = event_of(id);
    uint32_t state = event ? event->state : UNUSED;
    if (state == UNUSED)
        return -1;
    if (state == (SET | AUTO) && !look)
        return atomic_compare_exchange_strong(&event->state, &state, UNSET | AUTO);
    return (state & SET) != 0;
}

static int look(struct event_data *rows, uint32_t count, bool all)
{
    uint32_t met = 0;
    for (uint32_t i = 0; all && i < count; i++) {
        int one = taken(rows[i].event, true);
        if (one <= 0)
            return one;
    }
    for (uint32_t i = 0; i < count && (all || !met); i++) {
        int one = taken(rows[i].event, false);
        if (one < 0)
            return -1;
        if (one) {
            met++;
            memcpy(&rows[i], event_of(rows[i].event)->data, sizeof rows[i].data);
        }
    }
    return met > 0;
}

static int wait_for(struct wait_events *args)
{
    const struct timespec patience = {.tv_nsec = 100 * 1000 * 1000};
    struct timespec now, end;
    size_t bytes = args->count * sizeof(struct event_data);
    if (!args->count || args->count > EVENTS)
        return EINVAL;
    struct event_data *rows = malloc(bytes);
    if (!rows)
        return ENOMEM;
    void *given = (void *)(uintptr_t)args->events;
    int error = read_safely(rows, given, bytes) ? 0 : EFAULT;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += args->milliseconds / 1000;
    end.tv_nsec += args->milliseconds % 1000 * 1000000;
    args->result = WAIT_COMPLETE;
    while (!error) {
        uint32_t bell = control()->bell;
        int met = look(rows, args->count, args->all);
        if (met < 0)
            args->result = WAIT_FAIL, error = EINVAL;
        if (met)
            break;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left = (end.tv_sec - now.tv_sec) * 1000000000l + end.tv_nsec - now.tv_nsec;
        if (args->milliseconds != UINT32_MAX && left <= 0) {
            args->result = WAIT_TIMEOUT;
            break;
        }
        struct timespec most = patience;
        if (args->milliseconds != UINT32_MAX && left < most.tv_nsec)
            most.tv_nsec = left;
        syscall(SYS_futex, &control()->bell, FUTEX_WAIT, bell, &most, NULL, 0);
        if (driver_ended())
            error = EIO;
    }
    if (!error && args->result == WAIT_COMPLETE && !write_safely(given, rows, bytes))
        error = EFAULT;
    free(rows);
    return error;
}

int event_ioctl(unsigned number, void *args)
{
    uint32_t id;
    memcpy(&id, args, sizeof id);
    switch (number) {
    case CREATE_EVENT: return create(args);
    case DESTROY_EVENT: return change(id, UNUSED);
    case SET_EVENT: return change(id, SET);
    case RESET_EVENT: return change(id, UNSET);
    case WAIT_EVENTS: return wait_for(args);
    default: return -1;
    }
}
