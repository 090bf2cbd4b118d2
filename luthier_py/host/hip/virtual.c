/* Virtual memory management: addresses that are reserved, memory that is made, and which of it is seen where.
 *
 * Memory that is made is a separate file (a memfd), so it lasts as long as any of these use it: this program, another
 * one that imported its descriptor, a place where it is mapped. Places are parts of the arena. Kernels reach a place as
 * soon as one device has access to it: what one device sees, all see.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checks.h"
#include "pools.h"
#include "streams.h"

enum { PINNED = 1, UNCACHED = 0x40000000, NUMA_CURRENT = 4, RECOMMENDED_BYTES = 1 << 21 };

static const char FILE_NAME[] = "luthier-memory";

struct backing_properties { int type, handle_types; struct location location; void *metadata; uint8_t flags[4]; };
struct backing {
    struct backing_properties properties;
    int file;
    size_t bytes, room; /* room: what it takes of its device */
    unsigned handles, places;
};
struct reserved { uintptr_t block, start; size_t bytes; struct reserved *next; };
struct place { uintptr_t start; size_t bytes; struct backing *backing; int access[MAX_DEVICES]; bool reached; struct place *next; };

static struct reserved *all_reserved;
static struct place *places;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void virtual_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    all_reserved = NULL;
    places = NULL;
}

static bool is_host(int type) { return between(type, ON_DEVICE + 1, NUMA_CURRENT); }

/* Which device a location is on; the host's is the current one's. */
static int device_of(struct location location) { return location.type == ON_DEVICE ? location.id : device_current(); }

static hipError_t check_properties(const struct backing_properties *properties)
{
    bool good = (properties->type == PINNED || properties->type == UNCACHED) &&
                (properties->location.type == ON_DEVICE || is_host(properties->location.type));
    return good ? device_check(device_of(properties->location)) : hipErrorInvalidValue;
}

hipError_t hipMemGetAllocationGranularity(size_t *bytes, const struct backing_properties *properties, int option)
{
    if (check_properties(properties) != hipSuccess)
        return hipErrorInvalidValue;
    *bytes = option ? RECOMMENDED_BYTES : page_bytes();
    return hipSuccess;
}

/* Addresses. */

hipError_t hipMemAddressReserve(void **address, size_t bytes, size_t alignment, void *wanted, unsigned long long flags)
{
    size_t page = page_bytes();
    (void)wanted, (void)flags;
    if (!bytes || bytes % page || alignment & (alignment - 1))
        return hipErrorInvalidValue;
    alignment = alignment > page ? alignment : page;
    if (bytes > device_arena_bytes() || alignment > device_arena_bytes())
        return hipErrorOutOfMemory;
    struct reserved *reserved = malloc(sizeof *reserved);
    uintptr_t block = 0;
    hipError_t error = reserved ? mapping_reserve(bytes + alignment - page, &block) : hipErrorOutOfMemory;
    if (error) {
        free(reserved);
        return error;
    }
    pthread_mutex_lock(&lock);
    *reserved = (struct reserved){block, (block + alignment - 1) / alignment * alignment, bytes, all_reserved};
    all_reserved = reserved;
    pthread_mutex_unlock(&lock);
    *address = (void *)reserved->start;
    return hipSuccess;
}

static struct place *place_over(uintptr_t start, size_t bytes)
{
    for (struct place *place = places; place; place = place->next)
        if (place->start < start + bytes && start < place->start + place->bytes)
            return place;
    return NULL;
}

hipError_t hipMemAddressFree(void *address, size_t bytes)
{
    pthread_mutex_lock(&lock);
    struct reserved **link = &all_reserved, *reserved;
    while (*link && (*link)->start != (uintptr_t)address)
        link = &(*link)->next;
    reserved = *link;
    bool good = reserved && bytes && !place_over(reserved->start, reserved->bytes);
    if (good)
        *link = reserved->next;
    pthread_mutex_unlock(&lock);
    if (!good)
        return hipErrorInvalidValue;
    hipError_t error = mapping_free(reserved->block);
    free(reserved);
    return error;
}

/* Memory. */

static void let_go(struct backing *backing)
{
    if (backing->handles || backing->places)
        return;
    if (backing->room)
        memory_give_room(backing->properties.location.id, backing->room);
    close(backing->file);
    free(backing);
}

