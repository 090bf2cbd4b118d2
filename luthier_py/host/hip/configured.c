/* The call configuration of <<<...>>>, which compiled code pushes and its stub pops; and the older form of it. */
#include <string.h>

#include "luthier.h"

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
