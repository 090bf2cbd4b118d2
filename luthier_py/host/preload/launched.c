/* The calls that launch: a clone replaces the kernel where the tool selects the launch. */
#include "preloaded.h"

#include <stdlib.h>
#include <string.h>

/* True when the clone was launched, with `error` as the call's result. */
static bool taken_shape(const void *key, const struct launch_shape *shape, hipError_t *error)
{
    if (capturing(shape->stream)) {
        expect_handle(key);
        return false; /* it is launched when its graph is */
    }
    unsigned long index;
    if (!tool_selects(1, &index))
        return false;
    struct meaning found = meaning_of(key);
    return tool_launch(found.image, found.name, index, shape, error);
}

static bool taken(const void *key, struct dim3 grid, struct dim3 block, size_t lds_bytes, stream_t stream, void **args,
                  void **extra, bool cooperative, hipError_t *error)
{
    struct launch_shape shape = {grid, block, (unsigned)lds_bytes, stream, args, extra, cooperative, {0, 0, 0}};
    return taken_shape(key, &shape, error);
}

#define GRID(form) ((struct dim3){form##_x, form##_y, form##_z})

/* `unnamed`: what NULL as a stream means. */
#define LAUNCH_FUNCTION(name, cooperative, bytes_type, unnamed)                                                           \
    hipError_t name(const void *function, struct dim3 grid, struct dim3 block, void **args, bytes_type lds_bytes,         \
                    stream_t stream)                                                                                      \
    {                                                                                                                     \
        hipError_t error;                                                                                                 \
        stream_t on = stream ? stream : (stream_t)(uintptr_t)unnamed;                                                     \
        if (taken(function, grid, block, lds_bytes, on, args, NULL, cooperative, &error))                                 \
            return error;                                                                                                 \
        return given_tell(REAL(name)(function, grid, block, args, lds_bytes, stream));                                    \
    }

LAUNCH_FUNCTION(hipLaunchKernel, false, size_t, 0)
LAUNCH_FUNCTION(hipLaunchKernel_spt, false, size_t, STREAM_PER_THREAD)
LAUNCH_FUNCTION(hipLaunchCooperativeKernel, true, unsigned, 0)
LAUNCH_FUNCTION(hipLaunchCooperativeKernel_spt, true, unsigned, STREAM_PER_THREAD)

/* The runtime refuses a launch with attributes that do not say that it is cooperative. */
hipError_t hipLaunchKernelExC(const struct launch_config *c, const void *function, void **args)
{
    hipError_t error;
    bool together = c && is_cooperative(c->attributes, c->attribute_count);
    if (c && (together || !c->attribute_count) &&
        taken(function, c->grid, c->block, c->lds_bytes, c->stream, args, NULL, together, &error))
        return error;
    return given_tell(REAL(hipLaunchKernelExC)(c, function, args));
}

hipError_t hipModuleLaunchKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned lds_bytes, stream_t stream, void **args, void **extra)
{
    hipError_t error;
    if (taken(kernel, GRID(grid), GRID(block), lds_bytes, stream, args, extra, false, &error))
        return error;
    return given_tell(REAL(hipModuleLaunchKernel)(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, lds_bytes, stream, args, extra));
}

hipError_t hipModuleLaunchCooperativeKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned lds_bytes,
                                            stream_t stream, void **args)
{
    hipError_t error;
    if (taken(kernel, GRID(grid), GRID(block), lds_bytes, stream, args, NULL, true, &error))
        return error;
    return given_tell(REAL(hipModuleLaunchCooperativeKernel)(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, lds_bytes, stream, args));
}

hipError_t hipDrvLaunchKernelEx(const struct driver_launch_config *c, struct kernel *kernel, void **args, void **extra)
{
    hipError_t error;
    bool together = c && is_cooperative(c->attributes, c->attribute_count);
    if (c && (together || !c->attribute_count) &&
        taken(kernel, (struct dim3){c->grid_x, c->grid_y, c->grid_z}, (struct dim3){c->block_x, c->block_y, c->block_z},
              c->lds_bytes, c->stream, args, extra, together, &error))
        return error;
    return given_tell(REAL(hipDrvLaunchKernelEx)(c, kernel, args, extra));
}