static hipError_t add(struct backing with, struct backing **made)
{
    struct backing *backing = calloc(1, sizeof *backing);
    if (!backing || !handle_add(backing, HANDLE_BACKING)) {
        free(backing);
        close(with.file);
        return hipErrorOutOfMemory;
    }
    *backing = with;
    backing->handles = 1;
    *made = backing;
    return hipSuccess;
}

hipError_t hipMemCreate(struct backing **backing, size_t bytes, const struct backing_properties *properties,
                        unsigned long long flags)
{
    (void)flags;
    hipError_t error = bytes && bytes % page_bytes() == 0 ? check_properties(properties) : hipErrorInvalidValue;
    if (!error && properties->handle_types & ~FILE_DESCRIPTOR)
        error = hipErrorNotSupported;
    if (error)
        return error;
    struct backing with = {.properties = *properties, .bytes = bytes};
    with.room = properties->location.type == ON_DEVICE ? bytes : 0;
    if (bytes > device_arena_bytes() || !memory_take_room(device_of(properties->location), with.room))
        return hipErrorOutOfMemory;
    with.file = memfd_create(FILE_NAME, MFD_CLOEXEC);
    if (with.file >= 0)
        with.file = descriptor_out_of_the_way(with.file);
    if (with.file < 0)
        error = hipErrorOutOfMemory;
    else if (ftruncate(with.file, (off_t)bytes) < 0) {
        close(with.file);
        error = hipErrorOutOfMemory;
    } else
        error = add(with, backing);
    if (error)
        memory_give_room(device_of(properties->location), with.room);
    return error;
}

hipError_t hipMemRelease(struct backing *backing)
{
    pthread_mutex_lock(&lock);
    if (--backing->handles == 0)
        handle_remove(backing, HANDLE_BACKING);
    let_go(backing);
    pthread_mutex_unlock(&lock);
    return hipSuccess;
}

hipError_t hipMemRetainAllocationHandle(struct backing **backing, void *address)
{
    pthread_mutex_lock(&lock);
    struct place *place = place_over((uintptr_t)address, 1);
    bool good = place && (place->backing->handles || handle_add(place->backing, HANDLE_BACKING));
    if (good) {
        *backing = place->backing;
        place->backing->handles++;
    }
    pthread_mutex_unlock(&lock);
    return good ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipMemGetAllocationPropertiesFromHandle(struct backing_properties *properties, struct backing *backing)
{
    *properties = backing->properties;
    return hipSuccess;
}

hipError_t hipMemExportToShareableHandle(void *shared, struct backing *backing, int type, unsigned long long flags)
{
    (void)flags;
    if (type != FILE_DESCRIPTOR || backing->properties.handle_types != type)
        return hipErrorInvalidValue;
    int file = dup(backing->file);
    memcpy(shared, &file, sizeof file);
    return file < 0 ? hipErrorOutOfMemory : hipSuccess;
}

/* It keeps a separate descriptor, in any process. */
hipError_t hipMemImportFromShareableHandle(struct backing **backing, void *shared, int type)
{
    char link[64], name[64] = "";
    struct stat status;
    int given = (int)(intptr_t)shared;
    (void)type;
    snprintf(link, sizeof link, "/proc/self/fd/%d", given);
    bool good = readlink(link, name, sizeof name - 1) > 0 && strstr(name, FILE_NAME) && fstat(given, &status) == 0;
    int file = good && status.st_size ? fcntl(given, F_DUPFD_CLOEXEC, 0) : -1;
    if (file < 0)
        return hipErrorInvalidValue;
    struct backing with = {.file = descriptor_out_of_the_way(file), .bytes = (size_t)status.st_size};
    with.properties = (struct backing_properties){
        .type = PINNED, .handle_types = FILE_DESCRIPTOR, .location = {ON_DEVICE, device_current()}};
    return add(with, backing);
}

/* Places. */

static bool is_reserved(uintptr_t start, size_t bytes)
{
    for (const struct reserved *r = all_reserved; r; r = r->next)
        if (r->start <= start && bytes <= r->bytes && start - r->start <= r->bytes - bytes)
            return true;
    return false;
}

static hipError_t put(uintptr_t start, size_t bytes, struct backing *backing)
{
    char name[64];
    struct place *place = calloc(1, sizeof *place);
    if (!place)
        return hipErrorOutOfMemory;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)getpid(), backing->file);
    hipError_t error = mapping_enter(start, bytes, name, 0);
    if (error) {
        free(place);
        return error;
    }
    int device = device_of(backing->properties.location);
    if (!memory_add((struct allocation){.address = start, .bytes = bytes, .kind = KIND_MAPPED, .device = device})) {
        mapping_leave(start, bytes);
        free(place);
        return hipErrorOutOfMemory;
    }
    *place = (struct place){.start = start, .bytes = bytes, .backing = backing, .next = places};
    places = place;
    backing->places++;
    return hipSuccess;
}

