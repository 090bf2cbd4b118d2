/* The clocks that kernels read: executed instructions, and the wall's; and a pause for code that waits for the host.

   In: what a worker counts for each block, and how many instructions these have (clocks.py). Out: numbers. Invariant:
   a clock that no kernel reads costs nothing. */
#include "clock.h"
#include "native.h"

enum { ALL, OWN, KINDS }; /* instructions of whatever code, and the application's */

struct clock { /* clocks.InstructionClock */
    u64 looked, counters;
    const u64 *before;
    u64 weights[][KINDS];
};

GENERIC u64 executed(const struct wave *wave, unsigned kind)
{
    struct clock *clock = (struct clock *)worker_of(wave)->clock;
    const u64 *counters = (const u64 *)worker_of(wave)->counters;
    clock->looked = 1;
    u64 sum = clock->before[kind];
    for (u64 i = 0; i < clock->counters; i++)
        sum += counters[i] * clock->weights[i][kind];
    return sum;
}

u64 SUPPORT(executed)(const struct wave *wave)
{
    return executed(wave, ALL);
}

u64 SUPPORT(own_executed)(const struct wave *wave)
{
    return executed(wave, OWN);
}

u64 SUPPORT(nanoseconds)(void)
{
    return nanoseconds();
}

int usleep(u32 microseconds);

u32 SUPPORT(pause)(void)
{
    return (u32)usleep(PAUSE_MICROSECONDS);
}
