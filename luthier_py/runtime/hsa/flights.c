/* Launches whose results are wanted one by one, from their packet until these are read.
 *
 * The packet's completion signal is ours. When it says that the kernel is done, the tool's variables are read and cleared;
 * only then the program's own signal is completed, with the times that the device gave ours, and the gate opens that later
 * packets wait at.
 */
#include <stdlib.h>
#include <time.h>

#include "hsa_tool.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_landed = PTHREAD_COND_INITIALIZER;
static struct flight *flying;

static void leave(struct flight *flight)
{
    pthread_mutex_lock(&lock);
    if (flight->previous)
        flight->previous->next = flight->next;
    else
        flying = flight->next;
    if (flight->next)
        flight->next->previous = flight->previous;
    pthread_cond_broadcast(&some_landed);
    pthread_mutex_unlock(&lock);
    free(flight);
}

static void complete(const struct flight *flight)
{
    struct signal_content *signal = (void *)(uintptr_t)flight->application.handle;
    if (!signal)
        return;
    if (signal->kind == SIGNAL_USER) {
        signal->start = (uint64_t)flight->awaited.start;
        signal->end = (uint64_t)flight->awaited.end;
    }
    rocr.hsa_signal_subtract_screlease(flight->application, 1);
}

/* With the lock: the one of this instance that began first of those that have not landed; new ones come first. */
static struct flight *next_of(const struct instance *instance)
{
    struct flight *found = NULL;
    for (struct flight *flight = flying; flight; flight = flight->next)
        if (flight->instance == instance && !flight->landed)
            found = flight;
    return found;
}

static void land(struct awaited *awaited)
{
    struct flight *flight = (struct flight *)awaited;
    instance_read(flight->instance, 1, flight->index, &flight->shape, flight->memory);
    sized_free(flight->instance, flight->memory);
    pthread_mutex_lock(&lock);
    flight->landed = true;
    const struct flight *next = next_of(flight->instance); /* it waits at the gate */
    pthread_mutex_unlock(&lock);
    if (next)
        instance_begin(next->instance, next->index, &next->shape, next->memory);
    complete(flight);
    gate_open(flight->gate);
    gate_leave(flight->gate);
    leave(flight);
}

struct flight *flight_start(const struct flight *about)
{
    struct flight *flight = malloc(sizeof *flight);
    if (!flight)
        return NULL;
    *flight = *about;
    flight->awaited.action = land;
    flight->gate = gate_new(image_agent(about->instance->kernel->image));
    if (!flight->gate || !await(&flight->awaited)) {
        gate_leave(flight->gate);
        free(flight);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    bool first = !next_of(flight->instance);
    flight->previous = NULL;
    flight->next = flying;
    if (flying)
        flying->previous = flight;
    flying = flight;
    pthread_mutex_unlock(&lock);
    if (first)
        instance_begin(flight->instance, flight->index, &flight->shape, flight->memory);
    return flight;
}

/* With the lock. */
static size_t left(const struct kernel *kernel)
{
    size_t count = 0;
    for (const struct flight *flight = flying; flight; flight = flight->next)
        count += !kernel || flight->instance->kernel == kernel;
    return count;
}

bool flights_wait(const struct kernel *kernel)
{
    struct timespec until;
    int failed = 0;
    pthread_mutex_lock(&lock);
    size_t now = left(kernel), before = now + 1;
    while (now && !failed) {
        if (now != before)
            clock_gettime(CLOCK_REALTIME, &until), until.tv_sec += PATIENCE_SECONDS;
        before = now;
        failed = pthread_cond_timedwait(&some_landed, &lock, &until);
        now = left(kernel);
    }
    pthread_mutex_unlock(&lock);
    return now == 0;
}
