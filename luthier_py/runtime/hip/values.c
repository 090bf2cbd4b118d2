/* Words in memory that streams write, and wait for: hipStreamWriteValue..., hipStreamWaitValue..., hipStreamBatchMemOp.
 *
 * They are done like host functions, on threads of the streams' own: who waits for a word looks at it now and then, and
 * holds up nobody but its stream. What a kernel or another stream writes is seen here, since all of it is one memory.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graph.h"

enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5 }; /* hipStreamBatchMemOpType */
enum { AT_LEAST, EQUAL, ANY_OF, NOT_ALL };                     /* hipStreamWaitValueGte, Eq, And, Nor */

struct step { int kind; void *address; uint64_t value, mask; unsigned condition; };
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

/* Sooner at first; after a fault nobody writes any more. */
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

static hipError_t prepare(const struct step *all, unsigned count, struct operation *call)
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
    return prepare(all, count, call);
}

static hipError_t put(hipError_t error, stream_t stream, struct operation *call)
{
    if (error)
        return error;
    void *steps = call->call.data;
    error = stream_of(stream)->capture ? hipErrorStreamCaptureUnsupported : perform(stream, call);
    if (error)
        free(steps);
    return error;
}

static hipError_t put_one(stream_t stream, struct step step)
{
    struct operation call;
    hipError_t error = prepare(&step, 1, &call);
    return put(error, stream, &call);
}

hipError_t hipStreamWaitValue32(stream_t stream, void *address, uint32_t value, unsigned flags, uint32_t mask)
{
    return put_one(stream, (struct step){WAIT_32, address, value, mask, flags});
}

hipError_t hipStreamWaitValue64(stream_t stream, void *address, uint64_t value, unsigned flags, uint64_t mask)
{
    return put_one(stream, (struct step){WAIT_64, address, value, mask, flags});
}

hipError_t hipStreamWriteValue32(stream_t stream, void *address, uint32_t value, unsigned flags)
{
    return (void)flags, put_one(stream, (struct step){WRITE_32, address, value, 0, 0});
}

hipError_t hipStreamWriteValue64(stream_t stream, void *address, uint64_t value, unsigned flags)
{
    return (void)flags, put_one(stream, (struct step){WRITE_64, address, value, 0, 0});
}

hipError_t hipStreamBatchMemOp(stream_t stream, unsigned count, const struct memory_operation *operations, unsigned flags)
{
    struct operation call;
    (void)flags;
    hipError_t error = words_prepare(operations, count, &call);
    return put(error, stream, &call);
}