/* With events, which are recorded around the clone. */
static bool taken_between(const void *key, const struct launch_shape *shape, event_t start, event_t stop, hipError_t *error)
{
    if (start && meaning_of(key).name)
        REAL(hipEventRecord)(start, shape->stream);
    if (!taken_shape(key, shape, error))
        return false;
    if (stop)
        REAL(hipEventRecord)(stop, shape->stream);
    return true;
}

hipError_t hipExtLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t lds_bytes,
                              stream_t stream, event_t start, event_t stop, int flags)
{
    hipError_t error;
    struct launch_shape shape = {grid, block, (unsigned)lds_bytes, stream, args, NULL, false, {0, 0, 0}};
    if (taken_between(function, &shape, start, stop, &error))
        return error;
    return given_tell(REAL(hipExtLaunchKernel)(function, grid, block, args, lds_bytes, stream, start, stop, flags));
}

static bool is_block(struct dim3 block)
{
    enum { MOST = 1024 }; /* work-items of a work-group, on all targets */
    return block.x - 1u < MOST && block.y - 1u < MOST && block.z - 1u < MOST &&
           (uint64_t)block.x * block.y * block.z <= MOST;
}

hipError_t hipExtModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop, unsigned flags)
{
    hipError_t error;
    struct dim3 items = {items_x, items_y, items_z}, block = {block_x, block_y, block_z};
    if (items.x && items.y && items.z && is_block(block)) { /* else the runtime has an error for it */
        struct items_grid cut = cut_items(items, block);
        struct launch_shape shape = {cut.grid, cut.block, (unsigned)lds_bytes, stream, args, extra, false, cut.lacking};
        if (taken_between(kernel, &shape, start, stop, &error))
            return error;
    }
    return given_tell(real_with_items()(kernel, items_x, items_y, items_z, block_x, block_y, block_z, lds_bytes, stream, args,
                                        extra, start, stop, flags));
}

/* Launches on several devices: one grid is a launch like others; several, which may know of each other, run as they are. */

static void pass_grids(unsigned count)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    unsigned long index;
    for (unsigned i = 0; i < count; i++)
        if (tool_selects(1, &index))
            tool_passes(&said, "kernels run as they are that are launched on several devices at once");
}

static bool taken_alone(const void *key, struct dim3 grid, struct dim3 block, size_t lds_bytes, stream_t stream, void **args,
                        bool together, unsigned flags, hipError_t *error)
{
    enum { NO_SYNC_AFTER = 2, ALL_FLAGS = 3 };
    if (!stream || flags > ALL_FLAGS || !taken(key, grid, block, lds_bytes, stream, args, NULL, together, error))
        return false;
    if (!*error && !(flags & NO_SYNC_AFTER))
        *error = REAL(hipStreamSynchronize)(stream);
    return true;
}

#define FUNCTIONS_LAUNCH(name, together)                                                                                  \
    hipError_t name(const struct function_launch *l, int count, unsigned flags)                                           \
    {                                                                                                                     \
        hipError_t error;                                                                                                 \
        if (l && count == 1 &&                                                                                            \
            taken_alone(l->function, l->grid, l->block, l->lds_bytes, l->stream, l->args, together, flags, &error))       \
            return error;                                                                                                 \
        if (l && count > 1)                                                                                               \
            pass_grids((unsigned)count);                                                                                  \
        return given_tell(REAL(name)(l, count, flags));                                                                   \
    }

FUNCTIONS_LAUNCH(hipLaunchCooperativeKernelMultiDevice, true)
FUNCTIONS_LAUNCH(hipExtLaunchMultiKernelMultiDevice, false)

hipError_t hipModuleLaunchCooperativeKernelMultiDevice(const struct module_launch *l, unsigned count, unsigned flags)
{
    hipError_t error;
    if (l && count == 1 && taken_alone(l->kernel, l->grid, l->block, l->lds_bytes, l->stream, l->args, true, flags, &error))
        return error;
    if (l && count > 1)
        pass_grids(count);
    return given_tell(REAL(hipModuleLaunchCooperativeKernelMultiDevice)(l, count, flags));
}

hipError_t hipHccModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop)
{
    return hipExtModuleLaunchKernel(kernel, items_x, items_y, items_z, block_x, block_y, block_z, lds_bytes, stream, args,
                                    extra, start, stop, 0);
}
