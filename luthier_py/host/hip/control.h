/* Where the arena begins: words and the ring through which program and worker speak without a message. protocol.py says where
 * each lies. Memory that is given out begins after CONTROL_BYTES. */
#ifndef LUTHIER_CONTROL_H
#define LUTHIER_CONTROL_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"
#include "wire.h"

struct control {
    _Atomic uint64_t completed; /* last command that is done */
    _Atomic uint32_t bell;      /* a futex: changes when those are woken who wait for commands */
    _Atomic int32_t failure;    /* hipError_t of the first launch that failed */
    _Atomic uint64_t wake_at;   /* the first command that a thread waits for */
    char line_of_worker[CONTROL_WRITTEN - 24];
    _Atomic uint64_t written;   /* bytes of the ring, counted from its first use and not wrapped */
    _Atomic uint32_t posted;    /* a futex: changes when the worker is woken */
    _Atomic uint32_t asleep;    /* the worker waits for more */
    _Atomic uint32_t leaving;   /* the program ends by exit() */
    char line_of_program[CONTROL_TAKEN - CONTROL_LEAVING - 4];
    _Atomic uint64_t taken;     /* bytes of the ring that the worker needs no more */
    char rest[CONTROL_STAMPS - CONTROL_TAKEN - 8];
    uint64_t stamps[(CONTROL_RING - CONTROL_STAMPS) / 8];
    char ring[CONTROL_BYTES - CONTROL_RING];
};

_Static_assert(offsetof(struct control, written) == CONTROL_WRITTEN && offsetof(struct control, taken) == CONTROL_TAKEN &&
                   offsetof(struct control, leaving) == CONTROL_LEAVING &&
                   offsetof(struct control, stamps) == CONTROL_STAMPS && offsetof(struct control, ring) == CONTROL_RING,
               "protocol.py has other places");

/* One in the ring: a command, a code and the bytes of its content, then the content, filled up to RECORD_ALIGNMENT.
 * None crosses the ring's end: what is left there is a record of code 0, whose bytes count this head, too. */
struct record { uint64_t command; uint32_t code, bytes; };
enum { RING_BYTES = CONTROL_BYTES - CONTROL_RING, RECORD_ALIGNMENT = 16 };
static inline size_t record_bytes(size_t content)
{
    return (sizeof(struct record) + content + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
}

/* Words on which program and worker wait for each other, see futex(2). */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t value, long nanoseconds)
{
    const struct timespec patience = {.tv_nsec = nanoseconds};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &patience, NULL, 0);
}
static inline void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0); }

/* ring.c: one caller at a time. */
enum ring_answer { RING_TAKEN, RING_FULL, RING_TOO_LARGE };
enum ring_answer ring_put(struct control *control, uint64_t command, uint32_t code, const struct part *parts, int count);

#endif
