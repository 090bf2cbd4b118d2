/* The loop over commands; see commands.py.
 *
 * In: the ring that the program writes, launches that are ready by what they begin with. Out: why it returned.
 * Invariant: a side that sleeps, program or worker, has set its flag before its last look, and is woken after the event
 * that it awaits: what one side writes and then reads is in one order for both (seq_cst).
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control.h"
#include "worker.h"

enum { LOOKS = 2000, NAP_NANOSECONDS = 1000000 }; /* at an empty ring before it sleeps, with what is read still held */
enum { MOST_TABLES = 16 }; /* of allocations that are kept for their readers */
enum { HEAD_WORDS = 8, ENTRIES = 2 * MOST_KNOWN };
enum { CARRIED_OUT = -1 }; /* beside enum pause */

struct head { uint64_t words[HEAD_WORDS]; }; /* what a launch begins with, up to its arguments: the kernel and its shape */
struct entry { struct head head; const uint64_t *ready; }; /* NULL: free */
typedef uint64_t begin_function(const uint64_t *ready, const void *arguments, uint64_t bytes);

struct commands {
    uint64_t next;               /* the command to be done; from here on up to `outcome` Python reads and writes, too */
    uint64_t size;               /* of the one in hand, bytes of the ring */
    const struct record *record; /* and what it is */
    const uint64_t *ready;       /* of the launch that stopped */
    uint64_t outcome;
    struct control *control;
    const _Atomic uint64_t *tables; /* of allocations: how many are kept */
    begin_function *begin;
    uint64_t valid, kernarg_words, finished; /* words of what is ready, and the outcome of a launch that is over */
    bool timed;                     /* none is carried out here */
    struct entry launches[ENTRIES];
};

PUBLIC struct commands *luthier_commands_new(struct control *control, const _Atomic uint64_t *tables, bool timed)
{
    struct commands *commands = calloc(1, sizeof *commands);
    if (commands)
        commands->next = 1, commands->control = control, commands->tables = tables, commands->timed = timed;
    return commands;
}

PUBLIC void luthier_commands_begin(struct commands *commands, begin_function *begin, uint64_t valid, uint64_t kernarg_words,
                                   uint64_t finished)
{
    commands->begin = begin, commands->valid = valid, commands->kernarg_words = kernarg_words, commands->finished = finished;
}

/* Launches. */

/* Where a head is, or the place for it. */
static struct entry *place_of(struct commands *commands, const struct head *head)
{
    uint64_t mixed = 0;
    for (size_t i = 0; i < HEAD_WORDS; i++) {
        mixed = (mixed ^ head->words[i]) * 0x9E3779B97F4A7C15u;
        mixed ^= mixed >> 32;
    }
    struct entry *entry = &commands->launches[mixed % ENTRIES];
    while (entry->ready && memcmp(&entry->head, head, sizeof *head) != 0)
        entry = entry + 1 < commands->launches + ENTRIES ? entry + 1 : commands->launches;
    return entry;
}

PUBLIC void luthier_commands_know(struct commands *commands, const struct head *head, const uint64_t *ready)
{
    *place_of(commands, head) = (struct entry){*head, ready};
}

PUBLIC void luthier_commands_forget(struct commands *commands)
{
    for (size_t i = 0; i < ENTRIES; i++)
        commands->launches[i].ready = NULL;
}

static int launch(struct commands *commands, const char *content, size_t bytes)
{
    struct head head;
    memcpy(&head, content, sizeof head);
    const uint64_t *ready = place_of(commands, &head)->ready;
    size_t argument_bytes = bytes - sizeof head;
    if (!ready || !ready[commands->valid] || argument_bytes > 8 * ready[commands->kernarg_words])
        return NEW;
    uint64_t outcome = commands->begin(ready, content + sizeof head, argument_bytes);
    if (outcome == commands->finished)
        return CARRIED_OUT;
    commands->ready = ready;
    commands->outcome = outcome;
    return STOPPED;
}

/* Times, copies and fills. */

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct copy { void *to; const void *from; uint64_t bytes; };
struct fill { void *to; uint64_t count, value, element; };

static void fill(const struct fill *fill)
{
    typedef uint16_t half __attribute__((aligned(1), may_alias));
    typedef uint32_t word __attribute__((aligned(1), may_alias));
    if (fill->element == 1)
        memset(fill->to, (int)fill->value, fill->count);
    for (size_t i = 0; fill->element == 2 && i < fill->count; i++)
        ((half *)fill->to)[i] = (half)fill->value;
    for (size_t i = 0; fill->element == 4 && i < fill->count; i++)
        ((word *)fill->to)[i] = (word)fill->value;
}

static int carry_out(struct commands *commands)
{
    const struct record *record = commands->record;
    const void *content = record + 1;
    switch (commands->timed ? 0 : record->code) {
    case MESSAGE_LAUNCH: return launch(commands, content, record->bytes);
    case MESSAGE_STAMP: **(_Atomic uint64_t *const *)content = nanoseconds(); return CARRIED_OUT;
    case MESSAGE_COPY: {
        const struct copy *copy = content;
        memmove(copy->to, copy->from, copy->bytes);
        return CARRIED_OUT;
    }
    case MESSAGE_FILL: fill(content); return CARRIED_OUT;
    default: return NEW;
    }
}

/* The ring. */

static bool is_empty(const struct control *control) { return control->written == control->taken; }

static void nap(struct control *control, uint32_t posted, long nanoseconds)
{
    control->asleep = 1;
    if (is_empty(control))
        futex_wait(&control->posted, posted, nanoseconds);
    control->asleep = 0;
}

/* Until something is in the ring or the word POSTED is another one. */
PUBLIC void luthier_sleep(struct control *control, uint32_t posted, uint64_t nanoseconds) { nap(control, posted, (long)nanoseconds); }

static bool await_record(struct control *control)
{
    for (int i = 0; i < LOOKS; i++)
        if (!is_empty(control))
            return true;
    nap(control, control->posted, NAP_NANOSECONDS);
    return !is_empty(control);
}

static int take_next(struct commands *commands)
{
    struct control *control = commands->control;
    const struct record *record;
    do {
        if (atomic_load_explicit(commands->tables, memory_order_relaxed) > MOST_TABLES)
            return CROWDED;
        if (!await_record(control))
            return EMPTY;
        record = (const void *)(control->ring + control->taken % RING_BYTES);
        if (!record->code)
            control->taken += record->bytes;
    } while (!record->code);
    commands->record = record;
    commands->size = record_bytes(record->bytes);
    return record->command == commands->next ? CARRIED_OUT : ELSEWHERE;
}

/* The current command is done: report it, wake the thread that waits. */
static void finish(struct commands *commands)
{
    struct control *control = commands->control;
    uint64_t command = commands->next++;
    control->taken += commands->size;
    control->completed = command;
    if (command < control->wake_at)
        return;
    control->wake_at = UINT64_MAX;
    control->bell++;
    futex_wake(&control->bell);
}

/* Carry out what is there; `done`: what this came back with is. */
PUBLIC int luthier_carry_on(struct commands *commands, bool done)
{
    if (done)
        finish(commands);
    for (;; finish(commands)) {
        int pause = take_next(commands);
        if (pause == CARRIED_OUT && !atomic_load_explicit(&commands->control->failure, memory_order_relaxed))
            pause = carry_out(commands);
        if (pause != CARRIED_OUT)
            return pause;
    }
}
