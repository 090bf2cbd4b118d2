/* Launches whose results are read one by one, from their packet until then.
 *
 * The packet's completion signal is ours. When it says that the kernel is done, the tool's variables are read and cleared;
 * only then the program's own signal is completed, with the times that the device gave ours, and the dependency opens that later
 * packets wait at.
 */
#include <stdlib.h>
#include <time.h>

#include "hsa_tool.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_landed = PTHREAD_COND_INITIALIZER;
static struct in_flight *flying;

static void leave(struct in_flight *in_flight)
{
    pthread_mutex_lock(&lock);
    if (in_flight->previous)
        in_flight->previous->next = in_flight->next;
    else
        flying = in_flight->next;
    if (in_flight->next)
        in_flight->next->previous = in_flight->previous;
    pthread_cond_broadcast(&some_landed);
    pthread_mutex_unlock(&lock);
    free(in_flight);
}

static void complete(const struct in_flight *in_flight)
{
    struct signal_content *signal = (void *)(uintptr_t)in_flight->application.handle;
    if (!signal)
        return;
    if (signal->kind == SIGNAL_USER) {
        signal->start = (uint64_t)in_flight->awaited.start;
        signal->end = (uint64_t)in_flight->awaited.end;
    }
    rocr.hsa_signal_subtract_screlease(in_flight->application, 1);
}

/* With the lock: the one of this instance that began first of those that have not landed; new ones come first. */
static struct in_flight *next_of(const struct instance *instance)
{
    struct in_flight *found = NULL;
    for (struct in_flight *in_flight = flying; in_flight; in_flight = in_flight->next)
        if (in_flight->instance == instance && !in_flight->landed)
            found = in_flight;
    return found;
}

static void land(struct awaited *awaited)
{
    struct in_flight *in_flight = (struct in_flight *)awaited;
    instance_end(in_flight->instance, &in_flight->launch, in_flight->memory);
    memory_end(&in_flight->instance->loaded, in_flight->memory, NULL);
    pthread_mutex_lock(&lock);
    in_flight->landed = true;
    const struct in_flight *next = next_of(in_flight->instance); /* it waits at the dependency */
    pthread_mutex_unlock(&lock);
    if (next)
        instance_begin(next->instance, &next->launch, next->memory);
    complete(in_flight);
    dependency_open(in_flight->dependency);
    dependency_leave(in_flight->dependency);
    leave(in_flight);
}

struct in_flight *in_flight_start(const struct in_flight *about)
{
    struct in_flight *in_flight = malloc(sizeof *in_flight);
    if (!in_flight)
        return NULL;
    *in_flight = *about;
    in_flight->awaited.action = land;
    in_flight->dependency = dependency_new(about->instance->kernel->image->agent);
    if (!in_flight->dependency || !await(&in_flight->awaited)) {
        dependency_leave(in_flight->dependency);
        free(in_flight);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    bool first = !next_of(in_flight->instance);
    in_flight->previous = NULL;
    in_flight->next = flying;
    if (flying)
        flying->previous = in_flight;
    flying = in_flight;
    pthread_mutex_unlock(&lock);
    if (first)
        instance_begin(in_flight->instance, &in_flight->launch, in_flight->memory);
    return in_flight;
}

/* With the lock. */
static size_t left(const struct kernel *kernel)
{
    size_t count = 0;
    for (const struct in_flight *in_flight = flying; in_flight; in_flight = in_flight->next)
        count += !kernel || in_flight->instance->kernel == kernel;
    return count;
}

bool in_flight_wait(const struct kernel *kernel)
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
