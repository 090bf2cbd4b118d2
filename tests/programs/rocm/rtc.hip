// A kernel that hipRTC compiles from its source while the program runs; a mistake in another source is told.
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <cstring>
#include <string>
#include <vector>
#include "../check.h"

#define CHECK_RTC(call) REQUIRE((call) == HIPRTC_SUCCESS)

static const char *source = R"(
template <typename T> __global__ void scale(T *data, T factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] = data[i] * factor + OFFSET;
}
)";

static std::string log_of(hiprtcProgram program)
{
    size_t size = 0;
    CHECK_RTC(hiprtcGetProgramLogSize(program, &size));
    std::string log(size, '\0');
    if (size)
        CHECK_RTC(hiprtcGetProgramLog(program, &log[0]));
    return log;
}

int main()
{
    const int n = 300;
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    std::string architecture = std::string("--offload-arch=") + properties.gcnArchName;
    const char *options[] = {architecture.c_str(), "-DOFFSET=2"};

    hiprtcProgram wrong, program;
    CHECK_RTC(hiprtcCreateProgram(&wrong, "__global__ void f() { nothing; }", "wrong.hip", 0, nullptr, nullptr));
    REQUIRE(hiprtcCompileProgram(wrong, 1, options) == HIPRTC_ERROR_COMPILATION);
    REQUIRE(log_of(wrong).find("undeclared identifier 'nothing'") != std::string::npos);
    CHECK_RTC(hiprtcDestroyProgram(&wrong));

    CHECK_RTC(hiprtcCreateProgram(&program, source, "scale.hip", 0, nullptr, nullptr));
    CHECK_RTC(hiprtcAddNameExpression(program, "scale<int>"));
    if (hiprtcCompileProgram(program, 2, options) != HIPRTC_SUCCESS) {
        std::printf("%s\n", log_of(program).c_str());
        return 1;
    }
    const char *name;
    CHECK_RTC(hiprtcGetLoweredName(program, "scale<int>", &name));
    size_t size;
    CHECK_RTC(hiprtcGetCodeSize(program, &size));
    std::vector<char> code(size);
    CHECK_RTC(hiprtcGetCode(program, code.data()));

    hipModule_t module;
    hipFunction_t function;
    CHECK(hipModuleLoadData(&module, code.data()));
    CHECK(hipModuleGetFunction(&function, module, name));
    CHECK_RTC(hiprtcDestroyProgram(&program));
    int host[n], *data, factor = 3, count = n;
    for (int i = 0; i < n; i++)
        host[i] = i;
    CHECK(hipMalloc(&data, sizeof host));
    CHECK(hipMemcpy(data, host, sizeof host, hipMemcpyHostToDevice));
    void *arguments[] = {&data, &factor, &count};
    CHECK(hipModuleLaunchKernel(function, 5, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(hipMemcpy(host, data, sizeof host, hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        REQUIRE(host[i] == 3 * i + 2);
    CHECK(hipModuleUnload(module));
    return passed();
}
