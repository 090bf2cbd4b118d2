/* The calls of a HIP program that a tool must see: registration, modules, launches, and the ways to look them up.
 *
 * Every function here has the runtime's own signature and hands on what it got; a launch goes to the tool first.
 */
#include "preloaded.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *dlsym_function(void *, const char *);
static void *_Atomic runtime; /* of dlopen, where the program itself is not linked to it */

/* The C library's. Looked up by the first call, which may come from another library's constructor, before ours ran. */
static dlsym_function *next_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    static _Atomic(dlsym_function *) found;
    for (int i = 0; !found && i < 3; i++)
        found = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!found) {
        say("luthier: this C library has no dlsym that can be interposed; unset LD_PRELOAD");
        abort();
    }
    return found;
}

void use_runtime(void *handle) { runtime = handle; }

void *in_c_library(void) { return (void *)next_dlsym(); }

void *real_function(const char *name)
{
    void *function = before_redirection(name);
    if (!function && runtime)
        function = next_dlsym()(runtime, name);
    if (!function)
        function = next_dlsym()(RTLD_NEXT, name);
    if (!function && !runtime && (runtime = loaded_runtime())) /* by dlopen of a library that needs it, for it alone */
        function = next_dlsym()(runtime, name);
    return function;
}

void *required_function(const char *name)
{
    void *function = real_function(name);
    if (!function) {
        say("luthier: the HIP runtime has no %s; unset LD_PRELOAD", name);
        abort();
    }
    return function;
}

/* What handles stand for: addresses of functions, fat binaries, modules and kernels. */
struct meaning { const void *key; struct image *image; char *name; };
static struct meaning *table;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

static struct meaning *place_of(struct meaning *in, size_t size, const void *key)
{
    size_t at = ((uintptr_t)key >> 3) * 0x9E3779B97F4A7C15u % size;
    while (in[at].key && in[at].key != key)
        at = (at + 1) % size;
    return &in[at];
}

/* Into a table of that size, without what means something of `image`. */
static void move_meanings(size_t size, const struct image *image)
{
    struct meaning *other = calloc(size, sizeof *other);
    if (!other)
        return;
    count = 0;
    for (size_t i = 0; i < room; i++)
        if (image && table[i].image == image)
            free(table[i].name);
        else if (table[i].key)
            count++, *place_of(other, size, table[i].key) = table[i];
    free(table);
    table = other;
    room = size;
}

static void remember(const void *key, struct image *image, const char *name)
{
    pthread_mutex_lock(&lock);
    if (2 * count >= room)
        move_meanings(room ? 2 * room : 256, NULL);
    if (key && count < room) {
        struct meaning *place = place_of(table, room, key);
        count += place->key == NULL;
        free(place->name);
        *place = (struct meaning){key, image, name ? strdup(name) : NULL};
    }
    pthread_mutex_unlock(&lock);
}

static struct meaning meaning_of(const void *key)
{
    pthread_mutex_lock(&lock);
    struct meaning found = room ? *place_of(table, room, key) : (struct meaning){NULL, NULL, NULL};
    pthread_mutex_unlock(&lock);
    return found;
}

struct image *image_of(const void *key, const char **name)
{
    struct meaning found = meaning_of(key);
    *name = found.name;
    return found.image;
}

struct fat_binary *__hipRegisterFatBinary(const void *wrapper)
{
    enum { WRAPPER_MAGIC = 0x48495046 };
    const struct { uint32_t magic, version; const void *image; } *content = wrapper;
    struct fat_binary *binary = REAL(__hipRegisterFatBinary)(wrapper);
    if (binary && content && content->magic == WRAPPER_MAGIC)
        remember(binary, image_new(content->image, 0, true), NULL);
    tool_prepare();
    return binary;
}

void __hipRegisterFunction(struct fat_binary *binary, const void *function, char *device_function, const char *name,
                           unsigned thread_limit, void *thread, void *block, void *block_dim, void *grid_dim, int *wave_size)
{
    REAL(__hipRegisterFunction)(binary, function, device_function, name, thread_limit, thread, block, block_dim, grid_dim, wave_size);
    remember(function, meaning_of(binary).image, name);
}

void __hipRegisterVar(struct fat_binary *binary, void *symbol, char *device_name, const char *name, int is_extern,
                      size_t bytes, int is_constant, int is_global)
{
    REAL(__hipRegisterVar)(binary, symbol, device_name, name, is_extern, bytes, is_constant, is_global);
    image_variable(meaning_of(binary).image, name, symbol, false);
}

