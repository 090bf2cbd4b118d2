/* Launches: arguments packed as the kernel's metadata says, and how many work-groups fit a compute unit. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

/* hipModuleLaunchKernel's `extra`: pairs of a number and a value, ended by the last number. */
static void *const BUFFER_POINTER = (void *)1, *const BUFFER_SIZE = (void *)2, *const LAUNCH_END = (void *)3;

enum { EVENT_EXTERNAL = 1 }; /* hipEventRecordExternal: also in a graph */

static const struct device_facts *facts_of(const struct kernel *kernel) { return device_facts(kernel->module->device); }

static hipError_t pack(const struct kernel *kernel, void **args, void **extra, char *kernarg)
{
    const void *buffer = NULL;
    size_t bytes = 0;
    if (args && extra)
        return hipErrorInvalidValue;
    if (args) {
        for (uint32_t i = 0; i < kernel->argument_count; i++) {
            if (!args[i])
                return hipErrorInvalidValue;
            memcpy(kernarg + kernel->arguments[i].offset, args[i], kernel->arguments[i].bytes);
        }
        return hipSuccess;
    }
    for (; extra && *extra != LAUNCH_END; extra += 2)
        if (*extra == BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == BUFFER_SIZE)
            memcpy(&bytes, extra[1], sizeof bytes);
        else
            return hipErrorInvalidValue;
    if (buffer)
        memcpy(kernarg, buffer, bytes < kernel->kernarg_bytes ? bytes : kernel->kernarg_bytes);
    return buffer || kernel->argument_count == 0 ? hipSuccess : hipErrorInvalidValue;
}

hipError_t launch_prepare(const struct launch *l, struct operation *operation)
{
    const struct kernel *kernel = l->kernel;
    struct dim3 grid = l->grid, block = l->block;
    const struct device_facts *facts = facts_of(kernel);
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || block.x > facts->max_threads || block.y > facts->max_threads ||
        threads > kernel->max_threads || (uint64_t)grid.x * block.x > UINT32_MAX)
        return hipErrorInvalidConfiguration;
    if (l->lds_bytes > facts->lds_bytes || kernel->lds_bytes + l->lds_bytes > facts->lds_bytes)
        return hipErrorInvalidValue;
    char *kernarg = calloc(1, kernel->kernarg_bytes + 1u);
    if (!kernarg)
        return hipErrorOutOfMemory;
    *operation = (struct operation){OPERATION_LAUNCH, .launch = {l->kernel, grid, block, (uint32_t)l->lds_bytes,
                                                                 l->cooperative, kernel->kernarg_bytes, kernarg,
                                                                 l->function ? l->function : kernel}};
    hipError_t error = pack(kernel, l->args, l->extra, kernarg);
    if (error)
        free(kernarg);
    return error;
}

hipError_t launch(stream_t stream, const struct launch *l)
{
    struct operation operation;
    hipError_t error = launch_prepare(l, &operation);
    if (!error && l->kernel->module->device != stream_device(stream)) {
        free(operation.launch.kernarg);
        error = hipErrorInvalidHandle; /* loaded on another device */
    }
    if (error)
        return error;
    return perform(stream, &operation);
}

static hipError_t launch_function(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t lds_bytes,
                                  stream_t stream, event_t start, event_t stop)
{
    struct kernel *kernel;
    hipError_t error = function_kernel(function, stream_device(stream), &kernel);
    if (!error && start)
        error = hipEventRecordWithFlags(start, stream, EVENT_EXTERNAL);
    if (!error)
        error = launch(stream, &(struct launch){kernel, grid, block, lds_bytes, args, NULL, false, function});
    if (!error && stop)
        error = hipEventRecordWithFlags(stop, stream, EVENT_EXTERNAL);
    return error;
}

hipError_t hipLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t lds_bytes, stream_t stream)
{
    return launch_function(function, grid, block, args, lds_bytes, stream, NULL, NULL);
}

hipError_t hipExtLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t lds_bytes,
                              stream_t stream, event_t start, event_t stop, int flags)
{
    (void)flags;
    return launch_function(function, grid, block, args, lds_bytes, stream, start, stop);
}

hipError_t hipLaunchKernelExC(const struct launch_config *config, const void *function, void **args)
{
    return hipLaunchKernel(function, config->grid, config->block, args, config->lds_bytes, config->stream);
}

hipError_t hipModuleLaunchKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned lds_bytes, stream_t stream, void **args, void **extra)
{
    struct dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    return launch(stream, &(struct launch){kernel, grid, block, lds_bytes, args, extra, false, NULL});
}

hipError_t hipDrvLaunchKernelEx(const struct driver_launch_config *c, struct kernel *kernel, void **args, void **extra)
{
    return hipModuleLaunchKernel(kernel, c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y, c->block_z, c->lds_bytes,
                                 c->stream, args, extra);
}

/* Its grid counts work-items; the last work-group must be whole. */
hipError_t hipExtModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop, unsigned flags)
{
    struct dim3 block = {block_x, block_y, block_z};
    (void)flags;
    if (!block_x || !block_y || !block_z || items_x % block_x || items_y % block_y || items_z % block_z)
        return hipErrorInvalidConfiguration;
    struct dim3 grid = {items_x / block_x, items_y / block_y, items_z / block_z};
    hipError_t error = start ? hipEventRecordWithFlags(start, stream, EVENT_EXTERNAL) : hipSuccess;
    if (!error)
        error = launch(stream, &(struct launch){kernel, grid, block, lds_bytes, args, extra, false, NULL});
    if (!error && stop)
        error = hipEventRecordWithFlags(stop, stream, EVENT_EXTERNAL);
    return error;
}

