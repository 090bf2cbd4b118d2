// hiprtc: programs, arguments that are wrong, options, headers, logs. (hip/hiprtc.h; clr, hiprtc.cpp)
#include "rtc.h"

#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <unistd.h>

static const char twice[] = "extern \"C\" __global__ void twice(int *v) { v[threadIdx.x] *= 2; }\n";

CASE(version)
{
    int major = 0, minor = -1;
    RTC_CHECK(hiprtcVersion(&major, &minor));
    EQUAL(9, major);
    EQUAL(0, minor);
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcVersion(nullptr, &minor));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcVersion(&major, nullptr));
}

CASE(error_strings)
{
    REQUIRE(std::string("HIPRTC_SUCCESS") == hiprtcGetErrorString(HIPRTC_SUCCESS));
    REQUIRE(std::string("HIPRTC_ERROR_INTERNAL_ERROR") == hiprtcGetErrorString(HIPRTC_ERROR_INTERNAL_ERROR));
    REQUIRE(std::string("HIPRTC_ERROR_LINKING") == hiprtcGetErrorString(HIPRTC_ERROR_LINKING));
    for (int number : {-1, 12, 99, 101, 1 << 30}) {
        const char *words = hiprtcGetErrorString(hiprtcResult(number));
        REQUIRE(words && *words && std::strncmp(words, "HIPRTC_", 7) != 0);
    }
}

CASE(create_arguments)
{
    hiprtcProgram program;
    const char *header = "int x;", *name = "x.h", *none = nullptr, *empty = "";
    RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcCreateProgram(nullptr, twice, "p", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCreateProgram(&program, nullptr, "p", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCreateProgram(&program, "", "p", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCreateProgram(&program, twice, "p", -1, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCreateProgram(&program, twice, "p", 1, nullptr, &name));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCreateProgram(&program, twice, "p", 1, &header, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCreateProgram(&program, twice, "p", 1, &none, &name));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCreateProgram(&program, twice, "p", 1, &header, &empty));
    RTC_CHECK(hiprtcCreateProgram(&program, twice, nullptr, 0, nullptr, nullptr));
    RTC_CHECK(hiprtcDestroyProgram(&program));
}

CASE(destroyed_programs)
{
    hiprtcProgram program;
    size_t bytes;
    char room[8];
    const char *name;
    RTC_CHECK(hiprtcCreateProgram(&program, twice, "p", 0, nullptr, nullptr));
    RTC_CHECK(hiprtcDestroyProgram(&program));
    RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcDestroyProgram(&program));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcDestroyProgram(nullptr));
    for (hiprtcProgram bad : {program, hiprtcProgram(nullptr), hiprtcProgram(0xffff)}) {
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcCompileProgram(bad, 0, nullptr));
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcAddNameExpression(bad, "x"));
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetLoweredName(bad, "x", &name));
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetProgramLogSize(bad, &bytes));
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetProgramLog(bad, room));
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetCodeSize(bad, &bytes));
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetCode(bad, room));
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetBitcodeSize(bad, &bytes));
        RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetBitcode(bad, room));
    }
}

