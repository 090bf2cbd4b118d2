/* The device: a worker process, an arena that both sides map at the same address, and commands.
 *
 * Everything that a stream has the worker do gets the next command; the worker does it in this order and writes
 * the last command that is done to the arena's first page. Neither handing over nor waiting needs a message.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "device.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { STAMPS = (CONTROL_RING - CONTROL_STAMPS) / 8 };
static const long PATIENCE = 100 * 1000 * 1000;     /* nanoseconds until a waiting thread checks the worker */
static const long FOR_ROOM = 20 * 1000 * 1000;      /* and until a launch avoids a ring that stays full */
enum { LOOKS = 2000 };                              /* before a waiting thread sleeps */
static const uintptr_t PLACES[] = {0x200000000000, 0x300000000000, 0x100000000000, 0x400000000000};
static const size_t LARGEST = (size_t)1 << 38, SMALLEST = (size_t)1 << 30;

static struct device_facts all_facts[MAX_DEVICES];
static int count;
static _Thread_local int current;
static struct wire wire = {.fd = -1};
static struct control *control; /* where the arena begins; NULL in a child of fork, which has none of it */
static uintptr_t arena_start;
static size_t arena_bytes;
static int arena_file = -1;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t submitting = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stamping = PTHREAD_MUTEX_INITIALIZER;
static enum { COLD, READY, BROKEN } state;
static atomic_bool ready; /* state is READY */
static hipError_t broken = hipErrorNoDevice;
static _Atomic uint64_t submitted;
static _Thread_local hipError_t last_error, last_result; /* of this thread: the last that was one; of its last call */
static struct { uint64_t command; unsigned next; } used[STAMPS]; /* of stamps by number: given back for that command, and the next */
static unsigned oldest, newest, used_count, next_stamp; /* the list through `used`, and the first that never was in use */
static atomic_bool gone; /* the worker */
static atomic_bool tried; /* to start it */

hipError_t note(hipError_t error)
{
    last_result = error;
    if (error != hipSuccess && error != hipErrorNotReady)
        last_error = error;
    return error;
}

hipError_t hipPeekAtLastError(void) { return last_error; }

hipError_t hipGetLastError(void)
{
    hipError_t error = last_error;
    last_error = hipSuccess;
    return error;
}

hipError_t hipExtGetLastError(void)
{
    hipError_t error = last_result;
    last_result = hipSuccess;
    return error;
}