/* Work-groups of one compute unit, from the target's limits; they are the worker's to know. */
static hipError_t occupancy(struct kernel *kernel, int block_size, size_t lds_bytes, int *blocks)
{
    if (block_size < 1)
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

/* A cooperative launch must be resident as a whole. */
static hipError_t launch_cooperative(struct kernel *kernel, struct dim3 grid, struct dim3 block, size_t lds_bytes,
                                     stream_t stream, void **args, const void *function)
{
    int blocks = 0;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads == 0 || threads > kernel->max_threads)
        return hipErrorInvalidConfiguration;
    hipError_t error = occupancy(kernel, (int)threads, lds_bytes, &blocks);
    if (error)
        return error;
    if ((uint64_t)grid.x * grid.y * grid.z > (uint64_t)blocks * facts_of(kernel)->compute_units)
        return hipErrorCooperativeLaunchTooLarge;
    return launch(stream, &(struct launch){kernel, grid, block, lds_bytes, args, NULL, true, function});
}

hipError_t hipLaunchCooperativeKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, unsigned lds_bytes,
                                      stream_t stream)
{
    struct kernel *kernel;
    hipError_t error = function_kernel(function, stream_device(stream), &kernel);
    return error ? error : launch_cooperative(kernel, grid, block, lds_bytes, stream, args, function);
}

hipError_t hipModuleLaunchCooperativeKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned lds_bytes,
                                            stream_t stream, void **args)
{
    struct dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    return launch_cooperative(kernel, grid, block, lds_bytes, stream, args, NULL);
}

/* The call configuration of <<<...>>>, which compiled code pushes and its stub pops; and the older form of it. */
static _Thread_local struct { struct dim3 grid, block; size_t lds_bytes; stream_t stream; } configuration;
static _Thread_local char set_up[4096];
static _Thread_local size_t set_up_bytes;

hipError_t __hipPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t lds_bytes, stream_t stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.lds_bytes = lds_bytes;
    configuration.stream = stream;
    return hipSuccess;
}

hipError_t __hipPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *lds_bytes, stream_t *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *lds_bytes = configuration.lds_bytes;
    *stream = configuration.stream;
    return hipSuccess;
}

hipError_t hipConfigureCall(struct dim3 grid, struct dim3 block, size_t lds_bytes, stream_t stream)
{
    set_up_bytes = 0;
    return __hipPushCallConfiguration(grid, block, lds_bytes, stream);
}

hipError_t hipSetupArgument(const void *value, size_t bytes, size_t offset)
{
    if (!value || offset > sizeof set_up || bytes > sizeof set_up - offset)
        return hipErrorInvalidValue;
    memcpy(set_up + offset, value, bytes);
    if (set_up_bytes < offset + bytes)
        set_up_bytes = offset + bytes;
    return hipSuccess;
}

hipError_t hipLaunchByPtr(const void *function)
{
    struct kernel *kernel;
    void *extra[] = {BUFFER_POINTER, set_up, BUFFER_SIZE, &set_up_bytes, LAUNCH_END};
    hipError_t error = function_kernel(function, stream_device(configuration.stream), &kernel);
    struct launch all = {kernel, configuration.grid, configuration.block, configuration.lds_bytes, NULL, extra, false, function};
    return error ? error : launch(configuration.stream, &all);
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

hipError_t hipFuncGetAttribute(int *value, int attribute, struct kernel *kernel)
{
    int values[] = {(int)kernel->max_threads, (int)kernel->lds_bytes, 0, (int)kernel->private_bytes, (int)kernel->vgprs,
                    30, 0, 0, (int)(facts_of(kernel)->lds_bytes - kernel->lds_bytes), 0};
    if (attribute < 0 || attribute >= (int)(sizeof values / sizeof *values))
        return hipErrorInvalidValue;
    *value = values[attribute];
    return hipSuccess;
}

hipError_t hipFuncGetAttributes(struct function_attributes *attributes, const void *function)
{
    struct kernel *kernel;
    hipError_t error = function_kernel(function, device_current(), &kernel);
    if (error)
        return error;
    *attributes = (struct function_attributes){
        .local_bytes = kernel->private_bytes, .max_dynamic_lds = (int)(facts_of(kernel)->lds_bytes - kernel->lds_bytes),
        .max_threads = (int)kernel->max_threads, .registers = (int)kernel->vgprs, .ptx_version = 30,
        .shared_bytes = kernel->lds_bytes};
    return hipSuccess;
}

static hipError_t known_function(const void *function)
{
    struct kernel *kernel;
    return function_kernel(function, device_current(), &kernel);
}

hipError_t hipFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)attribute, (void)value;
    return known_function(function);
}

hipError_t hipFuncSetCacheConfig(const void *function, int config) { return (void)config, known_function(function); }
hipError_t hipFuncSetSharedMemConfig(const void *function, int config) { return (void)config, known_function(function); }

hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    (void)version, (void)flags;
    *function = dlsym(RTLD_DEFAULT, symbol); /* what is preloaded comes first, as for linked calls */
    if (status)
        *status = *function ? 0 : 1;
    return *function ? hipSuccess : hipErrorInvalidValue;
}
