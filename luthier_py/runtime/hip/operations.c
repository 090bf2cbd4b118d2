/* What streams carry out: launches by the worker, copies and fills here, host functions on a thread of their own.
 *
 * A stream that is being captured keeps an operation in its graph instead. Copies and fills wait for what is before
 * them on their stream and are done when the call returns, also the asynchronous ones.
 */
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

static hipError_t perform_launch(struct stream *stream, const struct operation *operation)
{
    const struct kernel *kernel = operation->launch.kernel;
    struct dim3 grid = operation->launch.grid, block = operation->launch.block;
    uint32_t head[] = {kernel->module->id, kernel->index, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                       operation->launch.lds_bytes, operation->launch.cooperative};
    struct part parts[] = {{head, sizeof head}, {operation->launch.kernarg, operation->launch.bytes}};
    uint64_t ticket;
    hipError_t error = device_submit(MESSAGE_LAUNCH, parts, 2, &ticket);
    if (!error) {
        stream->last = ticket;
        launches_count();
    }
    return error;
}

static hipError_t perform_copy(const struct transfer *copy)
{
    for (size_t z = 0; z < copy->depth; z++) {
        char *to = (char *)copy->to + z * copy->to_slice;
        const char *from = (const char *)copy->from + z * copy->from_slice;
        for (size_t y = 0; y < copy->height; y++)
            memmove(to + y * copy->to_pitch, from + y * copy->from_pitch, copy->width);
    }
    return hipSuccess;
}

static hipError_t perform_fill(const struct operation *operation)
{
    char *row = operation->fill.to;
    for (size_t y = 0; y < operation->fill.height; y++, row += operation->fill.pitch)
        if (operation->fill.element == 1)
            memset(row, (int)operation->fill.value, operation->fill.count);
        else
            for (size_t i = 0; i < operation->fill.count; i++)
                memcpy(row + i * operation->fill.element, &operation->fill.value, operation->fill.element);
    return hipSuccess;
}

struct call { struct stream *stream; struct operation operation; uint64_t after; };

static void *run_call(void *data)
{
    struct call *call = data;
    struct stream *stream = call->stream;
    device_wait(call->after);
    call->operation.call.function(call->operation.call.data);
    free(call);
    pthread_mutex_lock(&stream->lock);
    stream->calls--;
    pthread_cond_broadcast(&stream->idle);
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static hipError_t perform_call(struct stream *stream, const struct operation *operation)
{
    struct call *call = malloc(sizeof *call);
    pthread_t thread;
    if (!call)
        return hipErrorOutOfMemory;
    *call = (struct call){stream, *operation, stream_horizon(stream)};
    pthread_mutex_lock(&stream->lock);
    stream->calls++;
    pthread_mutex_unlock(&stream->lock);
    if (pthread_create(&thread, NULL, run_call, call) != 0) {
        run_call(call);
        return hipSuccess;
    }
    pthread_detach(thread);
    return hipSuccess;
}

hipError_t perform_now(stream_t handle, const struct operation *operation)
{
    struct stream *stream = stream_of(handle);
    hipError_t error = device_ready();
    if (error || !stream)
        return error ? error : hipErrorInvalidHandle;
    stream_settle(stream);
    if (operation->kind == OPERATION_LAUNCH)
        return perform_launch(stream, operation);
    if (operation->kind == OPERATION_CALL)
        return perform_call(stream, operation);
    error = device_wait(stream_horizon(stream));
    if (error)
        return error;
    return operation->kind == OPERATION_COPY ? perform_copy(&operation->copy) : perform_fill(operation);
}

hipError_t perform(stream_t handle, const struct operation *operation)
{
    struct stream *stream = stream_of(handle);
    if (stream && stream->capture)
        return capture_operation(stream, operation);
    return perform_now(handle, operation);
}

/* Copies. The kind says nothing that the addresses do not say, except that it must be one. */

hipError_t copy_prepare(const struct transfer *copy, int kind, struct operation *operation)
{
    enum { KIND_DEFAULT = 4, KIND_DEVICE_TO_DEVICE_NO_CU = 1024 };
    hipError_t error = device_ready();
    if (error)
        return error;
    if ((kind < 0 || kind > KIND_DEFAULT) && kind != KIND_DEVICE_TO_DEVICE_NO_CU)
        return hipErrorInvalidMemcpyDirection;
    *operation = (struct operation){OPERATION_COPY, .copy = *copy};
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0) {
        operation->copy.depth = 0;
        return hipSuccess;
    }
    if (copy->height > 1 && (copy->width > copy->to_pitch || copy->width > copy->from_pitch))
        return hipErrorInvalidPitchValue;
    size_t rows = copy->height - 1, slices = copy->depth - 1;
    if (!memory_valid(copy->to, slices * copy->to_slice + rows * copy->to_pitch + copy->width) ||
        !memory_valid(copy->from, slices * copy->from_slice + rows * copy->from_pitch + copy->width))
        return hipErrorInvalidValue;
    return hipSuccess;
}

static hipError_t copy(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       int kind, stream_t stream)
{
    struct operation operation;
    struct transfer all = {to, from, to_pitch, from_pitch, 0, 0, width, height, 1};
    hipError_t error = copy_prepare(&all, kind, &operation);
    return note(error || !operation.copy.depth ? error : perform(stream, &operation));
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, stream_t stream)
{
    return copy(to, bytes, from, bytes, bytes, 1, kind, stream);
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind) { return hipMemcpyAsync(to, from, bytes, kind, NULL); }

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, int kind, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, kind, stream);
}

