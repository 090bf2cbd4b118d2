/* Memory of launches (tool/launch_memory.c), from before one until its values were sent.
 *
 * It is allocated from the tool's pools, in the order of the stream, so that nothing else waits for it and the
 * program's pools do not change. In pools of HIP 5 threads get stuck (5.2.3): there it is the device's, and freeing it
 * waits for the device.
 */
#include "preloaded.h"

#include <string.h>

enum { DEVICES = 64, PINNED = 1, ON_DEVICE = 1 };
struct pool_settings { int allocation_type, handle_types, location_type, device; void *security; size_t most; char reserved[56]; };
static struct pool *pools[DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these */

static bool pools_are_good(void)
{
    int version = 0;
    return real_function("hipMallocFromPoolAsync") && REAL(hipRuntimeGetVersion)(&version) == hipSuccess && version >= 60000000;
}

/* The device's; NULL: there is none. */
static struct pool *pool_of(int device)
{
    struct pool_settings settings = {.allocation_type = PINNED, .location_type = ON_DEVICE, .device = device};
    bool known = device >= 0 && device < DEVICES && pools_are_good();
    pthread_mutex_lock(&lock);
    if (known && !pools[device] && REAL(hipMemPoolCreate)(&pools[device], (const void *)&settings) != hipSuccess)
        pools[device] = NULL;
    struct pool *pool = known ? pools[device] : NULL;
    pthread_mutex_unlock(&lock);
    return pool;
}

static bool give_memory(struct launch_memory *memory, size_t bytes, int device, stream_t stream)
{
    int current = device;
    struct pool *pool = pool_of(device);
    memory->ordered = pool != NULL;
    if (pool)
        return REAL(hipMallocFromPoolAsync)(&memory->at, bytes, pool, stream) == hipSuccess;
    REAL(hipGetDevice)(&current);
    REAL(hipSetDevice)(device);
    bool good = REAL(hipMalloc)(&memory->at, bytes) == hipSuccess;
    REAL(hipSetDevice)(current);
    return good;
}

bool sized_allocate(struct launch_memory *memory, int device, void *stream)
{
    hipError_t before = REAL(hipPeekAtLastError)();
    size_t bytes = memory->bytes ? memory->bytes : 1;
    int mode = capture_relax();
    bool good = give_memory(memory, bytes, device, stream);
    capture_restore(mode);
    if (!good)
        memory->at = NULL;
    else if (memory->content)
        good = REAL(hipMemcpyAsync)(memory->at, memory->content, bytes, COPY_TO_DEVICE, stream) == hipSuccess;
    else
        good = REAL(hipMemsetAsync)(memory->at, 0, bytes, stream) == hipSuccess;
    restore_error(before);
    return good;
}

void sized_release(struct launch_memory *memory, int device, void *stream)
{
    int mode = capture_relax();
    if (memory->ordered) {
        REAL(hipFreeAsync)(memory->at, stream);
        REAL(hipMemPoolTrimTo)(pool_of(device), 0); /* the program may have it now */
    } else
        REAL(hipFree)(memory->at);
    capture_restore(mode);
}

void sized_drop(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < DEVICES; i++)
        if (pools[i])
            REAL(hipMemPoolDestroy)(pools[i]);
    memset(pools, 0, sizeof pools);
    pthread_mutex_unlock(&lock);
}
