#include "traced.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "wire.h"

static int file = -1;
static uint64_t opened_file; /* what `file` is, as long as the program does not close it */

static void open_file(void)
{
    const char *path = setting("LUTHIER_TRACED");
    int opened = path && *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    file = opened < 0 ? -1 : descriptor_out_of_the_way(opened);
    opened_file = descriptor_file(file);
}

bool traced(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_file);
    return file >= 0;
}

uint64_t traced_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t traced_thread(void) { return (uint32_t)syscall(SYS_gettid); }

/* One call of the system each, so that records of several processes do not mix. */
void trace(struct traced record, const char *name)
{
    if (!traced() || descriptor_file(file) != opened_file)
        return;
    record.process = (uint32_t)getpid();
    record.thread = record.thread ? record.thread : traced_thread();
    record.name_bytes = name ? strlen(name) : 0;
    struct iovec parts[] = {{&record, sizeof record}, {(void *)name, record.name_bytes}};
    ssize_t written = writev(file, parts, 2);
    (void)written; /* where it cannot be written, the trace lacks it; the program goes on */
}
