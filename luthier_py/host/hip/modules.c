/* Code objects: loaded by the worker, which says what is in them; found here by name. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checks.h"
#include "device.h"
#include "memory.h"
#include "streams.h"

enum { ATTACHED_GLOBALLY = 1 }; /* hipMemAttachGlobal */

static char *take_name(struct cursor *cursor)
{
    uint32_t bytes = take32(cursor);
    const char *text = take(cursor, bytes);
    return text ? strndup(text, bytes) : NULL;
}

static void read_kernel(struct cursor *cursor, struct module *module, struct kernel *kernel)
{
    kernel->module = module;
    kernel->index = (uint32_t)(kernel - module->kernels);
    kernel->name = take_name(cursor);
    kernel->kernarg_bytes = take32(cursor);
    kernel->lds_bytes = take32(cursor);
    kernel->private_bytes = take32(cursor);
    kernel->vgprs = take32(cursor);
    kernel->sgprs = take32(cursor);
    kernel->max_threads = take32(cursor);
    kernel->whole_groups = take32(cursor);
    kernel->argument_count = take32(cursor);
    handle_add(kernel, HANDLE_KERNEL);
    size_t bytes = kernel->argument_count * sizeof *kernel->arguments;
    const void *arguments = take(cursor, bytes);
    kernel->arguments = arguments ? malloc(bytes + 1) : NULL;
    if (kernel->arguments)
        memcpy(kernel->arguments, arguments, bytes);
    else
        kernel->argument_count = 0;
}

static void read_variable(struct cursor *cursor, int device, struct variable *variable)
{
    variable->name = take_name(cursor);
    variable->address = (void *)(uintptr_t)take64(cursor);
    variable->bytes = take64(cursor);
    if (variable->bytes && !memory_add((struct allocation){.address = (uintptr_t)variable->address, .bytes = variable->bytes,
                                                           .kind = KIND_VARIABLE, .device = device}))
        cursor->bad = true;
}

/* `__managed__ int x` of a module is a pointer x, and x.managed with what it is at first (clang, CGCUDANV.cpp). */
static hipError_t make_managed(const struct module *module, struct variable *pointer)
{
    char name[1024];
    if (snprintf(name, sizeof name, "%s.managed", pointer->name) >= (int)sizeof name)
        return hipSuccess;
    const struct variable *initial = module_variable(module, name);
    if (!initial || pointer->bytes != sizeof pointer->managed)
        return hipSuccess;
    hipError_t error = memory_allocate(&pointer->managed, initial->bytes, KIND_MANAGED, ATTACHED_GLOBALLY, NULL);
    if (error)
        return error;
    pointer->managed_bytes = initial->bytes;
    memcpy(pointer->managed, initial->address, initial->bytes);
    memcpy(pointer->address, &pointer->managed, sizeof pointer->managed);
    return hipSuccess;
}

static hipError_t make_all_managed(struct module *module)
{
    hipError_t error = hipSuccess;
    for (uint32_t i = 0; i < module->variable_count && !error; i++)
        error = make_managed(module, &module->variables[i]);
    return error;
}

static void discard(struct module *module)
{
    for (uint32_t i = 0; module->kernels && i < module->kernel_count; i++) {
        handle_remove(&module->kernels[i], HANDLE_KERNEL);
        free(module->kernels[i].name);
        free(module->kernels[i].arguments);
    }
    for (uint32_t i = 0; module->variables && i < module->variable_count; i++) {
        if (module->variables[i].managed)
            memory_release(module->variables[i].managed);
        memory_remove((uintptr_t)module->variables[i].address);
        free(module->variables[i].name);
    }
    free(module->kernels);
    free(module->variables);
    free(module);
}

static struct module *read_module(const struct reply *reply, int device)
{
    struct cursor cursor = {reply->data, reply->data + reply->bytes, false};
    struct module *module = calloc(1, sizeof *module);
    if (!module)
        return NULL;
    module->device = device;
    module->id = take32(&cursor);
    module->prints = take32(&cursor);
    module->kernel_count = take32(&cursor);
    module->variable_count = take32(&cursor);
    module->kernels = calloc(module->kernel_count + 1u, sizeof *module->kernels);
    module->variables = calloc(module->variable_count + 1u, sizeof *module->variables);
    for (uint32_t i = 0; module->kernels && i < module->kernel_count; i++)
        read_kernel(&cursor, module, &module->kernels[i]);
    for (uint32_t i = 0; module->variables && i < module->variable_count; i++)
        read_variable(&cursor, device, &module->variables[i]);
    if (cursor.bad || !module->kernels || !module->variables) {
        discard(module);
        return NULL;
    }
    return module;
}

static hipError_t unload(uint32_t id)
{
    struct reply reply;
    hipError_t error = device_call(MESSAGE_UNLOAD, &(struct part){&id, sizeof id}, 1, &reply);
    if (!error)
        free(reply.data);
    return error;
}

