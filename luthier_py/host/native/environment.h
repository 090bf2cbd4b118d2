/* The environment that this library was loaded with. A program may change or clear its own (clearenv) before it comes to us;
 * what it was started with for us counts all the same. */
#ifndef LUTHIER_ENVIRONMENT_H
#define LUTHIER_ENVIRONMENT_H

#include <stdbool.h>

void environment_keep(void);       /* as it is now */
const char *setting(const char *name); /* its value now, or when it was kept; NULL: neither */
/* For a worker, to be freed, its texts not: what is there now, but for LD_PRELOAD, as a tool must not be loaded into its
 * own worker; and of what the program has removed the settings of ours, or `all`. NULL: no memory. */
char **worker_environment(bool all);

#endif
