/* Copies between addresses as they are checked: lines, boxes, variables. A kind that calls a side the device's wants memory
 * there that HIP knows; of a line one side is enough. Else the addresses alone say what is copied.
 */
#include "transfers.h"

enum { MAX_PITCH = INT32_MAX };

bool to_device(int kind) { return kind == COPY_TO_DEVICE || kind == COPY_ON_DEVICE || kind == COPY_ON_DEVICE_NO_CU; }
bool from_device(int kind) { return kind == COPY_TO_HOST || kind == COPY_ON_DEVICE || kind == COPY_ON_DEVICE_NO_CU; }

hipError_t line_prepare(void *to, const void *from, size_t bytes, int kind, struct operation *operation)
{
    struct transfer line = {.to = to, .from = from, .to_pitch = bytes, .from_pitch = bytes, .width = bytes, .height = 1, .depth = 1};
    bool between_hosts = kind == COPY_HOST_TO_HOST || kind == COPY_DEFAULT;
    if (bytes && !between_hosts && is_pageable(to) && is_pageable(from))
        return hipErrorInvalidValue;
    return copy_prepare(&line, operation);
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
