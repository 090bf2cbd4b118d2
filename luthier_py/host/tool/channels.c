/* The host's end of a tool's channels: rings in memory that this process and the device share, emptied by a thread.
 *
 * luthier_py/rewrite/tool/records/ring.py has the protocol and its reasons. Here records are not read: slots are sent
 * to the worker as they are. When the worker has ended they are discarded, so that waves never wait for ever. There is
 * a ring for each channel and device, until the tool ends.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "guest.h"

enum { RESERVED, RING, SEEN, CAPACITY, DROPS, DROPPED, HEAD_WORDS = 8 };    /* of the head */
enum { SLOTS_AT = 64, MOST_BYTES = 1 << 22 };                               /* of a message */
enum { SOON_NS = 50 * 1000, LATE_NS = 2 * 1000 * 1000, GIVE_UP_SECONDS = 10 };

struct ring {
    struct ring *next;
    struct declared about;
    int device;
    void *head;
    char *shared;
    uint64_t taken, dropped;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ring *rings;
static bool running; /* the thread */

static char *slot_of(const struct ring *ring, uint64_t number)
{
    uint64_t place = 1 + (number & (ring->about.capacity - 1u));
    return ring->shared + SLOTS_AT + place * ring->about.slot_bytes;
}

/* Number of complete records in sequence, up to the end of the ring. */
static uint64_t whole(const struct ring *ring)
{
    uint64_t most = ring->about.capacity - (ring->taken & (ring->about.capacity - 1u)), count = 0;
    if (most > MOST_BYTES / ring->about.slot_bytes + 1)
        most = MOST_BYTES / ring->about.slot_bytes + 1;
    for (; count < most; count++) {
        _Atomic uint32_t *number = (_Atomic uint32_t *)slot_of(ring, ring->taken + count);
        if (atomic_load_explicit(number, memory_order_acquire) != (uint32_t)(ring->taken + count + 1))
            break;
    }
    return count;
}

/* With the lock. `count` may be 0: then only drops are reported. */
static void tell(const struct ring *ring, uint64_t count)
{
    struct { uint32_t channel, device; uint64_t dropped; } head = {ring->about.number, (uint32_t)ring->device, ring->dropped};
    struct part parts[] = {{&head, sizeof head}, {slot_of(ring, ring->taken), count * ring->about.slot_bytes}};
    if (tool_runs())
        tool_tell(MESSAGE_RECORDS, parts, 2);
}

/* With the lock. */
static uint64_t drain(struct ring *ring)
{
    uint64_t count = whole(ring);
    if (count) {
        tell(ring, count);
        ring->taken += count;
        atomic_store_explicit((_Atomic uint64_t *)ring->shared, ring->taken, memory_order_release);
    }
    return count;
}

static void rest(long ns)
{
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

static void *run(void *unused)
{
    long patience = SOON_NS;
    for (bool any = true; any;) {
        uint64_t count = 0;
        pthread_mutex_lock(&lock);
        for (struct ring *ring = rings; ring; ring = ring->next)
            count += drain(ring);
        any = running = rings != NULL;
        pthread_mutex_unlock(&lock);
        patience = count ? SOON_NS : patience * 2 < LATE_NS ? patience * 2 : LATE_NS;
        if (any && !count)
            rest(patience);
    }
    return unused;
}

static void ring_free(struct ring *ring)
{
    if (ring->head)
        driver()->free_device(ring->head);
    if (ring->shared)
        driver()->free_shared(ring->shared);
    free(ring);
}

static bool write_head(const struct ring *ring)
{
    uint64_t words[HEAD_WORDS] = {[RESERVED] = ring->taken, [RING] = (uintptr_t)ring->shared, [SEEN] = ring->taken,
                                  [CAPACITY] = ring->about.capacity, [DROPS] = ring->about.drops, [DROPPED] = ring->dropped};
    return driver()->write(ring->head, words, sizeof words);
}

static struct ring *ring_new(const struct declared *about, int device)
{
    struct ring *ring = calloc(1, sizeof *ring);
    size_t bytes = SLOTS_AT + ((size_t)about->capacity + 1) * about->slot_bytes;
    if (!ring)
        return NULL;
    *ring = (struct ring){.about = *about, .device = device};
    ring->head = driver()->device(device, HEAD_WORDS * sizeof(uint64_t));
    ring->shared = driver()->shared(device, bytes);
    if (ring->shared)
        memset(ring->shared, 0, bytes);
    if (ring->head && ring->shared && write_head(ring))
        return ring;
    ring_free(ring);
    return NULL;
}

void *channel_head(const struct declared *about, int device)
{
    pthread_mutex_lock(&lock);
    struct ring *ring = rings;
    while (ring && (ring->about.number != about->number || ring->device != device))
        ring = ring->next;
    if (!ring && (ring = ring_new(about, device))) {
        ring->next = rings;
        rings = ring;
        running = running || thread_start(run, NULL);
    }
    bool good = ring && running;
    pthread_mutex_unlock(&lock);
    return good ? ring->head : NULL;
}

static void finish(struct ring *ring)
{
    uint64_t words[HEAD_WORDS] = {0};
    if (!driver()->read(words, ring->head, sizeof words))
        return;
    if (words[RING] != (uintptr_t)ring->shared || words[CAPACITY] != ring->about.capacity || words[DROPS] != ring->about.drops) {
        say("luthier: a kernel wrote over the memory of a tool's channel, so records are lost: `-t memcheck` tells which one "
            "writes out of bounds");
        while (drain(ring))
            ;
        /* numbers after a hole are used again, and the slots' contents are not theirs */
        memset(slot_of(ring, 0), 0, (size_t)ring->about.capacity * ring->about.slot_bytes);
        write_head(ring);
        return;
    }
    time_t began = time(NULL);
    while (ring->taken < words[RESERVED]) {
        if (drain(ring)) {
            began = time(NULL);
            continue;
        }
        if (time(NULL) > began + GIVE_UP_SECONDS) {
            say("luthier: some records of a channel were begun and are not written: they are lost");
            break;
        }
        pthread_mutex_unlock(&lock);
        rest(SOON_NS);
        pthread_mutex_lock(&lock);
    }
    if (words[DROPPED] != ring->dropped) {
        ring->dropped = words[DROPPED];
        tell(ring, 0);
    }
}

void channels_flush(int device)
{
    pthread_mutex_lock(&lock);
    for (struct ring *ring = rings; ring; ring = ring->next)
        if (ring->device == device)
            finish(ring);
    pthread_mutex_unlock(&lock);
}

void channels_drop(void)
{
    pthread_mutex_lock(&lock);
    struct ring *left = rings;
    rings = NULL;
    pthread_mutex_unlock(&lock);
    for (struct ring *next; left; left = next) {
        next = left->next;
        ring_free(left);
    }
}

/* The program ends: the thread reads nothing any more. */
static void forget(void)
{
    pthread_mutex_lock(&lock);
    rings = NULL;
    pthread_mutex_unlock(&lock);
}

/* Rings and thread are the parent's. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    rings = NULL;
    running = false;
}

__attribute__((constructor)) static void be_told(void)
{
    leave_by(forget);
    pthread_atfork(NULL, NULL, in_child);
}
