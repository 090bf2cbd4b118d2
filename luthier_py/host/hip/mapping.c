/* Pages of other files in the arena: in this program and in its worker, at the same place. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "memory.h"

size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

hipError_t mapping_reserve(size_t bytes, uintptr_t *place)
{
    uint64_t answer;
    hipError_t error = device_ask(MESSAGE_RESERVE, &(uint64_t){bytes}, 1, &answer);
    if (!error)
        *place = (uintptr_t)answer;
    return error;
}

hipError_t mapping_free(uintptr_t place) { return device_ask(MESSAGE_FREE, &(uint64_t){place}, 1, NULL); }

/* From here on a place shows part of a file; the arena's children do not see it. */
static bool show(uintptr_t place, size_t bytes, int file, uint64_t offset)
{
    void *wanted = (void *)place;
    if (mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, (off_t)offset) != wanted)
        return false;
    madvise(wanted, bytes, MADV_DONTFORK);
    return true;
}

hipError_t mapping_enter(uintptr_t place, size_t bytes, const char *name, uint64_t offset)
{
    uint64_t where[] = {place, bytes, offset};
    struct part parts[] = {{where, sizeof where}, {name, strlen(name)}};
    struct reply reply = {0};
    int file = open(name, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return hipErrorMapFailed;
    hipError_t error = show(place, bytes, file, offset) ? device_call(MESSAGE_MAP, parts, 2, &reply) : hipErrorMapFailed;
    close(file);
    if (error)
        mapping_leave(place, bytes);
    else
        free(reply.data);
    return error;
}

hipError_t mapping_leave(uintptr_t place, size_t bytes)
{
    hipError_t error = device_ask(MESSAGE_UNMAP, (uint64_t[]){place, bytes}, 2, NULL);
    bool good = show(place, bytes, device_arena_file(), device_arena_offset(place));
    return good ? error : hipErrorUnmapFailed;
}
