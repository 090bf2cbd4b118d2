/* What launches have counted, reported without waiting for them: in memory that the tool's worker maps, too.
 *
 * After a launch its variables are copied to the next slot, in the order of its stream, and then the slot's number is
 * written: so the worker sees that they are complete. It takes slots in the order of the launches. So no thread sees a
 * launch done before its counts are reported, however the program ends then. Where reports are sent as messages as
 * well, each slot says how many of these precede it. This is for the emulator's runtime, whose memory is a file; under
 * others, and where a report is large, launches are waited for.
 */
#include "preloaded.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct slot { _Atomic uint32_t number; uint32_t bytes; uint64_t results; char content[REPORT_SLOT_BYTES - 16]; };

struct ring {
    _Atomic uint64_t written; /* slots, counted from the first use and not wrapped */
    _Atomic uint64_t failed;  /* unfinished launches will never end */
    char line_of_program[REPORT_TAKEN - 16];
    _Atomic uint64_t taken;   /* of the written ones, by the worker */
    _Atomic uint64_t asleep;  /* the worker sleeps: send it a message for more */
    char rest[REPORT_FIRST_SLOT - REPORT_TAKEN - 16];
    struct slot slots[REPORT_SLOTS];
};

_Static_assert(offsetof(struct ring, taken) == REPORT_TAKEN && offsetof(struct ring, asleep) == REPORT_ASLEEP &&
                   offsetof(struct ring, slots) == REPORT_FIRST_SLOT && sizeof(struct slot) == REPORT_SLOT_BYTES,
               "protocol.py has other places");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int (*file_of)(const void *, uint64_t *); /* NULL: the runtime has no such memory */
static bool (*has_failed)(void);
static void *memory;     /* in which the ring is */
static struct ring *ring; /* NULL where launches are waited for */
static bool tried;
static atomic_ulong streams_gone;
static uint64_t results; /* as messages, since there is a ring */

static void after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    memory = ring = NULL;
    tried = false;
}

void luthier_tool_memory(int (*file)(const void *, uint64_t *), bool (*failed)(void))
{
    pthread_atfork(NULL, NULL, after_fork);
    file_of = file;
    has_failed = failed;
}

/* The worker maps it, too. */
static struct ring *shared_ring(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int mode = capture_relax();
    hipError_t error = REAL(hipHostMalloc)(&memory, sizeof(struct ring) + page, 0);
    capture_restore(mode);
    if (error)
        return NULL;
    struct ring *made = (struct ring *)(((uintptr_t)memory + page - 1) / page * page);
    memset(made, 0, sizeof *made);
    made->asleep = 1;
    results = 0;
    uint64_t offset;
    uint32_t head[] = {(uint32_t)getpid(), (uint32_t)file_of(made, &offset)};
    struct part parts[] = {{head, sizeof head}, {&offset, sizeof offset}};
    struct reply reply;
    if (!tool_ask(MESSAGE_REPORTS, parts, 2, &reply))
        return NULL;
    free(reply.data);
    return reply.status == 0 ? made : NULL;
}

static bool is_open(void)
{
    if (!tried && file_of && !tool_strict()) {
        hipError_t before = REAL(hipPeekAtLastError)();
        ring = shared_ring();
        restore_error(before);
    }
    tried = true;
    return ring != NULL;
}

/* Wait until the worker has taken so many. */
static void wait_for(uint64_t slots)
{
    struct timespec pause = {.tv_nsec = 20 * 1000};
    while (ring->taken < slots) {
        if (has_failed())
            ring->failed = 1;
        if (!tool_lives())
            return;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 1000 * 1000)
            pause.tv_nsec *= 2;
    }
}

/* Whether the device has finished the launch of this slot, or will finish none; polls for a moment only: what waits for
 * the program may never end. */