/* NULL if it fails, and the worker has it no more. */
hipError_t module_load(struct module **module, int device, const void *image, size_t bytes)
{
    struct reply reply;
    uint32_t number = (uint32_t)device;
    *module = NULL;
    hipError_t error = device_call(MESSAGE_LOAD, (struct part[]){{&number, sizeof number}, {image, bytes}}, 2, &reply);
    if (error)
        return error;
    struct cursor cursor = {reply.data, reply.data + reply.bytes, false};
    uint32_t id = take32(&cursor);
    struct module *made = read_module(&reply, device);
    free(reply.data);
    error = !made ? hipErrorUnknown : made->prints ? hostcalls_ready() : hipSuccess;
    if (!error)
        *module = made;
    else if (made)
        module_unload(made);
    else
        unload(id);
    return error;
}

hipError_t module_unload(struct module *module)
{
    hipError_t error = streams_wait(-1);
    hipError_t unloaded = unload(module->id);
    discard(module);
    return error ? error : unloaded;
}

struct kernel *module_kernel(const struct module *module, const char *name)
{
    for (uint32_t i = 0; i < module->kernel_count; i++)
        if (strcmp(module->kernels[i].name, name) == 0)
            return &module->kernels[i];
    return NULL;
}

struct variable *module_variable(const struct module *module, const char *name)
{
    for (uint32_t i = 0; i < module->variable_count; i++)
        if (strcmp(module->variables[i].name, name) == 0)
            return &module->variables[i];
    return NULL;
}

/* Modules of the program's own. */

static hipError_t of_program(const void *image, size_t bytes, struct module **module)
{
    struct module *made;
    hipError_t error = module_load(&made, device_current(), image, bytes);
    if (error)
        return error;
    error = make_all_managed(made);
    if (error)
        module_unload(made);
    else
        *module = made;
    return error;
}

hipError_t module_of_memory(const void *image, struct module **module)
{
    size_t bytes = image_bytes(image);
    return bytes && image_is_there(image, bytes) ? of_program(image, bytes, module) : hipErrorInvalidImage;
}

hipError_t module_of_file(const char *file, struct module **module)
{
    struct stat facts_of_file;
    if (!*file)
        return hipErrorInvalidValue;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hipErrorFileNotFound;
    size_t bytes = fstat(fd, &facts_of_file) == 0 ? (size_t)facts_of_file.st_size : 0;
    void *image = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (image == MAP_FAILED)
        return hipErrorInvalidImage;
    hipError_t error = image_is_known(image) ? of_program(image, bytes, module) : hipErrorInvalidImage;
    munmap(image, bytes);
    return error;
}

static hipError_t enter(hipError_t error, struct module *made, struct module **module)
{
    if (error)
        return error;
    if (!handle_add(made, HANDLE_MODULE)) {
        module_unload(made);
        return hipErrorOutOfMemory;
    }
    *module = made;
    return hipSuccess;
}

hipError_t hipModuleLoadData(struct module **module, const void *image)
{
    struct module *made = NULL;
    hipError_t error = module_of_memory(image, &made);
    return enter(error, made, module);
}

/* Options are for a compiler that there is none of: AMD's runtime ignores them, too. */
hipError_t hipModuleLoadDataEx(struct module **module, const void *image, unsigned count, void *options, void **values)
{
    (void)count, (void)options, (void)values;
    return hipModuleLoadData(module, image);
}

hipError_t hipModuleLoadFatBinary(struct module **module, const void *image) { return hipModuleLoadData(module, image); }

hipError_t hipModuleLoad(struct module **module, const char *file)
{
    struct module *made = NULL;
    hipError_t error = module_of_file(file, &made);
    return enter(error, made, module);
}

/* A handle that is none of a module is not found, by AMD's runtime: another error than others have. */
static bool alive(const struct module *module) { return handle_is(module, HANDLE_MODULE); }

hipError_t hipModuleUnload(struct module *module)
{
    return handle_remove(module, HANDLE_MODULE) ? module_unload(module) : hipErrorNotFound;
}

hipError_t hipModuleGetFunction(struct kernel **kernel, struct module *module, const char *name)
{
    struct kernel *found = alive(module) ? module_kernel(module, name) : NULL;
    if (!found)
        return *name ? hipErrorNotFound : hipErrorInvalidValue;
    *kernel = found;
    return hipSuccess;
}

hipError_t hipModuleGetFunctionCount(unsigned *count, struct module *module)
{
    if (!alive(module))
        return hipErrorNotFound;
    *count = module->kernel_count;
    return hipSuccess;
}

hipError_t hipModuleGetGlobal(void **address, size_t *bytes, struct module *module, const char *name)
{
    if ((!address && !bytes) || !*name)
        return hipErrorInvalidValue;
    const struct variable *found = alive(module) ? module_variable(module, name) : NULL;
    if (!found)
        return hipErrorNotFound;
    if (address)
        *address = found->managed ? found->managed : found->address;
    if (bytes)
        *bytes = found->managed ? found->managed_bytes : found->bytes;
    return hipSuccess;
}
