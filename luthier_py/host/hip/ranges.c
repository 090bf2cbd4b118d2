/* What programs advise for parts of managed memory, and what they may ask of memory: remembered, and without any other effect.
 *
 * Pieces are whole pages, as in the driver, disjoint and ordered by address; where there is none, nothing was advised.
 */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "device.h"
#include "memory.h"

enum { NO_DEVICE = -2, HOST = -1, MIXED = 2 };
enum advice {
    READ_MOSTLY = 1, NOT_READ_MOSTLY, PREFERRED, NOT_PREFERRED, ACCESSED, NOT_ACCESSED, COARSE = 100, NOT_COARSE,
    PREFETCHED /* ours */
};
enum attribute { IS_READ_MOSTLY = 1, PREFERRED_LOCATION, ACCESSED_BY, LAST_PREFETCH, COHERENCY = 100 };

struct said {
    bool read_mostly, coarse;
    int preferred, prefetched;
    uint32_t accessed; /* a bit for each device; the first is the host's */
};
struct piece { uintptr_t start, end; struct said said; };

static const struct said NOTHING = {.preferred = NO_DEVICE, .prefetched = NO_DEVICE};
static struct piece *pieces;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void ranges_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    count = 0;
}

static bool insert(size_t place, struct piece piece)
{
    if (count == room) {
        size_t larger = room ? 2 * room : 16;
        struct piece *moved = realloc(pieces, larger * sizeof *moved);
        if (!moved)
            return false;
        pieces = moved;
        room = larger;
    }
    memmove(pieces + place + 1, pieces + place, (count - place) * sizeof *pieces);
    pieces[place] = piece;
    count++;
    return true;
}

/* The first piece that ends behind an address. */
static size_t first_of(uintptr_t address)
{
    size_t place = 0;
    while (place < count && pieces[place].end <= address)
        place++;
    return place;
}

/* Split the piece that spans an address. */
static bool split(uintptr_t address)
{
    size_t place = first_of(address);
    if (place == count || pieces[place].start >= address)
        return true;
    struct piece tail = pieces[place];
    tail.start = address;
    if (!insert(place + 1, tail))
        return false;
    pieces[place].end = address;
    return true;
}

/* The range is pieces and nothing else. */
static bool cover(uintptr_t start, uintptr_t end)
{
    if (!split(start) || !split(end))
        return false;
    size_t place = first_of(start);
    for (uintptr_t at = start; at < end; at = pieces[place++].end)
        if (place == count || pieces[place].start > at) {
            uintptr_t until = place == count || pieces[place].start > end ? end : pieces[place].start;
            if (!insert(place, (struct piece){at, until, NOTHING}))
                return false;
        }
    return true;
}

void ranges_forget(uintptr_t address, size_t bytes)
{
    pthread_mutex_lock(&lock);
    size_t first = first_of(address), end = first;
    while (end < count && pieces[end].start < address + bytes)
        end++;
    memmove(pieces + first, pieces + end, (count - end) * sizeof *pieces);
    count -= end - first;
    pthread_mutex_unlock(&lock);
}

/* Inside one allocation of managed memory. */
static bool is_managed(const void *address, size_t bytes)
{
    struct allocation found;
    return bytes && memory_find(address, &found) && found.kind == KIND_MANAGED && memory_known(address, bytes);
}

static uint32_t bit(int device) { return 1u << (device + 1); }

static void heed(struct said *said, enum advice advice, int device)
{
    switch (advice) {
    case READ_MOSTLY: said->read_mostly = true; break;
    case NOT_READ_MOSTLY: said->read_mostly = false; break;
    case PREFERRED: said->preferred = device; break;
    case NOT_PREFERRED: said->preferred = NO_DEVICE; break;
    case ACCESSED: said->accessed |= bit(device); break;
    case NOT_ACCESSED: said->accessed &= ~bit(device); break;
    case COARSE: said->coarse = true; break;
    case NOT_COARSE: said->coarse = false; break;
    case PREFETCHED: said->prefetched = device; break;
    }
}

static hipError_t check_place(int device) { return device == HOST ? hipSuccess : device_check(device); }

static hipError_t advise(const void *address, size_t bytes, enum advice advice, int device)
{
    bool anywhere = advice == READ_MOSTLY || advice == NOT_READ_MOSTLY;
    if (!is_managed(address, bytes))
        return hipErrorInvalidValue;
    hipError_t error = anywhere ? hipSuccess : check_place(device);
    if (error)
        return error;
    uintptr_t page = page_bytes(), start = (uintptr_t)address / page * page;
    uintptr_t end = ((uintptr_t)address + bytes + page - 1) / page * page;
    pthread_mutex_lock(&lock);
    bool good = cover(start, end);
    for (size_t i = first_of(start); good && i < count && pieces[i].start < end; i++)
        heed(&pieces[i].said, advice, device);
    pthread_mutex_unlock(&lock);
    return good ? hipSuccess : hipErrorOutOfMemory;
}

/* Advice about the grain is for the whole allocation, as the worker stores it. */
hipError_t hipMemAdvise(const void *address, size_t bytes, int advice, int device)
{
    hipError_t error = advise(address, bytes, (enum advice)advice, device);
    if (error || (advice != COARSE && advice != NOT_COARSE))
        return error;
    return device_ask(MESSAGE_GRAIN, (uint64_t[]){(uintptr_t)address, advice == NOT_COARSE}, 2, NULL);
}

