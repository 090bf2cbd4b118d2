// The module API on a code object from a file, argv[1], which with an argv[2] the program reads itself as a fat binary;
// without a file the program's own fat binary through its symbols.
#include <hip/hip_runtime.h>
#include <fstream>
#include <iterator>
#include <vector>
#include "check.h"

struct Scale { float a; short pad[3]; double b; };

extern "C" __global__ void scaled(const float *x, float *y, Scale s, int n, char offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = float(s.a * x[i] + s.b) + offset;
}

int main(int argc, char **argv)
{
    const int n = 777;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++)
        x[i] = 0.25f * i;
    float *dx, *dy;
    CHECK(hipMalloc(&dx, n * sizeof(float)));
    CHECK(hipMalloc(&dy, n * sizeof(float)));
    CHECK(hipMemcpy(dx, x.data(), n * sizeof(float), hipMemcpyHostToDevice));
    Scale s{2.0f, {1, 2, 3}, 0.5};
    int count = n;
    char offset = -3;
    void *args[] = {&dx, &dy, &s, &count, &offset};
    if (argc > 1) {
        hipModule_t module;
        hipFunction_t function, none;
        std::ifstream file(argv[1], std::ios::binary);
        std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
        CHECK(argc > 2 ? hipModuleLoadFatBinary(&module, content.data()) : hipModuleLoad(&module, argv[1]));
        CHECK(hipModuleGetFunction(&function, module, "scaled"));
        REQUIRE(hipModuleGetFunction(&none, module, "unknown") == hipErrorNotFound);
        CHECK(hipModuleLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, args, nullptr));
        struct { float *x, *y; Scale s; int n; char offset; } packed = {dx, dy, s, count, offset};
        size_t bytes = sizeof packed;
        void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
        CHECK(hipModuleLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
        CHECK(hipDeviceSynchronize());
        CHECK(hipModuleUnload(module));
    } else {
        CHECK(hipLaunchKernel(reinterpret_cast<void *>(scaled), dim3(4), dim3(256), args, 0, nullptr));
    }
    CHECK(hipMemcpy(y.data(), dy, n * sizeof(float), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        REQUIRE(y[i] == float(2.0f * x[i] + 0.5) - 3);
    return passed();
}
