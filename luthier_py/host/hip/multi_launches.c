/* Launches of one grid on each of several devices.
 *
 * Devices carry out launches one after the other, so grids that wait for each other (multi_grid_group::sync) would wait for
 * ever: their kernels get the number of grids, and the worker gives them no words to wait on, which ends such a
 * kernel with a fault. hipDeviceAttributeCooperativeMultiDeviceLaunch is 0 accordingly.
 */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "launches.h"
#include "streams.h"

enum { NO_SYNC_BEFORE = 1, NO_SYNC_AFTER = 2 };

static bool same_shape(const struct module_launch *a, const struct module_launch *b)
{
    return !memcmp(&a->grid, &b->grid, sizeof a->grid) && !memcmp(&a->block, &b->block, sizeof a->block) &&
           a->lds_bytes == b->lds_bytes;
}

/* One launch on each device, on streams of the program's own, all of the same shape. */
static hipError_t check_devices(const struct module_launch *all, unsigned count)
{
    bool used[MAX_DEVICES] = {false};
    for (unsigned i = 0; i < count; i++) {
        int device = stream_device(all[i].stream);
        if (!all[i].block.x || !all[i].block.y || !all[i].block.z)
            return hipErrorInvalidConfiguration;
        if (!all[i].stream)
            return hipErrorInvalidHandle;
        if (used[device] || all[i].kernel->module->device != device)
            return hipErrorInvalidDevice;
        used[device] = true;
    }
    for (unsigned i = 1; i < count; i++)
        if (!same_shape(&all[i - 1], &all[i]))
            return hipErrorInvalidValue;
    return hipSuccess;
}

static hipError_t wait_for_all(const struct module_launch *all, unsigned count)
{
    hipError_t error = hipSuccess;
    for (unsigned i = 0; i < count && !error; i++)
        error = stream_wait(stream_of(all[i].stream));
    return error;
}

static hipError_t launch_all(const struct module_launch *all, unsigned count, unsigned flags, bool cooperative)
{
    hipError_t error = check_devices(all, count);
    if (!error && !(flags & NO_SYNC_BEFORE))
        error = wait_for_all(all, count);
    for (unsigned i = 0; i < count && !error; i++)
        error = launch_on(all[i].stream, &(struct launch){all[i].kernel, all[i].grid, all[i].block, all[i].lds_bytes, all[i].args,
                                                       NULL, cooperative, i, count, NULL, WHOLE});
    if (!error && !(flags & NO_SYNC_AFTER))
        error = wait_for_all(all, count);
    return error;
}

static bool in_range(unsigned count) { return count >= 1 && count <= (unsigned)device_count(); }

/* Launches here come back when they are done, which one that is only captured never is. */
static hipError_t check_list_stream(stream_t handle)
{
    const struct stream *stream = stream_of(handle);
    return !stream ? hipErrorInvalidValue : stream->capture ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

hipError_t hipModuleLaunchCooperativeKernelMultiDevice(const struct module_launch *list, unsigned count, unsigned flags)
{
    if (!in_range(count))
        return hipErrorInvalidValue;
    for (unsigned i = 0; i < count; i++) {
        hipError_t error = check_list_stream(list[i].stream);
        if (!error)
            error = check_kernel(list[i].kernel);
        if (error)
            return error;
    }
    return launch_all(list, count, flags, true);
}

static hipError_t launch_functions(const struct function_launch *list, int count, unsigned flags, bool cooperative)
{
    struct module_launch all[MAX_DEVICES];
    if (count < 0 || !in_range((unsigned)count))
        return hipErrorInvalidValue;
    for (int i = 0; i < count; i++) {
        const struct function_launch *l = &list[i];
        hipError_t error = check_list_stream(l->stream);
        if (error)
            return error;
        all[i] = (struct module_launch){NULL, l->grid, l->block, (unsigned)l->lds_bytes, l->stream, l->args};
        error = function_kernel(l->function, stream_device(l->stream), &all[i].kernel);
        if (!error && l->function != list[0].function)
            error = hipErrorInvalidValue;
        if (error)
            return error;
    }
    return launch_all(all, (unsigned)count, flags, cooperative);
}

hipError_t hipLaunchCooperativeKernelMultiDevice(const struct function_launch *list, int count, unsigned flags)
{
    return launch_functions(list, count, flags, true);
}

hipError_t hipExtLaunchMultiKernelMultiDevice(const struct function_launch *list, int count, unsigned flags)
{
    return launch_functions(list, count, flags, false);
}