/* Address space that costs nothing until it is touched, where the worker can have it too. */
static int make_arena(void)
{
    int fd = memfd_create("luthier-arena", MFD_CLOEXEC);
    for (size_t bytes = LARGEST; fd >= 0 && bytes >= SMALLEST; bytes /= 2) {
        if (ftruncate(fd, (off_t)bytes) < 0)
            continue;
        for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
            void *place = mmap((void *)PLACES[i], bytes, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);
            if (place == (void *)PLACES[i]) {
                madvise(place, bytes, MADV_DONTFORK);
                control = place;
                arena_start = PLACES[i];
                arena_bytes = bytes;
                return descriptor_out_of_the_way(fd);
            }
            if (place != MAP_FAILED)
                munmap(place, bytes);
        }
    }
    say("luthier: cannot reserve device memory: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static void read_facts(struct cursor *cursor, struct device_facts *facts)
{
    facts->compute_units = take32(cursor);
    facts->wave_size = take32(cursor);
    facts->lds_bytes = take32(cursor);
    facts->max_threads = take32(cursor);
    facts->memory_bytes = take64(cursor);
    for (int i = 0; i < 2; i++) {
        facts->properties_bytes[i] = take32(cursor);
        facts->properties[i] = take(cursor, facts->properties_bytes[i]);
    }
    facts->attribute_count = take32(cursor);
    facts->attributes = take(cursor, 8 * (size_t)facts->attribute_count);
    facts->name_bytes = take32(cursor);
    facts->name = take(cursor, facts->name_bytes);
}

/* The reply to OPEN; it stays in memory, since facts point into it. */
static bool read_devices(const struct reply *reply)
{
    struct cursor cursor = {reply->data, reply->data + reply->bytes, false};
    uint32_t devices = take32(&cursor);
    count = devices < MAX_DEVICES ? (int)devices : MAX_DEVICES;
    for (int i = 0; i < count; i++)
        read_facts(&cursor, &all_facts[i]);
    return !cursor.bad && count > 0;
}

static hipError_t start(void)
{
    tried = true;
    arena_file = make_arena();
    if (arena_file < 0)
        return hipErrorOutOfMemory;
    if (!wire_start(&wire, "device", arena_file))
        return hipErrorNoDevice;
    uint64_t place[2] = {arena_start, arena_bytes};
    struct reply reply;
    if (!wire_call(&wire, MESSAGE_OPEN, &(struct part){place, sizeof place}, 1, &reply)) {
        say("luthier: the worker process ended before it answered");
        return hipErrorNoDevice;
    }
    if (reply.status)
        return (hipError_t)reply.status;
    return read_devices(&reply) ? hipSuccess : hipErrorUnknown;
}

hipError_t device_ready(void)
{
    if (ready)
        return hipSuccess;
    pthread_mutex_lock(&starting);
    if (state == COLD) {
        broken = start();
        state = broken == hipSuccess ? READY : BROKEN;
        ready = state == READY;
    }
    hipError_t error = state == READY ? hipSuccess : broken;
    pthread_mutex_unlock(&starting);
    return error;
}

int device_count(void) { return count; }
int device_current(void) { return current; }
void device_make_current(int device) { current = device; }
const struct device_facts *device_facts(int device) { return &all_facts[device]; }

hipError_t device_check(int device)
{
    hipError_t error = device_ready();
    return error ? error : device >= 0 && device < count ? hipSuccess : hipErrorInvalidDevice;
}

bool in_arena(const void *address)
{
    return (uintptr_t)address - arena_start < arena_bytes;
}

size_t device_arena_bytes(void) { return arena_bytes; }
size_t device_arena_offset(uintptr_t address) { return address - arena_start; }
int device_arena_file(void) { return arena_file; }

uint64_t device_submitted(void) { return submitted; }

bool device_done(uint64_t command) { return !control || control->completed >= command || gone; }

/* A failed launch is final: every later wait and copy reports it, as after a fault on a GPU. */
static hipError_t failure(void)
{
    if (gone)
        return hipErrorLaunchFailure;
    return control ? (hipError_t)control->failure : state == BROKEN ? broken : hipSuccess;
}

bool device_failed(void) { return device_lost() || failure(); }

bool device_lost(void)
{
    if (!control || gone || !wire_gone(&wire) || atomic_exchange(&gone, true))
        return gone;
    if (wire_taken(&wire))
        say("luthier: the program has closed file descriptor %d, the way to its device", wire.fd);
    else
        say("luthier: the worker process has ended");
    return true;
}

/* The worker wakes all who wait when the first of the commands is done; it takes wake_at away before it changes the bell. */
static void sleep_until_done(uint64_t command, long nanoseconds)
{
    uint32_t bell = control->bell;
    uint64_t first = control->wake_at;
    while (command < first && !atomic_compare_exchange_weak(&control->wake_at, &first, command))
        continue;
    if (!device_done(command))
        futex_wait(&control->bell, bell, nanoseconds);
}

hipError_t device_wait(uint64_t command)
{
    for (int looks = 0; looks < LOOKS && !device_done(command); looks++)
        continue;
    while (!device_done(command)) {
        sleep_until_done(command, PATIENCE);
        if (!device_done(command) && device_lost())
            return hipErrorLaunchFailure;
    }
    return failure();
}

/* Until half of what waits is done. False: nothing gets done, as behind a kernel that waits for the program. */
static bool wait_for_room(void)
{
    static uint64_t stuck = UINT64_MAX;
    uint64_t done = control->completed;
    if (done == stuck || gone)
        return false;
    sleep_until_done(done + (submitted - done + 1) / 2, FOR_ROOM);
    bool moves = control->completed != done;
    stuck = moves ? UINT64_MAX : done;
    return moves;
}

/* The worker finds out by the command that one of them comes by the wire. */
static bool submit(uint64_t command, uint32_t code, const struct part *parts, int count)
{
    enum ring_answer answer = ring_put(control, command, code, parts, count);
    while (answer == RING_FULL && wait_for_room())
        answer = ring_put(control, command, code, parts, count);
    return answer == RING_TAKEN ? !gone : wire_send(&wire, code, parts, count);
}

hipError_t device_submit(uint32_t code, const struct part *parts, int count, uint64_t *command)
{
    hipError_t error = device_ready();
    if (error)
        return error;
    pthread_mutex_lock(&submitting);
    bool sent = submit(submitted + 1, code, parts, count);
    if (sent)
        *command = ++submitted;
    pthread_mutex_unlock(&submitting);
    return sent ? hipSuccess : hipErrorLaunchFailure;
}

hipError_t device_call(uint32_t code, const struct part *parts, int count, struct reply *reply)
{
    hipError_t error = device_ready();
    if (error != hipSuccess)
        return error;
    if (!wire_call(&wire, code, parts, count, reply))
        return device_lost() ? hipErrorLaunchFailure : hipErrorUnknown;
    if (reply->status == 0)
        return hipSuccess;
    free(reply->data);
    return (hipError_t)reply->status;
}

hipError_t device_ask(uint32_t code, const uint64_t *question, int count, uint64_t *answer)
{
    struct reply reply;
    hipError_t error = device_call(code, &(struct part){question, (size_t)count * sizeof *question}, 1, &reply);
    if (error)
        return error;
    struct cursor cursor = {reply.data, reply.data + reply.bytes, false};
    if (answer)
        *answer = take64(&cursor);
    free(reply.data);
    return cursor.bad ? hipErrorUnknown : hipSuccess;
}

/* The one that was given back first, if the worker will not write to it any more; else a new one. */
uint64_t *stamp_take(void)
{
    uint64_t *stamp = NULL;
    pthread_mutex_lock(&stamping);
    if (used_count && device_done(used[oldest].command)) {
        stamp = &control->stamps[oldest];
        oldest = used[oldest].next;
        used_count--;
    } else if (control && next_stamp < STAMPS)
        stamp = &control->stamps[next_stamp++];
    pthread_mutex_unlock(&stamping);
    if (stamp)
        *stamp = 0;
    return stamp;
}

void stamp_give(uint64_t *stamp, uint64_t command)
{
    if (!control)
        return;
    unsigned place = (unsigned)(stamp - control->stamps);
    pthread_mutex_lock(&stamping);
    used[place].command = command;
    if (used_count++)
        used[newest].next = place;
    else
        oldest = place;
    newest = place;
    pthread_mutex_unlock(&stamping);
}

uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The worker does not report launches that still run. */
__attribute__((destructor)) static void leave(void)
{
    if (control)
        control->leaving = 1;
}

bool device_tried(void) { return tried; }

void device_after_fork(void)
{
    wire_close(&wire);
    if (arena_file >= 0)
        close(arena_file);
    arena_file = -1;
    control = NULL;
    ready = false;
    if (state == READY) {
        state = BROKEN;
        broken = hipErrorNotInitialized;
    }
    pthread_mutex_init(&starting, NULL);
    pthread_mutex_init(&submitting, NULL);
    pthread_mutex_init(&stamping, NULL);
}