void __hipRegisterManagedVar(struct fat_binary *binary, void **pointer, void *initial, const char *name, size_t bytes,
                             unsigned align)
{
    REAL(__hipRegisterManagedVar)(binary, pointer, initial, name, bytes, align);
    image_variable(meaning_of(binary).image, name, pointer, true);
}

static void remember_module(struct module *module, struct image *image)
{
    image_loaded(image, module);
    remember(module, image, NULL);
}

hipError_t hipModuleLoadData(struct module **module, const void *data)
{
    hipError_t error = REAL(hipModuleLoadData)(module, data);
    if (!error)
        remember_module(*module, image_new(data, 0, false));
    return error;
}

hipError_t hipModuleLoadDataEx(struct module **module, const void *data, unsigned options, void *names, void **values)
{
    hipError_t error = REAL(hipModuleLoadDataEx)(module, data, options, names, values);
    if (!error)
        remember_module(*module, image_new(data, 0, false));
    return error;
}

hipError_t hipModuleLoadFatBinary(struct module **module, const void *data)
{
    hipError_t error = REAL(hipModuleLoadFatBinary)(module, data);
    if (!error)
        remember_module(*module, image_new(data, 0, false));
    return error;
}

static struct image *read_image(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    struct image *image = NULL;
    long bytes = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    if (bytes > 0 && fseek(file, 0, SEEK_SET) == 0 && (data = malloc((size_t)bytes)) && fread(data, (size_t)bytes, 1, file) == 1)
        image = image_new(data, (size_t)bytes, false);
    if (file)
        fclose(file);
    free(data);
    return image;
}

hipError_t hipModuleLoad(struct module **module, const char *path)
{
    hipError_t error = REAL(hipModuleLoad)(module, path);
    if (!error)
        remember_module(*module, read_image(path));
    return error;
}

/* What is unloaded is known no longer: handles that the program still has of it mean nothing. */
static void forget(const void *key)
{
    struct meaning found = meaning_of(key);
    if (!found.image)
        return;
    pthread_mutex_lock(&lock);
    move_meanings(room, found.image);
    pthread_mutex_unlock(&lock);
    image_unloaded(found.image);
}

hipError_t hipModuleUnload(struct module *module)
{
    forget(module);
    return REAL(hipModuleUnload)(module);
}

/* Libraries are modules whose variables have no names that the program could ask for. */

hipError_t hipLibraryLoadData(struct library **library, const void *data, void *compiling, void **compiling_values, unsigned count,
                              void *options, void **values, unsigned option_count)
{
    hipError_t error = REAL(hipLibraryLoadData)(library, data, compiling, compiling_values, count, options, values, option_count);
    if (!error)
        remember(*library, image_new(data, 0, false), NULL);
    return error;
}

hipError_t hipLibraryLoadFromFile(struct library **library, const char *path, void *compiling, void **compiling_values,
                                  unsigned count, void *options, void **values, unsigned option_count)
{
    hipError_t error = REAL(hipLibraryLoadFromFile)(library, path, compiling, compiling_values, count, options, values, option_count);
    if (!error)
        remember(*library, read_image(path), NULL);
    return error;
}

hipError_t hipLibraryGetKernel(struct kernel **kernel, struct library *library, const char *name)
{
    hipError_t error = REAL(hipLibraryGetKernel)(kernel, library, name);
    if (!error)
        remember(*kernel, meaning_of(library).image, name);
    return error;
}

hipError_t hipLibraryUnload(struct library *library)
{
    forget(library);
    return REAL(hipLibraryUnload)(library);
}

hipError_t hipModuleGetFunction(struct kernel **kernel, struct module *module, const char *name)
{
    hipError_t error = REAL(hipModuleGetFunction)(kernel, module, name);
    if (!error)
        remember(*kernel, meaning_of(module).image, name);
    return error;
}

hipError_t hipGetFuncBySymbol(struct kernel **kernel, const void *function)
{
    hipError_t error = REAL(hipGetFuncBySymbol)(kernel, function);
    struct meaning found = meaning_of(function);
    if (!error)
        remember(*kernel, found.image, found.name);
    return error;
}

/* A function in a graph, for which the graph may later show its handle. */
static void expect_handle(const void *function)
{
    struct meaning found = meaning_of(function);
    struct kernel *kernel;
    if (!found.name || image_module(found.image) || !real_function("hipGetFuncBySymbol"))
        return;
    hipError_t before = REAL(hipPeekAtLastError)();
    if (REAL(hipGetFuncBySymbol)(&kernel, function) == hipSuccess)
        remember(kernel, found.image, found.name);
    restore_error(before);
}

