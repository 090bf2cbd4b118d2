/* The handles that are alive: a list, since programs have few. */
#include "hiprtc.h"

static struct handle *first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

void hold(struct handle *handle, enum handle_kind kind)
{
    handle->kind = kind;
    pthread_mutex_lock(&lock);
    handle->next = first;
    first = handle;
    pthread_mutex_unlock(&lock);
}

/* Where the list names this handle; NULL when it does not. The caller holds the lock. */
static struct handle **place_of(const void *handle, enum handle_kind kind)
{
    for (struct handle **at = &first; *at; at = &(*at)->next)
        if (*at == handle)
            return (*at)->kind == kind ? at : NULL;
    return NULL;
}

bool is_held(const void *handle, enum handle_kind kind)
{
    pthread_mutex_lock(&lock);
    bool live = place_of(handle, kind) != NULL;
    pthread_mutex_unlock(&lock);
    return live;
}

bool let_go(const void *handle, enum handle_kind kind)
{
    pthread_mutex_lock(&lock);
    struct handle **at = place_of(handle, kind);
    if (at)
        *at = (*at)->next;
    pthread_mutex_unlock(&lock);
    return at != NULL;
}
