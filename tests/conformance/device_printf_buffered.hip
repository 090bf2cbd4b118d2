// printf in kernels that waits for nobody: its lines stand in a buffer until the launch has ended.
// Options: -mprintf-kind=buffered
// Linked with ROCm's device library.
#include <map>
#include <set>

#include "captured.h"
#include "case.h"

__global__ void several(int number, double real, const char *name, int *results)
{
    results[0] = printf("plain\n");
    results[1] = printf("%d %5.2f|%-6s|%c %x %lld %% %*d %u\n", -number, real, "text", 'x', 255, -(1ll << 40), 6, number, 4000000000u);
    results[2] = printf("<%s> <%s>\n", name, "constant");
    results[3] = printf(name);
    results[4] = printf("\n");
}

__global__ void all()
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 0)
        printf("lane %d of group %d\n", unsigned(threadIdx.x), unsigned(blockIdx.x));
}

__global__ void much(int *results, int lines)
{
    for (int i = 0; i < lines; i++)
        results[threadIdx.x] |= printf("%d %d %d\n", int(threadIdx.x), i, 7);
}

static int *zeros(int count)
{
    int *out = nullptr;
    CHECK(hipMallocManaged(&out, count * sizeof *out));
    std::memset(out, 0, count * sizeof *out);
    return out;
}

CASE(every_kind_of_argument)
{
    int *results = zeros(5);
    char *name;
    CHECK(hipMallocManaged(&name, 16));
    std::strcpy(name, "a longer name");
    std::string said;
    {
        Captured captured(stdout);
        std::printf("before\n");
        several<<<1, 1>>>(42, 2.5, name, results);
        CHECK(hipDeviceSynchronize());
        std::printf("after\n");
        said = captured.text();
    }
    REQUIRE(said == "before\nplain\n-42  2.50|text  |x ff -1099511627776 %     42 4000000000\n"
                    "<a longer name> <constant>\na longer name\nafter\n");
    for (int i = 0; i < 5; i++)
        EQUAL(0, results[i]);
    CHECK(hipFree(results));
    CHECK(hipFree(name));
}

CASE(every_lane_of_several_launches)
{
    std::multiset<std::string> expected, found;
    std::string said;
    {
        Captured captured(stdout);
        for (int round = 0; round < 3; round++)
            all<<<5, 100>>>();
        CHECK(hipDeviceSynchronize());
        said = captured.text();
    }
    for (int i = 0; i < 3 * 500; i++)
        if (i % 500 % 3 == 0)
            expected.insert("lane " + std::to_string(i % 100) + " of group " + std::to_string(i % 500 / 100));
    for (size_t at = 0, end; (end = said.find('\n', at)) != std::string::npos; at = end + 1)
        found.insert(said.substr(at, end - at));
    REQUIRE(found == expected);
}

CASE(what_does_not_fit_is_left_out)
{
    int *results = zeros(64);
    std::string said;
    {
        Captured captured(stdout);
        much<<<1, 64>>>(results, 3000);
        CHECK(hipDeviceSynchronize());
        said = captured.text();
    }
    int failed = 0;
    for (int i = 0; i < 64; i++)
        failed += results[i] == -1;
    REQUIRE(failed > 0 && said.size() > 100000);
    CHECK(hipFree(results));
}
