/* Arrays: memory of the device in one, two or three dimensions, which programs see through copies alone.
 *
 * HIP has them for textures. No device here has images, but an array is memory, and copies to and from arrays are copies; so
 * they are there. What they may be like is what AMD's runtime accepts where there are images.
 */
#include <stdlib.h>

#include "checks.h"
#include "memory.h"
#include "transfers.h"

enum { SIGNED, UNSIGNED, FLOATING }; /* hipChannelFormatKind */
enum { LAYERED = 1, SURFACE = 2, GATHER = 8 };
/* Limits of ROCclr for devices with images (device/rocm/rocdevice.cpp, NullDevice). */
enum { MAX_SIDE = 16384, MAX_SIDE_3D = 2048, MAX_LAYERS = 2048 };

/* hipArray_Format, and the channels that it means. */
static const struct format { int format, bits, kind; } FORMATS[] = {
    {0x01, 8, UNSIGNED}, {0x02, 16, UNSIGNED}, {0x03, 32, UNSIGNED}, {0x08, 8, SIGNED},
    {0x09, 16, SIGNED}, {0x0a, 32, SIGNED}, {0x10, 16, FLOATING}, {0x20, 32, FLOATING},
};
enum { FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS };

static struct array *arrays; /* all there are */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void arrays_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    arrays = NULL;
}

static void enter(struct array *array)
{
    pthread_mutex_lock(&lock);
    array->next = arrays;
    arrays = array;
    pthread_mutex_unlock(&lock);
}

static void leave(const struct array *array)
{
    pthread_mutex_lock(&lock);
    for (struct array **place = &arrays; *place; place = &(*place)->next)
        if (*place == array) {
            *place = array->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

struct extent array_extent(const struct array *array)
{
    return (struct extent){array->width * array->element_bytes, array->height ? array->height : 1,
                           array->depth ? array->depth : 1};
}

static size_t size_of(const struct array *array)
{
    struct extent extent = array_extent(array);
    return extent.width * extent.height * extent.depth;
}

struct array *array_at(const void *address)
{
    pthread_mutex_lock(&lock);
    struct array *found = arrays;
    while (found && (uintptr_t)address - (uintptr_t)found->data >= size_of(found))
        found = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Formats. */

struct channel_desc hipCreateChannelDesc(int x, int y, int z, int w, int kind)
{
    return (struct channel_desc){x, y, z, w, kind};
}

static const struct format *find_format(int number)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (FORMATS[i].format == number)
            return &FORMATS[i];
    return NULL;
}

/* The format of channels that are all alike, in the first places; their number, or 0. */
static unsigned channels_of(const struct channel_desc *desc, int *format)
{
    const int bits[] = {desc->x, desc->y, desc->z, desc->w};
    unsigned count = 0;
    while (count < 4 && bits[count] && bits[count] == bits[0])
        count++;
    for (unsigned i = count; i < 4; i++)
        if (bits[i])
            return 0;
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (FORMATS[i].bits == bits[0] && FORMATS[i].kind == desc->kind) {
            *format = FORMATS[i].format;
            return count;
        }
    return 0;
}

static struct channel_desc desc_of(const struct format *format, unsigned channels)
{
    int bits = format->bits;
    return (struct channel_desc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 2 ? bits : 0, format->kind};
}

/* Making and freeing. */

static bool is_shape(const struct array3d_desc *desc)
{
    bool layered = desc->flags & LAYERED, box = desc->depth && !layered;
    size_t side = box ? MAX_SIDE_3D : MAX_SIDE;
    bool whole = desc->width && (layered ? desc->depth != 0 : desc->height || !desc->depth);
    bool gathers = !(desc->flags & GATHER) || (desc->height && !desc->depth);
    return whole && gathers && desc->width <= side && desc->height <= side &&
           desc->depth <= (box ? (size_t)MAX_SIDE_3D : (size_t)MAX_LAYERS);
}

static hipError_t create(array_t *result, const struct array3d_desc *desc)
{
    const struct format *format = find_format(desc->format);
    bool good = format && (desc->channels == 1 || desc->channels == 2 || desc->channels == 4) &&
                !(desc->flags & ~(LAYERED | SURFACE | GATHER)) && is_shape(desc);
    if (!good)
        return hipErrorInvalidValue;
    struct array *array = malloc(sizeof *array);
    if (!array)
        return hipErrorOutOfMemory;
    *array = (struct array){
        .desc = desc_of(format, desc->channels), .width = (unsigned)desc->width, .height = (unsigned)desc->height,
        .depth = (unsigned)desc->depth, .format = desc->format, .channels = desc->channels, .flags = desc->flags,
        .element_bytes = (size_t)format->bits / 8 * desc->channels};
    hipError_t error = memory_allocate(&array->data, size_of(array), KIND_DEVICE, 0, NULL);
    if (!error && !handle_add(array, HANDLE_ARRAY)) {
        memory_release(array->data);
        error = hipErrorOutOfMemory;
    }
    if (error) {
        free(array);
        return error;
    }
    enter(array);
    *result = array;
    return hipSuccess;
}

hipError_t hipArray3DCreate(array_t *array, const struct array3d_desc *desc) { return create(array, desc); }

hipError_t hipArrayCreate(array_t *array, const struct array_desc *desc)
{
    return create(array, &(struct array3d_desc){desc->width, desc->height, 0, desc->format, desc->channels, 0});
}

hipError_t hipMalloc3DArray(array_t *array, const struct channel_desc *desc, struct extent extent, unsigned flags)
{
    struct array3d_desc all = {extent.width, extent.height, extent.depth, 0, 0, flags};
    all.channels = channels_of(desc, &all.format);
    return all.channels ? create(array, &all) : hipErrorInvalidValue;
}

hipError_t hipMallocArray(array_t *array, const struct channel_desc *desc, size_t width, size_t height, unsigned flags)
{
    return hipMalloc3DArray(array, desc, (struct extent){width, height, 0}, flags);
}

hipError_t hipFreeArray(struct array *array)
{
    if (!handle_remove(array, HANDLE_ARRAY))
        return hipErrorContextIsDestroyed;
    leave(array);
    hipError_t error = memory_free(array->data);
    free(array);
    return error;
}

/* Questions. */

hipError_t hipGetChannelDesc(struct channel_desc *desc, array_t array)
{
    *desc = array->desc;
    return hipSuccess;
}

hipError_t hipArrayGetInfo(struct channel_desc *desc, struct extent *extent, unsigned *flags, array_t array)
{
    if (desc)
        *desc = array->desc;
    if (extent)
        *extent = (struct extent){array->width, array->height, array->depth};
    if (flags)
        *flags = array->flags;
    return hipSuccess;
}

hipError_t hipArrayGetDescriptor(struct array_desc *desc, array_t array)
{
    *desc = (struct array_desc){array->width, array->height, array->format, array->channels};
    return hipSuccess;
}

hipError_t hipArray3DGetDescriptor(struct array3d_desc *desc, array_t array)
{
    *desc = (struct array3d_desc){array->width, array->height, array->depth, array->format, array->channels, array->flags};
    return hipSuccess;
}
