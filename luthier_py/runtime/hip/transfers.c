/* Copies between addresses: lines, rows, boxes, variables. A kind that calls a side the device's wants memory there that HIP
 * knows; of a line one side is enough. Else the addresses alone say what is copied.
 */
#include "transfers.h"

enum { MAX_PITCH = INT32_MAX };

bool to_device(int kind) { return kind == COPY_TO_DEVICE || kind == COPY_ON_DEVICE || kind == COPY_ON_DEVICE_NO_CU; }
bool from_device(int kind) { return kind == COPY_TO_HOST || kind == COPY_ON_DEVICE || kind == COPY_ON_DEVICE_NO_CU; }

/* Lines. */

hipError_t line_prepare(void *to, const void *from, size_t bytes, int kind, struct operation *operation)
{
    struct transfer line = {.to = to, .from = from, .to_pitch = bytes, .from_pitch = bytes, .width = bytes, .height = 1, .depth = 1};
    bool between_hosts = kind == COPY_HOST_TO_HOST || kind == COPY_DEFAULT;
    if (bytes && !between_hosts && is_pageable(to) && is_pageable(from))
        return hipErrorInvalidValue;
    return copy_prepare(&line, operation);
}

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

/* What stays on the device is done before what comes after it on the default stream; nobody waits for it here. */
hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return line(to, from, bytes, kind, !(is_on_device(to) && is_on_device(from)), NULL);
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

/* Boxes: each side is an array or memory, positions and width are in elements where an array takes part. */

static hipError_t check_pitched(const struct pitched *memory)
{
    if (memory->pitch < memory->width)
        return hipErrorInvalidPitchValue;
    return memory->pitch >= MAX_PITCH ? hipErrorInvalidValue : hipSuccess;
}

static hipError_t read_place(array_t array, const struct pitched *memory, const struct position *at, bool known,
                             struct place *place)
{
    if (!array == !memory->address || (array && !handle_is(array, HANDLE_ARRAY)))
        return hipErrorInvalidValue;
    *place = (struct place){.address = memory->address, .array = array, .known = known, .pitch = memory->pitch,
                            .height = memory->height, .at = *at};
    if (!array)
        return check_pitched(memory);
    return __builtin_mul_overflow(at->x, array->element_bytes, &place->at.x) ? hipErrorInvalidValue : hipSuccess;
}

static hipError_t read_box(const struct copy3d *all, struct box *box)
{
    hipError_t error = read_place(all->from_array, &all->from, &all->from_at, from_device(all->kind), &box->from);
    if (!error)
        error = read_place(all->to_array, &all->to, &all->to_at, to_device(all->kind), &box->to);
    if (error)
        return error;
    if (!between(all->kind, COPY_HOST_TO_HOST, COPY_DEFAULT) && all->kind != COPY_ON_DEVICE_NO_CU)
        return hipErrorInvalidMemcpyDirection;
    const struct array *from = box->from.array, *to = box->to.array, *one = to ? to : from;
    box->extent = all->extent;
    bool odd = (from && to && from->element_bytes != to->element_bytes) ||
               __builtin_mul_overflow(all->extent.width, one ? one->element_bytes : 1, &box->extent.width);
    return odd ? hipErrorInvalidValue : hipSuccess;
}

hipError_t copy3d_prepare(const struct copy3d *all, struct operation *operation)
{
    struct box box;
    hipError_t error = read_box(all, &box);
    return error ? error : box_prepare(&box, operation);
}

hipError_t copy3d(const struct copy3d *all, bool wait, stream_t stream)
{
    struct box box;
    hipError_t error = read_box(all, &box);
    return error ? error : box_copy(&box, wait, stream);
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

hipError_t symbol_place(const void *symbol, int device, size_t bytes, size_t offset, void **place)
{
    struct variable found;
    hipError_t error = symbol_variable(symbol, device, &found);
    if (error)
        return error;
    if (offset > found.bytes || bytes > found.bytes - offset)
        return hipErrorInvalidValue;
    *place = (char *)found.address + offset;
    return hipSuccess;
}

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
