/* How many work-groups fit a compute unit, and which size of them fills it. */
#include <stdlib.h>

#include "checks.h"
#include "launches.h"

/* Work-groups of one compute unit, from the target's limits; they are the worker's to know. */
hipError_t occupancy(struct kernel *kernel, int block_size, size_t lds_bytes, int *blocks)
{
    if (block_size < 1 || !handle_is(kernel, HANDLE_KERNEL))
        return hipErrorInvalidValue;
    if ((uint32_t)block_size > kernel->max_threads || lds_bytes > facts_of(kernel)->lds_bytes) {
        *blocks = 0;
        return hipSuccess;
    }
    uint32_t question[] = {kernel->module->id, kernel->index, (uint32_t)block_size, (uint32_t)lds_bytes};
    struct reply reply;
    hipError_t error = device_call(MESSAGE_OCCUPANCY, &(struct part){question, sizeof question}, 1, &reply);
    if (error)
        return error;
    struct cursor cursor = {reply.data, reply.data + reply.bytes, false};
    *blocks = (int)take32(&cursor);
    free(reply.data);
    return hipSuccess;
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct kernel *kernel, int block_size, size_t lds_bytes)
{
    return occupancy(kernel, block_size, lds_bytes, blocks);
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, struct kernel *kernel, int block_size,
                                                                       size_t lds_bytes, unsigned flags)
{
    (void)flags;
    return occupancy(kernel, block_size, lds_bytes, blocks);
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size, size_t lds_bytes)
{
    struct kernel *kernel;
    hipError_t error = function_kernel(function, device_current(), &kernel);
    return error ? error : occupancy(kernel, block_size, lds_bytes, blocks);
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                                 size_t lds_bytes, unsigned flags)
{
    (void)flags;
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, lds_bytes);
}

/* The block size of whole waves that fills a compute unit best; the larger one where two are equal. */
static hipError_t best_block(struct kernel *kernel, size_t lds_bytes, int limit, int *grid_size, int *block_size)
{
    if (!handle_is(kernel, HANDLE_KERNEL))
        return hipErrorInvalidValue;
    int most = (int)kernel->max_threads, wave = (int)facts_of(kernel)->wave_size, best = 0;
    if (limit > 0 && limit < most)
        most = limit;
    for (int size = most - most % wave; size >= wave; size -= wave) {
        int blocks;
        hipError_t error = occupancy(kernel, size, lds_bytes, &blocks);
        if (error)
            return error;
        if (blocks * size > best) {
            best = blocks * size;
            *block_size = size;
            *grid_size = blocks * (int)facts_of(kernel)->compute_units;
        }
    }
    return best ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, struct kernel *kernel, size_t lds_bytes, int limit)
{
    return best_block(kernel, lds_bytes, limit, grid_size, block_size);
}

hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size, struct kernel *kernel,
                                                            size_t lds_bytes, int limit, unsigned flags)
{
    (void)flags;
    return best_block(kernel, lds_bytes, limit, grid_size, block_size);
}

hipError_t hipOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, const void *function, size_t lds_bytes, int limit)
{
    struct kernel *kernel;
    hipError_t error = function_kernel(function, device_current(), &kernel);
    return error ? error : best_block(kernel, lds_bytes, limit, grid_size, block_size);
}
