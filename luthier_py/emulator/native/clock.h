/* This computer's clock. In: clock_gettime of the C library. Out: nanoseconds since some beginning. */
#ifndef LUTHIER_CLOCK_H
#define LUTHIER_CLOCK_H

#include "native.h"

enum { MONOTONIC = 1 }; /* CLOCK_MONOTONIC: clock_gettime(2) */

struct time_of_day {
    u64 seconds, nanoseconds;
};

int clock_gettime(int clock, struct time_of_day *time);

static inline u64 nanoseconds(void)
{
    struct time_of_day time;
    clock_gettime(MONOTONIC, &time);
    return time.seconds * 1000000000 + time.nanoseconds;
}

#endif