/* Memory is near to all devices; only the last place requested is stored. */
hipError_t hipMemPrefetchAsync(const void *address, size_t bytes, int device, stream_t stream)
{
    (void)stream;
    return advise(address, bytes, PREFETCHED, device);
}

/* hipMemLocation as hipMemAdvise has it; NUMA nodes are the host. */
static bool read_location(struct location location, int *device)
{
    enum { ON_DEVICE = 1, NUMA_CURRENT = 4 };
    *device = location.type == ON_DEVICE ? location.id : HOST;
    return between(location.type, ON_DEVICE, NUMA_CURRENT);
}

hipError_t hipMemAdvise_v2(const void *address, size_t bytes, int advice, struct location location)
{
    int device;
    return read_location(location, &device) ? hipMemAdvise(address, bytes, advice, device) : hipErrorInvalidValue;
}

hipError_t hipMemPrefetchAsync_v2(const void *address, size_t bytes, struct location location, unsigned flags, stream_t stream)
{
    int device;
    (void)flags;
    return read_location(location, &device) ? hipMemPrefetchAsync(address, bytes, device, stream) : hipErrorInvalidValue;
}

/* What is said of two parts together. */
static struct said both(struct said a, struct said b)
{
    return (struct said){
        .read_mostly = a.read_mostly && b.read_mostly,
        .coarse = a.coarse,
        .preferred = a.preferred == b.preferred ? a.preferred : NO_DEVICE,
        .prefetched = a.prefetched == b.prefetched ? a.prefetched : NO_DEVICE,
        .accessed = a.accessed & b.accessed,
    };
}

/* What is said of all of a range; `mixed`: parts of it are coarse-grained, others are not. */
static bool sum_up(uintptr_t start, uintptr_t end, struct said *all, bool *mixed)
{
    *mixed = false;
    pthread_mutex_lock(&lock);
    bool good = cover(start, end);
    size_t first = first_of(start);
    for (size_t i = first; good && i < count && pieces[i].start < end; i++) {
        *all = i == first ? pieces[i].said : both(*all, pieces[i].said);
        *mixed |= pieces[i].said.coarse != all->coarse;
    }
    pthread_mutex_unlock(&lock);
    return good;
}

/* As many devices as there is place for, and NO_DEVICE in what is left. */
static void list_devices(uint32_t accessed, int *places, size_t place_count)
{
    size_t given = 0;
    for (int device = HOST; device < MAX_DEVICES && given < place_count; device++)
        if (accessed & bit(device))
            places[given++] = device;
    while (given < place_count)
        places[given++] = NO_DEVICE;
}

static hipError_t answer(void *data, size_t bytes, int attribute, const struct said *all, bool mixed)
{
    int *number = data;
    if (attribute == ACCESSED_BY ? bytes % sizeof(int) || !bytes : bytes != sizeof(int))
        return hipErrorInvalidValue;
    switch (attribute) {
    case IS_READ_MOSTLY: *number = all->read_mostly; return hipSuccess;
    case PREFERRED_LOCATION: *number = all->preferred; return hipSuccess;
    case ACCESSED_BY: list_devices(all->accessed, number, bytes / sizeof(int)); return hipSuccess;
    case LAST_PREFETCH: *number = all->prefetched; return hipSuccess;
    case COHERENCY: *number = mixed ? MIXED : all->coarse; return hipSuccess;
    default: return hipErrorInvalidValue;
    }
}

/* Of memory that is not managed they report coherence alone, as AMD's runtime. */
hipError_t hipMemRangeGetAttributes(void **data, size_t *bytes, int *attributes, size_t number, const void *address,
                                    size_t range_bytes)
{
    struct said all = NOTHING;
    struct allocation found;
    bool mixed = false, managed = is_managed(address, range_bytes);
    if (!number || !range_bytes || !memory_known(address, range_bytes) || !memory_find(address, &found))
        return hipErrorInvalidValue;
    all.coarse = !memory_is_fine_grained(found.kind, found.flags);
    if (managed && !sum_up((uintptr_t)address, (uintptr_t)address + range_bytes, &all, &mixed))
        return hipErrorOutOfMemory;
    hipError_t error = hipSuccess;
    for (size_t i = 0; i < number && !error; i++) {
        bool known = data[i] && (managed || attributes[i] == COHERENCY);
        error = known ? answer(data[i], bytes[i], attributes[i], &all, mixed) : hipErrorInvalidValue;
    }
    return error;
}

hipError_t hipMemRangeGetAttribute(void *data, size_t bytes, int attribute, const void *address, size_t range_bytes)
{
    return hipMemRangeGetAttributes(&data, &bytes, &attribute, 1, address, range_bytes);
}

/* All streams see all managed memory, always. A length of 0 is all of an allocation. */
hipError_t hipStreamAttachMemAsync(stream_t stream, void *address, size_t bytes, unsigned flags)
{
    enum { GLOBAL = 1, OF_HOST = 2, SINGLE = 4 };
    struct allocation found;
    bool known = memory_find(address, &found) && found.kind == KIND_MANAGED;
    bool good = flags == GLOBAL || flags == OF_HOST || (flags == SINGLE && stream);
    return known && good && (!bytes || bytes == found.bytes) ? hipSuccess : hipErrorInvalidValue;
}
