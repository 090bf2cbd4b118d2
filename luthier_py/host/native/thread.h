/* Threads of ours inside somebody else's program. */
#ifndef LUTHIER_THREAD_H
#define LUTHIER_THREAD_H

#include <stdbool.h>

/* A thread that nobody joins, in which no signal of the program is handled. False where none can be had. */
bool thread_start(void *(*run)(void *), void *data);

#endif
