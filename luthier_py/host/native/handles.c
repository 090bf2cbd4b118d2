#include "handles.h"

#include <pthread.h>
#include <stdlib.h>

#include "keyed.h"

struct entry { const void *handle; int kind; };

static struct keyed entries = KEYED(struct entry);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child of fork has the table whole. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

bool handle_add(const void *handle, int kind)
{
    pthread_once(&once, survive_forks);
    pthread_mutex_lock(&lock);
    struct entry *entry = keyed_add(&entries, handle);
    if (entry)
        entry->kind = kind;
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

bool handle_is(const void *handle, int kind)
{
    pthread_mutex_lock(&lock);
    const struct entry *entry = keyed_find(&entries, handle);
    bool found = entry && entry->kind == kind;
    pthread_mutex_unlock(&lock);
    return found;
}

bool handle_remove(const void *handle, int kind)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = keyed_find(&entries, handle);
    bool found = entry && entry->kind == kind;
    if (found)
        keyed_remove(&entries, entry);
    pthread_mutex_unlock(&lock);
    return found;
}

size_t handles_of(int kind, const void ***found)
{
    size_t some = 0;
    pthread_mutex_lock(&lock);
    *found = malloc((entries.count + 1) * sizeof **found);
    for (const struct entry *entry = NULL; *found && (entry = keyed_next(&entries, entry));)
        if (entry->kind == kind)
            (*found)[some++] = entry->handle;
    pthread_mutex_unlock(&lock);
    return some;
}
