// Kernels that print: to the program's own stdout, in its order, every kind of argument, from many waves and lanes.
// With an argument: an assertion that fails in a kernel.
// Linked with ROCm's device library.
#include <hip/hip_runtime.h>
#include <cassert>
#include <cstring>
#include <set>
#include <string>
#include <unistd.h>
#include "check.h"

__global__ void hello(int number, double real, const char *)
{
    if (threadIdx.x == 3)
        printf("%d %5.2f|%-6s|%c %x %lld %% %*d %u\n", -number, real, "text", 'x', 255, -(1ll << 40), 6, number, 4000000000u);
}

__global__ void all(const int *names)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 0)
        printf("lane %d of group %d has %d\n", unsigned(threadIdx.x), unsigned(blockIdx.x), names[i]);
}

__global__ void checked(int number) { assert(number != 42); } // there is a call that never returns

static std::string contents(std::FILE *file)
{
    std::string text;
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;)
        text += char(c);
    std::fclose(file);
    return text;
}

int main(int argc, char **)
{
    if (argc > 1) {
        checked<<<1, 64>>>(42);
        REQUIRE(hipDeviceSynchronize() == hipErrorLaunchFailure);
        return passed();
    }
    const int groups = 5, block = 100, n = groups * block;
    int host[n], *names;
    for (int i = 0; i < n; i++)
        host[i] = 7 * i;
    CHECK(hipMalloc(&names, sizeof host));
    CHECK(hipMemcpy(names, host, sizeof host, hipMemcpyHostToDevice));
    std::FILE *file = std::tmpfile();
    int own = dup(1);
    REQUIRE(file && own >= 0 && dup2(fileno(file), 1) == 1);
    std::printf("before\n");
    checked<<<1, 64>>>(41);
    hello<<<1, 64>>>(42, 2.5, nullptr);
    CHECK(hipDeviceSynchronize());
    std::printf("between\n");
    all<<<groups, block>>>(names);
    CHECK(hipDeviceSynchronize());
    std::fflush(stdout);
    REQUIRE(dup2(own, 1) == 1);
    std::string text = contents(file);
    std::string first = "before\n-42  2.50|text  |x ff -1099511627776 %     42 4000000000\nbetween\n";
    REQUIRE(text.compare(0, first.size(), first) == 0);
    std::multiset<std::string> expected, found;
    for (int i = 0; i < n; i += 3)
        expected.insert("lane " + std::to_string(i % block) + " of group " + std::to_string(i / block) + " has " + std::to_string(7 * i));
    for (size_t at = first.size(), end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
        found.insert(text.substr(at, end - at));
    REQUIRE(found == expected);
    return passed();
}
