/* Memory of the program that is registered, and where it lies in the arena. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"
#include "memory.h"
#include "pinned.h"

struct registration *registrations;
struct window *windows;
pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

uintptr_t device_address(uintptr_t address)
{
    for (const struct window *w = windows; w; w = w->next)
        if (w->start <= address && address < w->end)
            return w->device + (address - w->start);
    return 0;
}

const struct registration *covering(uintptr_t start, uintptr_t end, const struct registration *but)
{
    for (const struct registration *r = registrations; r; r = r->next)
        if (r != but && r->address < end && start < r->address + r->bytes)
            return r;
    return NULL;
}

uintptr_t pinned_device(const void *address, uintptr_t *start)
{
    pthread_mutex_lock(&registering);
    const struct registration *r = covering((uintptr_t)address, (uintptr_t)address + 1, NULL);
    *start = r ? r->address : 0;
    uintptr_t device = r ? device_address((uintptr_t)address) : 0;
    pthread_mutex_unlock(&registering);
    return device;
}

/* Pages of files that several processes may have mapped (MAP_SHARED) stay the file's, which the arena shows at their place,
 * here and in the worker. So kernels of all processes that have registered them see the same bytes. */

static bool is_arena(const struct mapping *found)
{
    struct stat status;
    return fstat(device_arena_file(), &status) == 0 && status.st_ino == found->inode;
}

bool file_find(struct range pages, struct shared_file *file)
{
    struct mapping found;
    return pages.start < pages.end && find_mapping(pages.start, &found) && !is_arena(&found) &&
           find_shared_file(pages.start, pages.end, &found, file);
}

bool file_is_there(struct range pages, const struct shared_file *file)
{
    struct mapping found;
    if (!find_mapping(pages.start, &found) || found.kind != 's')
        return false;
    if (!*file->name)
        return is_arena(&found);
    return found.inode == file->inode && found.offset + (pages.start - found.start) == file->offset;
}

/* The worker gets it from a descriptor, which denotes the file even if it is renamed. */
hipError_t file_enter(struct range pages, const struct shared_file *file)
{
    char name[64];
    struct stat status;
    int descriptor = open(file->name, O_RDWR | O_CLOEXEC);
    hipError_t error = hipErrorInvalidValue;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_ino == file->inode) {
        snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)getpid(), descriptor);
        error = mapping_enter(device_address(pages.start), pages.end - pages.start, name, file->offset);
    }
    if (descriptor >= 0)
        close(descriptor);
    return error;
}

hipError_t file_leave(struct range pages)
{
    return pages.start < pages.end ? mapping_leave(device_address(pages.start), pages.end - pages.start) : hipSuccess;
}
