/* What prepared_launches.c and launches.c share. */
#ifndef LAUNCHES_H
#define LAUNCHES_H

#include "luthier.h"

static inline const struct device_facts *facts_of(const struct kernel *kernel) { return device_facts(kernel->module->device); }

/* As many as a device has for a work-group; else 0. */
uint32_t block_threads(struct dim3 block, const struct device_facts *facts);
bool launch_is_possible(struct dim3 grid, struct dim3 block, struct dim3 lacking, const struct device_facts *facts);
hipError_t launch_check(const struct launch *l);
hipError_t launch_make(const struct launch *l, struct operation *operation); /* of what was checked */

#endif
