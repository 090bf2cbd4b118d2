/* Events that several programs know: a page that all of them see.
 *
 * Each time that the event is recorded it gets the next number, and a place that says so until a host function behind what was
 * on the stream gives it back: an event is done when what was recorded last has no place. Who waits looks now and then, and
 * does not wait for a program that has ended. While all places are taken, recording waits for one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "streams.h"

enum { PLACES = 64, PROCESS_BITS = 22 }; /* Linux, threads.h: PID_MAX_LIMIT */
struct place { _Atomic uint64_t owner, number; /* owner: when its process was started, and below that its number; or 0 */ };
struct page { _Atomic uint64_t recorded; struct place places[PLACES]; };
struct shared_event { struct page *page; uint64_t id; bool opened; atomic_uint references; };
/* What a host function waits for; or the place that it gives back. */
struct task { struct shared_event *event; uint64_t number; struct place *place; };

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

/* A process's identity, 0 if it has ended: also before its parent has waited for it, but not while only its first
 * thread has. */
static uint64_t identity(uint32_t process)
{
    char name[32], line[1024], state = 'X';
    int threads = 0;
    unsigned long long start = 0;
    snprintf(name, sizeof name, "/proc/%u/stat", process);
    FILE *file = fopen(name, "re");
    size_t bytes = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    line[bytes] = 0;
    const char *rest = strrchr(line, ')'); /* behind its name, which may be anything: proc(5) */
    if (!rest || sscanf(rest, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %*s %llu", &state, &threads,
                        &start) != 3)
        return 0;
    bool ended = (state == 'Z' || state == 'X') && threads <= 1;
    return ended ? 0 : start << PROCESS_BITS | process;
}

static bool is_alive(uint64_t owner) { return owner && identity(owner & ((1u << PROCESS_BITS) - 1)) == owner; }

/* Its place was taken before any process had the number. */
static bool is_done(const struct shared_event *event, uint64_t number)
{
    for (struct place *place = event->page->places; number && place < event->page->places + PLACES; place++)
        if (place->number == number && is_alive(place->owner))
            return false;
    return true;
}

static void look_again_later(void) { nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL); }

static void await(const struct shared_event *event, uint64_t number)
{
    while (!is_done(event, number))
        look_again_later();
}

bool shared_event_done(const struct shared_event *event) { return is_done(event, event->page->recorded); }
void shared_event_wait(const struct shared_event *event) { await(event, event->page->recorded); }

/* Places. */

static struct place *try_place(struct page *page, uint64_t self)
{
    for (struct place *place = page->places; place < page->places + PLACES; place++) {
        uint64_t owner = place->owner;
        if (!is_alive(owner) && atomic_compare_exchange_strong(&place->owner, &owner, self))
            return place;
    }
    return NULL;
}

/* NULL: /proc does not say who we are. */
static struct place *take_place(struct page *page)
{
    struct place *place;
    uint64_t self = identity((uint32_t)getpid());
    if (!self)
        return NULL;
    while (!(place = try_place(page, self)))
        look_again_later();
    uint64_t last = page->recorded;
    do
        place->number = last + 1;
    while (!atomic_compare_exchange_strong(&page->recorded, &last, last + 1));
    return place;
}

static void give_place(struct place *place)
{
    place->number = 0;
    place->owner = 0;
}

static void end(struct task *task)
{
    shared_event_free(task->event);
    free(task);
}

static void signal_task(void *data)
{
    struct task *task = data;
    give_place(task->place);
    end(task);
}

static void await_task(void *data)
{
    struct task *task = data;
    await(task->event, task->number);
    end(task);
}

static hipError_t put(struct stream *stream, struct task with, void (*function)(void *))
{
    struct task *task = malloc(sizeof *task);
    if (!task)
        return hipErrorOutOfMemory;
    *task = with;
    task->event->references++;
    struct operation operation = {OPERATION_CALL, .call = {function, task}};
    hipError_t error = work_put(stream, &operation, NULL, false, NULL);
    if (error)
        end(task);
    return error;
}

hipError_t shared_event_record(struct shared_event *event, struct stream *stream)
{
    struct place *place = take_place(event->page);
    if (!place)
        return hipErrorOperatingSystem;
    hipError_t error = put(stream, (struct task){event, 0, place}, signal_task);
    if (error)
        give_place(place);
    return error;
}

hipError_t shared_event_wait_for(struct shared_event *event, struct stream *stream)
{
    uint64_t number = event->page->recorded;
    return is_done(event, number) ? hipSuccess : put(stream, (struct task){event, number, NULL}, await_task);
}
