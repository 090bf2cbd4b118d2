/* Memory and semaphores of other interfaces: there are none here, so none can be imported and no handle is one. */
#include "luthier.h"

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
