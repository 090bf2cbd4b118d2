/* Copies. The kind of a copy says nothing that the addresses do not say, except that it must be one (functions.txt). */
#include "luthier.h"

static const struct transfer NOTHING;

/* Bytes from the first to the last that rows in slices touch; SIZE_MAX where they have no end. */
static size_t span(size_t slice, size_t depth, size_t pitch, size_t height, size_t width)
{
    size_t slices, rows, both, all;
    bool endless = __builtin_mul_overflow(slice, depth - 1, &slices) || __builtin_mul_overflow(pitch, height - 1, &rows) ||
                   __builtin_add_overflow(slices, rows, &both) || __builtin_add_overflow(both, width, &all);
    return endless ? SIZE_MAX : all;
}

static bool is_pageable(const void *address) { return !memory_known(address, 1); }

hipError_t copy_prepare(const struct transfer *copy, struct operation *operation)
{
    *operation = (struct operation){.kind = OPERATION_NOTHING};
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
        return hipSuccess;
    if ((copy->height > 1 || copy->depth > 1) && (copy->width > copy->to_pitch || copy->width > copy->from_pitch))
        return hipErrorInvalidPitchValue;
    size_t to = span(copy->to_slice, copy->depth, copy->to_pitch, copy->height, copy->width);
    size_t from = span(copy->from_slice, copy->depth, copy->from_pitch, copy->height, copy->width);
    if (!copy->to || !copy->from || to == SIZE_MAX || from == SIZE_MAX || !memory_valid(copy->to, to) ||
        !memory_valid(copy->from, from))
        return hipErrorInvalidValue;
    *operation = (struct operation){OPERATION_COPY, .copy = *copy};
    operation->copy.pageable = is_pageable(copy->to) || is_pageable(copy->from);
    return hipSuccess;
}

static hipError_t copy(const struct transfer *all, bool wait, stream_t stream)
{
    struct operation operation;
    hipError_t error = copy_prepare(all, &operation);
    return error ? error : wait ? perform_and_wait(stream, &operation) : perform(stream, &operation);
}

static struct transfer line(void *to, const void *from, size_t bytes)
{
    return bytes ? (struct transfer){to, from, bytes, bytes, 0, 0, bytes, 1, 1, false} : NOTHING;
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, stream_t stream)
{
    (void)kind;
    struct transfer all = line(to, from, bytes);
    return copy(&all, false, stream);
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, int kind, stream_t stream)
{
    (void)kind;
    struct transfer all = line(to, from, bytes);
    return copy(&all, true, stream);
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return hipMemcpyWithStream(to, from, bytes, kind, NULL);
}

hipError_t hipMemcpyHtoD(void *to, const void *from, size_t bytes) { return hipMemcpy(to, from, bytes, 0); }
hipError_t hipMemcpyDtoH(void *to, const void *from, size_t bytes) { return hipMemcpy(to, from, bytes, 0); }
hipError_t hipMemcpyDtoD(void *to, const void *from, size_t bytes) { return hipMemcpy(to, from, bytes, 0); }

hipError_t hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, 0, stream);
}

hipError_t hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, 0, stream);
}

hipError_t hipMemcpyDtoDAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, 0, stream);
}

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, stream_t stream)
{
    (void)to_device, (void)from_device;
    return hipMemcpyAsync(to, from, bytes, 0, stream);
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    (void)to_device, (void)from_device;
    return hipMemcpy(to, from, bytes, 0);
}

static struct transfer rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height)
{
    return (struct transfer){to, from, to_pitch, from_pitch, 0, 0, width, height, 1, false};
}

/* A row must fit its pitch also where there is but one. */
static hipError_t check_pitches(const struct transfer *all)
{
    bool some = all->width && all->height && all->depth;
    return some && (all->width > all->to_pitch || all->width > all->from_pitch) ? hipErrorInvalidPitchValue : hipSuccess;
}

hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                            int kind, stream_t stream)
{
    (void)kind;
    struct transfer all = rows(to, to_pitch, from, from_pitch, width, height);
    hipError_t error = check_pitches(&all);
    return error ? error : copy(&all, false, stream);
}

hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind)
{
    (void)kind;
    struct transfer all = rows(to, to_pitch, from, from_pitch, width, height);
    hipError_t error = check_pitches(&all);
    return error ? error : copy(&all, true, NULL);
}

static char *corner(const struct pitched *pitched, struct position at)
{
    return (char *)pitched->address + (at.z * pitched->height + at.y) * pitched->pitch + at.x;
}

hipError_t copy3d_prepare(const struct copy3d *all, struct operation *operation)
{
    const struct pitched *to = &all->to, *from = &all->from;
    if (all->from_array || all->to_array)
        return hipErrorNotSupported;
    if (all->kind < 0 || all->kind > COPY_DEFAULT)
        return hipErrorInvalidMemcpyDirection;
    struct transfer copy = {corner(to, all->to_at), corner(from, all->from_at), to->pitch, from->pitch,
                            to->pitch * to->height, from->pitch * from->height,
                            all->extent.width, all->extent.height, all->extent.depth, false};
    hipError_t error = check_pitches(&copy);
    return error ? error : copy_prepare(&copy, operation);
}

static hipError_t copy3d(const struct copy3d *all, bool wait, stream_t stream)
{
    struct operation operation;
    hipError_t error = copy3d_prepare(all, &operation);
    return error ? error : wait ? perform_and_wait(stream, &operation) : perform(stream, &operation);
}

hipError_t hipMemcpy3DAsync(const struct copy3d *all, stream_t stream) { return copy3d(all, false, stream); }
hipError_t hipMemcpy3D(const struct copy3d *all) { return copy3d(all, true, NULL); }

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

static hipError_t copy_symbol(const void *symbol, void *to, const void *from, size_t bytes, size_t offset, bool wait,
                              stream_t stream)
{
    void *place;
    hipError_t error = symbol_place(symbol, stream_device(stream), bytes, offset, &place);
    if (error)
        return error;
    struct transfer all = to ? line(to, place, bytes) : line(place, from, bytes);
    return copy(&all, wait, stream);
}

hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind, stream_t stream)
{
    (void)kind;
    return copy_symbol(symbol, NULL, from, bytes, offset, false, stream);
}

hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind)
{
    (void)kind;
    return copy_symbol(symbol, NULL, from, bytes, offset, true, NULL);
}

hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, int kind, stream_t stream)
{
    (void)kind;
    return copy_symbol(symbol, to, NULL, bytes, offset, false, stream);
}

hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind)
{
    (void)kind;
    return copy_symbol(symbol, to, NULL, bytes, offset, true, NULL);
}
