/* Fills, as programs ask for them.
 *
 * Of the calls that are not asynchronous only those wait that fill host memory, or begin inside an allocation, as in AMD's
 * runtime, or fill what HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS is set for; all others are done before what comes after them on the default stream.
 */
#include "memory.h"
#include "transfers.h"

static bool is_whole_on_device(const void *address)
{
    struct allocation found;
    return memory_find(address, &found) && memory_needs_no_wait(address) && !found.flags && found.address == (uintptr_t)address;
}

static hipError_t fill(const struct fill *all, bool wait, stream_t stream)
{
    struct operation operation;
    hipError_t error = fill_prepare(all, &operation);
    if (error)
        return error;
    return wait && !is_whole_on_device(all->to) ? perform_and_wait(stream, &operation) : perform(stream, &operation);
}

static hipError_t fill_line(void *to, uint32_t value, uint32_t element, size_t count, bool wait, stream_t stream)
{
    return fill(&(struct fill){to, value, element, 0, 0, count, 1, 1}, wait, stream);
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, stream_t stream)
{
    return fill_line(to, (uint8_t)value, 1, bytes, false, stream);
}

hipError_t hipMemsetD8Async(void *to, unsigned char value, size_t count, stream_t stream)
{
    return fill_line(to, value, 1, count, false, stream);
}

hipError_t hipMemsetD16Async(void *to, unsigned short value, size_t count, stream_t stream)
{
    return fill_line(to, value, 2, count, false, stream);
}

hipError_t hipMemsetD32Async(void *to, int value, size_t count, stream_t stream)
{
    return fill_line(to, (uint32_t)value, 4, count, false, stream);
}

hipError_t hipMemset(void *to, int value, size_t bytes) { return fill_line(to, (uint8_t)value, 1, bytes, true, NULL); }
hipError_t hipMemsetD8(void *to, unsigned char value, size_t count) { return fill_line(to, value, 1, count, true, NULL); }
hipError_t hipMemsetD16(void *to, unsigned short value, size_t count) { return fill_line(to, value, 2, count, true, NULL); }
hipError_t hipMemsetD32(void *to, int value, size_t count) { return fill_line(to, (uint32_t)value, 4, count, true, NULL); }

/* Rows: each must fit its pitch, also where there is but one. `count` is in elements, the pitch in bytes. */

static hipError_t fill_pitched(const struct fill *all, bool wait, stream_t stream)
{
    size_t row;
    bool some = all->count && all->height && all->depth;
    if (some && (__builtin_mul_overflow(all->count, (size_t)all->element, &row) || row > all->pitch))
        return hipErrorInvalidValue;
    return fill(all, wait, stream);
}

static hipError_t fill_rows(void *to, size_t pitch, uint32_t value, uint32_t element, size_t width, size_t height, bool wait,
                            stream_t stream)
{
    return fill_pitched(&(struct fill){to, value, element, pitch, 0, width, height, 1}, wait, stream);
}

hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, stream_t stream)
{
    return fill_rows(to, pitch, (uint8_t)value, 1, width, height, false, stream);
}

hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return fill_rows(to, pitch, (uint8_t)value, 1, width, height, true, NULL);
}

hipError_t hipMemsetD2D8Async(void *to, size_t pitch, unsigned char value, size_t width, size_t height, stream_t stream)
{
    return fill_rows(to, pitch, value, 1, width, height, false, stream);
}

hipError_t hipMemsetD2D8(void *to, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return fill_rows(to, pitch, value, 1, width, height, true, NULL);
}

hipError_t hipMemsetD2D16Async(void *to, size_t pitch, unsigned short value, size_t width, size_t height, stream_t stream)
{
    return fill_rows(to, pitch, value, 2, width, height, false, stream);
}

hipError_t hipMemsetD2D16(void *to, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return fill_rows(to, pitch, value, 2, width, height, true, NULL);
}

hipError_t hipMemsetD2D32Async(void *to, size_t pitch, unsigned value, size_t width, size_t height, stream_t stream)
{
    return fill_rows(to, pitch, value, 4, width, height, false, stream);
}

hipError_t hipMemsetD2D32(void *to, size_t pitch, unsigned value, size_t width, size_t height)
{
    return fill_rows(to, pitch, value, 4, width, height, true, NULL);
}

/* Boxes. */

static hipError_t fill_slices(const struct pitched *to, int value, const struct extent *extent, bool wait, stream_t stream)
{
    struct fill all = {to->address, (uint8_t)value, 1, to->pitch, 0, extent->width, extent->height, extent->depth};
    if (!extent->width || !extent->height || !extent->depth)
        return hipSuccess;
    if (__builtin_mul_overflow(to->pitch, to->height, &all.slice) || (extent->depth > 1 && extent->height > to->height))
        return hipErrorInvalidValue;
    return fill_pitched(&all, wait, stream);
}

hipError_t hipMemset3DAsync(struct pitched to, int value, struct extent extent, stream_t stream)
{
    return fill_slices(&to, value, &extent, false, stream);
}

hipError_t hipMemset3D(struct pitched to, int value, struct extent extent) { return fill_slices(&to, value, &extent, true, NULL); }
