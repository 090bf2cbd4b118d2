// A grid in work-items that is no multiple of the work-group, which HIP's other launches cannot have.
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <vector>
#include "../check.h"

#define CHECK_RTC(call) REQUIRE((call) == HIPRTC_SUCCESS)

static const char *source = R"(extern "C" __global__ void count(unsigned *items) { atomicAdd(items, 1u); })";

int main()
{
    hiprtcProgram program;
    CHECK_RTC(hiprtcCreateProgram(&program, source, "count.hip", 0, nullptr, nullptr));
    const char *option = "-fno-offload-uniform-block"; // without it later compilers' kernels are for whole ones alone
    CHECK_RTC(hiprtcCompileProgram(program, HIP_VERSION_MAJOR >= 6, &option));
    size_t bytes;
    CHECK_RTC(hiprtcGetCodeSize(program, &bytes));
    std::vector<char> code(bytes);
    CHECK_RTC(hiprtcGetCode(program, code.data()));
    hipModule_t module;
    hipFunction_t function;
    CHECK(hipModuleLoadData(&module, code.data()));
    CHECK(hipModuleGetFunction(&function, module, "count"));
    unsigned *items, found = 0;
    CHECK(hipMalloc(&items, sizeof *items));
    CHECK(hipMemset(items, 0, sizeof *items));
    void *args[] = {&items};
    CHECK(hipExtModuleLaunchKernel(function, 700, 3, 1, 256, 2, 1, 0, nullptr, args, nullptr));
    CHECK(hipMemcpy(&found, items, sizeof found, hipMemcpyDeviceToHost));
    REQUIRE(found == 700 * 3);
    return passed();
}
