/* What memory of the program kernels may access, for tools that ask for it (luthier_py/rewrite/tool/arguments/allocations.py).
 *
 * Each call that allocates or frees memory comes here first, from the program's start on. Memory allocated while a
 * stream is captured, or by a graph, stays listed: no call reports its use. A tool attached later saw no allocations,
 * and with XNACK kernels may access all of the program's memory: then there is no table. Before a launch the worker
 * makes the table of what is live and of the code object; it stays the launch's until that was waited for.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preloaded.h"

enum { FREED = 256, CALLERS = 4, FRAMES = 8 }; /* that are remembered; with our own */
struct given { uint64_t start, end; unsigned long call; const char *function; const void *callers[CALLERS]; };

static struct given *live, freed[FREED]; /* by address; in a ring */
static size_t count, room;
static unsigned long calls, frees;
static atomic_bool missed;
static struct managed { void **pointer; size_t bytes; } *managed; /* variables, which get their memory later */
static size_t managed_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all of these */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

/* Contents of new memory for a tool that detects unwritten memory: in each dword a number made of its address
 * (luthier_py/rewrite/tool/arguments/allocations.py), which hooks recognize. Any write, by kernel, copy or host,
 * replaces it.
 */
enum { AT_ONCE = 1 << 20 }; /* dwords */
#define MOST_BYTES ((size_t)1 << 32) /* all of it would have to exist */

static void mark_memory(void *address, size_t bytes)
{
    if (!address || bytes > MOST_BYTES || !tool_named() || !tool_on() || !settings.marks_memory)
        return;
    hipError_t before = REAL(hipPeekAtLastError)();
    size_t dwords = bytes / 4, most = dwords < AT_ONCE ? dwords : AT_ONCE;
    uint32_t *marks = malloc(4 * most + 1);
    for (size_t first = 0; marks && first < dwords; first += most) {
        size_t some = dwords - first < most ? dwords - first : most;
        uint64_t number = (uintptr_t)address / 4 + first;
        for (size_t i = 0; i < some; i++)
            marks[i] = (uint32_t)((number + i) * 0x9E3779B97F4A7C15u >> 32);
        tool_copies((char *)address + 4 * first, marks, 4 * some, COPY_TO_DEVICE);
    }
    free(marks);
    restore_error(before);
}

void allocations_missed(void) { missed = true; }