CASE(null_arguments)
{
    Program program(twice);
    const char *name, *none = nullptr;
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCompileProgram(program.handle, -1, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCompileProgram(program.handle, 1, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcCompileProgram(program.handle, 1, &none));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcAddNameExpression(program.handle, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcAddNameExpression(program.handle, ""));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetLoweredName(program.handle, nullptr, &name));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetLoweredName(program.handle, "twice", nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetProgramLogSize(program.handle, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetProgramLog(program.handle, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetCodeSize(program.handle, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetCode(program.handle, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetBitcodeSize(program.handle, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetBitcode(program.handle, nullptr));
}

CASE(nothing_before_compilation)
{
    Program program(twice);
    size_t bytes = 1;
    RTC_CHECK(hiprtcGetCodeSize(program.handle, &bytes));
    EQUAL(0u, bytes);
    RTC_CHECK(hiprtcGetProgramLogSize(program.handle, &bytes));
    EQUAL(0u, bytes);
    RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetBitcodeSize(program.handle, &bytes));
}

CASE(code_runs)
{
    Program program(twice);
    program.compiled();
    REQUIRE(program.log().empty());
    std::vector<char> code = program.code();
    REQUIRE(std::memcmp(code.data(), "\177ELF", 4) == 0);
    REQUIRE((Loaded(code.data()).run<int>("twice", {1, -2, 300, 7}) == std::vector<int>{2, -4, 600, 14}));
}

CASE(compiled_again)
{
    Program program("extern \"C\" __global__ void k(int *v) { v[threadIdx.x] += N; }\n");
    program.compiled({"-DN=1"});
    std::vector<char> one = program.code();
    program.compiled({"-DN=2"});
    std::vector<char> two = program.code();
    REQUIRE(program.compile({"-DN=nonsense"}) == HIPRTC_ERROR_COMPILATION);
    REQUIRE(program.code().empty());
    REQUIRE((Loaded(one.data()).run<int>("k", {5, 6}) == std::vector<int>{6, 7}));
    REQUIRE((Loaded(two.data()).run<int>("k", {5, 6}) == std::vector<int>{7, 8}));
}

CASE(what_is_built_in)
{
    Program program(R"(
extern "C" __global__ void k(float *v)
{
    __shared__ float all[64];
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    float4 four = make_float4(1, 2, 3, 4);
    int2 bits = {__popc(0xf0f), __clz(1)};
    all[i] = sinf(v[i]) + four.w + bits.x * 10 + bits.y + (float)min(3, 4) + sqrtf(16.0f) + warpSize;
    __syncthreads();
    v[i] = all[i] + __shfl(v[i], 0);
    atomicAdd(&v[3], 1.0f);
}
)");
    program.compiled();
    std::vector<char> code = program.code();
    std::vector<float> got = Loaded(code.data()).run<float>("k", {0, 0, 0, 0});
    for (int i = 0; i < 4; i++)
        EQUAL(0 + 4 + 80 + 31 + 3 + 4 + 64 + (i == 3 ? 4 : 0), got[i]);
}

CASE(types_that_are_built_in)
{
    const char source[] = "static_assert(__hip_internal::is_same<ptrdiff_t, WANTED>::value, \"\");\n"
                          "extern \"C\" __global__ void k(clock_t *v) { std::ptrdiff_t n = sizeof(size_t); uint4 u = {1, 2, 3, 4}; *v = n + u.w; }\n";
    Program program(source), wide(source);
    program.compiled({"-DWANTED=long"});
    wide.compiled({"-DWANTED=long long", "-D__HIPRTC_PTRDIFF_T_IS_LONG_LONG__=1"});
    std::vector<char> code = program.code();
    EQUAL(12, Loaded(code.data()).run<long>("k", {0})[0]);
}

CASE(standard_headers)
{
    Program program("#include <cstddef>\n#include <cstdint>\n#include <type_traits>\n"
                    "extern \"C\" __global__ void k(std::int32_t *v) { *v = std::is_same<std::size_t, unsigned long>::value ? 3 : 4; }\n");
    program.compiled();
    std::vector<char> code = program.code();
    EQUAL(3, Loaded(code.data()).run<int>("k", {0})[0]);
}

CASE(includes_of_what_is_there)
{
    Program program("#include <hip/hip_runtime.h>\nextern \"C\" __global__ void k(int *v) { *v = blockDim.x; }\n");
    program.compiled();
    std::vector<char> code = program.code();
    EQUAL(1, Loaded(code.data()).run<int>("k", {0})[0]);
}

CASE(shared_memory_and_launch_bounds)
{
    Program program("extern \"C\" __global__ __launch_bounds__(128) void k(int *v)\n{\n    extern __shared__ int room[];\n    room[threadIdx.x] = v[threadIdx.x];\n"
                    "    __syncthreads();\n    v[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x] * warpSize;\n}\n");
    program.compiled();
    std::vector<char> code = program.code();
    Loaded loaded(code.data());
    int host[100], *memory;
    for (int i = 0; i < 100; i++)
        host[i] = i;
    CHECK(hipMalloc(&memory, sizeof host));
    CHECK(hipMemcpy(memory, host, sizeof host, hipMemcpyHostToDevice));
    void *arguments[] = {&memory};
    CHECK(hipModuleLaunchKernel(loaded.kernel("k"), 1, 1, 1, 100, 1, 1, sizeof host, nullptr, arguments, nullptr));
    CHECK(hipMemcpy(host, memory, sizeof host, hipMemcpyDeviceToHost));
    CHECK(hipFree(memory));
    for (int i = 0; i < 100; i++)
        EQUAL((99 - i) * 64, host[i]);
}

CASE(headers)
{
    Program program("#include \"a.h\"\n#include <deep/b.h>\nextern \"C\" __global__ void k(int *v) { v[threadIdx.x] = a(v[threadIdx.x]); }\n",
                    {"#include \"deep/b.h\"\n__device__ int a(int x) { return b(x) + 1; }\n",
                     "#pragma once\n__device__ inline int b(int x) { return 10 * x; }\n"},
                    {"a.h", "deep/b.h"});
    program.compiled();
    std::vector<char> code = program.code();
    REQUIRE((Loaded(code.data()).run<int>("k", {1, 2}) == std::vector<int>{11, 21}));
}

CASE(headers_stay_inside)
{
    Program program(twice, {"int x;\n"}, {"../../escaped.h"});
    REQUIRE(program.compile() == HIPRTC_ERROR_COMPILATION);
    REQUIRE(program.log().find("escaped.h") != std::string::npos);
}

CASE(header_that_is_not_there)
{
    Program program("#include \"nowhere.h\"\n");
    REQUIRE(program.compile() == HIPRTC_ERROR_COMPILATION);
    REQUIRE(program.log().find("nowhere.h") != std::string::npos);
}

CASE(options_define_and_undefine)
{
    Program program("#ifdef GONE\n#error GONE\n#endif\nextern \"C\" __global__ void k(int *v) { v[threadIdx.x] = FIRST + SECOND; }\n");
    program.compiled({"-DFIRST=3", "-D", "SECOND=4", "-DGONE", "-UGONE"});
    std::vector<char> code = program.code();
    EQUAL(7, Loaded(code.data()).run<int>("k", {0})[0]);
}

CASE(options_include)
{
    char folder[] = "rtc-XXXXXX";
    REQUIRE(mkdtemp(folder));
    std::string header = std::string(folder) + "/eleven.h", path = std::string("-I./") + folder, spaced = std::string("-I  ./") + folder;
    FILE *file = std::fopen(header.c_str(), "w");
    std::fputs("#define ELEVEN 11\n", file);
    std::fclose(file);
    Program program("#include <eleven.h>\nextern \"C\" __global__ void k(int *v) { v[threadIdx.x] = ELEVEN; }\n");
    Program forced("extern \"C\" __global__ void k(int *v) { v[threadIdx.x] = ELEVEN; }\n");
    hiprtcResult results[] = {program.compile({path.c_str()}), forced.compile({spaced.c_str(), "-include", "eleven.h"})};
    file = std::fopen(header.c_str(), "w");
    std::fputs("#define ELEVEN 12\n", file);
    std::fclose(file);
    Program again("#include <eleven.h>\nextern \"C\" __global__ void k(int *v) { v[threadIdx.x] = ELEVEN; }\n");
    hiprtcResult changed = again.compile({path.c_str()});
    std::remove(header.c_str());
    rmdir(folder);
    REQUIRE(results[0] == HIPRTC_SUCCESS && results[1] == HIPRTC_SUCCESS && changed == HIPRTC_SUCCESS);
    std::vector<char> code = program.code(), other = forced.code(), newer = again.code();
    EQUAL(11, Loaded(code.data()).run<int>("k", {0})[0]);
    EQUAL(11, Loaded(other.data()).run<int>("k", {0})[0]);
    EQUAL(12, Loaded(newer.data()).run<int>("k", {0})[0]);
}

CASE(options_standard)
{
    Program program("extern \"C\" __global__ void k(int *v) { if (int j = 10; *v % 2 == 0) *v = j; }\n#if __cplusplus != 202002L\n#error older\n#endif\n");
    program.compiled({"-std=c++20", "-Werror"});
    REQUIRE(program.compile({"-std=c++14"}) == HIPRTC_ERROR_COMPILATION);
}

CASE(options_optimize)
{
    for (const char *level : {"-O0", "-O1", "-O3", "-ffast-math", "-ffp-contract=off", "-fgpu-flush-denormals-to-zero"}) {
        Program program(twice);
        program.compiled({level});
        std::vector<char> code = program.code();
        EQUAL(42, Loaded(code.data()).run<int>("twice", {21})[0]);
    }
}

CASE(options_unknown)
{
    Program program(twice);
    REQUIRE(program.compile({"--no-such-option"}) == HIPRTC_ERROR_COMPILATION);
    REQUIRE(program.log().find("--no-such-option") != std::string::npos);
}

CASE(options_that_do_nothing)
{
    Program program(twice);
    program.compiled({"-hip-pch", "--save-temps"});
}

CASE(options_verbose)
{
    Program program(twice);
    program.compiled({"-v"});
    REQUIRE(program.log().find("-cc1") != std::string::npos);
}

CASE(architecture_of_the_device)
{
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    for (const char *spelling : {"--offload-arch=", "--gpu-architecture="}) {
        std::string option = std::string(spelling) + properties.gcnArchName;
        Program program(twice);
        program.compiled({option.c_str()});
        std::vector<char> code = program.code();
        EQUAL(4, Loaded(code.data()).run<int>("twice", {2})[0]);
    }
}

// EF_AMDGPU_MACH is the lowest byte of e_flags (LLVM, AMDGPUUsage).
CASE(architectures)
{
    struct { const char *option; int machine; } const each[] = {
        {"--offload-arch=gfx906", 0x2f}, {"--offload-arch=gfx90a", 0x3f}, {"--gpu-architecture=gfx942", 0x4c}, {"--offload-arch=gfx1100", 0x41}};
    for (const auto &one : each) {
        Program program(twice);
        program.compiled({one.option});
        EQUAL(one.machine, int(program.code()[48] & 0xff));
    }
    Program program(twice);
    REQUIRE(program.compile({"--offload-arch=gfx1"}) == HIPRTC_ERROR_COMPILATION);
    REQUIRE(program.log().find("gfx1") != std::string::npos);
}

CASE(another_devices_code_is_refused)
{
    Program program(twice);
    program.compiled({"--offload-arch=gfx1100"});
    hipModule_t module;
    std::vector<char> code = program.code();
    REQUIRE(hipModuleLoadData(&module, code.data()) != hipSuccess);
}

CASE(log_of_errors)
{
    Program program("extern \"C\" __global__ void k(int *v)\n{\n    *v = undeclared;\n}\n", "folder/some name.hip");
    REQUIRE(program.compile() == HIPRTC_ERROR_COMPILATION);
    REQUIRE(program.log().find("some name.hip:3:10: error:") != std::string::npos);
    REQUIRE(program.log().find("undeclared") != std::string::npos);
    REQUIRE(program.code().empty());
}

CASE(log_of_warnings)
{
    Program program("#warning mind this\nextern \"C\" __global__ void k(int *v) { *v = 1; }\n");
    program.compiled();
    REQUIRE(program.log().find("mind this") != std::string::npos);
    size_t bytes = 0;
    RTC_CHECK(hiprtcGetProgramLogSize(program.handle, &bytes));
    EQUAL(program.log().size() + 1, bytes);
    program.compiled({"-w"});
    REQUIRE(program.log().empty());
    REQUIRE(program.compile({"-Werror"}) == HIPRTC_ERROR_COMPILATION);
}

CASE(no_builtin_header)
{
    Program program("extern \"C\" __attribute__((global)) void k(int *v) { *v = 5; }\n#ifdef __HIPCC_RTC__\n#error header\n#endif\n");
    program.compiled({"--hiprtc-no-builtin-header"});
    std::vector<char> code = program.code();
    EQUAL(5, Loaded(code.data()).run<int>("k", {0})[0]);
    Program macros("extern \"C\" __global__ void k(int *v) { *v = 5; }\n");
    REQUIRE(macros.compile({"--hiprtc-no-builtin-header"}) == HIPRTC_ERROR_COMPILATION);
}

CASE(two_threads)
{
    std::atomic<int> right{0};
    auto work = [&right](int factor) {
        try {
            std::string text = "extern \"C\" __global__ void k(int *v) { v[threadIdx.x] *= " + std::to_string(factor) + "; }\n";
            Program program(text.c_str());
            program.compiled();
            std::vector<char> code = program.code();
            if (Loaded(code.data()).run<int>("k", {7, 8}) == std::vector<int>{7 * factor, 8 * factor})
                right++;
        } catch (const conformance::Failed &) {
        }
    };
    std::thread one(work, 3), other(work, 5);
    one.join();
    other.join();
    EQUAL(2, right.load());
}

CASE(after_fork)
{
    Program program(twice);
    program.compiled({"--offload-arch=gfx90a"});
    pid_t child = fork();
    if (!child) {
        Program own("extern \"C\" __global__ void forked(int *v) { *v = 1; }\n");
        _exit(own.compile({"--offload-arch=gfx90a"}) == HIPRTC_SUCCESS && !own.code().empty() ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EQUAL(0, status);
    program.compiled({"--offload-arch=gfx90a", "-DAGAIN"});
}

// Each library has programs of its own; what they make is the same.
CASE(the_library_of_its_own)
{
    void *library = dlopen("libhiprtc.so", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    auto create = reinterpret_cast<decltype(&hiprtcCreateProgram)>(dlsym(library, "hiprtcCreateProgram"));
    auto compile = reinterpret_cast<decltype(&hiprtcCompileProgram)>(dlsym(library, "hiprtcCompileProgram"));
    auto size = reinterpret_cast<decltype(&hiprtcGetCodeSize)>(dlsym(library, "hiprtcGetCodeSize"));
    auto get = reinterpret_cast<decltype(&hiprtcGetCode)>(dlsym(library, "hiprtcGetCode"));
    auto destroy = reinterpret_cast<decltype(&hiprtcDestroyProgram)>(dlsym(library, "hiprtcDestroyProgram"));
    REQUIRE(create && compile && size && get && destroy && create != &hiprtcCreateProgram);
    hiprtcProgram program;
    size_t bytes = 0;
    RTC_CHECK(create(&program, twice, "p", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetCodeSize(program, &bytes));
    RTC_CHECK(compile(program, 0, nullptr));
    RTC_CHECK(size(program, &bytes));
    std::vector<char> code(bytes);
    RTC_CHECK(get(program, code.data()));
    RTC_CHECK(destroy(&program));
    EQUAL(18, Loaded(code.data()).run<int>("twice", {9})[0]);
}
