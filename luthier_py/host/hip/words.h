/* What words.c and values.c share. */
#ifndef WORDS_H
#define WORDS_H

#include "graph.h"

enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5 }; /* hipStreamBatchMemOpType */

struct step { int kind; void *address; uint64_t value, mask; unsigned condition; };

hipError_t steps_prepare(const struct step *all, unsigned count, struct operation *call);

#endif
