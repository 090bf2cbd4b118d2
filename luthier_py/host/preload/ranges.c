#include "ranges.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t pushed; /* the innermost one of a thread */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *started; /* the last one; changed under the lock */

static void let_go(void *innermost)
{
    for (struct range *range = innermost, *below; range; range = below) {
        below = range->below;
        free(range);
    }
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void prepare(void)
{
    pthread_key_create(&pushed, let_go);
    pthread_atfork(before_fork, after_fork, after_fork);
}

static struct range *innermost(void)
{
    pthread_once(&once, prepare);
    return pthread_getspecific(pushed);
}

static struct range *made(const char *name, uint64_t id, struct range *below)
{
    size_t bytes = strlen(name ? name : "") + 1;
    struct range *range = malloc(sizeof *range + bytes);
    if (!range)
        return NULL;
    *range = (struct range){below, id, 0, below ? below->level + 1 : 0};
    memcpy(range->name, name ? name : "", bytes);
    return range;
}

int range_push(const char *name)
{
    struct range *range = made(name, 0, innermost());
    if (range && pthread_setspecific(pushed, range) == 0)
        return range->level;
    free(range);
    return -1;
}

int range_pop(void)
{
    struct range *range = innermost();
    if (!range)
        return -1;
    int level = range->level;
    pthread_setspecific(pushed, range->below);
    free(range);
    return level;
}

void range_start(const char *name, uint64_t id)
{
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
    struct range *range = made(name, id, started);
    started = range ? range : started;
    pthread_mutex_unlock(&lock);
}

void range_stop(uint64_t id)
{
    pthread_mutex_lock(&lock);
    struct range **place = &started;
    while (*place && (*place)->id != id)
        place = &(*place)->below;
    struct range *range = *place;
    if (range)
        *place = range->below;
    pthread_mutex_unlock(&lock);
    free(range);
}

static bool any(struct range *range, bool (*chosen)(struct range *))
{
    while (range && !chosen(range))
        range = range->below;
    return range != NULL;
}

bool ranges_any(bool (*chosen)(struct range *))
{
    if (any(innermost(), chosen))
        return true;
    pthread_mutex_lock(&lock);
    bool found = any(started, chosen);
    pthread_mutex_unlock(&lock);
    return found;
}

static size_t bytes_of(const struct range *range)
{
    size_t bytes = 0;
    for (; range; range = range->below)
        bytes += strlen(range->name) + 1;
    return bytes;
}

/* Gives where the outermost one begins. */
static char *write_before(char *end, const struct range *range)
{
    for (; range; range = range->below) {
        size_t bytes = strlen(range->name) + 1;
        end -= bytes;
        memcpy(end, range->name, bytes);
    }
    return end;
}

struct names ranges_now(void)
{
    struct range *own = innermost();
    pthread_mutex_lock(&lock);
    size_t bytes = bytes_of(started) + bytes_of(own);
    char *text = bytes && bytes <= UINT32_MAX ? malloc(bytes) : NULL;
    if (text)
        write_before(write_before(text + bytes, own), started);
    pthread_mutex_unlock(&lock);
    return (struct names){text, text ? (uint32_t)bytes : 0};
}
