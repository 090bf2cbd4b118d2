// hiprtc: name expressions, of kernels, templates and variables, and the names that they are lowered to.
#include "rtc.h"

static const char source[] = R"(
template <typename T> struct pair { T a, b; };
template <int N, typename T> __global__ void power(T *v)
{
    T base = v[threadIdx.x];
    for (int i = 1; i < N; i++)
        v[threadIdx.x] *= base;
}
template <typename T> __global__ void sums(pair<T> *v) { v[threadIdx.x].a += v[threadIdx.x].b; }
extern "C" __global__ void plain(int *v) { v[threadIdx.x]++; }
__global__ void overloaded(int *v) { v[threadIdx.x] += 1; }
__global__ void overloaded(float *v) { v[threadIdx.x] += 0.5f; }
namespace outer { namespace inner {
__constant__ int table[4];
__device__ int counter = 3;
template <typename T> __device__ T shared_by_all;
template <typename T> __global__ void scaled(T *v) { v[threadIdx.x] = v[threadIdx.x] * table[threadIdx.x] + counter + shared_by_all<T>; }
} }
static __global__ void hidden(int *v) { v[threadIdx.x] = 77; }
)";

CASE(templates)
{
    struct { const char *expression, *name; } const each[] = {
        {"power<3, float>", "_Z5powerILi3EfEvPT0_"}, {"power<(int)3, double >", "_Z5powerILi3EdEvPT0_"},
        {"power<(2 + 3), long>", "_Z5powerILi5ElEvPT0_"}, {"&power<4, unsigned int>", "_Z5powerILi4EjEvPT0_"},
        {"sums<int>", "_Z4sumsIiEvP4pairIT_E"}, {"plain", "plain"},
        {"outer::inner::scaled<unsigned char>", "_ZN5outer5inner6scaledIhEEvPT_"}};
    Program program(source);
    for (const auto &one : each)
        RTC_CHECK(hiprtcAddNameExpression(program.handle, one.expression));
    program.compiled();
    for (const auto &one : each)
        SAME(one.name, program.lowered(one.expression));
    std::vector<char> code = program.code();
    Loaded loaded(code.data());
    REQUIRE((loaded.run<float>(program.lowered("power<3, float>"), {2, 3}) == std::vector<float>{8, 27}));
    REQUIRE((loaded.run<long>(program.lowered("power<(2 + 3), long>"), {2, 3}) == std::vector<long>{32, 243}));
    REQUIRE((loaded.run<int>(program.lowered("plain"), {2, 3}) == std::vector<int>{3, 4}));
}

CASE(templates_of_templates)
{
    Program program(source);
    RTC_CHECK(hiprtcAddNameExpression(program.handle, "sums<pair<float>>"));
    RTC(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, [&] { const char *name; return hiprtcGetLoweredName(program.handle, "sums<pair<float>>", &name); }());
    Program good("template <typename T> struct box { T a; };\ntemplate <typename T> __global__ void k(T *v) { *v = T(); }\n");
    RTC_CHECK(hiprtcAddNameExpression(good.handle, "k<box<double>>"));
    RTC_CHECK(hiprtcAddNameExpression(good.handle, "k<box<double> >"));
    good.compiled();
    SAME("_Z1kI3boxIdEEvPT_", good.lowered("k<box<double>>"));
    SAME(good.lowered("k<box<double>>"), good.lowered("k<box<double> >"));
}

CASE(overloads)
{
    Program program(source);
    const char *ints = "(void (*)(int *)) overloaded", *floats = "(void (*)(float *)) &overloaded";
    RTC_CHECK(hiprtcAddNameExpression(program.handle, ints));
    RTC_CHECK(hiprtcAddNameExpression(program.handle, floats));
    program.compiled();
    SAME("_Z10overloadedPi", program.lowered(ints));
    SAME("_Z10overloadedPf", program.lowered(floats));
    std::vector<char> code = program.code();
    EQUAL(1.5f, Loaded(code.data()).run<float>(program.lowered(floats), {1})[0]);
    Program ambiguous(source);
    RTC_CHECK(hiprtcAddNameExpression(ambiguous.handle, "overloaded"));
    REQUIRE(ambiguous.compile() == HIPRTC_ERROR_COMPILATION);
}

