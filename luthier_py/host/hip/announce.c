/* A preloaded tool hears of this runtime from the runtime itself, as soon as it is loaded: callers that look up symbols
 * in their own libraries first (RTLD_DEEPBIND) would otherwise pass the tool by. It also hears how many launches there were, and where memory is that its worker
 * can see, too. */
#include <dlfcn.h>

#include "luthier.h"

static atomic_ulong launches;

void launches_count(void) { launches++; }
void launches_after_fork(void) { launches = 0; }

static uint64_t carried_out(void) { return launches; }

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
        tell(carried_out);
    void (*share)(int (*)(const void *, uint64_t *), bool (*)(void));
    *(void **)&share = dlsym(RTLD_DEFAULT, "luthier_tool_memory");
    if (share)
        share(file_of, device_failed);
}
