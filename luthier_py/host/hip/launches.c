/* Launches of one grid.
 *
 * Every entry has separate errors for shapes that no device takes, as AMD's runtime has (ROCm/clr, hip_module.cpp):
 * those that are given a kernel's handle say hipErrorInvalidValue, the others hipErrorInvalidConfiguration.
 */
#include <string.h>

#include "checks.h"
#include "launches.h"
#include "streams.h"

enum { MAX_GRID_X = INT32_MAX, MAX_GRID_YZ = UINT16_MAX + 1 };

/* A cooperative launch must be resident as a whole. */
static hipError_t check_resident(const struct launch *l)
{
    int blocks = 0;
    struct dim3 grid = l->grid;
    hipError_t error = occupancy(l->kernel, (int)block_threads(l->block, facts_of(l->kernel)), l->lds_bytes, &blocks);
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
        error = launch_make(l, &operation);
    return error ? error : perform(stream, &operation);
}

hipError_t launch_on(stream_t stream, const struct launch *l)
{
    hipError_t error = check_device(stream, l);
    if (!error)
        error = launch_check(l);
    return error ? error : put(stream, l);
}

/* With events around it, either of which may be NULL. */
static hipError_t launch_between(stream_t stream, const struct launch *l, event_t start, event_t stop)
{
    hipError_t error = launch_check(l);
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
    struct launch all = {kernel, grid, block, lds_bytes, args, NULL, false, 0, 0, function, WHOLE};
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
    if (launch_is_possible(grid, block, (struct dim3)WHOLE, facts) && lds_bytes > facts->lds_bytes)
        return hipErrorCooperativeLaunchTooLarge;
    return launch_on(stream, &(struct launch){kernel, grid, block, lds_bytes, args, NULL, true, 0, 0, function, WHOLE});
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
    bool good = launch_is_possible(l->grid, l->block, l->lacking, facts) && l->lds_bytes <= facts->lds_bytes;
    return good ? launch_on(stream, l) : hipErrorInvalidValue;
}

hipError_t hipModuleLaunchKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned lds_bytes, stream_t stream, void **args, void **extra)
{
    struct dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    if (grid_x > MAX_GRID_X || grid_y > MAX_GRID_YZ || grid_z > MAX_GRID_YZ)
        return hipErrorInvalidValue;
    return launch_module(stream, &(struct launch){kernel, grid, block, lds_bytes, args, extra, false, 0, 0, NULL, WHOLE});
}

hipError_t hipModuleLaunchCooperativeKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned lds_bytes,
                                            stream_t stream, void **args)
{
    struct dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    return launch_module(stream, &(struct launch){kernel, grid, block, lds_bytes, args, NULL, true, 0, 0, NULL, WHOLE});
}

hipError_t hipDrvLaunchKernelEx(const struct driver_launch_config *c, struct kernel *kernel, void **args, void **extra)
{
    bool cooperative;
    hipError_t error = check_stream(c->stream);
    if (!error)
        error = read_attributes(c->attributes, c->attribute_count, &cooperative);
    struct dim3 grid = {c->grid_x, c->grid_y, c->grid_z}, block = {c->block_x, c->block_y, c->block_z};
    struct launch all = {kernel, grid, block, c->lds_bytes, args, extra, cooperative, 0, 0, NULL, WHOLE};
    return error ? error : launch_on(c->stream, &all);
}

/* Their grid counts work-items. Kernels of HIP are compiled for whole work-groups alone, unless the build requests
 * others (clang's -fno-offload-uniform-block). */
hipError_t hipExtModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop, unsigned flags)
{
    struct dim3 block = {block_x, block_y, block_z};
    (void)flags;
    if (!is_event(start) || !is_event(stop))
        return hipErrorInvalidValue;
    if (!items_x || !items_y || !items_z || !block_threads(block, facts_of(kernel)))
        return hipErrorInvalidConfiguration;
    struct items_grid cut = cut_items((struct dim3){items_x, items_y, items_z}, block);
    if (kernel->whole_groups && (cut.lacking.x || cut.lacking.y || cut.lacking.z))
        return hipErrorInvalidValue;
    struct launch all = {kernel, cut.grid, cut.block, lds_bytes, args, extra, false, 0, 0, NULL, cut.lacking};
    return launch_between(stream, &all, start, stop);
}

hipError_t hipHccModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop)
{
    return hipExtModuleLaunchKernel(kernel, items_x, items_y, items_z, block_x, block_y, block_z, lds_bytes, stream, args,
                                    extra, start, stop, 0);
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
    void *extra[] = {LAUNCH_BUFFER, set_up, LAUNCH_BUFFER_BYTES, &set_up_bytes, LAUNCH_END};
    hipError_t error = function_kernel(function, stream_device(configuration.stream), &kernel);
    struct launch all = {kernel, configuration.grid, configuration.block, configuration.lds_bytes, NULL, extra, false, 0, 0, function, WHOLE};
    return error ? error : launch_on(configuration.stream, &all);
}
