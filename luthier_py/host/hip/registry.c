/* What a program's own fat binaries register before main: kernels and variables behind host addresses.
 *
 * A fat binary is loaded when something in it is first used; a managed variable needs its memory at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "device.h"
#include "keyed.h"
#include "memory.h"
#include "modules.h"

enum { WRAPPER_MAGIC = 0x48495046 }; /* "HIPF" */

struct wrapper { uint32_t magic, version; const void *image; void *unused; };

struct fat_binary {
    const void *image;
    struct module *modules[MAX_DEVICES]; /* once it is loaded there */
    hipError_t errors[MAX_DEVICES];      /* why it cannot be */
};

struct entry {
    const void *key;
    struct fat_binary *binary;
    char *name;
    void *managed;
    size_t bytes;
    struct kernel *kernels[MAX_DEVICES]; /* once it was launched there; modules of fat binaries stay */
};

static struct keyed entries = KEYED(struct entry);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(struct entry entry)
{
    pthread_mutex_lock(&lock);
    struct entry *place = keyed_add(&entries, entry.key);
    if (place) {
        free(place->name);
        *place = entry;
    }
    pthread_mutex_unlock(&lock);
}

/* Give every managed variable of a module the address of its memory. */
static void point_managed(const struct fat_binary *binary, const struct module *module)
{
    for (const struct entry *entry = NULL; (entry = keyed_next(&entries, entry));) {
        if (entry->binary != binary || !entry->managed)
            continue;
        const struct variable *pointer = module_variable(module, entry->name);
        if (pointer && pointer->bytes == sizeof entry->managed)
            memcpy(pointer->address, &entry->managed, sizeof entry->managed);
    }
}

static hipError_t loaded(struct fat_binary *binary, int device)
{
    struct module **module = &binary->modules[device];
    hipError_t *error = &binary->errors[device];
    if (!*module && !*error) {
        size_t bytes = binary->image ? image_bytes(binary->image) : 0;
        *error = bytes ? module_load(module, device, binary->image, bytes) : hipErrorInvalidImage;
        if (!*error)
            point_managed(binary, *module);
    }
    return *error;
}

hipError_t function_kernel(const void *function, int device, struct kernel **kernel)
{
    hipError_t error = device_ready();
    if (error)
        return error;
    if (handle_is(function, HANDLE_KERNEL)) { /* as hipLaunchKernel takes them, too */
        *kernel = (struct kernel *)(uintptr_t)function;
        return hipSuccess;
    }
    pthread_mutex_lock(&lock);
    struct entry *entry = keyed_find(&entries, function);
    error = entry ? loaded(entry->binary, device) : hipErrorInvalidDeviceFunction;
    if (!error && !entry->kernels[device])
        entry->kernels[device] = module_kernel(entry->binary->modules[device], entry->name);
    *kernel = error ? NULL : entry->kernels[device];
    pthread_mutex_unlock(&lock);
    return error ? error : *kernel ? hipSuccess : hipErrorInvalidDeviceFunction;
}

hipError_t symbol_variable(const void *symbol, int device, struct variable *variable)
{
    hipError_t error = device_ready();
    if (error)
        return error;
    pthread_mutex_lock(&lock);
    const struct entry *entry = keyed_find(&entries, symbol);
    const struct variable *found = NULL;
    if (!entry)
        error = hipErrorInvalidSymbol;
    else if (entry->managed)
        *variable = (struct variable){entry->name, entry->managed, entry->bytes, NULL, 0};
    else if (!(error = loaded(entry->binary, device)) &&
             !(found = module_variable(entry->binary->modules[device], entry->name)))
        error = hipErrorInvalidSymbol;
    if (found)
        *variable = *found;
    pthread_mutex_unlock(&lock);
    return error;
}

struct fat_binary *__hipRegisterFatBinary(const void *data)
{
    const struct wrapper *wrapper = data;
    struct fat_binary *binary = calloc(1, sizeof *binary);
    if (binary && wrapper && wrapper->magic == WRAPPER_MAGIC)
        binary->image = wrapper->image;
    return binary;
}

/* Static destructors may still launch or free: the worker ends with the process, so nothing is torn down here. */
void __hipUnregisterFatBinary(struct fat_binary *binary) { (void)binary; }

void __hipRegisterFunction(struct fat_binary *binary, const void *function, char *device_function, const char *name,
                           unsigned thread_limit, void *thread, void *block, void *block_dim, void *grid_dim, int *wave_size)
{
    (void)device_function, (void)thread_limit, (void)thread, (void)block, (void)block_dim, (void)grid_dim, (void)wave_size;
    add((struct entry){function, binary, strdup(name), NULL, 0, {NULL}});
}

void __hipRegisterVar(struct fat_binary *binary, void *symbol, char *device_name, const char *name, int is_extern,
                      size_t bytes, int is_constant, int is_global)
{
    (void)device_name, (void)is_extern, (void)is_constant, (void)is_global;
    add((struct entry){symbol, binary, strdup(name), NULL, bytes, {NULL}});
}

void __hipRegisterManagedVar(struct fat_binary *binary, void **pointer, void *initial, const char *name, size_t bytes,
                             unsigned align)
{
    void *managed = NULL;
    (void)align;
    if (memory_allocate(&managed, bytes, KIND_MANAGED, 0, NULL) != hipSuccess)
        return;
    memcpy(managed, initial, bytes);
    *pointer = managed;
    add((struct entry){pointer, binary, strdup(name), managed, bytes, {NULL}});
}

void __hipRegisterSurface(struct fat_binary *binary, void *symbol, char *device_name, const char *name, int type, int is_extern)
{
    (void)binary, (void)symbol, (void)device_name, (void)name, (void)type, (void)is_extern;
}

void __hipRegisterTexture(struct fat_binary *binary, void *symbol, char *device_name, const char *name, int type,
                          int normalized, int is_extern)
{
    (void)binary, (void)symbol, (void)device_name, (void)name, (void)type, (void)normalized, (void)is_extern;
}

hipError_t hipGetSymbolAddress(void **address, const void *symbol)
{
    struct variable found;
    hipError_t error = symbol_variable(symbol, device_current(), &found);
    if (!error)
        *address = found.address;
    return error;
}

hipError_t hipGetSymbolSize(size_t *bytes, const void *symbol)
{
    struct variable found;
    hipError_t error = symbol_variable(symbol, device_current(), &found);
    if (!error)
        *bytes = found.bytes;
    return error;
}
