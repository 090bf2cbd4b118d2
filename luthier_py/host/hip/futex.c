/* See futex(2); the words are in memory that program and worker share. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "control.h"

void futex_wait(_Atomic uint32_t *word, uint32_t value, long nanoseconds)
{
    const struct timespec patience = {.tv_nsec = nanoseconds};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &patience, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0); }
