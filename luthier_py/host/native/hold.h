/* Writers of pages wait while these are exchanged. See hold.c. */
#ifndef LUTHIER_HOLD_H
#define LUTHIER_HOLD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OWN_BYTES = 256 << 10 }; /* what the caller may touch around its stack pointer and its thread's data: such pages are not held */

struct held { int fd; sigset_t signals; };
struct held hold_writers(uintptr_t start, size_t bytes, bool of_file); /* of pages that are there; nothing is held if it cannot be */
void let_writers_go(struct held *held);

#endif
