/* What the runtime does when a program loads it, and in a child of fork. */
#include <dlfcn.h>

#include "captures.h"
#include "device.h"
#include "memory.h"
#include "streams.h"

/* A preloaded tool hears of this runtime from the runtime itself, as soon as it is loaded: callers that look up symbols in
 * their own libraries first (RTLD_DEEPBIND) would otherwise pass the tool by. It also hears how many launches there were, and
 * where memory is that its worker can see, too. */

static int file_of(const void *address, uint64_t *offset)
{
    *offset = device_arena_offset((uintptr_t)address);
    return device_arena_file();
}

__attribute__((constructor)) static void announce(void)
{
    void (*tell)(uint64_t (*)(void));
    *(void **)&tell = dlsym(RTLD_DEFAULT, "luthier_tool_runtime");
    if (tell)
        tell(launches_count);
    void (*share)(int (*)(const void *, uint64_t *), bool (*)(void));
    *(void **)&share = dlsym(RTLD_DEFAULT, "luthier_tool_memory");
    if (share)
        share(file_of, device_failed);
}

/* A child of fork has neither the worker nor a right to the parent's: like a GPU, it cannot be used there ("Process
 * creation" in HIP's documentation), and memory of the device is none of the child's (MADV_DONTFORK). */

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
