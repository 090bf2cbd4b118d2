/* What a program's handles mean: functions it registered, modules, libraries and kernels, by the images they are of. */
#include "preloaded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keyed.h"

/* Keys: addresses of functions, fat binaries, modules and kernels. */
static struct keyed table = KEYED(struct meaning);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

static void remember(const void *key, struct image *image, const char *name)
{
    pthread_mutex_lock(&lock);
    struct meaning *meaning = keyed_add(&table, key);
    if (meaning) {
        free(meaning->name);
        *meaning = (struct meaning){key, image, name ? strdup(name) : NULL};
    }
    pthread_mutex_unlock(&lock);
}

struct meaning meaning_of(const void *key)
{
    pthread_mutex_lock(&lock);
    const struct meaning *found = keyed_find(&table, key);
    struct meaning meaning = found ? *found : (struct meaning){NULL, NULL, NULL};
    pthread_mutex_unlock(&lock);
    return meaning;
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
    allocations_managed(pointer, bytes);
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

/* Remove what is unloaded: handles that the program still has of it mean nothing. */
static void forget(const void *key)
{
    struct meaning found = meaning_of(key);
    if (!found.image)
        return;
    pthread_mutex_lock(&lock);
    for (struct meaning *each = keyed_next(&table, NULL); each;)
        if (each->image == found.image) {
            free(each->name);
            keyed_remove(&table, each);
            each = each->key ? each : keyed_next(&table, each);
        } else
            each = keyed_next(&table, each);
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
void expect_handle(const void *function)
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
