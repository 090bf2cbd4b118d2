/* Boxes of bytes: what a copy touches is found and checked here, whichever function of the API it comes from.
 *
 * Memory that HIP tracks must hold all of a box, an array each row and layer. Other memory is checked when it
 * is copied (operations.c).
 */
#include "checks.h"
#include "device.h"
#include "memory.h"
#include "transfers.h"

/* Where a box begins in memory, and its strides. */
struct spot { char *base; size_t offset, pitch, slice; };

static bool is_within(size_t at, size_t count, size_t limit) { return at <= limit && count <= limit - at; }
static bool is_empty(const struct extent *extent) { return !extent->width || !extent->height || !extent->depth; }

/* Bytes from the first to the last that rows in slices touch; SIZE_MAX where they have no end. */
static size_t span(size_t slice, size_t depth, size_t pitch, size_t height, size_t width)
{
    size_t slices, rows, both, all;
    bool endless = __builtin_mul_overflow(slice, depth - 1, &slices) || __builtin_mul_overflow(pitch, height - 1, &rows) ||
                   __builtin_add_overflow(slices, rows, &both) || __builtin_add_overflow(both, width, &all);
    return endless ? SIZE_MAX : all;
}

bool is_pageable(const void *address) { return !memory_known(address, 1); }

/* Whether memory extends so far, as far as HIP can tell. */
static bool reaches(const void *address, size_t bytes)
{
    uintptr_t end;
    if (!is_pageable(address))
        return memory_known(address, bytes);
    return address && !in_arena(address) && !__builtin_add_overflow((uintptr_t)address, bytes, &end);
}

hipError_t copy_prepare(const struct transfer *copy, struct operation *operation)
{
    *operation = (struct operation){.kind = OPERATION_NOTHING};
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
        return hipSuccess;
    if ((copy->height > 1 || copy->depth > 1) && (copy->width > copy->to_pitch || copy->width > copy->from_pitch))
        return hipErrorInvalidPitchValue;
    size_t to = span(copy->to_slice, copy->depth, copy->to_pitch, copy->height, copy->width);
    size_t from = span(copy->from_slice, copy->depth, copy->from_pitch, copy->height, copy->width);
    if (to == SIZE_MAX || from == SIZE_MAX || !reaches(copy->to, to) || !reaches(copy->from, from))
        return hipErrorInvalidValue;
    *operation = (struct operation){OPERATION_COPY, .copy = *copy};
    operation->copy.pageable = is_pageable(copy->to) || is_pageable(copy->from);
    return hipSuccess;
}

hipError_t array_holds(const struct array *array, struct position at, struct extent extent)
{
    struct extent whole = array_extent(array);
    bool inside = is_within(at.x, extent.width, whole.width) && is_within(at.y, extent.height, whole.height) &&
                  is_within(at.z, extent.depth, whole.depth);
    return inside ? hipSuccess : hipErrorInvalidValue;
}

static hipError_t find_in_array(const struct place *place, const struct extent *extent, struct spot *spot)
{
    const struct array *array = place->array;
    if (!handle_is(array, HANDLE_ARRAY))
        return hipErrorInvalidValue;
    hipError_t error = array_holds(array, place->at, *extent);
    if (error)
        return error;
    struct extent whole = array_extent(array);
    *spot = (struct spot){array->data, 0, whole.width, whole.width * whole.height};
    spot->offset = place->at.z * spot->slice + place->at.y * spot->pitch + place->at.x;
    return hipSuccess;
}

static hipError_t find_in_memory(const struct place *place, const struct extent *extent, struct spot *spot)
{
    const struct position *at = &place->at;
    size_t pitch = place->pitch ? place->pitch : extent->width, height = place->height ? place->height : extent->height;
    size_t slice, slices, rows, offset, bytes;
    bool fits = (!place->pitch || is_within(at->x, extent->width, pitch)) &&
                (!place->height || is_within(at->y, extent->height, height));
    if (!fits || __builtin_mul_overflow(pitch, height, &slice) || __builtin_mul_overflow(slice, at->z, &slices) ||
        __builtin_mul_overflow(pitch, at->y, &rows) || __builtin_add_overflow(slices, rows, &offset) ||
        __builtin_add_overflow(offset, at->x, &offset))
        return hipErrorInvalidValue;
    size_t all = span(slice, extent->depth, pitch, extent->height, extent->width);
    if (__builtin_add_overflow(offset, all, &bytes) || all == SIZE_MAX || !reaches(place->address, bytes) ||
        (place->known && is_pageable(place->address)))
        return hipErrorInvalidValue;
    *spot = (struct spot){place->address, offset, pitch, slice};
    return hipSuccess;
}

static hipError_t find(const struct place *place, const struct extent *extent, struct spot *spot)
{
    return place->array ? find_in_array(place, extent, spot) : find_in_memory(place, extent, spot);
}

hipError_t box_prepare(const struct box *box, struct operation *operation)
{
    const struct extent *extent = &box->extent;
    struct spot to, from;
    *operation = (struct operation){.kind = OPERATION_NOTHING};
    if (is_empty(extent))
        return hipSuccess;
    hipError_t error = find(&box->from, extent, &from);
    if (!error)
        error = find(&box->to, extent, &to);
    if (error)
        return error;
    *operation = (struct operation){OPERATION_COPY, .copy = {
        .to = to.base + to.offset, .from = from.base + from.offset, .to_pitch = to.pitch, .from_pitch = from.pitch,
        .to_slice = to.slice, .from_slice = from.slice, .width = extent->width, .height = extent->height,
        .depth = extent->depth, .pageable = is_pageable(to.base) || is_pageable(from.base)}};
    return hipSuccess;
}

/* An operation's fields as hipMemcpy3D's parameters: x and width are in elements where an array takes part. */

static void describe_place(const void *address, size_t pitch, size_t slice, size_t width, array_t *array,
                           struct position *at, struct pitched *memory)
{
    *array = array_at(address);
    if (*array) {
        struct extent whole = array_extent(*array);
        size_t offset = (size_t)((const char *)address - (const char *)(*array)->data), row = offset / whole.width;
        *at = (struct position){offset % whole.width / (*array)->element_bytes, row % whole.height, row / whole.height};
        *memory = (struct pitched){NULL, 0, 0, 0};
    } else {
        *at = (struct position){0, 0, 0};
        *memory = (struct pitched){(void *)address, pitch, width, pitch ? slice / pitch : 0};
    }
}

void copy3d_describe(const struct transfer *copy, struct copy3d *all)
{
    array_t to, from;
    *all = (struct copy3d){.extent = {copy->width, copy->height, copy->depth}};
    describe_place(copy->to, copy->to_pitch, copy->to_slice, copy->width, &to, &all->to_at, &all->to);
    describe_place(copy->from, copy->from_pitch, copy->from_slice, copy->width, &from, &all->from_at, &all->from);
    all->to_array = to;
    all->from_array = from;
    if (to || from)
        all->extent.width /= (to ? to : from)->element_bytes;
    bool device_to = is_on_device(copy->to), device_from = is_on_device(copy->from);
    all->kind = device_from ? device_to ? COPY_ON_DEVICE : COPY_TO_HOST : device_to ? COPY_TO_DEVICE : COPY_HOST_TO_HOST;
}
