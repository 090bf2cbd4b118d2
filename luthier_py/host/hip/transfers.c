/* Copies between addresses: lines, rows, boxes, variables. What they may be is in prepared_transfers.c. */
#include "device.h"
#include "memory.h"
#include "streams.h"
#include "transfers.h"

/* Copies from host memory to host memory are done when the call returns. */
hipError_t copy_perform(struct operation *operation, bool wait, stream_t stream)
{
    const struct transfer *copy = &operation->copy;
    if (operation->kind == OPERATION_COPY && !is_on_device(copy->to) && !is_on_device(copy->from))
        wait = true;
    return wait ? perform_and_wait(stream, operation) : perform(stream, operation);
}

hipError_t box_copy(const struct box *box, bool wait, stream_t stream)
{
    struct operation operation;
    hipError_t error = box_prepare(box, &operation);
    return error ? error : copy_perform(&operation, wait, stream);
}

/* Lines. */

static hipError_t line(void *to, const void *from, size_t bytes, int kind, bool wait, stream_t stream)
{
    struct operation operation;
    hipError_t error = line_prepare(to, from, bytes, kind, &operation);
    return error ? error : copy_perform(&operation, wait, stream);
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, stream_t stream)
{
    return line(to, from, bytes, kind, false, stream);
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, int kind, stream_t stream)
{
    return line(to, from, bytes, kind, true, stream);
}

/* What stays on the device is done before what follows it on the default stream; no thread waits for it here. */
hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return line(to, from, bytes, kind, !(memory_needs_no_wait(to) && memory_needs_no_wait(from)), NULL);
}

hipError_t hipMemcpyHtoD(void *to, const void *from, size_t bytes) { return hipMemcpy(to, from, bytes, COPY_TO_DEVICE); }
hipError_t hipMemcpyDtoH(void *to, const void *from, size_t bytes) { return hipMemcpy(to, from, bytes, COPY_TO_HOST); }
hipError_t hipMemcpyDtoD(void *to, const void *from, size_t bytes) { return hipMemcpy(to, from, bytes, COPY_ON_DEVICE); }

hipError_t hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, COPY_TO_DEVICE, stream);
}

hipError_t hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, COPY_TO_HOST, stream);
}

hipError_t hipMemcpyDtoDAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, COPY_ON_DEVICE, stream);
}

/* Every address is good on all devices. */

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, stream_t stream)
{
    (void)to_device, (void)from_device;
    return hipMemcpyAsync(to, from, bytes, COPY_ON_DEVICE, stream);
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    (void)to_device, (void)from_device;
    return hipMemcpy(to, from, bytes, COPY_ON_DEVICE);
}

/* Rows: each must fit its pitch, also where there is but one. */

static hipError_t rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
                       bool wait, stream_t stream)
{
    if (!width || !height)
        return hipSuccess;
    if (width > to_pitch || width > from_pitch)
        return hipErrorInvalidPitchValue;
    struct box box = {.to = {.address = to, .pitch = to_pitch, .known = to_device(kind)},
                      .from = {.address = (void *)from, .pitch = from_pitch, .known = from_device(kind)},
                      .extent = {width, height, 1}};
    return box_copy(&box, wait, stream);
}

hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                            int kind, stream_t stream)
{
    return rows(to, to_pitch, from, from_pitch, width, height, kind, false, stream);
}

hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind)
{
    return rows(to, to_pitch, from, from_pitch, width, height, kind, true, NULL);
}

/* Boxes. */

hipError_t copy3d(const struct copy3d *all, bool wait, stream_t stream)
{
    struct operation operation;
    hipError_t error = copy3d_prepare(all, &operation);
    return error ? error : copy_perform(&operation, wait, stream);
}

hipError_t hipMemcpy3DAsync(const struct copy3d *all, stream_t stream) { return copy3d(all, false, stream); }
hipError_t hipMemcpy3D(const struct copy3d *all) { return copy3d(all, true, NULL); }

static hipError_t peer_box(const struct peer_box *peers, bool wait, stream_t stream)
{
    hipError_t error = device_check(peers->from_device);
    if (!error)
        error = device_check(peers->to_device);
    struct copy3d all = {peers->from_array, peers->from_at, peers->from, peers->to_array, peers->to_at, peers->to,
                         peers->extent, COPY_DEFAULT};
    return error ? error : copy3d(&all, wait, stream);
}

hipError_t hipMemcpy3DPeerAsync(const struct peer_box *peers, stream_t stream) { return peer_box(peers, false, stream); }
hipError_t hipMemcpy3DPeer(const struct peer_box *peers) { return peer_box(peers, true, NULL); }

/* Variables of the program's own fat binaries. */

static hipError_t copy_symbol(const void *symbol, void *to, const void *from, size_t bytes, size_t offset, int kind, bool wait,
                              stream_t stream)
{
    void *place;
    if (!(to ? from_device(kind) : to_device(kind)))
        return hipErrorInvalidMemcpyDirection;
    hipError_t error = symbol_place(symbol, stream_device(stream), bytes, offset, &place);
    if (error)
        return error;
    return to ? line(to, place, bytes, kind, wait, stream) : line(place, from, bytes, kind, wait, stream);
}

hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind, stream_t stream)
{
    return copy_symbol(symbol, NULL, from, bytes, offset, kind, false, stream);
}

hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind)
{
    return copy_symbol(symbol, NULL, from, bytes, offset, kind, true, NULL);
}

hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, int kind, stream_t stream)
{
    return copy_symbol(symbol, to, NULL, bytes, offset, kind, false, stream);
}

hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind)
{
    return copy_symbol(symbol, to, NULL, bytes, offset, kind, true, NULL);
}
