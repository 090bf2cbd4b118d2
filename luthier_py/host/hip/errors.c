/* The names of errors, and what is left of functions that are not there. */
#include <stddef.h>

#include "luthier.h"

static const struct named { hipError_t value; const char *name, *text; } ERRORS[] = {
#define ERROR(value, name, text) {name, #name, text},
    ALL_ERRORS(ERROR)
#undef ERROR
};

static const struct named *find(hipError_t error)
{
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].value == error)
            return &ERRORS[i];
    return NULL;
}

const char *hipGetErrorName(hipError_t error) { return find(error) ? find(error)->name : "hipErrorUnknown"; }
const char *hipGetErrorString(hipError_t error) { return find(error) ? find(error)->text : "unknown error"; }

hipError_t hipDrvGetErrorName(hipError_t error, const char **name)
{
    *name = find(error) ? find(error)->name : NULL;
    return *name ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipDrvGetErrorString(hipError_t error, const char **text)
{
    *text = find(error) ? find(error)->text : NULL;
    return *text ? hipSuccess : hipErrorInvalidValue;
}

/* Said once for each function, by the stubs of what is not implemented. */
hipError_t not_supported(const char *name, atomic_flag *said)
{
    if (!atomic_flag_test_and_set(said))
        say("luthier: %s is not supported by the emulator's HIP runtime", name);
    return hipErrorNotSupported;
}