CASE(variables)
{
    Program program(source);
    const char *table = "&outer::inner::table", *counter = "outer::inner::counter", *shared = "&outer::inner::shared_by_all<int>";
    for (const char *expression : {table, counter, shared, "outer::inner::scaled<int>"})
        RTC_CHECK(hiprtcAddNameExpression(program.handle, expression));
    program.compiled();
    SAME("_ZN5outer5inner5tableE", program.lowered(table));
    SAME("_ZN5outer5inner7counterE", program.lowered(counter));
    SAME("_ZN5outer5inner13shared_by_allIiEE", program.lowered(shared));
    std::vector<char> code = program.code();
    Loaded loaded(code.data());
    int factors[4] = {1, 10, 100, 1000}, more = 5;
    hipDeviceptr_t address;
    size_t bytes;
    CHECK(hipModuleGetGlobal(&address, &bytes, loaded.module, program.lowered(table).c_str()));
    EQUAL(sizeof factors, bytes);
    CHECK(hipMemcpyHtoD(address, factors, sizeof factors));
    CHECK(hipModuleGetGlobal(&address, &bytes, loaded.module, program.lowered(shared).c_str()));
    EQUAL(sizeof more, bytes);
    CHECK(hipMemcpyHtoD(address, &more, sizeof more));
    REQUIRE((loaded.run<int>(program.lowered("outer::inner::scaled<int>"), {1, 2, 3, 4}) == std::vector<int>{9, 28, 308, 4008}));
}

CASE(static_kernels)
{
    Program program(source);
    RTC_CHECK(hiprtcAddNameExpression(program.handle, "hidden"));
    program.compiled();
    std::vector<char> code = program.code();
    EQUAL(77, Loaded(code.data()).run<int>(program.lowered("hidden"), {0})[0]);
}

CASE(spelling)
{
    Program program(source);
    RTC_CHECK(hiprtcAddNameExpression(program.handle, "power<2,int>"));
    RTC_CHECK(hiprtcAddNameExpression(program.handle, "power<2,int>"));
    program.compiled();
    SAME(program.lowered("power<2,int>"), program.lowered(" power< 2, int >"));
    SAME(program.lowered("power<2,int>"), program.lowered("&power<2,int>"));
}

CASE(not_valid)
{
    Program program(source);
    const char *name;
    RTC(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, hiprtcGetLoweredName(program.handle, "plain", &name));
    RTC_CHECK(hiprtcAddNameExpression(program.handle, "plain"));
    RTC(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, hiprtcGetLoweredName(program.handle, "plain", &name));
    program.compiled();
    RTC_CHECK(hiprtcGetLoweredName(program.handle, "plain", &name));
    RTC(HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID, hiprtcGetLoweredName(program.handle, "hidden", &name));
    RTC(HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION, hiprtcAddNameExpression(program.handle, "hidden"));
}

CASE(nothing_of_that_name)
{
    Program program(source);
    const char *name;
    RTC_CHECK(hiprtcAddNameExpression(program.handle, "no_such_kernel<int>"));
    REQUIRE(program.compile() == HIPRTC_ERROR_COMPILATION);
    REQUIRE(program.log().find("no_such_kernel") != std::string::npos);
    RTC(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, hiprtcGetLoweredName(program.handle, "no_such_kernel<int>", &name));
}

CASE(names_in_bitcode)
{
    Program program(source);
    for (const char *expression : {"power<3, float>", "outer::inner::counter", "plain"})
        RTC_CHECK(hiprtcAddNameExpression(program.handle, expression));
    program.compiled({"-fgpu-rdc"});
    SAME("_Z5powerILi3EfEvPT0_", program.lowered("power<3, float>"));
    SAME("_ZN5outer5inner7counterE", program.lowered("outer::inner::counter"));
    SAME("plain", program.lowered("plain"));
}
