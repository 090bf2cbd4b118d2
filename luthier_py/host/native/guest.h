/* A guest in a process that is another's: the environment that this library was loaded with, and threads of ours. */
#ifndef LUTHIER_GUEST_H
#define LUTHIER_GUEST_H

#include <stdbool.h>

/* A program may change or clear its own environment (clearenv) before it comes to us; what it was started with for us counts
 * all the same. */
void environment_keep(void);       /* as it is now */
const char *setting(const char *name); /* its value now, or when it was saved; NULL: neither */
/* For a worker, to be freed, its texts not: what is there now, but for LD_PRELOAD, as a tool must not be loaded into its
 * own worker; and of what the program has removed the settings of ours, or `all`. NULL: no memory. */
char **worker_environment(bool all);

/* A detached thread, in which no signal of the program is handled. False where none can be had. */
bool thread_start(void *(*run)(void *), void *data);

#endif