hipError_t hipGraphAddKernelNode(struct node **node, struct graph *graph, struct node *const *before, size_t count,
                                 const struct launch_params *params)
{
    if (params)
        expect_handle(params->function);
    return REAL(hipGraphAddKernelNode)(node, graph, before, count, params);
}

hipError_t hipGraphKernelNodeSetParams(struct node *node, const struct launch_params *params)
{
    if (params)
        expect_handle(params->function);
    return REAL(hipGraphKernelNodeSetParams)(node, params);
}

/* True when the clone was launched, with `error` as the call's result. */
static bool taken(const void *key, struct dim3 grid, struct dim3 block, size_t lds_bytes, stream_t stream, void **args,
                  void **extra, bool cooperative, hipError_t *error)
{
    if (capturing(stream)) {
        expect_handle(key);
        return false; /* it is launched when its graph is */
    }
    if (tool_off()) {
        launches_seen++;
        return false;
    }
    struct meaning found = meaning_of(key);
    struct launch_shape shape = {grid, block, (unsigned)lds_bytes, stream, args, extra, cooperative};
    return tool_launch(found.image, found.name, &shape, error);
}

#define GRID(form) ((struct dim3){form##_x, form##_y, form##_z})

#define LAUNCH_FUNCTION(name, cooperative, bytes_type)                                                                    \
    hipError_t name(const void *function, struct dim3 grid, struct dim3 block, void **args, bytes_type lds_bytes,         \
                    stream_t stream)                                                                                      \
    {                                                                                                                     \
        hipError_t error;                                                                                                 \
        if (taken(function, grid, block, lds_bytes, stream, args, NULL, cooperative, &error))                             \
            return error;                                                                                                 \
        return REAL(name)(function, grid, block, args, lds_bytes, stream);                                                \
    }

LAUNCH_FUNCTION(hipLaunchKernel, false, size_t)
API __typeof__(hipLaunchKernel) hipLaunchKernel_spt;
LAUNCH_FUNCTION(hipLaunchKernel_spt, false, size_t)
LAUNCH_FUNCTION(hipLaunchCooperativeKernel, true, unsigned)
API __typeof__(hipLaunchCooperativeKernel) hipLaunchCooperativeKernel_spt;
LAUNCH_FUNCTION(hipLaunchCooperativeKernel_spt, true, unsigned)

/* As the runtime reads them: a launch with attributes that are not this one is refused. */
static bool cooperative(const void *attributes, unsigned count)
{
    enum { COOPERATIVE = 2 };
    const struct { int id; char padding[4]; union { char room[64]; int cooperative; } value; } *each = attributes;
    bool found = false;
    for (unsigned i = 0; each && i < count; i++)
        found |= each[i].id == COOPERATIVE && each[i].value.cooperative;
    return found;
}

hipError_t hipLaunchKernelExC(const struct launch_config *c, const void *function, void **args)
{
    hipError_t error;
    bool together = c && cooperative(c->attributes, c->attribute_count);
    if (c && (together || !c->attribute_count) &&
        taken(function, c->grid, c->block, c->lds_bytes, c->stream, args, NULL, together, &error))
        return error;
    return REAL(hipLaunchKernelExC)(c, function, args);
}

hipError_t hipModuleLaunchKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned lds_bytes, stream_t stream, void **args, void **extra)
{
    hipError_t error;
    if (taken(kernel, GRID(grid), GRID(block), lds_bytes, stream, args, extra, false, &error))
        return error;
    return REAL(hipModuleLaunchKernel)(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, lds_bytes, stream, args, extra);
}

hipError_t hipModuleLaunchCooperativeKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned lds_bytes,
                                            stream_t stream, void **args)
{
    hipError_t error;
    if (taken(kernel, GRID(grid), GRID(block), lds_bytes, stream, args, NULL, true, &error))
        return error;
    return REAL(hipModuleLaunchCooperativeKernel)(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, lds_bytes, stream, args);
}

hipError_t hipDrvLaunchKernelEx(const struct driver_launch_config *c, struct kernel *kernel, void **args, void **extra)
{
    hipError_t error;
    bool together = c && cooperative(c->attributes, c->attribute_count);
    if (c && (together || !c->attribute_count) &&
        taken(kernel, (struct dim3){c->grid_x, c->grid_y, c->grid_z}, (struct dim3){c->block_x, c->block_y, c->block_z},
              c->lds_bytes, c->stream, args, extra, together, &error))
        return error;
    return REAL(hipDrvLaunchKernelEx)(c, kernel, args, extra);
}

