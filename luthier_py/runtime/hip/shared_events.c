/* Events that several programs know: a page that all of them see.
 *
 * Each time that the event is recorded it gets the next number, and a place in a ring that says who records it; a host
 * function behind what was on the stream writes the number there. An event is done when what was recorded last is. Who waits
 * looks now and then, and does not wait for a program that has ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "luthier.h"

enum { PLACES = 64, PROCESS_BITS = 32 };
struct record { _Atomic uint64_t done, owner; /* number, and below it the process */ };
struct page { _Atomic uint64_t recorded; struct record records[PLACES]; };
struct shared_event { struct page *page; uint64_t id; bool opened; atomic_uint references; };
/* What a host function signals, or waits for. */
struct task { struct shared_event *event; uint64_t number; };

static _Atomic uint64_t last_id = FIRST_EVENT_ID;

static hipError_t make(struct page *page, bool opened, struct shared_event **event)
{
    *event = malloc(sizeof **event);
    if (!*event)
        return hipErrorOutOfMemory;
    **event = (struct shared_event){page, ++last_id, opened, 1};
    return hipSuccess;
}

hipError_t shared_event_make(struct shared_event **event)
{
    uintptr_t place;
    hipError_t error = mapping_reserve(sizeof(struct page), &place);
    if (error)
        return error;
    error = make((struct page *)place, false, event);
    if (error)
        mapping_free(place);
    return error;
}

hipError_t shared_event_open(struct shared_event **event, const struct memory_handle *handle)
{
    void *address;
    if (!handle_is_event(handle))
        return hipErrorInvalidValue;
    hipError_t error = handle_is_own(handle) ? hipErrorInvalidContext : opened_open(handle, NULL, &address);
    if (error)
        return error == hipErrorInvalidContext ? error : hipErrorInvalidValue;
    error = make(address, true, event);
    if (error)
        opened_close((uintptr_t)address);
    return error;
}

hipError_t shared_event_describe(const struct shared_event *event, struct memory_handle *handle)
{
    if (event->opened)
        return hipErrorInvalidValue;
    return handle_make(handle, (uintptr_t)event->page, sizeof *event->page, 0, event->id);
}

void shared_event_free(struct shared_event *event)
{
    if (!event || --event->references)
        return;
    if (event->opened)
        opened_close((uintptr_t)event->page);
    else
        mapping_free((uintptr_t)event->page);
    free(event);
}

static bool is_done(const struct shared_event *event, uint64_t number)
{
    struct record *record = &event->page->records[number % PLACES];
    if (!number || record->done >= number)
        return true;
    uint64_t owner = record->owner;
    return owner >> PROCESS_BITS == number && kill((pid_t)(uint32_t)owner, 0) < 0 && errno == ESRCH;
}

static void await(const struct shared_event *event, uint64_t number)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000};
    while (!is_done(event, number))
        nanosleep(&pause, NULL);
}

bool shared_event_done(const struct shared_event *event) { return is_done(event, event->page->recorded); }
void shared_event_wait(const struct shared_event *event) { await(event, event->page->recorded); }

static void end(struct task *task)
{
    shared_event_free(task->event);
    free(task);
}

static void signal_task(void *data)
{
    struct task *task = data;
    task->event->page->records[task->number % PLACES].done = task->number;
    end(task);
}

static void await_task(void *data)
{
    struct task *task = data;
    await(task->event, task->number);
    end(task);
}

static hipError_t put(struct stream *stream, struct shared_event *event, uint64_t number, void (*function)(void *))
{
    struct task *task = malloc(sizeof *task);
    if (!task)
        return hipErrorOutOfMemory;
    *task = (struct task){event, number};
    event->references++;
    struct operation operation = {OPERATION_CALL, .call = {function, task}};
    hipError_t error = work_put(stream, &operation, NULL, false, NULL);
    if (error)
        end(task);
    return error;
}

hipError_t shared_event_record(struct shared_event *event, struct stream *stream)
{
    uint64_t number = ++event->page->recorded;
    struct record *record = &event->page->records[number % PLACES];
    record->owner = number << PROCESS_BITS | (uint32_t)getpid();
    hipError_t error = put(stream, event, number, signal_task);
    if (error)
        record->done = number;
    return error;
}

hipError_t shared_event_wait_for(struct shared_event *event, struct stream *stream)
{
    uint64_t number = event->page->recorded;
    return is_done(event, number) ? hipSuccess : put(stream, event, number, await_task);
}
