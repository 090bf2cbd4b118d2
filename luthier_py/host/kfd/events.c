/* Events of KFD: words in shared memory, so that waiting is a futex and needs no message. Here they change; waits.c waits. */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "events.h"

_Static_assert(sizeof(struct event) == 4 * EVENT_WORDS, "as protocol.py has it");

struct event *event_of(uint32_t id)
{
    return control() && id && id < EVENTS ? (struct event *)((char *)control() + EVENTS_OFFSET) + id : NULL;
}

static void ring(void)
{
    atomic_fetch_add(&control()->doorbell, 1);
    syscall(SYS_futex, &control()->doorbell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

int event_change(uint32_t id, uint32_t to)
{
    struct event *event = event_of(id);
    if (!event || event->state == UNUSED)
        return EINVAL;
    uint32_t automatic = event->state & AUTO, waiting = event->waiting;
    if (to == SET)
        event->times++;
    if (to != SET || !automatic || !waiting)
        event->state = to == UNUSED ? UNUSED : to | automatic;
    if (to != UNSET)
        ring();
    return 0;
}

/* As a memory fault whose cause is that the device hangs: ROCr ends the program then, which else would wait for ever. */
void events_lost(void)
{
    static const struct { uint32_t not_present, read_only, no_execute, imprecise; uint64_t address; uint32_t gpu, kind; } hang = {
        .imprecise = 1, .gpu = FIRST_GPU, .kind = 3}; /* kfd_hsa_memory_exception_data, KFD_MEM_ERR_GPU_HANG */
    _Static_assert(sizeof hang == sizeof((struct event *)0)->data, "the union of kfd_event_data");
    for (uint32_t id = 1; control() && id < EVENTS; id++) {
        struct event *event = event_of(id);
        if (event->state != UNUSED && event->type == MEMORY_EVENT) {
            memcpy(event->data, &hang, sizeof hang);
            event_change(id, SET);
        }
    }
}