/* With events, which are recorded around the clone. */
static bool taken_between(const void *key, struct dim3 grid, struct dim3 block, size_t lds_bytes, stream_t stream, void **args,
                          void **extra, event_t start, event_t stop, hipError_t *error)
{
    if (start && meaning_of(key).name)
        REAL(hipEventRecord)(start, stream);
    if (!taken(key, grid, block, lds_bytes, stream, args, extra, false, error))
        return false;
    if (stop)
        REAL(hipEventRecord)(stop, stream);
    return true;
}

hipError_t hipExtLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t lds_bytes,
                              stream_t stream, event_t start, event_t stop, int flags)
{
    hipError_t error;
    if (taken_between(function, grid, block, lds_bytes, stream, args, NULL, start, stop, &error))
        return error;
    return REAL(hipExtLaunchKernel)(function, grid, block, args, lds_bytes, stream, start, stop, flags);
}

/* Runtimes before HIP 6 have it under its mangled name alone. */
static __typeof__(&hipExtModuleLaunchKernel) real_with_items(void)
{
    const char *mangled = "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j";
    void *plain = real_function("hipExtModuleLaunchKernel");
    return (__typeof__(&hipExtModuleLaunchKernel))(plain ? plain : required_function(mangled));
}

hipError_t hipExtModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop, unsigned flags)
{
    hipError_t error;
    bool whole = block_x && block_y && block_z && items_x % block_x == 0 && items_y % block_y == 0 && items_z % block_z == 0;
    if (whole && taken_between(kernel, (struct dim3){items_x / block_x, items_y / block_y, items_z / block_z}, GRID(block),
                               lds_bytes, stream, args, extra, start, stop, &error))
        return error;
    if (!whole)
        launches_seen++;
    return real_with_items()(kernel, items_x, items_y, items_z, block_x, block_y, block_z, lds_bytes, stream, args,
                                          extra, start, stop, flags);
}

/* Launches on several devices: one grid is a launch like others; several, which may know of each other, run as they are. */

static void pass_grids(unsigned count)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    for (unsigned i = 0; i < count; i++) {
        unsigned long index = launches_seen++;
        if (tool_off() || !tool_selects(index, 1))
            continue;
        launches_selected++;
        if (!atomic_flag_test_and_set(&said))
            say("luthier: kernels run as they are that are launched on several devices at once");
    }
}

static bool taken_alone(const void *key, struct dim3 grid, struct dim3 block, size_t lds_bytes, stream_t stream, void **args,
                        bool together, unsigned flags, hipError_t *error)
{
    enum { NO_SYNC_AFTER = 2, ALL_FLAGS = 3 };
    if (!stream || flags > ALL_FLAGS || !taken(key, grid, block, lds_bytes, stream, args, NULL, together, error))
        return false;
    if (!*error && !(flags & NO_SYNC_AFTER))
        *error = REAL(hipStreamSynchronize)(stream);
    return true;
}

#define FUNCTIONS_LAUNCH(name, together)                                                                                  \
    hipError_t name(const struct function_launch *l, int count, unsigned flags)                                           \
    {                                                                                                                     \
        hipError_t error;                                                                                                 \
        if (l && count == 1 &&                                                                                            \
            taken_alone(l->function, l->grid, l->block, l->lds_bytes, l->stream, l->args, together, flags, &error))       \
            return error;                                                                                                 \
        if (l && count > 1)                                                                                               \
            pass_grids((unsigned)count);                                                                                  \
        return REAL(name)(l, count, flags);                                                                               \
    }

FUNCTIONS_LAUNCH(hipLaunchCooperativeKernelMultiDevice, true)
FUNCTIONS_LAUNCH(hipExtLaunchMultiKernelMultiDevice, false)

hipError_t hipModuleLaunchCooperativeKernelMultiDevice(const struct module_launch *l, unsigned count, unsigned flags)
{
    hipError_t error;
    if (l && count == 1 && taken_alone(l->kernel, l->grid, l->block, l->lds_bytes, l->stream, l->args, true, flags, &error))
        return error;
    if (l && count > 1)
        pass_grids(count);
    return REAL(hipModuleLaunchCooperativeKernelMultiDevice)(l, count, flags);
}

hipError_t hipHccModuleLaunchKernel(struct kernel *kernel, unsigned items_x, unsigned items_y, unsigned items_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t lds_bytes, stream_t stream,
                                    void **args, void **extra, event_t start, event_t stop)
{
    return hipExtModuleLaunchKernel(kernel, items_x, items_y, items_z, block_x, block_y, block_z, lds_bytes, stream, args,
                                    extra, start, stop, 0);
}

hipError_t hipProfilerStart(void)
{
    tool_active(true);
    return REAL(hipProfilerStart)();
}

