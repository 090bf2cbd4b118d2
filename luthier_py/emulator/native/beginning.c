/* The beginning of a launch: arguments to their places, records as new, and the first turns.

   In: a record READY of layout. Out: an Outcome. Where rounds are used up, the work-group before has ended and time is
   left, it continues by itself. Invariant: nothing that another launch left in the records reaches this one, but for a
   wish to stop it. */
#include "clock.h"
#include "native.h"

typedef u64 scheduler(struct worker *worker, struct launch *launch, struct group *group, u64 rounds);

/* The kernarg segment: what is given, and what is the same each time. */
static void place_arguments(const struct ready *ready, const void *arguments, u64 bytes)
{
    u64 *kernarg = (u64 *)ready->kernarg;
    const u64 *given = (const u64 *)ready->given, *fixed = (const u64 *)ready->fixed;
    if (ready->kernarg_words)
        __builtin_memcpy(kernarg, arguments, bytes);
    for (u64 i = 0; i < ready->kernarg_words; i++)
        kernarg[i] = (kernarg[i] & given[i]) | fixed[i];
}

/* Arguments that come in registers, in each image of a wave. */
static void preload(const struct ready *ready, const struct launch *launch)
{
    if (ready->preload_bytes)
        for (u64 i = 0; i < ready->images; i++)
            __builtin_memcpy((void *)(ready->preload_to + i * launch->image_stride), (void *)ready->preload,
                             ready->preload_bytes);
}

static void renew_records(const struct ready *ready, struct worker *worker, struct launch *launch, struct group *group)
{
    __builtin_memset((void *)ready->meetings, 0, MEETINGS_BYTES);
    __builtin_memset((void *)ready->sites, 0, *(const u64 *)ready->site_bytes);
    launch->next = 0;
    worker->changes = 0;
    group->active = group->resume = group->rounds = 0;
    group->slice = ready->slice;
}

u64 SUPPORT(begin)(const struct ready *ready, const void *arguments, u64 bytes)
{
    struct worker *worker = (struct worker *)ready->worker;
    struct launch *launch = (struct launch *)ready->launch;
    struct group *group = (struct group *)ready->group;
    scheduler *run = (scheduler *)ready->run;
    u64 again = ready->again, outcome;
    bool ever = again == UINT64_MAX;
    place_arguments(ready, arguments, bytes);
    preload(ready, launch);
    renew_records(ready, worker, launch, group);
    u64 start = ever ? 0 : nanoseconds();
    do {
        outcome = run(worker, launch, group, ready->rounds);
        /* Continue only within the first span of a work-group, and while no stop is requested. */
        if (outcome != OUTCOME_TIRED || group->spans > 1 || launch->stop)
            break;
    } while (ever || nanoseconds() - start < again);
    return outcome;
}
