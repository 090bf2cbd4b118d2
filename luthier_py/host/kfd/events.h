/* An event's words, for those who change it and those who wait for it. */
#ifndef LUTHIER_KFD_EVENTS_H
#define LUTHIER_KFD_EVENTS_H

#include "kfd.h"

enum { SIGNAL_EVENT = 0, DEBUG_EVENT = 5, MEMORY_EVENT = 8 };
enum { UNUSED, UNSET, SET, AUTO = 4 }; /* UNSET and SET may have AUTO: a wait resets them */

struct event { _Atomic uint32_t state; uint32_t type; _Atomic uint32_t times, waiting; char data[32]; };

struct event *event_of(uint32_t id);           /* NULL: it has no words */
int event_change(uint32_t id, uint32_t to);    /* 0 or an errno; who waits is woken */

#endif
