/* Memory that other programs see: handles that name it, and what this program has opened of others'.
 *
 * A handle names the exporter's arena as the file that it is (/proc/PROCESS/fd/NUMBER), and a part of it. The importer
 * maps the pages in its arena, so its kernels and its host code access them like its own memory; they stay there when
 * the exporter ends. What a handle names is opened once, and counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"
#include "memory.h"

struct named { /* struct memory_handle */
    uint64_t mark;
    uint32_t process, descriptor;
    uint64_t file;       /* its inode: numbers of processes are used again */
    uint64_t start, bytes, into; /* of the allocation in the arena; the address in it */
    uint64_t id;
};
_Static_assert(sizeof(struct named) <= sizeof(struct memory_handle), "it fits");

struct opened {
    struct named named;
    struct pool *pool;
    uintptr_t place, address; /* of the pages; of what is named */
    size_t bytes;             /* of the pages */
    unsigned references;
    struct opened *next;
};

static const uint64_t MARK = 0x3172656968747565;
static struct opened *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void opened_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    all = NULL;
}

hipError_t handle_make(struct memory_handle *handle, uintptr_t place, size_t bytes, size_t into, uint64_t id)
{
    struct stat status;
    int file = device_arena_file();
    if (fstat(file, &status) < 0)
        return hipErrorInvalidValue;
    struct named named = {MARK, (uint32_t)getpid(), (uint32_t)file, status.st_ino, device_arena_offset(place), bytes, into, id};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &named, sizeof named);
    return hipSuccess;
}

static bool read_handle(const struct memory_handle *handle, struct named *named)
{
    memcpy(named, handle, sizeof *named);
    return named->mark == MARK && named->bytes && named->into < named->bytes;
}

bool handle_is_event(const struct memory_handle *handle)
{
    struct named named;
    return read_handle(handle, &named) && named.id >= FIRST_EVENT_ID;
}

bool handle_is_own(const struct memory_handle *handle)
{
    struct named named;
    return read_handle(handle, &named) && named.process == (uint32_t)getpid();
}

static bool name_file(const struct named *named, char *name, size_t bytes)
{
    struct stat status;
    snprintf(name, bytes, "/proc/%u/fd/%u", named->process, named->descriptor);
    return stat(name, &status) == 0 && status.st_ino == named->file && S_ISREG(status.st_mode) &&
           named->start + named->bytes <= (uint64_t)status.st_size;
}

static hipError_t unmap(const struct opened *opened)
{
    hipError_t error = mapping_leave(opened->place, opened->bytes);
    return error ? error : mapping_free(opened->place); /* the other way round the other program's pages would be cleared */
}

/* Its pages, and of these what kernels may touch. */
static hipError_t map(struct opened *opened)
{
    const struct named *named = &opened->named;
    char name[64];
    uint64_t into = named->start % page_bytes();
    if (!name_file(named, name, sizeof name))
        return hipErrorInvalidDevicePointer;
    opened->bytes = (into + named->bytes + page_bytes() - 1) / page_bytes() * page_bytes();
    hipError_t error = mapping_reserve(opened->bytes, &opened->place);
    if (error)
        return error;
    opened->address = opened->place + into;
    error = mapping_enter(opened->place, opened->bytes, name, named->start - into);
    if (error) {
        mapping_free(opened->place);
        return hipErrorInvalidDevicePointer;
    }
    error = device_ask(MESSAGE_REGISTER, (uint64_t[]){opened->address, named->bytes}, 2, NULL);
    if (error)
        unmap(opened);
    return error;
}

static hipError_t add(const struct named *named, struct pool *pool, struct opened **added)
{
    struct opened *opened = calloc(1, sizeof *opened);
    if (!opened)
        return hipErrorOutOfMemory;
    *opened = (struct opened){.named = *named, .pool = pool, .next = all};
    hipError_t error = map(opened);
    bool mapped = !error;
    if (mapped && !memory_add((struct allocation){.address = opened->address, .bytes = named->bytes, .kind = KIND_OPENED,
                                                  .device = device_current(), .pool = pool}))
        error = hipErrorOutOfMemory;
    if (error && mapped)
        unmap(opened);
    if (error)
        free(opened);
    else
        all = *added = opened;
    return error;
}

static bool is_same(const struct named *a, const struct named *b)
{
    return a->process == b->process && a->file == b->file && a->start == b->start && a->id == b->id;
}

hipError_t opened_open(const struct memory_handle *handle, struct pool *pool, void **address)
{
    struct named named;
    hipError_t error = hipSuccess;
    if (!read_handle(handle, &named))
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    struct opened *opened = pool ? NULL : all; /* what pools import is freed as often as it is imported */
    while (opened && (opened->pool || !is_same(&opened->named, &named)))
        opened = opened->next;
    if (!opened)
        error = add(&named, pool, &opened);
    if (!error) {
        opened->references++;
        *address = (void *)(opened->address + named.into);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

hipError_t opened_close(uintptr_t address)
{
    hipError_t error = hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    struct opened **place = &all, *opened;
    while (*place && address - (*place)->address >= (*place)->named.bytes)
        place = &(*place)->next;
    opened = *place;
    if (opened)
        error = hipSuccess;
    if (opened && --opened->references == 0) {
        *place = opened->next;
        memory_remove(opened->address);
        error = unmap(opened);
        free(opened);
    }
    pthread_mutex_unlock(&lock);
    return error;
}
