/* What program and worker say to each other without a message, in memory that both see: words to wait on, and a ring of
 * commands, record after record.
 *
 * A record is a command (u64), a code and the bytes of its content (u32 each), then the content, filled up to RECORD_ALIGNMENT.
 * None goes over the ring's end: what is left there is a record of code 0, whose bytes count its head, too. The worker is woken if it sleeps.
 */
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "control.h"

/* See futex(2). */

void futex_wait(_Atomic uint32_t *word, uint32_t value, long nanoseconds)
{
    const struct timespec patience = {.tv_nsec = nanoseconds};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &patience, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0); }

enum { RING_BYTES = CONTROL_BYTES - CONTROL_RING, RECORD_ALIGNMENT = 16, LARGEST_RECORD = RING_BYTES / 4 };

struct head { uint64_t command; uint32_t code, bytes; };

enum ring_answer ring_put(struct control *control, uint64_t command, uint32_t code, const struct part *parts, int count)
{
    size_t content = 0;
    for (int i = 0; i < count; i++)
        content += parts[i].bytes;
    if (content > LARGEST_RECORD)
        return RING_TOO_LARGE;
    size_t size = (sizeof(struct head) + content + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
    uint64_t written = control->written;
    size_t at = written % RING_BYTES, skipped = at + size > RING_BYTES ? RING_BYTES - at : 0;
    if (written + skipped + size - control->taken > RING_BYTES)
        return RING_FULL;
    if (skipped) {
        *(struct head *)(void *)(control->ring + at) = (struct head){0, 0, (uint32_t)skipped};
        at = 0;
    }
    char *place = control->ring + at;
    *(struct head *)(void *)place = (struct head){command, code, (uint32_t)content};
    place += sizeof(struct head);
    for (int i = 0; i < count; place += parts[i++].bytes)
        memcpy(place, parts[i].data, parts[i].bytes);
    control->written = written + skipped + size;
    if (control->asleep) {
        control->posted++;
        futex_wake(&control->posted);
    }
    return RING_TAKEN;
}
