// hiprtc as programs see it (hip/hiprtc.h of HIP 7.1, which the packages with HIP's headers do not all have), and what its cases share.
#pragma once
#include "case.h"

#include <dlfcn.h>

extern "C" {
typedef struct _hiprtcProgram *hiprtcProgram;
typedef struct ihiprtcLinkState *hiprtcLinkState;
typedef enum hiprtcResult {
    HIPRTC_SUCCESS, HIPRTC_ERROR_OUT_OF_MEMORY, HIPRTC_ERROR_PROGRAM_CREATION_FAILURE, HIPRTC_ERROR_INVALID_INPUT,
    HIPRTC_ERROR_INVALID_PROGRAM, HIPRTC_ERROR_INVALID_OPTION, HIPRTC_ERROR_COMPILATION,
    HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE, HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION,
    HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID,
    HIPRTC_ERROR_INTERNAL_ERROR, HIPRTC_ERROR_LINKING = 100
} hiprtcResult;
const char *hiprtcGetErrorString(hiprtcResult result);
hiprtcResult hiprtcVersion(int *major, int *minor);
hiprtcResult hiprtcAddNameExpression(hiprtcProgram program, const char *expression);
hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int count, const char **options);
hiprtcResult hiprtcCreateProgram(hiprtcProgram *program, const char *source, const char *name, int count, const char **headers,
                                 const char **names);
hiprtcResult hiprtcDestroyProgram(hiprtcProgram *program);
hiprtcResult hiprtcGetLoweredName(hiprtcProgram program, const char *expression, const char **lowered);
hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char *log);
hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, size_t *bytes);
hiprtcResult hiprtcGetCode(hiprtcProgram program, char *code);
hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, size_t *bytes);
hiprtcResult hiprtcGetBitcode(hiprtcProgram program, char *bitcode);
hiprtcResult hiprtcGetBitcodeSize(hiprtcProgram program, size_t *bytes);
hiprtcResult hiprtcLinkCreate(unsigned count, hipJitOption *options, void **values, hiprtcLinkState *link);
hiprtcResult hiprtcLinkAddFile(hiprtcLinkState link, hipJitInputType kind, const char *path, unsigned count, hipJitOption *options,
                               void **values);
hiprtcResult hiprtcLinkAddData(hiprtcLinkState link, hipJitInputType kind, void *image, size_t bytes, const char *name,
                               unsigned count, hipJitOption *options, void **values);
hiprtcResult hiprtcLinkComplete(hiprtcLinkState link, void **binary, size_t *bytes);
hiprtcResult hiprtcLinkDestroy(hiprtcLinkState link);
}

#define RTC(error, ...)                                                                                          \
    do {                                                                                                         \
        hiprtcResult got_ = (__VA_ARGS__);                                                                       \
        if (got_ != (error))                                                                                     \
            conformance::fail(__FILE__, __LINE__, std::string(#__VA_ARGS__ " gave ") + hiprtcGetErrorString(got_)); \
    } while (0)
#define RTC_CHECK(...) RTC(HIPRTC_SUCCESS, __VA_ARGS__)
#define SAME(wanted, ...)                                                                                        \
    do {                                                                                                         \
        std::string wanted_ = (wanted), got_ = (__VA_ARGS__);                                                    \
        if (got_ != wanted_)                                                                                     \
            conformance::fail(__FILE__, __LINE__, #__VA_ARGS__ " is " + got_ + ", not " + wanted_);              \
    } while (0)

typedef std::vector<const char *> Texts;

// A program as long as it lives.
struct Program {
    hiprtcProgram handle = nullptr;
    explicit Program(const char *source, const char *name = "program.hip") { RTC_CHECK(hiprtcCreateProgram(&handle, source, name, 0, nullptr, nullptr)); }
    Program(const char *source, Texts headers, Texts names)
    {
        RTC_CHECK(hiprtcCreateProgram(&handle, source, "program.hip", int(headers.size()), headers.data(), names.data()));
    }
    ~Program() { hiprtcDestroyProgram(&handle); }
    Program(const Program &) = delete;

    hiprtcResult compile(Texts options = {}) { return hiprtcCompileProgram(handle, int(options.size()), options.data()); }
    void compiled(Texts options = {})
    {
        hiprtcResult result = compile(options);
        if (result != HIPRTC_SUCCESS)
            conformance::fail(__FILE__, __LINE__, std::string(hiprtcGetErrorString(result)) + ": " + log());
    }
    std::string log()
    {
        size_t bytes = 0;
        RTC_CHECK(hiprtcGetProgramLogSize(handle, &bytes));
        std::string text(bytes, '\0');
        if (bytes)
            RTC_CHECK(hiprtcGetProgramLog(handle, &text[0]));
        return text.c_str();
    }
    std::vector<char> code()
    {
        size_t bytes = 0;
        RTC_CHECK(hiprtcGetCodeSize(handle, &bytes));
        std::vector<char> code(bytes);
        if (bytes)
            RTC_CHECK(hiprtcGetCode(handle, code.data()));
        return code;
    }
    std::vector<char> bitcode()
    {
        size_t bytes = 0;
        RTC_CHECK(hiprtcGetBitcodeSize(handle, &bytes));
        std::vector<char> code(bytes);
        RTC_CHECK(hiprtcGetBitcode(handle, code.data()));
        return code;
    }
    std::string lowered(const char *expression)
    {
        const char *name = nullptr;
        RTC_CHECK(hiprtcGetLoweredName(handle, expression, &name));
        return name;
    }
};

// Code in the device, as long as it lives.
struct Loaded {
    hipModule_t module = nullptr;
    explicit Loaded(const void *image) { CHECK(hipModuleLoadData(&module, image)); }
    ~Loaded() { (void)hipModuleUnload(module); }
    Loaded(const Loaded &) = delete;

    hipFunction_t kernel(const std::string &name)
    {
        hipFunction_t found;
        CHECK(hipModuleGetFunction(&found, module, name.c_str()));
        return found;
    }
    // `count` values through a kernel (T *values): one work-group.
    template <typename T> std::vector<T> run(const std::string &name, std::vector<T> values)
    {
        void *memory;
        size_t bytes = values.size() * sizeof(T);
        CHECK(hipMalloc(&memory, bytes));
        CHECK(hipMemcpy(memory, values.data(), bytes, hipMemcpyHostToDevice));
        void *arguments[] = {&memory};
        CHECK(hipModuleLaunchKernel(kernel(name), 1, 1, 1, unsigned(values.size()), 1, 1, 0, nullptr, arguments, nullptr));
        CHECK(hipMemcpy(values.data(), memory, bytes, hipMemcpyDeviceToHost));
        CHECK(hipFree(memory));
        return values;
    }
};
