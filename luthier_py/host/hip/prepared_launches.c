/* Launches of one grid as they are checked: what their shapes may be, and arguments packed as the kernel's metadata says. */
#include <stdlib.h>
#include <string.h>

#include "launches.h"

static hipError_t pack_values(const struct kernel *kernel, void **args, char *kernarg)
{
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        if (!args[i])
            return hipErrorInvalidValue;
        memcpy(kernarg + kernel->arguments[i].offset, args[i], kernel->arguments[i].bytes);
    }
    return hipSuccess;
}

static hipError_t pack_buffer(const struct kernel *kernel, void **extra, char *kernarg)
{
    if (extra[0] != LAUNCH_BUFFER || extra[2] != LAUNCH_BUFFER_BYTES || extra[4] != LAUNCH_END || !extra[3])
        return hipErrorInvalidValue;
    size_t bytes;
    memcpy(&bytes, extra[3], sizeof bytes);
    if (kernel->argument_count && !(extra[1] && bytes))
        return hipErrorInvalidValue;
    if (!kernel->argument_count && bytes)
        return hipErrorLaunchOutOfResources;
    memcpy(kernarg, extra[1] ? extra[1] : "", bytes < kernel->kernarg_bytes ? bytes : kernel->kernarg_bytes);
    return hipSuccess;
}

static hipError_t pack(const struct kernel *kernel, void **args, void **extra, char *kernarg)
{
    if (args)
        return pack_values(kernel, args, kernarg);
    return extra ? pack_buffer(kernel, extra, kernarg) : hipSuccess;
}

uint32_t block_threads(struct dim3 block, const struct device_facts *facts)
{
    uint32_t most = facts->max_threads;
    if (block.x > most || block.y > most || block.z > most)
        return 0;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    return threads <= most ? (uint32_t)threads : 0;
}

static bool fits(uint32_t groups, uint32_t each, uint32_t lacking)
{
    return groups && (uint64_t)groups * each - lacking <= UINT32_MAX;
}

bool launch_is_possible(struct dim3 grid, struct dim3 block, struct dim3 lacking, const struct device_facts *facts)
{
    return block_threads(block, facts) && fits(grid.x, block.x, lacking.x) && fits(grid.y, block.y, lacking.y) &&
           fits(grid.z, block.z, lacking.z);
}

hipError_t launch_check(const struct launch *l)
{
    const struct kernel *kernel = l->kernel;
    const struct device_facts *facts = facts_of(kernel);
    if (l->args && l->extra)
        return hipErrorInvalidValue;
    if (!launch_is_possible(l->grid, l->block, l->lacking, facts))
        return hipErrorInvalidConfiguration;
    if (l->lds_bytes > facts->lds_bytes || kernel->lds_bytes + l->lds_bytes > facts->lds_bytes)
        return hipErrorInvalidValue;
    if (kernel->argument_count && !l->args && !l->extra)
        return hipErrorInvalidValue;
    return block_threads(l->block, facts) > kernel->max_threads ? hipErrorLaunchFailure : hipSuccess; /* its launch bounds */
}

hipError_t launch_make(const struct launch *l, struct operation *operation)
{
    const struct kernel *kernel = l->kernel;
    char *kernarg = calloc(1, kernel->kernarg_bytes + 1u);
    if (!kernarg)
        return hipErrorOutOfMemory;
    *operation = (struct operation){OPERATION_LAUNCH, .launch = {l->kernel, l->grid, l->block, (uint32_t)l->lds_bytes,
                                                                 l->cooperative, kernel->kernarg_bytes, kernarg,
                                                                 l->number, l->count, l->function ? l->function : kernel,
                                                                 l->lacking}};
    hipError_t error = pack(kernel, l->args, l->extra, kernarg);
    if (error)
        free(kernarg);
    return error;
}

hipError_t launch_prepare(const struct launch *l, struct operation *operation)
{
    hipError_t error = launch_check(l);
    return error ? error : launch_make(l, operation);
}
