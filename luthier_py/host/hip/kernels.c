/* What is known of a kernel, and what programs set of one. */
#include "checks.h"
#include "device.h"
#include "streams.h"

enum { CAPABILITY_MAJOR = 23, CAPABILITY_MINOR = 61 }; /* hipDeviceAttributeComputeCapability... */
enum { MAX_DYNAMIC_LDS = 8, LDS_CARVEOUT = 9, LAST_SETTABLE = 10 }; /* hipFuncAttribute */

static hipError_t kernel_of(const void *function, struct kernel **kernel)
{
    return function_kernel(function, device_current(), kernel);
}

/* As AMD's runtime counts versions of its instruction sets: gfx90a is 90. */
static int version_of(const struct kernel *kernel)
{
    int major = 0, minor = 0;
    hipDeviceGetAttribute(&major, CAPABILITY_MAJOR, kernel->module->device);
    hipDeviceGetAttribute(&minor, CAPABILITY_MINOR, kernel->module->device);
    return 10 * major + minor;
}

static int free_lds(const struct kernel *kernel)
{
    return (int)(device_facts(kernel->module->device)->lds_bytes - kernel->lds_bytes);
}

static int dynamic_lds(const struct kernel *kernel) { return kernel->dynamic_lds_set ? kernel->dynamic_lds : free_lds(kernel); }

hipError_t hipFuncGetAttribute(int *value, int attribute, struct kernel *kernel)
{
    int version = version_of(kernel);
    const int values[] = {(int)kernel->max_threads, (int)kernel->lds_bytes, 0, (int)kernel->private_bytes, (int)kernel->vgprs,
                          version, version, 0, dynamic_lds(kernel), 0};
    if (!between(attribute, 0, (long long)(sizeof values / sizeof *values) - 1))
        return hipErrorInvalidValue;
    *value = values[attribute];
    return hipSuccess;
}

hipError_t hipFuncGetAttributes(struct function_attributes *attributes, const void *function)
{
    struct kernel *kernel;
    hipError_t error = kernel_of(function, &kernel);
    if (error)
        return error;
    *attributes = (struct function_attributes){
        .binary_version = version_of(kernel), .local_bytes = kernel->private_bytes, .max_dynamic_lds = dynamic_lds(kernel),
        .max_threads = (int)kernel->max_threads, .registers = (int)kernel->vgprs, .ptx_version = version_of(kernel),
        .shared_bytes = kernel->lds_bytes};
    return hipSuccess;
}

/* A limit is stored; how LDS and cache share their memory cannot be set on these devices. */
hipError_t hipFuncSetAttribute(const void *function, int attribute, int value)
{
    struct kernel *kernel;
    hipError_t error = function && !between(attribute, 0, LAST_SETTABLE) ? hipErrorInvalidValue : kernel_of(function, &kernel);
    if (error)
        return error;
    if (attribute == LDS_CARVEOUT && !between(value, -1, 100))
        return hipErrorInvalidValue;
    if (attribute != MAX_DYNAMIC_LDS)
        return hipSuccess;
    if (!between(value, 0, free_lds(kernel)))
        return hipErrorInvalidValue;
    kernel->dynamic_lds_set = true;
    kernel->dynamic_lds = value;
    return hipSuccess;
}

static hipError_t known(const void *function)
{
    struct kernel *kernel;
    return kernel_of(function, &kernel);
}

hipError_t hipFuncSetCacheConfig(const void *function, int config) { return (void)config, known(function); }
hipError_t hipFuncSetSharedMemConfig(const void *function, int config) { return (void)config, known(function); }

hipError_t hipGetFuncBySymbol(struct kernel **kernel, const void *function) { return kernel_of(function, kernel); }

const char *hipKernelNameRef(struct kernel *kernel) { return handle_is(kernel, HANDLE_KERNEL) ? kernel->name : NULL; }

const char *hipKernelNameRefByPtr(const void *function, stream_t stream)
{
    struct kernel *kernel;
    return function_kernel(function, stream_device(stream), &kernel) == hipSuccess ? kernel->name : NULL;
}
