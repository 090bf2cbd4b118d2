/* The worker, the arena, commands. */
#ifndef LUTHIER_DEVICE_H
#define LUTHIER_DEVICE_H

#include "luthier.h"

struct device_facts {
    uint32_t compute_units, wave_size, lds_bytes, max_threads;
    uint64_t memory_bytes;
    const char *name;                    /* counted by name_bytes */
    uint32_t name_bytes;
    const void *properties[2];           /* hipDeviceProp_t before and since HIP 6 */
    uint32_t properties_bytes[2];
    const int32_t *attributes;           /* pairs of number and value */
    uint32_t attribute_count;
};
enum { MAX_DEVICES = 16 };
hipError_t device_ready(void);           /* start the worker if need be; 0 when it is there */
int device_count(void);
int device_current(void);                /* of this thread */
void device_make_current(int device);
hipError_t device_check(int device);     /* is there such a device? */
const struct device_facts *device_facts(int device);
hipError_t device_wait(uint64_t command); /* until everything up to this command has run */
bool device_done(uint64_t command);
bool device_tried(void);                 /* it was requested: its parts may have something */
void device_after_fork(void);
bool device_failed(void);                /* nothing that is not done will be */
bool device_lost(void);                  /* the worker has ended, and not by itself */
uint64_t device_submitted(void);
hipError_t device_submit(uint32_t code, const struct part *parts, int count, uint64_t *command);
hipError_t device_call(uint32_t code, const struct part *parts, int count, struct reply *reply);
hipError_t device_ask(uint32_t code, const uint64_t *question, int count, uint64_t *answer); /* numbers for a number */
bool in_arena(const void *address);
size_t device_arena_bytes(void);
size_t device_arena_offset(uintptr_t address);
int device_arena_file(void);            /* open as long as the program runs: others map it, too */
uint64_t *stamp_take(void);              /* a word, 0, that the worker can write a time to; NULL when there is none */
void stamp_give(uint64_t *stamp, uint64_t command); /* once that is done */
uint64_t nanoseconds(void);
hipError_t note(hipError_t error);       /* remember as this thread's last error */

#endif
