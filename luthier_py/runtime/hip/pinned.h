/* What registered.c and pinned.c share: what is registered, and the lock under which it changes. */
#ifndef PINNED_H
#define PINNED_H

#include "luthier.h"

struct registration { uintptr_t address; size_t bytes; unsigned flags; struct registration *next; };
struct window { uintptr_t start, end, device; struct window *next; };

extern struct registration *registrations;
extern struct window *windows;
extern pthread_mutex_t registering;

uintptr_t device_address(uintptr_t address); /* 0: it is in no window */
const struct registration *covering(uintptr_t start, uintptr_t end, const struct registration *but);

#endif
