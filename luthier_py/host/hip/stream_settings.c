/* What programs set of a stream beside its flags: compute units, and how they wait for it. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "device.h"
#include "streams.h"

enum { SYNCHRONIZATION = 3, POLICY_AUTO = 1, POLICY_BLOCKING = 4 }; /* hipStreamAttr..., hipSynchronizationPolicy */
enum { WORD_BITS = 32 };

static uint32_t words_of(int device) { return (device_facts(device)->compute_units + WORD_BITS - 1) / WORD_BITS; }

static uint32_t all_units(int device, uint32_t word)
{
    uint32_t units = device_facts(device)->compute_units - word * WORD_BITS;
    return units < WORD_BITS ? (1u << units) - 1 : UINT32_MAX;
}

/* Remembered: kernels run on all compute units. */
hipError_t hipExtStreamCreateWithCUMask(stream_t *handle, uint32_t count, const uint32_t *mask)
{
    if (!count)
        return hipErrorInvalidValue;
    uint32_t *copy = malloc(count * sizeof *copy);
    if (!copy)
        return hipErrorOutOfMemory;
    memcpy(copy, mask, count * sizeof *copy);
    hipError_t error = hipStreamCreate(handle);
    if (error) {
        free(copy);
        return error;
    }
    (*handle)->mask = copy;
    (*handle)->mask_words = count;
    return hipSuccess;
}

/* One without a unit that there is means all of them. */
static bool names_units(const struct stream *stream)
{
    for (uint32_t i = 0; i < stream->mask_words && i < words_of(stream->device); i++)
        if (stream->mask[i] & all_units(stream->device, i))
            return true;
    return false;
}

hipError_t hipExtStreamGetCUMask(stream_t handle, uint32_t count, uint32_t *mask)
{
    const struct stream *stream = stream_of(handle);
    uint32_t words = words_of(stream->device);
    if (count < words)
        return hipErrorInvalidValue;
    bool own = names_units(stream);
    for (uint32_t i = 0; i < words; i++)
        mask[i] = all_units(stream->device, i) & (!own ? UINT32_MAX : i < stream->mask_words ? stream->mask[i] : 0);
    return hipSuccess;
}

/* AMD's runtime has this attribute alone. The handle is not checked yet: its error is another one here. */
static hipError_t check(const struct stream *handle, int attribute)
{
    const struct stream *stream = stream_of((stream_t)handle);
    if (!stream)
        return hipErrorInvalidHandle;
    if (stream->capture)
        return hipErrorStreamCaptureUnsupported;
    return attribute == SYNCHRONIZATION ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipStreamSetAttribute(struct stream *handle, int attribute, const int *value)
{
    hipError_t error = check(handle, attribute);
    if (error)
        return error;
    if (!between(*value, POLICY_AUTO, POLICY_BLOCKING))
        return hipErrorInvalidValue;
    stream_of(handle)->policy = *value;
    return hipSuccess;
}

hipError_t hipStreamGetAttribute(struct stream *handle, int attribute, int *value)
{
    hipError_t error = check(handle, attribute);
    if (error)
        return error;
    int policy = stream_of(handle)->policy;
    *value = policy ? policy : POLICY_AUTO;
    return hipSuccess;
}
