/* Ranges that a program has marked and not ended: those that each thread has pushed, and those of the process. */
#ifndef LUTHIER_RANGES_H
#define LUTHIER_RANGES_H

#include "tool.h"

/* `below`: the one around it; `note` is for who asks, 0 at first. */
struct range { struct range *below; uint64_t id, note; int level; char name[]; };

int range_push(const char *name);                /* its level, from 0; NULL is a name without letters */
int range_pop(void);                             /* what its level was; negative: nothing was pushed on this thread */
void range_start(const char *name, uint64_t id);
void range_stop(uint64_t id);                    /* if there is one */
bool ranges_any(bool (*chosen)(struct range *)); /* of those that a launch of this thread is in */
struct names ranges_now(void);                   /* of these, first those of the process; the text is to be freed */

#endif
