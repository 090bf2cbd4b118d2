/* Libraries: modules whose kernels are launched by their handles, hipLaunchKernel's included. */
#include <stdlib.h>

#include "checks.h"
#include "modules.h"

struct library { struct module *module; };

static hipError_t enter(hipError_t error, struct module *module, struct library **library)
{
    if (error)
        return error;
    struct library *made = malloc(sizeof *made);
    if (!made || !handle_add(made, HANDLE_LIBRARY)) {
        free(made);
        module_unload(module);
        return hipErrorOutOfMemory;
    }
    made->module = module;
    *library = made;
    return hipSuccess;
}

/* Options of a compiler are refused, as AMD's runtime does; those of a library are for those that compile theirs late. */
hipError_t hipLibraryLoadData(struct library **library, const void *image, void *compiling, void **compiling_values, unsigned count,
                              void *options, void **values, unsigned option_count)
{
    struct module *module = NULL;
    (void)compiling, (void)compiling_values, (void)count, (void)options, (void)values, (void)option_count;
    hipError_t error = module_of_memory(image, &module);
    return enter(error, module, library);
}

hipError_t hipLibraryLoadFromFile(struct library **library, const char *file, void *compiling, void **compiling_values,
                                  unsigned count, void *options, void **values, unsigned option_count)
{
    struct module *module = NULL;
    (void)compiling, (void)compiling_values, (void)count, (void)options, (void)values, (void)option_count;
    hipError_t error = module_of_file(file, &module);
    return enter(error == hipErrorFileNotFound ? hipErrorInvalidValue : error, module, library);
}

hipError_t hipLibraryUnload(struct library *library)
{
    if (!handle_remove(library, HANDLE_LIBRARY))
        return hipErrorInvalidHandle;
    hipError_t error = module_unload(library->module);
    free(library);
    return error;
}

hipError_t hipLibraryGetKernel(struct kernel **kernel, struct library *library, const char *name)
{
    struct kernel *found = module_kernel(library->module, name);
    if (!found)
        return hipErrorNotFound;
    *kernel = found;
    return hipSuccess;
}

hipError_t hipLibraryGetKernelCount(unsigned *count, struct library *library)
{
    *count = library->module->kernel_count;
    return hipSuccess;
}
