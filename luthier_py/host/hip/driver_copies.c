/* Copies as the driver's interface says them, where each side has a type, and batches of copies. */
#include "checks.h"
#include "transfers.h"

static hipError_t perform_copy(const struct driver_copy *copy, bool wait, stream_t stream)
{
    struct operation operation;
    hipError_t error = driver_copy_prepare(copy, &operation);
    return error ? error : copy_perform(&operation, wait, stream);
}

static hipError_t boxes(const void *given, bool wait, stream_t stream)
{
    struct driver_copy copy;
    driver_copy_read(given, &copy);
    return perform_copy(&copy, wait, stream);
}

hipError_t hipDrvMemcpy3D(const void *copy) { return boxes(copy, true, NULL); }
hipError_t hipDrvMemcpy3DAsync(const void *copy, stream_t stream) { return boxes(copy, false, stream); }

static hipError_t rows(const struct driver_rows *rows, bool wait, stream_t stream)
{
    struct driver_copy copy = {
        {rows->from.x, rows->from.y, 0, 0, rows->from.type, rows->from.host, rows->from.device, rows->from.array, rows->from.pitch, 0},
        {rows->to.x, rows->to.y, 0, 0, rows->to.type, rows->to.host, rows->to.device, rows->to.array, rows->to.pitch, 0},
        rows->width, rows->height, 1};
    return perform_copy(&copy, wait, stream);
}

hipError_t hipMemcpyParam2D(const struct driver_rows *copy) { return rows(copy, true, NULL); }
hipError_t hipMemcpyParam2DAsync(const struct driver_rows *copy, stream_t stream) { return rows(copy, false, stream); }
hipError_t hipDrvMemcpy2DUnaligned(const struct driver_rows *copy) { return rows(copy, true, NULL); }

/* Batches: copies in their order; the one that fails, and those after it, are not made. */

enum { NONE_FAILED = -1 };

hipError_t hipMemcpyBatchAsync(void **to, void **from, size_t *bytes, size_t count, void *attributes, size_t *places,
                               size_t attribute_count, size_t *failed, stream_t stream)
{
    (void)attributes, (void)places;
    if (!count)
        return hipErrorInvalidValue;
    if (attribute_count)
        return hipErrorNotSupported;
    *failed = (size_t)NONE_FAILED;
    for (size_t i = 0; i < count; i++) {
        hipError_t error = bytes[i] ? hipMemcpyAsync(to[i], from[i], bytes[i], COPY_DEFAULT, stream) : hipErrorInvalidValue;
        if (error) {
            *failed = i;
            return error;
        }
    }
    return hipSuccess;
}

enum { OPERAND_MEMORY = 1, OPERAND_ARRAY = 2 }; /* hipMemcpy3DOperandType */

static bool read_operand(const struct batch_place *from, size_t element_bytes, array_t *array, struct position *at,
                         struct pitched *memory)
{
    if (from->type == OPERAND_ARRAY) {
        *array = from->array.array;
        *at = from->array.at;
        return true;
    }
    memory->address = from->memory.address;
    memory->height = from->memory.layer;
    return from->type == OPERAND_MEMORY && !__builtin_mul_overflow(from->memory.row, element_bytes, &memory->pitch);
}

/* Of the array that takes part; between addresses elements are bytes. */
static size_t element_bytes(const struct batch_box *box)
{
    const struct batch_place *places[] = {&box->from, &box->to};
    for (int i = 0; i < 2; i++)
        if (places[i]->type == OPERAND_ARRAY && handle_is(places[i]->array.array, HANDLE_ARRAY))
            return places[i]->array.array->element_bytes;
    return 1;
}

static hipError_t copy_operands(const struct batch_box *box, stream_t stream)
{
    struct copy3d all = {.extent = box->extent, .kind = COPY_DEFAULT};
    array_t from = NULL, to = NULL;
    size_t bytes = element_bytes(box);
    if (!read_operand(&box->from, bytes, &from, &all.from_at, &all.from) ||
        !read_operand(&box->to, bytes, &to, &all.to_at, &all.to))
        return hipErrorInvalidValue;
    all.from_array = from;
    all.to_array = to;
    return copy3d(&all, false, stream);
}

hipError_t hipMemcpy3DBatchAsync(size_t count, const struct batch_box *boxes, size_t *failed, unsigned long long flags,
                                 stream_t stream)
{
    (void)flags;
    if (!count)
        return hipErrorInvalidValue;
    *failed = (size_t)NONE_FAILED;
    for (size_t i = 0; i < count; i++) {
        hipError_t error = copy_operands(&boxes[i], stream);
        if (error) {
            *failed = i;
            return error;
        }
    }
    return hipSuccess;
}
