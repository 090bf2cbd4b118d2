/* Threads of ours. See thread.h. */
#include "thread.h"

#include <pthread.h>
#include <signal.h>

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
