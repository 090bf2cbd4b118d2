/* What registrations.c and pinned.c share: what is registered, and the lock under which it changes. */
#ifndef PINNED_H
#define PINNED_H

#include "luthier.h"
#include "mapped.h"

struct registration {
    uintptr_t address; size_t bytes; unsigned flags;
    struct shared_file file; /* whose pages they are and stay; without a name where they are the arena's meanwhile */
    struct registration *next;
};
struct range { uintptr_t start, end; };
struct window { uintptr_t start, end, device; struct window *next; };

extern struct registration *registrations;
extern struct window *windows;
extern pthread_mutex_t registering;

uintptr_t device_address(uintptr_t address); /* 0: it is in no window */
const struct registration *covering(uintptr_t start, uintptr_t end, const struct registration *but);

/* Pages of files that other processes may have, too. */
bool file_find(struct range pages, struct shared_file *file); /* false: they are none, or the file is not found */
bool file_is_there(struct range pages, const struct shared_file *file); /* as it was registered; without a name: the arena */
hipError_t file_enter(struct range pages, const struct shared_file *file);
hipError_t file_leave(struct range pages);

#endif