/* The first that ends behind an address. */
static size_t place_of(uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (live[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_rows(size_t first, size_t rows)
{
    for (size_t i = first; i < first + rows; i++)
        freed[frees++ % FREED] = live[i];
    memmove(live + first, live + first + rows, (count - first - rows) * sizeof *live);
    count -= rows;
}

/* Rows of earlier memory there are removed: it was freed. */
static void add(struct given row)
{
    size_t at = place_of(row.start), rows = 0;
    while (at + rows < count && live[at + rows].start < row.end)
        rows++;
    remove_rows(at, rows);
    if (count == room) {
        struct given *more = realloc(live, (room ? 2 * room : 256) * sizeof *live);
        missed |= more == NULL;
        if (!more)
            return;
        live = more;
        room = room ? 2 * room : 256;
    }
    memmove(live + at + 1, live + at, (count - at) * sizeof *live);
    live[at] = row;
    count++;
}

/* The call's own caller and theirs: in code that is not optimised that is a function of HIP's headers. */
static void find_callers(struct given *row, void *caller)
{
    void *frames[FRAMES];
    int found = backtrace(frames, FRAMES), first = 0;
    row->callers[0] = caller;
    while (first < found && frames[first] != caller)
        first++;
    for (int i = 1; i < CALLERS && first + i < found; i++)
        row->callers[i] = frames[first + i];
}

/* The call's result, once its memory is known. */
static hipError_t gave(hipError_t error, const void *address, size_t bytes, const char *function, void *caller)
{
    if (error || !address || !bytes)
        return error;
    struct given row = {.start = (uintptr_t)address, .end = (uintptr_t)address + bytes, .function = function};
    find_callers(&row, caller);
    pthread_mutex_lock(&lock);
    row.call = ++calls;
    add(row);
    pthread_mutex_unlock(&lock);
    return error;
}

void allocations_managed(void **pointer, size_t bytes)
{
    pthread_mutex_lock(&lock);
    struct managed *more = realloc(managed, (managed_count + 1) * sizeof *more);
    missed |= more == NULL;
    if (more) {
        managed = more;
        managed[managed_count++] = (struct managed){pointer, bytes};
    }
    pthread_mutex_unlock(&lock);
}

static void add_managed(void)
{
    for (size_t i = 0; i < managed_count; i++) {
        uint64_t start = (uintptr_t)*managed[i].pointer;
        size_t at = place_of(start);
        if (start && (at == count || live[at].start != start))
            add((struct given){start, start + managed[i].bytes, ++calls, "__managed__", {NULL}});
    }
}

/* Before memory is freed: afterwards another thread may get it at once. Its row; from 0 on: none is known. */
static struct given takes(const void *address)
{
    struct given taken = {0};
    pthread_mutex_lock(&lock);
    size_t at = place_of((uintptr_t)address);
    if (address && at < count && live[at].start == (uintptr_t)address) {
        taken = live[at];
        remove_rows(at, 1);
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

/* The runtime keeps what it fails to take. */
static hipError_t took(hipError_t error, struct given taken)
{
    if (error && taken.start) {
        pthread_mutex_lock(&lock);
        add(taken);
        pthread_mutex_unlock(&lock);
    }
    return error;
}

/* `bytes` may ask what the call has written, so it is looked at behind success alone; `then` is done with the memory. */
#define GIVES_AND(name, declared, passed, bytes, then)                                                          \
    hipError_t name declared                                                                                    \
    {                                                                                                           \
        hipError_t error = REAL(name) passed;                                                                   \
        if (error)                                                                                              \
            return error;                                                                                       \
        then;                                                                                                   \
        return gave(error, *address, bytes, #name, __builtin_return_address(0));                                \
    }
#define GIVES(name, declared, passed, bytes) GIVES_AND(name, declared, passed, bytes, (void)0)
#define GIVES_MARKED(name, declared, passed, bytes) GIVES_AND(name, declared, passed, bytes, mark_memory(*address, bytes))
#define TAKES(name, declared, passed)                                                                 \
    hipError_t name declared                                                                          \
    {                                                                                                 \
        struct given taken = takes(address);                                                          \
        return took(REAL(name) passed, taken);                                                        \
    }

GIVES_MARKED(hipMalloc, (void **address, size_t bytes), (address, bytes), bytes)
GIVES_MARKED(hipExtMallocWithFlags, (void **address, size_t bytes, unsigned flags), (address, bytes, flags), bytes)
GIVES(hipMallocManaged, (void **address, size_t bytes, unsigned flags), (address, bytes, flags), bytes)
GIVES_MARKED(hipMallocPitch, (void **address, size_t *pitch, size_t width, size_t height), (address, pitch, width, height), *pitch * height)
GIVES_MARKED(hipMemAllocPitch, (void **address, size_t *pitch, size_t width, size_t height, unsigned element),
      (address, pitch, width, height, element), *pitch * height)
GIVES(hipHostMalloc, (void **address, size_t bytes, unsigned flags), (address, bytes, flags), bytes)
GIVES(hipHostAlloc, (void **address, size_t bytes, unsigned flags), (address, bytes, flags), bytes)
GIVES(hipMallocHost, (void **address, size_t bytes), (address, bytes), bytes)
GIVES(hipMallocAsync, (void **address, size_t bytes, stream_t stream), (address, bytes, stream), bytes)
GIVES(hipMallocFromPoolAsync, (void **address, size_t bytes, struct pool *pool, stream_t stream), (address, bytes, pool, stream), bytes)
TAKES(hipFree, (void *address), (address))
TAKES(hipHostFree, (void *address), (address))
TAKES(hipMemUnmap, (void *address, size_t bytes), (address, bytes))
TAKES(hipIpcCloseMemHandle, (void *address), (address))

hipError_t hipFreeAsync(void *address, stream_t stream)
{
    struct given taken = capturing(stream) ? (struct given){0} : takes(address);
    return took(REAL(hipFreeAsync)(address, stream), taken);
}

hipError_t hipMalloc3D(struct pitched *pitched, struct extent extent)
{
    hipError_t error = REAL(hipMalloc3D)(pitched, extent);
    return error ? error : gave(error, pitched->address, pitched->pitch * extent.height * extent.depth, "hipMalloc3D", __builtin_return_address(0));
}

/* Where kernels meet memory of the host's. */
static void *on_device(void *address)
{
    hipError_t before = REAL(hipPeekAtLastError)();
    void *there = NULL;
    if (REAL(hipHostGetDevicePointer)(&there, address, 0) != hipSuccess)
        there = address;
    restore_error(before);
    return there;
}

hipError_t hipHostRegister(void *address, size_t bytes, unsigned flags)
{
    hipError_t error = REAL(hipHostRegister)(address, bytes, flags);
    return error ? error : gave(error, on_device(address), bytes, "hipHostRegister", __builtin_return_address(0));
}

hipError_t hipHostUnregister(void *address)
{
    struct given taken = takes(on_device(address));
    return took(REAL(hipHostUnregister)(address), taken);
}

hipError_t hipMemMap(void *address, size_t bytes, size_t offset, backing_t backing, unsigned long long flags)
{
    return gave(REAL(hipMemMap)(address, bytes, offset, backing, flags), address, bytes, "hipMemMap", __builtin_return_address(0));
}

/* All of an allocation of which a program learns the address alone. */
static hipError_t gave_all(hipError_t error, void *const *address, const char *function, void *caller)
{
    void *base;
    size_t bytes;
    if (error || REAL(hipMemGetAddressRange)(&base, &bytes, *address))
        return error;
    return gave(error, base, bytes, function, caller);
}

hipError_t hipIpcOpenMemHandle(void **address, struct memory_handle handle, unsigned flags)
{
    return gave_all(REAL(hipIpcOpenMemHandle)(address, handle, flags), address, "hipIpcOpenMemHandle", __builtin_return_address(0));
}

hipError_t hipMemPoolImportPointer(void **address, struct pool *pool, const struct memory_handle *exported)
{
    return gave_all(REAL(hipMemPoolImportPointer)(address, pool, exported), address, "hipMemPoolImportPointer", __builtin_return_address(0));
}

hipError_t hipGraphAddMemAllocNode(struct node **node, struct graph *graph, struct node *const *before, size_t nodes,
                                   struct allocate_params *params)
{
    hipError_t error = REAL(hipGraphAddMemAllocNode)(node, graph, before, nodes, params);
    const struct { char pool[88]; const void *access; size_t accesses, bytes; void *address; } *known = (const void *)params;
    return error ? error : gave(error, known->address, known->bytes, "hipGraphAddMemAllocNode", __builtin_return_address(0));
}

/* Variables of any module, which a program may hand to kernels of another one. */

hipError_t hipGetSymbolAddress(void **address, const void *symbol)
{
    size_t bytes = 0;
    hipError_t error = REAL(hipGetSymbolAddress)(address, symbol);
    if (!error)
        error = REAL(hipGetSymbolSize)(&bytes, symbol);
    return gave(error, error ? NULL : *address, bytes, "hipGetSymbolAddress", __builtin_return_address(0));
}

hipError_t hipModuleGetGlobal(void **address, size_t *bytes, struct module *module, const char *name)
{
    size_t unasked = 0, *size = bytes ? bytes : &unasked;
    hipError_t error = REAL(hipModuleGetGlobal)(address, size, module, name);
    return gave(error, error || !address ? NULL : *address, *size, "hipModuleGetGlobal", __builtin_return_address(0));
}

/* -- before a launch ------------------------------------------------------------------------------------------------ */

static void tell_row(FILE *out, const struct given *row, uint32_t flags)
{
    Dl_info info, of_next;
    char text[512];
    int bytes = snprintf(text, sizeof text, "%s, call %lu", row->function, row->call);
    if (dladdr(row->callers[0], &info) && info.dli_fname)
        bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, " at %.300s", info.dli_fname);
    else
        info.dli_fbase = NULL;
    for (int i = 0; i < CALLERS && dladdr(row->callers[i], &of_next) && of_next.dli_fbase == info.dli_fbase; i++)
        bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, "+0x%lx",
                          (unsigned long)((const char *)row->callers[i] - (const char *)info.dli_fbase) - 1);
    uint32_t words[] = {flags, (uint32_t)bytes};
    fwrite(row, sizeof(uint64_t), 2, out);
    fwrite(words, sizeof words, 1, out);
    fwrite(text, 1, (size_t)bytes, out);
}

/* Rows as in the message ALLOCATIONS; NULL: they are not all known. */
static char *rows_now(size_t *bytes)
{
    const char *xnack = secure_getenv("HSA_XNACK");
    char *rows = NULL;
    FILE *out = missed || (xnack && strcmp(xnack, "1") == 0) ? NULL : open_memstream(&rows, bytes);
    if (!out)
        return NULL;
    pthread_mutex_lock(&lock);
    add_managed();
    for (size_t i = 0; i < count; i++)
        tell_row(out, &live[i], 0);
    for (unsigned long i = frees > FREED ? frees - FREED : 0; i < frees; i++)
        tell_row(out, &freed[i % FREED], 1);
    pthread_mutex_unlock(&lock);
    if (fclose(out) == 0)
        return rows;
    free(rows);
    return NULL;
}

void *allocations_table(const struct loaded *copy, const struct told_of *launch, const void *cell, size_t *bytes)
{
    size_t size;
    char *rows = rows_now(&size);
    void *table = rows ? clone_allocations(launch, (uintptr_t)cell, copy->original, rows, size, bytes) : NULL;
    free(rows);
    return table;
}
