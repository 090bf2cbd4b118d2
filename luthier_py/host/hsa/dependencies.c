/* Signals that open when the results of a launch were read, and that packets wait for. */
#include <stdlib.h>

#include "hsa_tool.h"

struct dependency { struct dependency *next; hsa_signal_t signal; atomic_uint references; };

struct passing { struct passing *next; struct dependency *dependency; uint64_t packets; };

static struct dependency *spare;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct dependency *take_spare(void)
{
    pthread_mutex_lock(&lock);
    struct dependency *dependency = spare;
    spare = dependency ? dependency->next : NULL;
    pthread_mutex_unlock(&lock);
    if (dependency)
        rocr.hsa_signal_store_screlease(dependency->signal, 1);
    return dependency;
}

struct dependency *dependency_new(hsa_agent_t agent)
{
    struct dependency *dependency = take_spare();
    if (!dependency && (dependency = calloc(1, sizeof *dependency)) &&
        rocr.hsa_signal_create(1, 1, &agent, &dependency->signal) != HSA_SUCCESS) { /* only the device waits */
        free(dependency);
        dependency = NULL;
    }
    if (dependency)
        dependency->references = 1;
    return dependency;
}

void dependency_open(struct dependency *dependency) { rocr.hsa_signal_store_screlease(dependency->signal, 0); }
bool dependency_shut(const struct dependency *dependency) { return rocr.hsa_signal_load_scacquire(dependency->signal) != 0; }
hsa_signal_t dependency_signal(const struct dependency *dependency) { return dependency->signal; }

struct dependency *dependency_keep(struct dependency *dependency)
{
    dependency->references++;
    return dependency;
}

void dependency_leave(struct dependency *dependency)
{
    if (!dependency || --dependency->references)
        return;
    pthread_mutex_lock(&lock);
    dependency->next = spare;
    spare = dependency;
    pthread_mutex_unlock(&lock);
}

/* Remove those that have opened meanwhile. */
static void clean(struct dependencies *dependencies)
{
    size_t kept = 0;
    for (size_t i = 0; i < dependencies->count; i++)
        if (dependency_shut(dependencies->at[i]))
            dependencies->at[kept++] = dependencies->at[i];
        else
            dependency_leave(dependencies->at[i]);
    dependencies->count = kept;
}

bool dependencies_add(struct dependencies *dependencies, struct dependency *dependency)
{
    clean(dependencies);
    for (size_t i = 0; i < dependencies->count; i++)
        if (dependencies->at[i] == dependency)
            return true;
    if (!dependency_shut(dependency))
        return true;
    if (dependencies->count == dependencies->room) {
        struct dependency **more = realloc(dependencies->at, (2 * dependencies->room + 8) * sizeof *more);
        if (!more)
            return false;
        dependencies->at = more;
        dependencies->room = 2 * dependencies->room + 8;
    }
    dependencies->at[dependencies->count++] = dependency_keep(dependency);
    return true;
}

void dependencies_clear(struct dependencies *dependencies)
{
    for (size_t i = 0; i < dependencies->count; i++)
        dependency_leave(dependencies->at[i]);
    free(dependencies->at);
    *dependencies = (struct dependencies){0};
}

void dependencies_drop(void)
{
    for (struct dependency *dependency; (dependency = spare);) {
        spare = dependency->next;
        rocr.hsa_signal_destroy(dependency->signal);
        free(dependency);
    }
}

void dependency_note(struct queue *queue, struct dependency *dependency)
{
    struct passing *passing = malloc(sizeof *passing);
    dependency_keep(dependency);
    if (!passing)
        return; /* it is never used again */
    *passing = (struct passing){NULL, dependency, queue->made};
    pthread_mutex_lock(&queue->lock);
    *queue->last = passing;
    queue->last = &passing->next;
    pthread_mutex_unlock(&queue->lock);
}

void dependencies_passed(struct queue *queue, uint64_t packets)
{
    pthread_mutex_lock(&queue->lock);
    for (struct passing *passing; (passing = queue->first) && passing->packets < packets;) {
        queue->first = passing->next;
        dependency_leave(passing->dependency);
        free(passing);
    }
    if (!queue->first)
        queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
}
