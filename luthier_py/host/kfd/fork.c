/* A child of fork has no driver until it opens one: it lets go of all that its parent's was. */
#include <pthread.h>

#include "kfd.h"

static void after_fork(void)
{
    doorbells_after_fork();
    waits_after_fork();
    svm_after_fork();
    arena_after_fork();
    nodes_after_fork();
    driver_after_fork();
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }
