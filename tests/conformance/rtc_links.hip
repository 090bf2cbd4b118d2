// hiprtc: bitcode of several programs to one code object, by hiprtcLink... and hipLink... (clr, hiprtc.cpp, hip_module.cpp)
#include "rtc.h"

#include <unistd.h>

static const char caller[] = "__device__ int helper(int);\n__device__ int offset = 5;\nextern \"C\" __global__ void top(int *v) { v[threadIdx.x] = helper(v[threadIdx.x]) + offset; }\n";
static const char callee[] = "__device__ int helper(int x) { return 3 * x + __popc(255); }\n";
static const std::vector<int> given{1, 2, 3}, wanted{3 + 8 + 5, 6 + 8 + 5, 9 + 8 + 5};

static std::vector<char> bitcode_of(const char *source)
{
    Program program(source);
    program.compiled({"-fgpu-rdc"});
    return program.bitcode();
}

static void loads(const void *binary, size_t bytes)
{
    REQUIRE(bytes > 4 && std::memcmp(binary, "\177ELF", 4) == 0);
    REQUIRE(Loaded(binary).run<int>("top", given) == wanted);
}

struct Link {
    hiprtcLinkState handle = nullptr;
    explicit Link(std::vector<hipJitOption> options = {}, std::vector<void *> values = {})
    {
        RTC_CHECK(hiprtcLinkCreate(unsigned(options.size()), options.data(), values.data(), &handle));
    }
    ~Link() { hiprtcLinkDestroy(handle); }
    hiprtcResult add(std::vector<char> &data, hipJitInputType kind = hipJitInputLLVMBitcode)
    {
        return hiprtcLinkAddData(handle, kind, data.data(), data.size(), "part", 0, nullptr, nullptr);
    }
};

// A bundle as clang-offload-bundler writes it (Clang documentation, "ClangOffloadBundler").
static std::vector<char> bundle(const std::vector<std::pair<std::string, std::vector<char>>> &parts)
{
    std::string table = "__CLANG_OFFLOAD_BUNDLE__";
    auto number = [&table](uint64_t value) { table.append(reinterpret_cast<char *>(&value), sizeof value); };
    uint64_t place = 4096;
    number(parts.size());
    for (const auto &part : parts) {
        number(place), number(part.second.size()), number(part.first.size());
        table += part.first;
        place += part.second.size();
    }
    table.resize(4096);
    std::vector<char> all(table.begin(), table.end());
    for (const auto &part : parts)
        all.insert(all.end(), part.second.begin(), part.second.end());
    return all;
}

CASE(bitcode)
{
    std::vector<char> code = bitcode_of(caller);
    REQUIRE(std::memcmp(code.data(), "BC\xc0\xde", 4) == 0);
    Program program(caller);
    program.compiled({"-fgpu-rdc"});
    REQUIRE(program.code().empty());
    Program other("__global__ void k() {}\n");
    other.compiled();
    size_t bytes;
    char room;
    RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetBitcodeSize(other.handle, &bytes));
    RTC(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetBitcode(other.handle, &room));
}

CASE(two_programs)
{
    std::vector<char> one = bitcode_of(caller), other = bitcode_of(callee);
    void *binary;
    size_t bytes;
    Link link;
    RTC_CHECK(link.add(one));
    RTC_CHECK(link.add(other));
    RTC_CHECK(hiprtcLinkComplete(link.handle, &binary, &bytes));
    loads(binary, bytes);
}

CASE(output_outlives_the_link)
{
    std::vector<char> one = bitcode_of(caller), other = bitcode_of(callee);
    void *binary;
    size_t bytes;
    {
        Link link;
        RTC_CHECK(link.add(one));
        RTC_CHECK(link.add(other));
        RTC_CHECK(hiprtcLinkComplete(link.handle, &binary, &bytes));
    }
    loads(binary, bytes);
}

CASE(files)
{
    std::vector<char> one = bitcode_of(caller), other = bitcode_of(callee);
    char path[] = "rtc-XXXXXX";
    int file = mkstemp(path);
    REQUIRE(write(file, other.data(), other.size()) == ssize_t(other.size()));
    close(file);
    void *binary = nullptr;
    size_t bytes = 0;
    Link link;
    RTC_CHECK(link.add(one));
    hiprtcResult added = hiprtcLinkAddFile(link.handle, hipJitInputLLVMBitcode, path, 0, nullptr, nullptr);
    unlink(path);
    RTC_CHECK(added);
    RTC_CHECK(hiprtcLinkComplete(link.handle, &binary, &bytes));
    loads(binary, bytes);
}

CASE(bundles)
{
    std::vector<char> one = bitcode_of(caller), other = bitcode_of(callee);
    std::vector<char> bundled = bundle({{"host-x86_64-unknown-linux-gnu", {}}, {"hip-amdgcn-amd-amdhsa-unknown-gfx942", one},
                                        {"hip-amdgcn-amd-amdhsa-unknown-gfx90a", other}});
    void *binary;
    size_t bytes;
    Link link;
    RTC_CHECK(link.add(one));
    RTC_CHECK(link.add(bundled, hipJitInputLLVMBundledBitcode));
    RTC_CHECK(hiprtcLinkComplete(link.handle, &binary, &bytes));
    loads(binary, bytes);
}

CASE(bundle_for_others)
{
    std::vector<char> one = bitcode_of(caller), bundled = bundle({{"hip-amdgcn-amd-amdhsa-unknown-gfx942", one}});
    char words[256] = "";
    void *binary;
    size_t bytes;
    Link link({hipJitOptionErrorLogBuffer, hipJitOptionErrorLogBufferSizeBytes}, {words, reinterpret_cast<void *>(sizeof words)});
    RTC_CHECK(link.add(bundled, hipJitInputLLVMBundledBitcode));
    RTC(HIPRTC_ERROR_LINKING, hiprtcLinkComplete(link.handle, &binary, &bytes));
    REQUIRE(std::string(words).find("gfx942") != std::string::npos);
}

CASE(undefined_function)
{
    std::vector<char> one = bitcode_of(caller);
    char words[512] = "";
    void *binary;
    size_t bytes;
    Link link({hipJitOptionErrorLogBuffer, hipJitOptionErrorLogBufferSizeBytes}, {words, reinterpret_cast<void *>(sizeof words)});
    RTC_CHECK(link.add(one));
    RTC(HIPRTC_ERROR_LINKING, hiprtcLinkComplete(link.handle, &binary, &bytes));
    REQUIRE(std::string(words).find("helper") != std::string::npos);
}

CASE(no_bitcode)
{
    std::vector<char> noise(100, 'x');
    void *binary;
    size_t bytes;
    Link link, empty;
    RTC_CHECK(link.add(noise));
    RTC(HIPRTC_ERROR_LINKING, hiprtcLinkComplete(link.handle, &binary, &bytes));
    RTC(HIPRTC_ERROR_LINKING, hiprtcLinkComplete(empty.handle, &binary, &bytes));
}

CASE(options_for_the_compiler)
{
    std::vector<char> one = bitcode_of(caller), other = bitcode_of(callee);
    const char *words[] = {"-mllvm", "-inline-threshold=1", "-mllvm", "-inlinehint-threshold=1"};
    void *binary;
    size_t bytes;
    Link link({hipJitOptionIRtoISAOptExt, hipJitOptionIRtoISAOptCountExt, hipJitOptionOptimizationLevel, hipJitOptionMaxRegisters},
              {words, reinterpret_cast<void *>(4), reinterpret_cast<void *>(1), reinterpret_cast<void *>(32)});
    RTC_CHECK(link.add(one));
    RTC_CHECK(link.add(other));
    RTC_CHECK(hiprtcLinkComplete(link.handle, &binary, &bytes));
    loads(binary, bytes);
    const char *wrong[] = {"-mllvm", "-no-such-option-of-llvm"};
    Link refused({hipJitOptionIRtoISAOptExt, hipJitOptionIRtoISAOptCountExt}, {wrong, reinterpret_cast<void *>(2)});
    RTC_CHECK(refused.add(one));
    RTC_CHECK(refused.add(other));
    RTC(HIPRTC_ERROR_LINKING, hiprtcLinkComplete(refused.handle, &binary, &bytes));
}

CASE(rtc_link_arguments)
{
    hipJitOption options[] = {hipJitOptionInfoLogBuffer};
    void *values[] = {nullptr}, *binary;
    hiprtcLinkState made, bad = hiprtcLinkState(0xffff);
    size_t bytes;
    char some[4] = "BC";
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkCreate(0, nullptr, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkCreate(1, nullptr, values, &made));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkCreate(1, options, nullptr, &made));
    RTC(HIPRTC_ERROR_INVALID_OPTION, hiprtcLinkCreate(1, options, values, &made));
    Link link;
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkAddData(link.handle, hipJitInputLLVMBitcode, nullptr, 4, "", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkAddData(link.handle, hipJitInputLLVMBitcode, some, 0, "", 0, nullptr, nullptr));
    for (hipJitInputType kind : {hipJitInputCubin, hipJitInputPtx, hipJitInputFatBinary, hipJitInputObject, hipJitInputLibrary, hipJitInputNvvm, hipJitInputSpirv}) {
        RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkAddData(link.handle, kind, some, 2, "", 0, nullptr, nullptr));
        RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkAddFile(link.handle, kind, "/dev/null", 0, nullptr, nullptr));
    }
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkAddFile(link.handle, hipJitInputLLVMBitcode, nullptr, 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_PROGRAM_CREATION_FAILURE, hiprtcLinkAddFile(link.handle, hipJitInputLLVMBitcode, "/nowhere/at/all", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_PROGRAM_CREATION_FAILURE, hiprtcLinkAddData(link.handle, hipJitInputType(50), some, 2, "", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkComplete(link.handle, nullptr, &bytes));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkComplete(link.handle, &binary, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkAddData(bad, hipJitInputLLVMBitcode, some, 2, "", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkAddFile(bad, hipJitInputLLVMBitcode, "/dev/null", 0, nullptr, nullptr));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkComplete(bad, &binary, &bytes));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkDestroy(bad));
    RTC_CHECK(hiprtcLinkCreate(0, nullptr, nullptr, &made));
    RTC_CHECK(hiprtcLinkDestroy(made));
    RTC(HIPRTC_ERROR_INVALID_INPUT, hiprtcLinkDestroy(made));
}

CASE(hip_link)
{
    std::vector<char> one = bitcode_of(caller), other = bitcode_of(callee);
    hipLinkState_t link;
    void *binary;
    size_t bytes;
    CHECK(hipLinkCreate(0, nullptr, nullptr, &link));
    CHECK(hipLinkAddData(link, hipJitInputLLVMBitcode, one.data(), one.size(), "one", 0, nullptr, nullptr));
    CHECK(hipLinkAddData(link, hipJitInputLLVMBitcode, other.data(), other.size(), "other", 0, nullptr, nullptr));
    CHECK(hipLinkComplete(link, &binary, &bytes));
    loads(binary, bytes);
    CHECK(hipLinkDestroy(link));
    GIVES(hipErrorInvalidValue, hipLinkDestroy(link));
}

CASE(hip_link_arguments)
{
    hipJitOption options[] = {hipJitOptionInfoLogBuffer, hipJitOptionInfoLogBufferSizeBytes};
    void *values[2] = {}, *binary;
    hipLinkState_t link, bad = hipLinkState_t(0xffff);
    size_t bytes;
    char some[4] = "BC";
    GIVES(hipErrorInvalidValue, hipLinkCreate(0, options, values, nullptr));
    GIVES(hipErrorInvalidValue, hipLinkCreate(2, options, nullptr, &link));
    GIVES(hipErrorInvalidValue, hipLinkCreate(2, options, values, &link));
    CHECK(hipLinkCreate(0, nullptr, nullptr, &link));
    GIVES(hipErrorInvalidHandle, hipLinkAddFile(nullptr, hipJitInputLLVMBitcode, "/dev/null", 0, nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipLinkAddFile(link, hipJitInputCubin, "/dev/null", 0, nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipLinkAddFile(link, hipJitInputPtx, "/dev/null", 0, nullptr, nullptr));
    GIVES(hipErrorInvalidConfiguration, hipLinkAddFile(link, hipJitInputSpirv, "/nowhere/at/all", 0, nullptr, nullptr));
    GIVES(hipErrorInvalidImage, hipLinkAddData(link, hipJitInputLLVMBitcode, nullptr, 2, "", 0, nullptr, nullptr));
    GIVES(hipErrorInvalidImage, hipLinkAddData(link, hipJitInputLLVMBitcode, some, 0, "", 0, nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipLinkAddData(link, hipJitInputCubin, some, 2, "", 0, nullptr, nullptr));
    GIVES(hipErrorInvalidHandle, hipLinkAddData(bad, hipJitInputLLVMBitcode, some, 2, "", 0, nullptr, nullptr));
    GIVES(hipErrorInvalidValue, hipLinkComplete(link, nullptr, &bytes));
    GIVES(hipErrorInvalidValue, hipLinkComplete(link, &binary, nullptr));
    GIVES(hipErrorInvalidValue, hipLinkComplete(bad, &binary, &bytes));
    GIVES(hipErrorInvalidValue, hipLinkDestroy(bad));
    GIVES(hipErrorInvalidConfiguration, hipLinkComplete(link, &binary, &bytes));
    GIVES(hipErrorInvalidConfiguration, hipGetLastError());
    CHECK(hipLinkDestroy(link));
}
