/* The ring of commands: what the worker is to do, record after record, in memory that it sees. It is woken if it sleeps. */
#include <string.h>

#include "control.h"

enum { LARGEST_RECORD = RING_BYTES / 4 };

enum ring_answer ring_put(struct control *control, uint64_t command, uint32_t code, const struct part *parts, int count)
{
    size_t content = 0;
    for (int i = 0; i < count; i++)
        content += parts[i].bytes;
    if (content > LARGEST_RECORD)
        return RING_TOO_LARGE;
    uint64_t written = control->written;
    size_t size = record_bytes(content);
    size_t at = written % RING_BYTES, skipped = at + size > RING_BYTES ? RING_BYTES - at : 0;
    if (written + skipped + size - control->taken > RING_BYTES)
        return RING_FULL;
    if (skipped) {
        *(struct record *)(void *)(control->ring + at) = (struct record){0, 0, (uint32_t)skipped};
        at = 0;
    }
    char *place = control->ring + at;
    *(struct record *)(void *)place = (struct record){command, code, (uint32_t)content};
    place += sizeof(struct record);
    for (int i = 0; i < count; place += parts[i++].bytes)
        memcpy(place, parts[i].data, parts[i].bytes);
    control->written = written + skipped + size;
    if (control->asleep) {
        control->posted++;
        futex_wake(&control->posted);
    }
    return RING_TAKEN;
}