hipError_t hipProfilerStop(void)
{
    tool_active(false);
    return REAL(hipProfilerStop)();
}

/* Functions that are looked up at run time. The runtime's own table gives the runtime's; ours come first. */

hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    hipError_t error = REAL(hipGetProcAddress)(symbol, function, version, flags, status);
    void *own = NULL;
    if (!error && symbol && (own = dlsym(runtime ? runtime : RTLD_DEFAULT, symbol)))
        *function = own;
    return error;
}

const struct own_function OWN[] = {
#define OURS(name) {#name, (void *)name}
    OURS(__hipRegisterFatBinary), OURS(__hipRegisterFunction), OURS(__hipRegisterVar), OURS(__hipRegisterManagedVar),
    OURS(hipModuleLoadData), OURS(hipModuleLoadDataEx), OURS(hipModuleLoadFatBinary),
    OURS(hipModuleLoad), OURS(hipModuleUnload), OURS(hipLibraryLoadData), OURS(hipLibraryLoadFromFile),
    OURS(hipLibraryGetKernel), OURS(hipLibraryUnload), OURS(hipModuleGetFunction), OURS(hipGetFuncBySymbol), OURS(hipLaunchKernel),
    OURS(hipLaunchKernel_spt), OURS(hipLaunchCooperativeKernel), OURS(hipLaunchCooperativeKernel_spt),
    OURS(hipLaunchKernelExC), OURS(hipModuleLaunchKernel), OURS(hipModuleLaunchCooperativeKernel), OURS(hipDrvLaunchKernelEx),
    OURS(hipExtLaunchKernel), OURS(hipExtModuleLaunchKernel), OURS(hipHccModuleLaunchKernel),
    OURS(hipLaunchCooperativeKernelMultiDevice), OURS(hipExtLaunchMultiKernelMultiDevice),
    OURS(hipModuleLaunchCooperativeKernelMultiDevice), OURS(hipProfilerStart), OURS(hipProfilerStop),
    OURS(hipGetProcAddress), OURS(hipStreamBeginCapture), OURS(hipStreamBeginCapture_spt), OURS(hipStreamBeginCaptureToGraph),
    OURS(hipStreamEndCapture), OURS(hipStreamEndCapture_spt), OURS(hipGraphInstantiate), OURS(hipGraphInstantiateWithFlags),
    OURS(hipGraphInstantiateWithParams), OURS(hipGraphExecDestroy), OURS(hipGraphLaunch), OURS(hipGraphLaunch_spt),
    OURS(hipGraphAddKernelNode),
    OURS(hipGraphKernelNodeSetParams), OURS(hipGraphExecUpdate), OURS(hipGraphExecKernelNodeSetParams), OURS(hipGraphNodeSetEnabled),
    OURS(hipGraphExecMemcpyNodeSetParams), OURS(hipGraphExecMemcpyNodeSetParams1D), OURS(hipGraphExecMemsetNodeSetParams),
    OURS(hipGraphExecHostNodeSetParams), OURS(hipGraphExecNodeSetParams), OURS(hipGraphExecChildGraphNodeSetParams),
    OURS(hipGraphExecMemcpyNodeSetParamsFromSymbol), OURS(hipGraphExecMemcpyNodeSetParamsToSymbol),
    OURS(hipGraphExecEventRecordNodeSetEvent), OURS(hipGraphExecEventWaitNodeSetEvent),
    OURS(hipGraphExecExternalSemaphoresSignalNodeSetParams), OURS(hipGraphExecExternalSemaphoresWaitNodeSetParams),
    OURS(hipGraphExecBatchMemOpNodeSetParams), OURS(hipDrvGraphExecMemcpyNodeSetParams), OURS(hipDrvGraphExecMemsetNodeSetParams),
    OURS(hipDeviceReset),
};
const size_t OWN_COUNT = sizeof OWN / sizeof *OWN;

/* A program that opens the runtime itself gets our functions for those of its names that we have. The last call is a
 * jump, so that RTLD_NEXT still means the caller's next. */
API void *dlsym(void *restrict handle, const char *restrict name)
{
    if (handle != RTLD_NEXT && (strncmp(name, "hip", 3) == 0 || strncmp(name, "__hip", 5) == 0)) {
        void *theirs = next_dlsym()(handle, name);
        for (size_t i = 0; theirs && i < OWN_COUNT; i++)
            if (strcmp(OWN[i].name, name) == 0) {
                if (handle != RTLD_DEFAULT)
                    runtime = handle;
                return OWN[i].function;
            }
        if (theirs)
            return theirs;
    }
    return next_dlsym()(handle, name);
}
