/* Operations: what streams carry out and graphs keep. */
#ifndef LUTHIER_OPERATIONS_H
#define LUTHIER_OPERATIONS_H

#include "modules.h"

/* operations.c */
enum operation_kind {
    OPERATION_NOTHING, OPERATION_LAUNCH, OPERATION_COPY, OPERATION_FILL, OPERATION_CALL, OPERATION_RECORD, OPERATION_FREE
};
struct operation {
    enum operation_kind kind;
    union {
        struct {
            struct kernel *kernel; struct dim3 grid, block; uint32_t lds_bytes, cooperative, bytes; void *kernarg;
            uint32_t number, count; /* of the grids of one launch on several devices; else 0 */
            const void *function; /* what the program calls the kernel */
            struct dim3 lacking; /* work-items of the last work-groups */
        } launch;
        struct transfer {
            void *to; const void *from; size_t to_pitch, from_pitch, to_slice, from_slice, width, height, depth;
            bool pageable; /* memory that HIP does not know */
        } copy;
        struct fill { void *to; uint32_t value, element; size_t pitch, slice, count, height, depth; } fill;
        struct { void (*function)(void *); void *data; } call;
        struct { bool timed; } record;
        struct { hipError_t (*release)(void *address); void *address; } free;
    };
};
bool operation_is_near(const struct operation *operation); /* the worker can do it, too: rows of its memory */
/* `now`: all before it is done. The command is a new one if it has one. */
hipError_t operation_carry_out(const struct operation *operation, bool now, uint64_t *command);
hipError_t operation_copy(struct operation *to, const struct operation *from);
uint64_t launches_count(void); /* that were handed to the device */
void launches_after_fork(void);
void operation_discard(struct operation *operation);

/* perform.c: put on a stream, or recorded in the graph that it is captured into; takes what the operation holds. */
hipError_t perform(stream_t stream, struct operation *operation);
hipError_t perform_and_wait(stream_t stream, struct operation *operation);

#endif
