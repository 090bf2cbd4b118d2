/* Launches of one grid: what their shapes may be, and arguments packed as the kernel's metadata says.
 *
 * Every entry has errors of its own for shapes that no device takes, as AMD's runtime has (ROCm/clr, hip_module.cpp): those
 * that are given a kernel's handle say hipErrorInvalidValue, the others hipErrorInvalidConfiguration.
 */
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

enum { MAX_GRID_X = INT32_MAX, MAX_GRID_YZ = UINT16_MAX + 1 };

static const struct device_facts *facts_of(const struct kernel *kernel) { return device_facts(kernel->module->device); }

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

/* As many as a device has for a work-group; else 0. */
static uint32_t threads_of(struct dim3 block, const struct device_facts *facts)
{
    uint32_t most = facts->max_threads;
    if (block.x > most || block.y > most || block.z > most)
        return 0;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    return threads <= most ? (uint32_t)threads : 0;
}

static bool fits(uint32_t groups, uint32_t each) { return groups && (uint64_t)groups * each <= UINT32_MAX; }

static bool possible(struct dim3 grid, struct dim3 block, const struct device_facts *facts)
{
    return threads_of(block, facts) && fits(grid.x, block.x) && fits(grid.y, block.y) && fits(grid.z, block.z);
}

static hipError_t check(const struct launch *l)
{
    const struct kernel *kernel = l->kernel;
    const struct device_facts *facts = facts_of(kernel);
    if (l->args && l->extra)
        return hipErrorInvalidValue;
    if (!possible(l->grid, l->block, facts))
        return hipErrorInvalidConfiguration;
    if (l->lds_bytes > facts->lds_bytes || kernel->lds_bytes + l->lds_bytes > facts->lds_bytes)
        return hipErrorInvalidValue;
    if (kernel->argument_count && !l->args && !l->extra)
        return hipErrorInvalidValue;
    return threads_of(l->block, facts) > kernel->max_threads ? hipErrorLaunchFailure : hipSuccess; /* its launch bounds */
}

/* Of what was checked. */
static hipError_t make(const struct launch *l, struct operation *operation)
{
    const struct kernel *kernel = l->kernel;
    char *kernarg = calloc(1, kernel->kernarg_bytes + 1u);
    if (!kernarg)
        return hipErrorOutOfMemory;
    *operation = (struct operation){OPERATION_LAUNCH, .launch = {l->kernel, l->grid, l->block, (uint32_t)l->lds_bytes,
                                                                 l->cooperative, kernel->kernarg_bytes, kernarg,
                                                                 l->number, l->count, l->function ? l->function : kernel}};
    hipError_t error = pack(kernel, l->args, l->extra, kernarg);
    if (error)
        free(kernarg);
    return error;
}

hipError_t launch_prepare(const struct launch *l, struct operation *operation)
{
    hipError_t error = check(l);
    return error ? error : make(l, operation);
}

/* A cooperative launch must be resident as a whole. */
static hipError_t check_resident(const struct launch *l)
{
    int blocks = 0;
    struct dim3 grid = l->grid;
    hipError_t error = occupancy(l->kernel, (int)threads_of(l->block, facts_of(l->kernel)), l->lds_bytes, &blocks);
    uint64_t room = (uint64_t)blocks * facts_of(l->kernel)->compute_units, plane = (uint64_t)grid.x * grid.y;
    return error ? error : plane > room || plane * grid.z > room ? hipErrorCooperativeLaunchTooLarge : hipSuccess;
}

/* Since HIP 7 a single grid is launched on the current device alone. */
static bool may_be_elsewhere(const struct launch *l)
{
    enum { HIP_7 = 70000000 };
    int version = 0;
    hipRuntimeGetVersion(&version);
    return version < HIP_7 || l->count;
}

static hipError_t check_device(stream_t stream, const struct launch *l)
{
    int device = stream_device(stream);
    bool good = l->kernel->module->device == device && (device == device_current() || may_be_elsewhere(l));
    return good ? hipSuccess : hipErrorInvalidHandle;
}

/* What was checked. */
static hipError_t put(stream_t stream, const struct launch *l)
{
    struct operation operation;
    hipError_t error = l->cooperative ? check_resident(l) : hipSuccess;
    if (!error)
        error = make(l, &operation);
    return error ? error : perform(stream, &operation);
}

hipError_t launch_on(stream_t stream, const struct launch *l)
{
    hipError_t error = check_device(stream, l);
    if (!error)
        error = check(l);
    return error ? error : put(stream, l);
}

/* With events around it, either of which may be NULL. */
static hipError_t launch_between(stream_t stream, const struct launch *l, event_t start, event_t stop)
{
    hipError_t error = check(l);
    if (!error && start)
        error = hipEventRecordWithFlags(start, stream, EVENT_EXTERNAL);
    if (!error)
        error = check_device(stream, l);
    if (!error)
        error = put(stream, l);
    if (!error && stop)
        error = hipEventRecordWithFlags(stop, stream, EVENT_EXTERNAL);
    return error;
}

static bool is_event(event_t event) { return !event || handle_is(event, HANDLE_EVENT); }

/* By the address of a function. */