hipError_t hipMemMap(void *address, size_t bytes, size_t offset, struct backing *backing, unsigned long long flags)
{
    uintptr_t start = (uintptr_t)address;
    (void)offset, (void)flags;
    if (!bytes || bytes % page_bytes() || start % page_bytes() || bytes > backing->bytes)
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    bool good = is_reserved(start, bytes) && !place_over(start, bytes);
    hipError_t error = good ? put(start, bytes, backing) : hipErrorInvalidValue;
    pthread_mutex_unlock(&lock);
    return error;
}

static struct place *place_at(uintptr_t start)
{
    struct place *place = places;
    while (place && place->start != start)
        place = place->next;
    return place;
}

/* Whether a range is whole places, one after the other. */
static bool is_whole(uintptr_t start, size_t bytes)
{
    uintptr_t at = start, end = start + bytes;
    for (const struct place *place; at < end && (place = place_at(at));)
        at += place->bytes;
    return bytes && at == end;
}

static hipError_t reach(struct place *place)
{
    bool wanted = false;
    for (int i = 0; i < MAX_DEVICES; i++)
        wanted |= place->access[i] != NO_ACCESS;
    if (wanted == place->reached)
        return hipSuccess;
    place->reached = wanted;
    return wanted ? device_ask(MESSAGE_REGISTER, (uint64_t[]){place->start, place->bytes}, 2, NULL)
                  : device_ask(MESSAGE_UNREGISTER, (uint64_t[]){place->start}, 1, NULL);
}

static bool is_good(const struct access *access)
{
    bool flags = access->flags == NO_ACCESS || access->flags == READ_ONLY || access->flags == READ_WRITE;
    int type = access->location.type;
    return flags && (is_host(type) || (type == ON_DEVICE && device_check(access->location.id) == hipSuccess));
}

hipError_t hipMemSetAccess(void *address, size_t bytes, const struct access *access, size_t count)
{
    uintptr_t start = (uintptr_t)address;
    hipError_t error = count ? hipSuccess : hipErrorInvalidValue;
    for (size_t i = 0; i < count && !error; i++)
        error = is_good(&access[i]) ? hipSuccess : hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    if (!error && !is_whole(start, bytes))
        error = hipErrorInvalidValue;
    for (uintptr_t at = start; !error && at < start + bytes; at += place_at(at)->bytes) {
        for (size_t i = 0; i < count; i++)
            if (access[i].location.type == ON_DEVICE)
                place_at(at)->access[access[i].location.id] = access[i].flags;
        error = reach(place_at(at));
    }
    pthread_mutex_unlock(&lock);
    return error;
}

hipError_t hipMemGetAccess(unsigned long long *flags, const struct location *location, void *address)
{
    if (location->type != ON_DEVICE || device_check(location->id) != hipSuccess)
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    const struct place *place = place_over((uintptr_t)address, 1);
    if (place)
        *flags = (unsigned long long)place->access[location->id];
    pthread_mutex_unlock(&lock);
    return place ? hipSuccess : hipErrorInvalidValue;
}

static hipError_t take_away(uintptr_t start)
{
    struct place **link = &places, *place;
    while ((*link)->start != start)
        link = &(*link)->next;
    place = *link;
    *link = place->next;
    memset(place->access, NO_ACCESS, sizeof place->access);
    hipError_t error = reach(place);
    memory_remove(start);
    hipError_t left = mapping_leave(start, place->bytes);
    place->backing->places--;
    let_go(place->backing);
    free(place);
    return error ? error : left;
}

/* When all that was put on streams is done. */
hipError_t hipMemUnmap(void *address, size_t bytes)
{
    uintptr_t at = (uintptr_t)address, end = at + bytes;
    hipError_t error = streams_wait(-1);
    pthread_mutex_lock(&lock);
    if (!error && !is_whole(at, bytes))
        error = hipErrorInvalidValue;
    while (!error && at < end) {
        size_t here = place_at(at)->bytes;
        error = take_away(at);
        at += here;
    }
    pthread_mutex_unlock(&lock);
    return error;
}
