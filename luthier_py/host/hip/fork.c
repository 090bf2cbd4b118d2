/* A child of fork has neither the worker nor a right to the parent's: like a GPU, it cannot be used there ("Process
 * creation" in HIP's documentation), and memory of the device is none of the child's (MADV_DONTFORK). */
#include "luthier.h"

static void after_fork(void)
{
    if (!device_tried())
        return;
    pinned_after_fork();
    memory_after_fork();
    reservations_after_fork();
    captures_after_fork();
    ranges_after_fork();
    pools_after_fork();
    opened_after_fork();
    virtual_after_fork();
    launches_after_fork();
    arrays_after_fork();
    work_after_fork();
    device_after_fork();
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }
