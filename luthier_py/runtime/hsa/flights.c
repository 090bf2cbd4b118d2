/* Launches whose results are wanted one by one, from their packet until these are read.
 *
 * The packet's completion signal is ours. When it says that the kernel is done, a thread of ours reads the tool's variables
 * and clears them; only then the program's own signal is completed, with the times that the device gave ours, and the gate
 * opens that later packets wait at. Neither ROCr's thread of handlers nor the one that rings doorbells waits for anything.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "hsa_tool.h"

struct spare { struct spare *next; hsa_signal_t signal; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_done = PTHREAD_COND_INITIALIZER, some_landed = PTHREAD_COND_INITIALIZER;
static struct flight *flying, *first_done, **last_done = &first_done;
static struct spare *spare;
static bool reading; /* there is a thread that does */

static bool take_signal(hsa_signal_t *signal)
{
    pthread_mutex_lock(&lock);
    struct spare *taken = spare;
    spare = taken ? taken->next : NULL;
    pthread_mutex_unlock(&lock);
    if (!taken)
        return rocr.hsa_signal_create(1, 0, NULL, signal) == HSA_SUCCESS;
    *signal = taken->signal;
    free(taken);
    rocr.hsa_signal_store_screlease(*signal, 1);
    return true;
}

static void give_signal(hsa_signal_t signal)
{
    struct spare *given = malloc(sizeof *given);
    if (!given) {
        rocr.hsa_signal_destroy(signal);
        return;
    }
    pthread_mutex_lock(&lock);
    *given = (struct spare){spare, signal};
    spare = given;
    pthread_mutex_unlock(&lock);
}

/* On ROCr's thread. */
static bool is_done(int64_t value, void *data)
{
    struct flight *flight = data;
    (void)value;
    pthread_mutex_lock(&lock);
    flight->next_done = NULL;
    *last_done = flight;
    last_done = &flight->next_done;
    pthread_cond_signal(&some_done);
    pthread_mutex_unlock(&lock);
    return false; /* once */
}

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
    const struct signal_content *ours = (const void *)(uintptr_t)flight->done.handle;
    struct signal_content *theirs = (void *)(uintptr_t)flight->application.handle;
    if (!theirs)
        return;
    if (theirs->kind == SIGNAL_USER) {
        theirs->start = ours->start;
        theirs->end = ours->end;
    }
    rocr.hsa_signal_subtract_screlease(flight->application, 1);
}

static void land(struct flight *flight)
{
    instance_read(flight->instance, 1, flight->index, &flight->shape);
    complete(flight);
    gate_open(flight->gate);
    gate_leave(flight->gate);
    queue_passed(flight->queue, flight->packets);
    give_signal(flight->done);
    leave(flight);
}

static struct flight *wait_for_one(void)
{
    pthread_mutex_lock(&lock);
    while (!first_done)
        pthread_cond_wait(&some_done, &lock);
    struct flight *flight = first_done;
    first_done = flight->next_done;
    if (!first_done)
        last_done = &first_done;
    pthread_mutex_unlock(&lock);
    return flight;
}

static void *read_results(void *unused)
{
    for (struct flight *flight; (flight = wait_for_one());)
        land(flight);
    return unused;
}

/* With every signal blocked: they are the program's threads'. */
static bool start_reading(void)
{
    pthread_t thread;
    pthread_attr_t detached;
    sigset_t all, before;
    sigfillset(&all);
    pthread_mutex_lock(&lock);
    if (!reading) {
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        reading = pthread_create(&thread, &detached, read_results, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&detached);
    }
    bool good = reading;
    pthread_mutex_unlock(&lock);
    return good;
}

struct flight *flight_start(const struct flight *about)
{
    struct flight *flight = start_reading() ? malloc(sizeof *flight) : NULL;
    if (!flight)
        return NULL;
    *flight = *about;
    if (!(flight->gate = gate_new(image_agent(about->instance->kernel->image))) || !take_signal(&flight->done)) {
        gate_leave(flight->gate);
        free(flight);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    flight->previous = NULL;
    flight->next = flying;
    if (flying)
        flying->previous = flight;
    flying = flight;
    pthread_mutex_unlock(&lock);
    if (rocr.hsa_amd_signal_async_handler(flight->done, HSA_CONDITION_LT, 1, is_done, flight) == HSA_SUCCESS)
        return flight;
    gate_open(flight->gate);
    gate_leave(flight->gate);
    give_signal(flight->done);
    leave(flight);
    return NULL;
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

bool flights_of(const struct queue *queue)
{
    pthread_mutex_lock(&lock);
    const struct flight *flight = flying;
    while (flight && flight->queue != queue)
        flight = flight->next;
    pthread_mutex_unlock(&lock);
    return flight != NULL;
}

void flights_drop(void)
{
    for (struct spare *first; (first = spare);) {
        spare = first->next;
        rocr.hsa_signal_destroy(first->signal);
        free(first);
    }
}