hipError_t hipExtLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t lds_bytes,
                              stream_t stream, event_t start, event_t stop, int flags)
{
    struct kernel *kernel;
    (void)flags;
    if (!is_event(start) || !is_event(stop))
        return hipErrorInvalidValue;
    hipError_t error = function_kernel(function, stream_device(stream), &kernel);
    struct launch all = {kernel, grid, block, lds_bytes, args, NULL, false, 0, 0, function};
    return error ? error : launch_between(stream, &all, start, stop);
}

hipError_t hipLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t lds_bytes, stream_t stream)
{
    return hipExtLaunchKernel(function, grid, block, args, lds_bytes, stream, NULL, NULL, 0);
}

hipError_t hipLaunchCooperativeKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, unsigned lds_bytes,
                                      stream_t stream)
{
    struct kernel *kernel;
    hipError_t error = function_kernel(function, stream_device(stream), &kernel);
    if (error)
        return error;
    const struct device_facts *facts = facts_of(kernel);
    if (possible(grid, block, facts) && lds_bytes > facts->lds_bytes)
        return hipErrorCooperativeLaunchTooLarge;
    return launch_on(stream, &(struct launch){kernel, grid, block, lds_bytes, args, NULL, true, 0, 0, function});
}

/* With attributes alone that say nothing of that there is nothing to launch. */
static hipError_t read_attributes(const struct launch_attribute *attributes, unsigned count, bool *cooperative)
{
    *cooperative = is_cooperative(attributes, count);
    return count && !*cooperative ? hipErrorInvalidConfiguration : hipSuccess;
}

hipError_t hipLaunchKernelExC(const struct launch_config *c, const void *function, void **args)
{
    bool cooperative;
    if (!function)
        return hipErrorInvalidDeviceFunction;
    if (!c)
        return hipErrorInvalidConfiguration;
    hipError_t error = check_stream(c->stream);
    if (!error)
        error = read_attributes(c->attributes, c->attribute_count, &cooperative);
    if (error)
        return error;
    if (cooperative)
        return hipLaunchCooperativeKernel(function, c->grid, c->block, args, (unsigned)c->lds_bytes, c->stream);
    return hipLaunchKernel(function, c->grid, c->block, args, c->lds_bytes, c->stream);
}

/* By the handle of a kernel. */

static hipError_t launch_module(stream_t stream, const struct launch *l)
{
    const struct device_facts *facts = facts_of(l->kernel);
    bool good = possible(l->grid, l->block, facts) && l->lds_bytes <= facts->lds_bytes;
    return good ? launch_on(stream, l) : hipErrorInvalidValue;
}

hipError_t hipModuleLaunchKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned lds_bytes, stream_t stream, void **args, void **extra)
{
    struct dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    if (grid_x > MAX_GRID_X || grid_y > MAX_GRID_YZ || grid_z > MAX_GRID_YZ)
        return hipErrorInvalidValue;
    return launch_module(stream, &(struct launch){kernel, grid, block, lds_bytes, args, extra, false, 0, 0, NULL});
}

hipError_t hipModuleLaunchCooperativeKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned lds_bytes,
                                            stream_t stream, void **args)
{
    struct dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    return launch_module(stream, &(struct launch){kernel, grid, block, lds_bytes, args, NULL, true, 0, 0, NULL});
}

hipError_t hipDrvLaunchKernelEx(const struct driver_launch_config *c, struct kernel *kernel, void **args, void **extra)
{
    bool cooperative;
    hipError_t error = check_stream(c->stream);
    if (!error)
        error = read_attributes(c->attributes, c->attribute_count, &cooperative);
    struct dim3 grid = {c->grid_x, c->grid_y, c->grid_z}, block = {c->block_x, c->block_y, c->block_z};
    struct launch all = {kernel, grid, block, c->lds_bytes, args, extra, cooperative, 0, 0, NULL};
    return error ? error : launch_on(c->stream, &all);
}

/* Their grid counts work-items. Kernels of HIP are compiled for whole work-groups alone, unless somebody asks for others
 * (clang's -fno-offload-uniform-block). */
hipError_t hipExtModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop, unsigned flags)
{
    struct dim3 block = {block_x, block_y, block_z};
    (void)flags;
    if (!is_event(start) || !is_event(stop))
        return hipErrorInvalidValue;
    if (!items_x || !items_y || !items_z || !threads_of(block, facts_of(kernel)))
        return hipErrorInvalidConfiguration;
    if (items_x < block.x)
        block.x = items_x; /* a work-group is no larger than the grid */
    if (items_y < block.y)
        block.y = items_y;
    if (items_z < block.z)
        block.z = items_z;
    if (items_x % block.x || items_y % block.y || items_z % block.z)
        return hipErrorInvalidValue;
    struct dim3 grid = {items_x / block.x, items_y / block.y, items_z / block.z};
    return launch_between(stream, &(struct launch){kernel, grid, block, lds_bytes, args, extra, false, 0, 0, NULL}, start, stop);
}

hipError_t hipHccModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop)
{
    return hipExtModuleLaunchKernel(kernel, items_x, items_y, items_z, block_x, block_y, block_z, lds_bytes, stream, args,
                                    extra, start, stop, 0);
}
