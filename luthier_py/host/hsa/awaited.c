/* Actions that follow the device's work: signals, and the thread that runs them.
 *
 * ROCr calls back on its thread (hsa_amd_signal_async_handler), which also gives scratch memory to kernels that need
 * more: nothing may wait there. So the callback only makes a list, and a thread of ours does the work.
 */
#include <stdlib.h>

#include "guest.h"
#include "hsa_tool.h"

struct spare { struct spare *next; hsa_signal_t signal; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_done = PTHREAD_COND_INITIALIZER;
static struct awaited *first, **last = &first;
static struct spare *spare;
static bool running; /* the thread is */

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
    struct awaited *awaited = data;
    (void)value;
    pthread_mutex_lock(&lock);
    awaited->next = NULL;
    *last = awaited;
    last = &awaited->next;
    pthread_cond_signal(&some_done);
    pthread_mutex_unlock(&lock);
    return false; /* once */
}

static struct awaited *wait_for_one(void)
{
    pthread_mutex_lock(&lock);
    while (!first)
        pthread_cond_wait(&some_done, &lock);
    struct awaited *awaited = first;
    first = awaited->next;
    if (!first)
        last = &first;
    pthread_mutex_unlock(&lock);
    return awaited;
}

static void *follow(void *unused)
{
    for (struct awaited *awaited; (awaited = wait_for_one());) {
        const struct signal_content *content = (const void *)(uintptr_t)awaited->done.handle;
        awaited->start = (int64_t)content->start;
        awaited->end = (int64_t)content->end;
        give_signal(awaited->done);
        awaited->action(awaited);
    }
    return unused;
}

static bool start(void)
{
    pthread_mutex_lock(&lock);
    running = running || thread_start(follow, NULL);
    bool good = running;
    pthread_mutex_unlock(&lock);
    return good;
}

bool await(struct awaited *awaited)
{
    if (!start() || !take_signal(&awaited->done))
        return false;
    if (rocr.hsa_amd_signal_async_handler(awaited->done, HSA_CONDITION_LT, 1, is_done, awaited) == HSA_SUCCESS)
        return true;
    give_signal(awaited->done);
    return false;
}

void awaited_drop(void)
{
    for (struct spare *given; (given = spare);) {
        spare = given->next;
        rocr.hsa_signal_destroy(given->signal);
        free(given);
    }
}
