/* Launches, as they are checked and made. */
#ifndef LUTHIER_LAUNCHES_H
#define LUTHIER_LAUNCHES_H

#include "device.h"
#include "operations.h"

/* prepared_launches.c */
struct launch {
    struct kernel *kernel; struct dim3 grid, block; size_t lds_bytes; void **args, **extra; bool cooperative;
    uint32_t number, count; /* of the grids of one launch on several devices; else 0 */
    const void *function;   /* what the program calls the kernel; NULL: by its handle */
    struct dim3 lacking;    /* work-items of the last work-groups, where these are not whole */
};
#define WHOLE {0, 0, 0} /* nothing is lacking */
hipError_t launch_prepare(const struct launch *launch, struct operation *operation);
/* As many as a device has for a work-group; else 0. */
uint32_t block_threads(struct dim3 block, const struct device_facts *facts);
bool launch_is_possible(struct dim3 grid, struct dim3 block, struct dim3 lacking, const struct device_facts *facts);
hipError_t launch_check(const struct launch *l);
hipError_t launch_make(const struct launch *l, struct operation *operation); /* of what was checked */

/* launches.c */
hipError_t launch_on(stream_t stream, const struct launch *launch);

/* occupancy.c: work-groups of one compute unit. */
hipError_t occupancy(struct kernel *kernel, int block_size, size_t lds_bytes, int *blocks);

static inline const struct device_facts *facts_of(const struct kernel *kernel) { return device_facts(kernel->module->device); }

#endif
