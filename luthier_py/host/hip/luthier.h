/* What all files of this library begin with; what they share lies in headers by subject.
 *
 * The library is thin: memory lives in an arena that the worker maps at the same address, so copies are plain
 * memmove; launches are messages, executed in the order of their commands. See docs/runtime.md. A function of the API is
 * a line of functions.txt: its checks are there; the code here gets arguments that passed them.
 *
 * From below: ring.c has the ring of commands, device.c exchanges messages with the worker; allocations.c lists all
 * memory; operations.c, order.c, traces.c, steps.c, drivers.c and work.c carry out what is on streams; free_lists.c and
 * reservations.c keep memory until that is done, waits.c waits for it, memory.c gives and takes; boxes.c, words.c and
 * prepared_... check what is to be done; nodes.c and node_... are graphs; captures.c records, streams.c finds the
 * stream of a handle, perform.c executes or records. Calls of the API are where what they need is; those that perform
 * are on top, and process.c.
 */
#ifndef LUTHIER_H
#define LUTHIER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "protocol.h"  /* generated from protocol.py: message codes */
#include "handles.h"
#include "wire.h"

#define API __attribute__((visibility("default")))
#ifndef LUTHIER_OUTSIDE
#include "functions.h" /* generated from functions.txt */
#endif

#endif
