/* Words that programs have streams write and wait for: hipStreamWriteValue..., hipStreamWaitValue..., hipStreamBatchMemOp. */
#include <stdlib.h>

#include "streams.h"
#include "words.h"

static hipError_t put(hipError_t error, stream_t stream, struct operation *call)
{
    if (error)
        return error;
    void *steps = call->call.data;
    error = stream_of(stream)->capture ? hipErrorStreamCaptureUnsupported : perform(stream, call);
    if (error)
        free(steps);
    return error;
}

static hipError_t put_one(stream_t stream, struct step step)
{
    struct operation call;
    hipError_t error = steps_prepare(&step, 1, &call);
    return put(error, stream, &call);
}

hipError_t hipStreamWaitValue32(stream_t stream, void *address, uint32_t value, unsigned flags, uint32_t mask)
{
    return put_one(stream, (struct step){WAIT_32, address, value, mask, flags});
}

hipError_t hipStreamWaitValue64(stream_t stream, void *address, uint64_t value, unsigned flags, uint64_t mask)
{
    return put_one(stream, (struct step){WAIT_64, address, value, mask, flags});
}

hipError_t hipStreamWriteValue32(stream_t stream, void *address, uint32_t value, unsigned flags)
{
    return (void)flags, put_one(stream, (struct step){WRITE_32, address, value, 0, 0});
}

hipError_t hipStreamWriteValue64(stream_t stream, void *address, uint64_t value, unsigned flags)
{
    return (void)flags, put_one(stream, (struct step){WRITE_64, address, value, 0, 0});
}

hipError_t hipStreamBatchMemOp(stream_t stream, unsigned count, const struct memory_operation *operations, unsigned flags)
{
    struct operation call;
    (void)flags;
    hipError_t error = words_prepare(operations, count, &call);
    return put(error, stream, &call);
}
