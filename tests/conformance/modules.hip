// Modules: loading, functions, variables, unloading; what they refuse.
#include "own_module.h"

extern "C" __global__ void write_42(int *to) { *to = 42; }
extern "C" __global__ void nothing() {}
extern "C" __device__ int device_value = 7;
extern "C" __constant__ int constant_values[3] = {1, 2, 3};
extern "C" __global__ void read_values(int *to) { *to = device_value + constant_values[2]; }
__managed__ int managed_value = 10;
__managed__ int managed_values[4] = {1, 2, 3, 4};
extern "C" __global__ void add_to_managed(int by)
{
    managed_value += by;
    managed_values[3] += by;
}
extern "C" __global__ void __launch_bounds__(64) small() {}

static void launch(hipFunction_t function, void **arguments = nullptr)
{
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(hipDeviceSynchronize());
}

CASE(from_a_bundle_in_memory)
{
    Module module;
    Device<int> d(1, 0);
    void *arguments[] = {&d.at};
    launch(module.function("write_42"), arguments);
    REQUIRE(d.all_are(42));
}
CASE(from_a_code_object_in_memory)
{
    std::vector<char> object = own_code_object();
    hipModule_t module;
    CHECK(hipModuleLoadData(&module, object.data()));
    hipFunction_t function;
    CHECK(hipModuleGetFunction(&function, module, "nothing"));
    launch(function);
    CHECK(hipModuleUnload(module));
    CHECK(hipModuleLoadDataEx(&module, object.data(), 0, nullptr, nullptr));
    CHECK(hipModuleUnload(module));
}
CASE(memory_may_go_when_it_was_loaded)
{
    std::vector<char> object = own_code_object();
    hipModule_t module;
    CHECK(hipModuleLoadData(&module, object.data()));
    std::fill(object.begin(), object.end(), 0);
    hipFunction_t function;
    CHECK(hipModuleGetFunction(&function, module, "nothing"));
    launch(function);
    CHECK(hipModuleUnload(module));
}
CASE(from_files)
{
    File object(own_code_object()), bundle(own_bundle());
    for (const char *name : {object.name, bundle.name}) {
        Module module(name);
        Device<int> d(1, 0);
        void *arguments[] = {&d.at};
        launch(module.function("write_42"), arguments);
        REQUIRE(d.all_are(42));
    }
}
CASE(load_refuses)
{
    hipModule_t module;
    File empty({}), text(std::vector<char>(100, 'x'));
    GIVES(hipErrorInvalidValue, hipModuleLoad(nullptr, text.name));
    GIVES(hipErrorInvalidValue, hipModuleLoad(&module, nullptr));
    GIVES(hipErrorInvalidValue, hipModuleLoad(&module, ""));
    GIVES(hipErrorFileNotFound, hipModuleLoad(&module, "/does/not/exist"));
    GIVES(hipErrorInvalidImage, hipModuleLoad(&module, text.name));
    REQUIRE(hipModuleLoad(&module, empty.name) != hipSuccess);
}
CASE(load_data_refuses)
{
    hipModule_t module;
    char text[4096] = "this is no code object";
    GIVES(hipErrorInvalidValue, hipModuleLoadData(nullptr, own_bundle().data()));
    REQUIRE(hipModuleLoadData(&module, nullptr) != hipSuccess);
    GIVES(hipErrorInvalidImage, hipModuleLoadData(&module, text));
    GIVES(hipErrorInvalidImage, hipModuleLoadData(&module, ""));
    GIVES(hipErrorInvalidImage, hipModuleLoadDataEx(&module, text, 0, nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipModuleLoadDataEx(nullptr, own_bundle().data(), 0, nullptr, nullptr));
}
CASE(code_objects_of_other_machines_are_refused)
{
    hipModule_t module;
    std::vector<char> object = own_code_object();
    object[48] = 0x2C; // e_flags: a processor that is not this one (gfx900)
    REQUIRE(hipModuleLoadData(&module, object.data()) != hipSuccess);
    object[18] = 62; // e_machine: x86-64
    REQUIRE(hipModuleLoadData(&module, object.data()) != hipSuccess);
}
CASE(unload_twice)
{
    hipModule_t module;
    CHECK(hipModuleLoadData(&module, own_bundle().data()));
    CHECK(hipModuleUnload(module));
    GIVES(hipErrorNotFound, hipModuleUnload(module));
    Module other; // and the heap is well
    launch(other.function("nothing"));
}
CASE(functions_refuse)
{
    Module module;
    hipFunction_t function;
    GIVES(hipErrorInvalidValue, hipModuleGetFunction(nullptr, module, "nothing"));
    GIVES(hipErrorInvalidValue, hipModuleGetFunction(&function, module, nullptr));
    GIVES(hipErrorInvalidValue, hipModuleGetFunction(&function, module, ""));
    GIVES(hipErrorNotFound, hipModuleGetFunction(&function, module, "no_such_kernel"));
    GIVES(hipErrorNotFound, hipModuleGetFunction(&function, module, "device_value"));
    hipModule_t gone;
    CHECK(hipModuleLoadData(&gone, own_bundle().data()));
    CHECK(hipModuleUnload(gone));
    GIVES(hipErrorNotFound, hipModuleGetFunction(&function, gone, "nothing"));
}
CASE(variables)
{
    Module module;
    hipDeviceptr_t at;
    size_t bytes = 0;
    int value = 100;
    CHECK(hipModuleGetGlobal(&at, &bytes, module, "device_value"));
    EQUAL(4u, bytes);
    CHECK(hipMemcpyHtoD(at, &value, 4));
    Device<int> d(1, 0);
    void *arguments[] = {&d.at};
    launch(module.function("read_values"), arguments);
    REQUIRE(d.all_are(103));
    CHECK(hipModuleGetGlobal(&at, nullptr, module, "constant_values"));
    CHECK(hipModuleGetGlobal(nullptr, &bytes, module, "constant_values"));
    EQUAL(12u, bytes);
    int first = 0;
    CHECK(hipMemcpyDtoH(&first, at, 4));
    EQUAL(1, first);
}
CASE(variables_refuse)
{
    Module module;
    hipDeviceptr_t at;
    size_t bytes;
    GIVES(hipErrorInvalidValue, hipModuleGetGlobal(nullptr, nullptr, module, "device_value"));
    GIVES(hipErrorInvalidValue, hipModuleGetGlobal(&at, &bytes, module, nullptr));
    GIVES(hipErrorInvalidValue, hipModuleGetGlobal(&at, &bytes, module, ""));
    GIVES(hipErrorNotFound, hipModuleGetGlobal(&at, &bytes, module, "no_such_variable"));
}
CASE(modules_have_variables_of_their_own)
{
    Module first, second;
    hipDeviceptr_t a, b;
    CHECK(hipModuleGetGlobal(&a, nullptr, first, "device_value"));
    CHECK(hipModuleGetGlobal(&b, nullptr, second, "device_value"));
    REQUIRE(a != b);
}
CASE(managed_variables_of_modules)
{
    Module module;
    int by = 5;
    void *arguments[] = {&by};
    launch(module.function("add_to_managed"), arguments);
    hipDeviceptr_t at;
    size_t bytes = 0;
    int value = 0, values[4] = {};
    CHECK(hipModuleGetGlobal(&at, &bytes, module, "managed_value"));
    EQUAL(4u, bytes);
    CHECK(hipMemcpyDtoH(&value, at, 4));
    EQUAL(15, value);
    EQUAL(15, *static_cast<int *>(reinterpret_cast<void *>(at))); // the host may read it
    CHECK(hipModuleGetGlobal(&at, &bytes, module, "managed_values"));
    EQUAL(16u, bytes);
    CHECK(hipMemcpyDtoH(values, at, 16));
    EQUAL(1, values[0]);
    EQUAL(9, values[3]);
    EQUAL(10, managed_value); // the program's own is another
}
CASE(managed_variables_of_modules_from_files)
{
    File file(own_code_object());
    Module module(file.name);
    int by = 1, value = 0;
    void *arguments[] = {&by};
    hipFunction_t function = module.function("add_to_managed");
    launch(function, arguments);
    launch(function, arguments);
    hipDeviceptr_t at;
    CHECK(hipModuleGetGlobal(&at, nullptr, module, "managed_value"));
    CHECK(hipMemcpyDtoH(&value, at, 4));
    EQUAL(12, value);
}
CASE(attributes_of_functions)
{
    Module module;
    hipFunction_t function = module.function("nothing");
    int value = -1;
    CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    EQUAL(1024, value);
    CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, module.function("small")));
    EQUAL(64, value);
    CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
    EQUAL(0, value);
    CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function));
    EQUAL(0, value);
    CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, function));
    REQUIRE(value >= 0 && value <= 512);
    int major, minor;
    CHECK(hipDeviceComputeCapability(&major, &minor, 0));
    CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_BINARY_VERSION, function));
    EQUAL(10 * major + minor, value);
    CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_PTX_VERSION, function));
    EQUAL(10 * major + minor, value);
    CHECK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    EQUAL(65536, value);
    GIVES(hipErrorInvalidValue, hipFuncGetAttribute(nullptr, HIP_FUNC_ATTRIBUTE_NUM_REGS, function));
    GIVES(hipErrorInvalidValue, hipFuncGetAttribute(&value, hipFunction_attribute(-1), function));
    GIVES(hipErrorInvalidHandle, hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, nullptr));
}
#if HIP_VERSION_MAJOR >= 7
CASE(functions_are_counted)
{
    Module module;
    unsigned count = 0;
    CHECK(hipModuleGetFunctionCount(&count, module));
    EQUAL(5u, count);
    GIVES(hipErrorInvalidHandle, hipModuleGetFunctionCount(&count, nullptr));
}
CASE(fat_binary)
{
    hipModule_t module;
    hipFunction_t function;
    CHECK(hipModuleLoadFatBinary(&module, own_bundle().data()));
    CHECK(hipModuleGetFunction(&function, module, "nothing"));
    launch(function);
    CHECK(hipModuleUnload(module));
}
CASE(function_of_a_symbol)
{
    hipFunction_t function;
    int host;
    CHECK(hipGetFuncBySymbol(&function, reinterpret_cast<const void *>(nothing)));
    launch(function);
    GIVES(hipErrorInvalidDeviceFunction, hipGetFuncBySymbol(&function, &host));
    GIVES(hipErrorInvalidDeviceFunction, hipGetFuncBySymbol(&function, nullptr));
}
#endif
CASE(loaded_and_unloaded_many_times)
{
    for (int i = 0; i < 20; i++) {
        Module module;
        launch(module.function("nothing"));
    }
}
