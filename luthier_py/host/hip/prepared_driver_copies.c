/* Copies as the driver's interface says them, where each side has a type: read, whatever the ABI, and checked. */
#include "transfers.h"

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

static bool read_place(const struct driver_place *from, struct place *place)
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
    if (!is_empty(copy) && !(read_place(&copy->from, &box.from) && read_place(&copy->to, &box.to)))
        return hipErrorInvalidValue;
    return box_prepare(&box, operation);
}
