/* The names of errors, and what is an error because this runtime does not have it. */
#include <stddef.h>

#include "checks.h"

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

/* Textures and surfaces: kernels read and write them by image instructions. CDNA's devices have none, and the emulator has none
 * for other targets either. So what makes or asks for one is refused by a check (`images` in functions.txt), and arrays with
 * levels, which nothing else could use, too. The attributes of devices say the same (host/worker/device/properties.py).
 */

hipError_t check_images(void) { return hipErrorNotSupported; }

hipError_t hipDestroyTextureObject(void *texture) { return texture ? check_images() : hipSuccess; }

/* Memory and semaphores of other interfaces: there are none here, so none can be imported and no handle is one. */

hipError_t hipImportExternalMemory(void **memory, const void *desc) { return (void)memory, (void)desc, hipErrorNotSupported; }
hipError_t hipDestroyExternalMemory(void *memory) { return (void)memory, hipErrorInvalidValue; }

hipError_t hipExternalMemoryGetMappedBuffer(void **address, void *memory, const void *desc)
{
    return (void)address, (void)memory, (void)desc, hipErrorInvalidValue;
}

hipError_t hipImportExternalSemaphore(void **semaphore, const void *desc)
{
    return (void)semaphore, (void)desc, hipErrorNotSupported;
}

hipError_t hipDestroyExternalSemaphore(void *semaphore) { return (void)semaphore, hipErrorInvalidValue; }

hipError_t hipSignalExternalSemaphoresAsync(void *const *semaphores, const void *params, unsigned count, stream_t stream)
{
    return (void)semaphores, (void)params, (void)count, (void)stream, hipErrorInvalidValue;
}

hipError_t hipWaitExternalSemaphoresAsync(void *const *semaphores, const void *params, unsigned count, stream_t stream)
{
    return hipSignalExternalSemaphoresAsync(semaphores, params, count, stream);
}