hipError_t hipMemcpyHtoD(void *to, const void *from, size_t bytes) { return hipMemcpyAsync(to, from, bytes, 4, NULL); }
hipError_t hipMemcpyDtoH(void *to, const void *from, size_t bytes) { return hipMemcpyAsync(to, from, bytes, 4, NULL); }
hipError_t hipMemcpyDtoD(void *to, const void *from, size_t bytes) { return hipMemcpyAsync(to, from, bytes, 4, NULL); }

hipError_t hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, 4, stream);
}

hipError_t hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, 4, stream);
}

hipError_t hipMemcpyDtoDAsync(void *to, const void *from, size_t bytes, stream_t stream)
{
    return hipMemcpyAsync(to, from, bytes, 4, stream);
}

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, stream_t stream)
{
    hipError_t error = device_check(to_device);
    if (!error)
        error = device_check(from_device);
    return error ? note(error) : hipMemcpyAsync(to, from, bytes, 4, stream);
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    return hipMemcpyPeerAsync(to, to_device, from, from_device, bytes, NULL);
}

hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                            int kind, stream_t stream)
{
    return copy(to, to_pitch, from, from_pitch, width, height, kind, stream);
}

hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind)
{
    return copy(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}

static char *corner(const struct pitched *pitched, struct position at, size_t z)
{
    return (char *)pitched->address + ((at.z + z) * pitched->height + at.y) * pitched->pitch + at.x;
}

hipError_t copy3d_prepare(const struct copy3d *all, struct operation *operation)
{
    const struct pitched *to = &all->to, *from = &all->from;
    if (all->from_array || all->to_array)
        return hipErrorNotSupported;
    struct transfer copy = {corner(to, all->to_at, 0), corner(from, all->from_at, 0), to->pitch, from->pitch,
                        to->pitch * to->height, from->pitch * from->height,
                        all->extent.width, all->extent.height, all->extent.depth};
    return copy_prepare(&copy, all->kind, operation);
}

hipError_t hipMemcpy3DAsync(const struct copy3d *all, stream_t stream)
{
    struct operation operation;
    hipError_t error = all ? copy3d_prepare(all, &operation) : hipErrorInvalidValue;
    return note(error || !operation.copy.depth ? error : perform(stream, &operation));
}

hipError_t hipMemcpy3D(const struct copy3d *all) { return hipMemcpy3DAsync(all, NULL); }

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

hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind, stream_t stream)
{
    void *place;
    hipError_t error = symbol_place(symbol, stream_device(stream), bytes, offset, &place);
    return error ? note(error) : hipMemcpyAsync(place, from, bytes, kind, stream);
}

hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind)
{
    return hipMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, NULL);
}

hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, int kind, stream_t stream)
{
    void *place;
    hipError_t error = symbol_place(symbol, stream_device(stream), bytes, offset, &place);
    return error ? note(error) : hipMemcpyAsync(to, place, bytes, kind, stream);
}

hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind)
{
    return hipMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, NULL);
}

/* Fills: `count` elements of 1, 2 or 4 bytes in each row. */

hipError_t fill_prepare(void *to, uint32_t value, uint32_t element, size_t count, size_t pitch, size_t height,
                        struct operation *operation)
{
    hipError_t error = device_ready();
    if (error)
        return error;
    if (count == 0 || height == 0)
        height = count = 0;
    else if (count > SIZE_MAX / element || !to || !memory_valid(to, pitch * (height - 1) + count * element))
        return hipErrorInvalidValue;
    *operation = (struct operation){OPERATION_FILL, .fill = {to, value, element, pitch, count, height}};
    return hipSuccess;
}

static hipError_t fill(void *to, uint32_t value, uint32_t element, size_t count, size_t pitch, size_t height, stream_t stream)
{
    struct operation operation;
    hipError_t error = fill_prepare(to, value, element, count, pitch, height, &operation);
    return note(error || !operation.fill.count ? error : perform(stream, &operation));
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, stream_t stream)
{
    return fill(to, (uint8_t)value, 1, bytes, 0, 1, stream);
}

hipError_t hipMemset(void *to, int value, size_t bytes) { return hipMemsetAsync(to, value, bytes, NULL); }

hipError_t hipMemsetD8Async(void *to, unsigned char value, size_t count, stream_t stream)
{
    return fill(to, value, 1, count, 0, 1, stream);
}

hipError_t hipMemsetD16Async(void *to, unsigned short value, size_t count, stream_t stream)
{
    return fill(to, value, 2, count, 0, 1, stream);
}

hipError_t hipMemsetD32Async(void *to, int value, size_t count, stream_t stream)
{
    return fill(to, (uint32_t)value, 4, count, 0, 1, stream);
}

hipError_t hipMemsetD8(void *to, unsigned char value, size_t count) { return hipMemsetD8Async(to, value, count, NULL); }
hipError_t hipMemsetD16(void *to, unsigned short value, size_t count) { return hipMemsetD16Async(to, value, count, NULL); }
hipError_t hipMemsetD32(void *to, int value, size_t count) { return hipMemsetD32Async(to, value, count, NULL); }

hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, stream_t stream)
{
    return fill(to, (uint8_t)value, 1, width, pitch, height, stream);
}

hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return hipMemset2DAsync(to, pitch, value, width, height, NULL);
}

hipError_t hipMemset3DAsync(struct pitched to, int value, struct extent extent, stream_t stream)
{
    hipError_t error = hipSuccess;
    for (size_t z = 0; z < extent.depth && !error; z++)
        error = hipMemset2DAsync(corner(&to, (struct position){0, 0, 0}, z), to.pitch, value, extent.width, extent.height, stream);
    return error;
}

hipError_t hipMemset3D(struct pitched to, int value, struct extent extent) { return hipMemset3DAsync(to, value, extent, NULL); }
