/* Copies to, from and between arrays, as functions of HIP's say them: x and widths in bytes, y in rows. */
#include "checks.h"
#include "transfers.h"

enum { LINE = 1 };

/* Memory on the other side: rows with a pitch, or one line without. */
static struct place memory(const void *address, size_t pitch, bool known)
{
    return (struct place){.address = (void *)address, .pitch = pitch, .known = known};
}

static struct place elements(const struct array *array, size_t x, size_t y)
{
    return (struct place){.array = (array_t)array, .at = {x, y, 0}};
}

/* Rows: what makes no sense is refused also where nothing is copied. */

static hipError_t check_rows(const struct array *array, size_t x, size_t y, const void *address, size_t pitch, size_t width,
                             size_t height)
{
    if (!address)
        return hipErrorInvalidValue;
    if (!pitch || pitch < width)
        return hipErrorInvalidPitchValue;
    return array_holds(array, (struct position){x, y, 0}, (struct extent){width, height, 1});
}

static hipError_t rows_to(const struct array *to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                          size_t height, int kind, bool wait, stream_t stream)
{
    hipError_t error = check_rows(to, x, y, from, pitch, width, height);
    struct box box = {elements(to, x, y), memory(from, pitch, from_device(kind)), {width, height, 1}};
    return error ? error : box_copy(&box, wait, stream);
}

static hipError_t rows_from(void *to, size_t pitch, const struct array *from, size_t x, size_t y, size_t width, size_t height,
                            int kind, bool wait, stream_t stream)
{
    hipError_t error = check_rows(from, x, y, to, pitch, width, height);
    struct box box = {memory(to, pitch, to_device(kind)), elements(from, x, y), {width, height, 1}};
    return error ? error : box_copy(&box, wait, stream);
}

hipError_t hipMemcpy2DToArray(array_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, int kind)
{
    return rows_to(to, x, y, from, pitch, width, height, kind, true, NULL);
}

hipError_t hipMemcpy2DToArrayAsync(array_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                                   int kind, stream_t stream)
{
    return rows_to(to, x, y, from, pitch, width, height, kind, false, stream);
}

hipError_t hipMemcpy2DFromArray(void *to, size_t pitch, array_t from, size_t x, size_t y, size_t width, size_t height, int kind)
{
    return rows_from(to, pitch, from, x, y, width, height, kind, true, NULL);
}

hipError_t hipMemcpy2DFromArrayAsync(void *to, size_t pitch, array_t from, size_t x, size_t y, size_t width, size_t height,
                                     int kind, stream_t stream)
{
    return rows_from(to, pitch, from, x, y, width, height, kind, false, stream);
}

hipError_t hipMemcpy2DArrayToArray(array_t to, size_t to_x, size_t to_y, array_t from, size_t from_x, size_t from_y,
                                   size_t width, size_t height, int kind)
{
    struct box box = {elements(to, to_x, to_y), elements(from, from_x, from_y), {width, height, 1}};
    (void)kind;
    hipError_t error = array_holds(from, box.from.at, box.extent);
    if (!error)
        error = array_holds(to, box.to.at, box.extent);
    return error ? error : box_copy(&box, true, NULL);
}

/* Lines in the first row. */

static hipError_t line(struct place to, struct place from, size_t bytes, bool wait, stream_t stream)
{
    return box_copy(&(struct box){to, from, {bytes, LINE, LINE}}, wait, stream);
}

hipError_t hipMemcpyAtoH(void *to, struct array *from, size_t x, size_t bytes)
{
    return line(memory(to, 0, false), elements(from, x, 0), bytes, true, NULL);
}

hipError_t hipMemcpyAtoHAsync(void *to, struct array *from, size_t x, size_t bytes, stream_t stream)
{
    return line(memory(to, 0, false), elements(from, x, 0), bytes, false, stream);
}

hipError_t hipMemcpyHtoA(struct array *to, size_t x, const void *from, size_t bytes)
{
    return line(elements(to, x, 0), memory(from, 0, false), bytes, true, NULL);
}

hipError_t hipMemcpyHtoAAsync(struct array *to, size_t x, const void *from, size_t bytes, stream_t stream)
{
    return line(elements(to, x, 0), memory(from, 0, false), bytes, false, stream);
}

hipError_t hipMemcpyAtoD(void *to, struct array *from, size_t x, size_t bytes)
{
    return line(memory(to, 0, true), elements(from, x, 0), bytes, true, NULL);
}

hipError_t hipMemcpyDtoA(struct array *to, size_t x, void *from, size_t bytes)
{
    return line(elements(to, x, 0), memory(from, 0, true), bytes, true, NULL);
}

hipError_t hipMemcpyAtoA(struct array *to, size_t to_x, struct array *from, size_t from_x, size_t bytes)
{
    return line(elements(to, to_x, 0), elements(from, from_x, 0), bytes, true, NULL);
}

/* Bytes from an element on, over the ends of rows. */

static hipError_t find_run(const struct array *array, size_t x, size_t y, size_t bytes, char **begin)
{
    if (!handle_is(array, HANDLE_ARRAY))
        return hipErrorInvalidValue;
    struct extent whole = array_extent(array);
    if (array_holds(array, (struct position){x, y, 0}, (struct extent){bytes != 0, bytes != 0, 1}))
        return hipErrorInvalidValue;
    *begin = (char *)array->data + y * whole.width + x;
    return bytes <= (whole.height - y) * whole.width - x ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipMemcpyToArray(struct array *to, size_t x, size_t y, const void *from, size_t bytes, int kind)
{
    char *begin;
    hipError_t error = from_device(kind) && is_pageable(from) ? hipErrorInvalidValue : find_run(to, x, y, bytes, &begin);
    return error ? error : hipMemcpy(begin, from, bytes, COPY_DEFAULT);
}

hipError_t hipMemcpyFromArray(void *to, const struct array *from, size_t x, size_t y, size_t bytes, int kind)
{
    char *begin;
    hipError_t error = to_device(kind) && is_pageable(to) ? hipErrorInvalidValue : find_run(from, x, y, bytes, &begin);
    return error ? error : hipMemcpy(to, begin, bytes, COPY_DEFAULT);
}
