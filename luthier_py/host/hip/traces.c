/* What streams carry out, for a trace: a record for each work, when it was handed to the worker or is done. */
#include "memory.h"
#include "traced.h"
#include "work.h"

static const char *direction(const struct transfer *copy)
{
    static const char *const names[] = {"host to host", "host to device", "device to host", "device to device"};
    return names[2 * is_on_device(copy->from) + is_on_device(copy->to)];
}

void trace_asked(struct work *work)
{
    if (traced())
        work->asked = traced_now(), work->asking = traced_thread();
}

void trace_work(const struct work *work, uint64_t begin, uint64_t command)
{
    const struct operation *operation = &work->operation;
    const struct transfer *copy = &operation->copy;
    const struct fill *fill = &operation->fill;
    const struct stream *stream = work->stream;
    const char *name = NULL;
    struct traced record = {
        .thread = work->asking, .device = (uint32_t)stream->device, .stream = stream->id, .asked = work->asked,
        .handle = stream_is_null(stream) ? 0 : (uintptr_t)stream, .number = command,
        .begin = command ? 0 : begin, .end = command ? 0 : traced_now()};
    switch (operation->kind) {
    case OPERATION_LAUNCH: record.kind = TRACED_LAUNCH; name = operation->launch.kernel->name; break;
    case OPERATION_COPY: record.kind = TRACED_COPY; name = direction(copy); break;
    case OPERATION_FILL: record.kind = TRACED_FILL; break;
    case OPERATION_CALL: record.kind = TRACED_CALL; break;
    case OPERATION_RECORD: record.kind = TRACED_EVENT; break;
    default: return;
    }
    if (operation->kind == OPERATION_COPY)
        record.bytes = copy->width * copy->height * copy->depth;
    if (operation->kind == OPERATION_FILL)
        record.bytes = fill->count * fill->element * fill->height * fill->depth;
    trace(record, name);
}
