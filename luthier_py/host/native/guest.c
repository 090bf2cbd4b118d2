/* A guest in a process that is another's. See guest.h. */
#include "guest.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static char **kept; /* an earlier copy is not freed: a thread may read it */

static size_t count_variables(char *const *variables)
{
    size_t count = 0;
    while (variables && variables[count])
        count++;
    return count;
}

static const char *value_of(char *const *variables, const char *name, size_t length)
{
    for (; variables && *variables; variables++)
        if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=')
            return *variables + length + 1;
    return NULL;
}

__attribute__((constructor)) void environment_keep(void)
{
    size_t count = count_variables(environ);
    char **copy = getauxval(AT_SECURE) ? NULL : calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = strdup(environ[i]); /* without memory for one those after it are not copied */
    kept = copy;
}

const char *setting(const char *name)
{
    const char *value = secure_getenv(name);
    return value ? value : value_of(kept, name, strlen(name));
}

static bool is_preload(const char *variable) { return strncmp(variable, "LD_PRELOAD=", 11) == 0; }

char **worker_environment(bool all)
{
    size_t count = 0;
    char **given = calloc(count_variables(environ) + count_variables(kept) + 1, sizeof *given);
    for (char **now = environ; given && now && *now; now++)
        if (!is_preload(*now))
            given[count++] = *now;
    for (char **old = kept; given && old && *old; old++) {
        bool wanted = (all || strncmp(*old, "LUTHIER_", 8) == 0) && !is_preload(*old);
        if (wanted && !value_of(environ, *old, strcspn(*old, "=")))
            given[count++] = *old;
    }
    return given;
}

bool thread_start(void *(*run)(void *), void *data)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, NULL, run, data) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}
