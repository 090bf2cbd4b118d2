/* What a program's own fat binaries register before main: kernels and variables behind host addresses.
 *
 * A fat binary is loaded when something in it is first used; a managed variable needs its memory at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "device.h"
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

static struct entry *entries; /* open addressing, by key */
static size_t entry_count, entry_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry *slot(struct entry *table, size_t room, const void *key)
{
    size_t place = ((uintptr_t)key >> 3) * 0x9E3779B97F4A7C15u;
    for (place %= room; table[place].key && table[place].key != key;)
        place = (place + 1) % room;
    return &table[place];
}

static void add(struct entry entry)
{
    pthread_mutex_lock(&lock);
    if (2 * entry_count >= entry_room) {
        size_t room = entry_room ? 2 * entry_room : 256;
        struct entry *larger = calloc(room, sizeof *larger);
        for (size_t i = 0; larger && i < entry_room; i++)
            if (entries[i].key)
                *slot(larger, room, entries[i].key) = entries[i];
        if (larger) {
            free(entries);
            entries = larger;
            entry_room = room;
        }
    }
    if (entry_count < entry_room) {
        struct entry *place = slot(entries, entry_room, entry.key);
        entry_count += place->key == NULL;
        free(place->name);
        *place = entry;
    }
    pthread_mutex_unlock(&lock);
}

/* Give every managed variable of a module the address of its memory. */
static void point_managed(const struct fat_binary *binary, const struct module *module)
{
    for (size_t i = 0; i < entry_room; i++) {
        const struct entry *entry = &entries[i];
        if (!entry->key || entry->binary != binary || !entry->managed)
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
    struct entry *entry = entry_room ? slot(entries, entry_room, function) : NULL;
    error = !function || !entry || !entry->key ? hipErrorInvalidDeviceFunction : loaded(entry->binary, device);
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
    const struct entry *entry = entry_room ? slot(entries, entry_room, symbol) : NULL;
    const struct variable *found = NULL;
    if (!symbol || !entry || !entry->key)
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