static bool is_done(uint64_t slots)
{
    enum { LOOKS = 20000, NAPS = 200 }; /* some microseconds, as a short launch, and some milliseconds */
    const struct slot *slot = &ring->slots[(slots - 1) % REPORT_SLOTS];
    for (int looks = 0; looks < LOOKS; looks++)
        if (ring->taken >= slots || slot->number == (uint32_t)slots)
            return true;
    const struct timespec nap = {.tv_nsec = 20 * 1000};
    for (int naps = 0; naps < NAPS; naps++) {
        if (ring->taken >= slots || slot->number == (uint32_t)slots || has_failed() || !tool_lives())
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

bool told_elsewhere(const struct copy *copy, stream_t stream)
{
    pthread_mutex_lock(&lock);
    bool other = copy->told_on != stream || copy->told_before != streams_gone; /* stream order does not suffice */
    bool in_use = ring && copy->told && other && !is_done(copy->told);
    pthread_mutex_unlock(&lock);
    return in_use;
}

void told_settle(void)
{
    pthread_mutex_lock(&lock);
    if (ring)
        wait_for(ring->written);
    pthread_mutex_unlock(&lock);
}

void told_stream_gone(void) { streams_gone++; }

void told_drop(void)
{
    told_settle();
    pthread_mutex_lock(&lock);
    if (memory)
        REAL(hipHostFree)(memory);
    memory = ring = NULL;
    tried = false;
    pthread_mutex_unlock(&lock);
}

static size_t report_bytes(const struct copy *copy, const struct told_of *launch)
{
    uint32_t sizes[2];
    struct part parts[TOLD_PARTS];
    size_t bytes = 0;
    told_parts(launch, parts, sizes);
    for (int i = 0; i < TOLD_PARTS; i++)
        bytes += parts[i].bytes;
    return bytes + copy->loaded.bytes;
}

bool told_later(struct copy *copy, const struct told_of *launch, stream_t stream)
{
    bool waits = copy->loaded.begins || copy->loaded.sized || copy->asked.made.given;
    bool fits = !waits && report_bytes(copy, launch) <= sizeof ring->slots->content;
    pthread_mutex_lock(&lock);
    if (!fits || stream == (stream_t)STREAM_PER_THREAD || !is_open()) {
        pthread_mutex_unlock(&lock);
        told_settle();
        return false;
    }
    if (ring->written >= REPORT_SLOTS)
        wait_for(ring->written - REPORT_SLOTS + 1);
    return true;
}

void told_not(void) { pthread_mutex_unlock(&lock); }

bool told(struct copy *copy, const struct told_of *launch, stream_t stream)
{
    struct slot *slot = &ring->slots[ring->written % REPORT_SLOTS];
    uint32_t number = (uint32_t)ring->written + 1;
    slot->number = number - 1;
    slot->results = results;
    slot->bytes = (uint32_t)report_bytes(copy, launch);
    uint32_t sizes[2];
    struct part parts[TOLD_PARTS];
    char *at = slot->content;
    told_parts(launch, parts, sizes);
    for (int i = 0; i < TOLD_PARTS; at += parts[i++].bytes)
        memcpy(at, parts[i].data, parts[i].bytes);
    hipError_t before = REAL(hipPeekAtLastError)(), error = hipSuccess;
    const struct tool_variable *variable = copy->loaded.variables, *end = variable + copy->loaded.variable_count;
    for (; !error && variable < end; at += variable++->bytes)
        error = REAL(hipMemcpyAsync)(at, variable->address, variable->bytes, COPY_TO_HOST, stream);
    if (!error)
        error = REAL(hipMemsetD32Async)((void *)&slot->number, (int)number, 1, stream);
    if (!error) {
        copy->told = ++ring->written;
        copy->told_on = stream;
        copy->told_before = streams_gone;
        if (atomic_exchange(&ring->asleep, 0))
            tool_tell(MESSAGE_REPORTED, NULL, 0);
    }
    restore_error(before);
    pthread_mutex_unlock(&lock);
    if (error)
        told_settle();
    return !error;
}

void told_waited(const struct told_of *launch, const void *values, size_t bytes)
{
    pthread_mutex_lock(&lock);
    results++;
    clone_counted(launch, values, bytes);
    pthread_mutex_unlock(&lock);
}
