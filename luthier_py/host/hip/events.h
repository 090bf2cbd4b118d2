/* What events.c and waits.c share. */
#ifndef EVENTS_H
#define EVENTS_H

#include "luthier.h"

enum { DISABLE_TIMING = 2, INTERPROCESS = 4 };

struct event {
    unsigned flags;
    int device;
    bool recorded, of_default;  /* of_default: on the default stream */
    struct work *work;          /* when it was recorded last */
    unsigned long long capture; /* it was recorded on a stream of that capture */
    struct nodes tails;         /* and what was before it there */
    struct shared_event *shared; /* if other programs may know it: all of what is recorded */
};

#endif
