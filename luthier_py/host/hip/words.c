/* Words in memory that streams write, and wait for.
 *
 * They are done like host functions, on the streams' threads: a thread that waits for a word polls it now and then, and
 * delays only its stream. What a kernel or another stream writes is seen here, since all of it is one memory.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "memory.h"
#include "words.h"

enum { AT_LEAST, EQUAL, ANY_OF, NOT_ALL };                     /* hipStreamWaitValueGte, Eq, And, Nor */

struct steps { unsigned count; struct step at[]; };

static bool is_wait(int kind) { return kind == WAIT_32 || kind == WAIT_64; }
static bool is_wide(int kind) { return kind == WAIT_64 || kind == WRITE_64; }
static size_t bytes_of(int kind) { return is_wide(kind) ? sizeof(uint64_t) : sizeof(uint32_t); }

static bool met(const struct step *s)
{
    bool wide = is_wide(s->kind);
    uint64_t all = wide ? UINT64_MAX : UINT32_MAX;
    uint64_t word = wide ? *(_Atomic uint64_t *)s->address : *(_Atomic uint32_t *)s->address;
    switch (s->condition) {
    case AT_LEAST: return (word & s->mask) >= s->value;
    case EQUAL: return (word & s->mask) == s->value;
    case ANY_OF: return (word & s->mask) & s->value;
    default: return ~((word & s->mask) | (s->value & s->mask)) & all;
    }
}

/* Polls sooner at first; after a fault no kernel writes any more. */
static void await_word(const struct step *s)
{
    struct timespec pause = {.tv_nsec = 20 * 1000};
    while (!met(s) && !device_wait(0)) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 1000 * 1000)
            pause.tv_nsec *= 2;
    }
}

static void write_word(const struct step *s)
{
    if (is_wide(s->kind))
        *(_Atomic uint64_t *)s->address = s->value;
    else
        *(_Atomic uint32_t *)s->address = (uint32_t)s->value;
}

static void carry_out(void *data)
{
    struct steps *steps = data;
    for (unsigned i = 0; i < steps->count && !device_wait(0); i++)
        (is_wait(steps->at[i].kind) ? await_word : write_word)(&steps->at[i]);
    free(steps);
}

static hipError_t check(const struct step *s)
{
    if (s->kind != WAIT_32 && s->kind != WRITE_32 && s->kind != WAIT_64 && s->kind != WRITE_64)
        return hipErrorInvalidValue;
    bool good = (uintptr_t)s->address % bytes_of(s->kind) == 0 && memory_known(s->address, bytes_of(s->kind));
    return good && (!is_wait(s->kind) || s->condition <= NOT_ALL) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t steps_prepare(const struct step *all, unsigned count, struct operation *call)
{
    for (unsigned i = 0; i < count; i++)
        if (check(&all[i]))
            return hipErrorInvalidValue;
    struct steps *steps = malloc(sizeof *steps + count * sizeof *all);
    if (!steps)
        return hipErrorOutOfMemory;
    steps->count = count;
    memcpy(steps->at, all, count * sizeof *all);
    *call = (struct operation){OPERATION_CALL, .call = {carry_out, steps}};
    return hipSuccess;
}

hipError_t words_prepare(const struct memory_operation *operations, unsigned count, struct operation *call)
{
    struct step all[MOST_OPERATIONS];
    for (unsigned i = 0; i < count; i++) {
        const struct memory_operation *o = &operations[i];
        all[i] = (struct step){o->kind, o->address, is_wide(o->kind) ? o->value : (uint32_t)o->value, UINT64_MAX, o->flags};
    }
    return steps_prepare(all, count, call);
}
