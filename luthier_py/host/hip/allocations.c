/* What is allocated: a table of it, by address, and what the worker gives for it. */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "memory.h"

static struct allocation *table; /* by address */
static size_t table_count, table_room;
static size_t used[MAX_DEVICES]; /* of each device's own memory */
static uint32_t last_id;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Index of the first allocation that begins after `address`. */
static size_t after(uintptr_t address)
{
    size_t low = 0, high = table_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool memory_is_device(enum kind kind) { return kind == KIND_DEVICE || kind == KIND_VARIABLE || kind >= KIND_OPENED; }

/* What hipMemGetInfo counts as used. */
static bool takes_room(enum kind kind) { return kind == KIND_DEVICE || kind == KIND_VARIABLE; }

/* Whether a device has room for this much more, which is taken. */
bool memory_take_room(int device, size_t bytes)
{
    pthread_mutex_lock(&lock);
    uint64_t total = device_facts(device)->memory_bytes;
    bool room = !bytes || (used[device] <= total && bytes <= total - used[device]);
    used[device] += room ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return room;
}

void memory_give_room(int device, size_t bytes)
{
    pthread_mutex_lock(&lock);
    used[device] -= bytes;
    pthread_mutex_unlock(&lock);
}

/* The allocation that an address of the arena is in, or NULL. */
static struct allocation *entry_of(uintptr_t address)
{
    size_t place = after(address);
    return place > 0 && address - table[place - 1].address < table[place - 1].bytes ? &table[place - 1] : NULL;
}

/* The one that begins there, if it can be freed: also another program's memory, if a pool has imported it. */
static struct allocation *freeable(const void *address)
{
    struct allocation *entry = entry_of((uintptr_t)address);
    bool begins = entry && entry->address == (uintptr_t)address;
    return begins && (entry->kind <= KIND_MANAGED || (entry->kind == KIND_OPENED && entry->pool)) ? entry : NULL;
}

static void drop(struct allocation *entry)
{
    size_t place = (size_t)(entry - table);
    memmove(entry, entry + 1, (table_count - place - 1) * sizeof *table);
    table_count--;
}

bool memory_add(struct allocation allocation)
{
    pthread_mutex_lock(&lock);
    if (table_count == table_room) {
        size_t room = table_room ? 2 * table_room : 64;
        struct allocation *larger = realloc(table, room * sizeof *table);
        if (!larger) {
            pthread_mutex_unlock(&lock);
            return false;
        }
        table = larger;
        table_room = room;
    }
    if (allocation.kind == KIND_VARIABLE)
        used[allocation.device] += allocation.bytes;
    allocation.id = ++last_id;
    size_t place = after(allocation.address);
    memmove(table + place + 1, table + place, (table_count - place) * sizeof *table);
    table[place] = allocation;
    table_count++;
    pthread_mutex_unlock(&lock);
    return true;
}

bool memory_remove(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    struct allocation *entry = entry_of(address);
    bool found = entry && entry->address == address;
    if (found) {
        if (takes_room(entry->kind))
            used[entry->device] -= entry->bytes;
        drop(entry);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool memory_take(const void *address, bool leaving, struct allocation *taken)
{
    pthread_mutex_lock(&lock);
    struct allocation *entry = freeable(address);
    bool found = entry && (leaving || !entry->leaving);
    if (found) {
        *taken = *entry;
        drop(entry);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool memory_mark_leaving(const void *address, bool leaving)
{
    pthread_mutex_lock(&lock);
    struct allocation *entry = freeable(address);
    bool found = entry && entry->leaving != leaving;
    if (found)
        entry->leaving = leaving;
    pthread_mutex_unlock(&lock);
    return found;
}

bool memory_mark_synchronous(const void *address, bool on)
{
    uintptr_t host, device = in_arena(address) ? (uintptr_t)address : pinned_device(address, &host);
    pthread_mutex_lock(&lock);
    struct allocation *entry = entry_of(device);
    if (entry)
        entry->synchronous = on;
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

/* A child has none of it. */
void memory_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    table_count = 0;
    memset(used, 0, sizeof used);
}

bool memory_find(const void *address, struct allocation *found)
{
    uintptr_t host = 0, device = in_arena(address) ? (uintptr_t)address : pinned_device(address, &host);
    pthread_mutex_lock(&lock);
    const struct allocation *entry = entry_of(device);
    bool inside = entry && !entry->leaving;
    if (inside) {
        *found = *entry;
        found->host = host;
    }
    pthread_mutex_unlock(&lock);
    return inside;
}

static bool find_on_device(const void *address, struct allocation *found)
{
    return memory_find(address, found) && (found->kind == KIND_DEVICE || found->kind == KIND_VARIABLE);
}

bool is_on_device(const void *address)
{
    struct allocation found;
    return find_on_device(address, &found);
}

bool memory_needs_no_wait(const void *address)
{
    struct allocation found;
    return find_on_device(address, &found) && !found.synchronous;
}

/* What is mapped side by side is one. */
static bool goes_so_far(const struct allocation *found, const void *address, size_t bytes)
{
    uintptr_t start = found->host ? found->host : found->address;
    size_t left = found->bytes - ((uintptr_t)address - start);
    struct allocation next = *found;
    while (bytes > left && next.kind == KIND_MAPPED) {
        bytes -= left;
        if (!memory_find((void *)(next.address + next.bytes), &next))
            return false;
        left = next.bytes;
    }
    return bytes <= left;
}

bool memory_known(const void *address, size_t bytes)
{
    struct allocation found;
    return memory_find(address, &found) && goes_so_far(&found, address, bytes);
}

static bool is_reset(const struct allocation *memory, int device)
{
    return memory->kind == KIND_DEVICE && memory->device == device && !(memory->flags & MEMORY_OF_KERNELS);
}

size_t memory_of(int device, void ***all)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    *all = malloc((table_count + 1) * sizeof **all);
    for (size_t i = 0; i < table_count && *all; i++)
        if (is_reset(&table[i], device))
            (*all)[count++] = (void *)table[i].address;
    pthread_mutex_unlock(&lock);
    return count;
}

size_t memory_left(int device)
{
    pthread_mutex_lock(&lock);
    size_t total = device_facts(device)->memory_bytes, left = used[device] < total ? total - used[device] : 0;
    pthread_mutex_unlock(&lock);
    return left;
}

bool memory_is_fine_grained(enum kind kind, unsigned flags)
{
    enum { NON_COHERENT = 0x80000000, FINE = 1, REGISTERED_COARSE = 8 };
    switch (kind) {
    case KIND_MANAGED: return true;
    case KIND_HOST: return !(flags & NON_COHERENT);
    case KIND_PINNED: return !(flags & REGISTERED_COARSE);
    default: return kind == KIND_DEVICE && flags & FINE;
    }
}

hipError_t memory_try(struct allocation *wanted)
{
    size_t own = takes_room(wanted->kind) ? wanted->bytes : 0;
    uint64_t place;
    if (!memory_take_room(wanted->device, own))
        return hipErrorOutOfMemory;
    bool fine = memory_is_fine_grained(wanted->kind, wanted->flags);
    hipError_t error = device_ask(MESSAGE_ALLOCATE, (uint64_t[]){wanted->bytes, fine}, 2, &place);
    if (error)
        memory_give_room(wanted->device, own);
    else
        wanted->address = (uintptr_t)place;
    return error;
}

hipError_t memory_unmake(struct allocation memory)
{
    if (takes_room(memory.kind))
        memory_give_room(memory.device, memory.bytes);
    return device_ask(MESSAGE_FREE, &(uint64_t){memory.address}, 1, NULL);
}
