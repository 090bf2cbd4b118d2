/* Copies and fills as they are checked.
 *
 * Copies between addresses: lines, boxes, variables. A kind that calls a side the device's requires memory there that
 * HIP tracks; of a line one side is enough. Else the addresses alone say what is copied.
 */
#include "checks.h"
#include "memory.h"
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

/* Copies as the driver's interface says them, where each side has a type, whatever the ABI. */

enum { /* hipMemoryType */
    TYPE_HOST = ABI_MAJOR > 5 ? 1 : 0, TYPE_DEVICE = ABI_MAJOR > 5 ? 2 : 1, TYPE_MANAGED = ABI_MAJOR > 5 ? 3 : -1,
    TYPE_ARRAY = ABI_MAJOR > 5 ? 10 : 2, TYPE_UNIFIED = ABI_MAJOR > 5 ? 11 : 3
};

/* HIP_MEMCPY3D before HIP 6. */
struct narrow_place {
    unsigned x, y, z, level; int type; void *host, *device; array_t array; unsigned pitch, height;
};
struct narrow_copy { struct narrow_place from, to; unsigned width, height, depth; };

static struct driver_place widen(const struct narrow_place *from)
{
    return (struct driver_place){from->x, from->y, from->z, from->level, from->type, from->host, from->device, from->array,
                                 from->pitch, from->height};
}

void driver_copy_read(const void *given, struct driver_copy *copy)
{
    const struct narrow_copy *narrow = given;
    if (ABI_MAJOR > 5)
        *copy = *(const struct driver_copy *)given;
    else
        *copy = (struct driver_copy){widen(&narrow->from), widen(&narrow->to), narrow->width, narrow->height, narrow->depth};
}

static bool read_driver_place(const struct driver_place *from, struct place *place)
{
    *place = (struct place){.pitch = from->pitch, .height = from->height, .at = {from->x, from->y, from->z}};
    switch (from->type) {
    case TYPE_HOST: place->address = from->host; break;
    case TYPE_DEVICE:
    case TYPE_MANAGED: place->address = from->device, place->known = true; break;
    case TYPE_UNIFIED: place->address = from->device; break;
    case TYPE_ARRAY: place->array = from->array; break;
    default: return false;
    }
    return place->address || place->array;
}

static bool is_empty(const struct driver_copy *copy) { return !copy->width || !copy->height || !copy->depth; }

hipError_t driver_copy_prepare(const struct driver_copy *copy, struct operation *operation)
{
    struct box box = {.extent = {copy->width, copy->height, copy->depth}};
    if (!is_empty(copy) && !(read_driver_place(&copy->from, &box.from) && read_driver_place(&copy->to, &box.to)))
        return hipErrorInvalidValue;
    return box_prepare(&box, operation);
}

/* Fills: `count` elements of 1, 2 or 4 bytes in each row, of memory that HIP tracks. */

/* Bytes that a fill spans; 0 where its numbers make no sense. */
static size_t span(const struct fill *fill)
{
    size_t row, rows, slices, both, all;
    if (__builtin_mul_overflow(fill->count, (size_t)fill->element, &row) ||
        __builtin_mul_overflow(fill->pitch, fill->height - 1, &rows) ||
        __builtin_mul_overflow(fill->slice, fill->depth - 1, &slices) || __builtin_add_overflow(rows, slices, &both) ||
        __builtin_add_overflow(both, row, &all))
        return 0;
    return (fill->height > 1 || fill->depth > 1) && row > fill->pitch ? 0 : all;
}

hipError_t fill_prepare(const struct fill *fill, struct operation *operation)
{
    *operation = (struct operation){.kind = OPERATION_NOTHING};
    if (!fill->count || !fill->height || !fill->depth)
        return hipSuccess;
    size_t bytes = span(fill);
    if (!bytes || !memory_known(fill->to, bytes) || (uintptr_t)fill->to % fill->element)
        return hipErrorInvalidValue;
    *operation = (struct operation){OPERATION_FILL, .fill = *fill};
    return hipSuccess;
}
