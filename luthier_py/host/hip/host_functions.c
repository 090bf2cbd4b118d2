/* Host functions on streams. */
#include <stdlib.h>

#include "luthier.h"

hipError_t hipLaunchHostFunc(stream_t handle, void (*function)(void *), void *data)
{
    struct operation operation = {OPERATION_CALL, .call = {function, data}};
    return perform(handle, &operation);
}

struct callback { stream_t stream; stream_callback function; void *data; };

static void run_callback(void *data)
{
    struct callback *callback = data;
    callback->function(callback->stream, device_wait(0), callback->data);
    free(callback);
}

hipError_t hipStreamAddCallback(stream_t handle, stream_callback function, void *data, unsigned flags)
{
    (void)flags;
    if (stream_of(handle)->capture)
        return capture_forbids_asking(stream_of(handle));
    struct callback *callback = malloc(sizeof *callback);
    if (!callback)
        return hipErrorOutOfMemory;
    *callback = (struct callback){handle, function, data};
    hipError_t error = hipLaunchHostFunc(handle, run_callback, callback);
    if (error)
        free(callback);
    return error;
}
