/* Variables of the tool that are as large as a launch: memory from before it until its values were sent. So has the table
 * of what a launch may access.
 *
 * The worker says how much. It comes from pools of the tool's own, in the order of the stream, so that nothing else waits for
 * it and the program's pools are as it knows them. HIP 5 has pools in which threads get stuck (5.2.3): there it is the
 * device's, and giving it back waits for the device. In the copy stands a cell with the memory's address, which is set in
 * the order of the stream. One launch of a copy is under way at a time, since each is waited for.
 */
#include "preloaded.h"

#include <stdlib.h>
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

static bool allocate(struct tool_variable *variable, size_t bytes, int device, stream_t stream)
{
    int mode = capture_relax(), current = device;
    struct pool *pool = pool_of(device);
    variable->ordered = pool && REAL(hipMallocFromPoolAsync)(&variable->memory, bytes, pool, stream) == hipSuccess;
    bool good = variable->ordered;
    if (!pool) {
        REAL(hipGetDevice)(&current);
        REAL(hipSetDevice)(device);
        good = REAL(hipMalloc)(&variable->memory, bytes) == hipSuccess;
        REAL(hipSetDevice)(current);
    }
    if (!good)
        variable->memory = NULL;
    capture_restore(mode);
    return good;
}

static bool lead_there(const struct tool_variable *variable, stream_t stream)
{
    uint64_t address = (uintptr_t)variable->memory;
    char *cell = variable->address;
    return REAL(hipMemsetD32Async)(cell, (int)(uint32_t)address, 1, stream) == hipSuccess &&
           REAL(hipMemsetD32Async)(cell + 4, (int)(uint32_t)(address >> 32), 1, stream) == hipSuccess;
}

/* Memory of zeros, to which the cell leads. */
static bool place(struct tool_variable *variable, int device, stream_t stream)
{
    size_t bytes = variable->memory_bytes ? variable->memory_bytes : 1;
    return allocate(variable, bytes, device, stream) &&
           REAL(hipMemsetAsync)(variable->memory, 0, bytes, stream) == hipSuccess && lead_there(variable, stream);
}

/* The table, to which the cell leads; to nothing where there is none. */
static bool place_table(const struct copy *copy, struct tool_variable *variable, const struct told_of *launch, stream_t stream,
                        size_t *bytes)
{
    variable->table = allocations_table(copy, launch, variable->address, bytes);
    if (!variable->table)
        return lead_there(variable, stream);
    return allocate(variable, *bytes, copy->device, stream) &&
           REAL(hipMemcpyAsync)(variable->memory, variable->table, *bytes, COPY_TO_DEVICE, stream) == hipSuccess &&
           lead_there(variable, stream);
}

static bool place_all(struct copy *copy, const struct told_of *launch, const uint64_t *sizes, stream_t stream)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    bool good = true;
    for (uint32_t i = 0; good && i < copy->variable_count; i++) {
        struct tool_variable *variable = &copy->variables[i];
        size_t bytes = 0;
        if (variable->role == TABLE)
            good = place_table(copy, variable, launch, stream, &bytes);
        if (variable->role == SIZED) {
            bytes = variable->memory_bytes = *sizes++;
            good = place(variable, copy->device, stream);
        }
        if (!good && !atomic_flag_test_and_set(&said))
            say("luthier: launches run as they are, as one of kernel %s: there are no %zu bytes for what the tool keeps of it",
                copy->name, bytes);
    }
    return good;
}

bool sized_begin(struct copy *copy, const struct told_of *launch, stream_t stream)
{
    hipError_t before = REAL(hipPeekAtLastError)();
    size_t count = 0;
    for (uint32_t i = 0; i < copy->variable_count; i++)
        count += copy->variables[i].role == SIZED;
    uint64_t *sizes = calloc(count + 1, sizeof *sizes);
    bool known = sizes && (!count || clone_sizes(launch, sizes, count));
    launch_counts()->explained += !known;
    bool good = known && place_all(copy, launch, sizes, stream);
    if (!good)
        sized_end(copy, stream);
    restore_error(before);
    free(sizes);
    return good;
}

void sized_end(struct copy *copy, stream_t stream)
{
    bool ordered = false;
    int mode = capture_relax();
    for (uint32_t i = 0; i < copy->variable_count; i++) {
        struct tool_variable *variable = &copy->variables[i];
        ordered |= variable->memory && variable->ordered;
        if (variable->memory && variable->ordered)
            REAL(hipFreeAsync)(variable->memory, stream);
        else if (variable->memory)
            REAL(hipFree)(variable->memory);
        free(variable->table);
        variable->memory = variable->table = NULL;
    }
    if (ordered)
        REAL(hipMemPoolTrimTo)(pool_of(copy->device), 0); /* the program may have it now */
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
