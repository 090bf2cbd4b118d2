/* A library that is opened with RTLD_DEEPBIND: it launches a kernel, by linked calls and through dlopen and dlsym. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int hipModuleLoadData(void **module, const void *image);
int hipModuleGetFunction(void **kernel, void *module, const char *name);
int hipMalloc(void **address, size_t bytes);
int hipDeviceSynchronize(void);
typedef int launch_function(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                            unsigned block_z, unsigned lds_bytes, void *stream, void **args, void **extra);
launch_function hipModuleLaunchKernel;

int launch_twice(const void *image)
{
    void *module, *kernel, *buffer, *args[] = {&buffer, &buffer, &buffer};
    launch_function *found = (launch_function *)dlsym(dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL), "hipModuleLaunchKernel");
    if (!found || hipMalloc(&buffer, 4096) || hipModuleLoadData(&module, image) ||
        hipModuleGetFunction(&kernel, module, "vector_add"))
        return 1;
    return hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL) || found(kernel, 2, 1, 1, 64, 1, 1, 0, NULL, args, NULL) ||
           hipDeviceSynchronize();
}
