/* Fills as they are checked: `count` elements of 1, 2 or 4 bytes in each row, of memory that HIP knows. */
#include "transfers.h"

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
