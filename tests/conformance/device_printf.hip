// printf in kernels through the buffer on which a wave waits: what it prints, and what it returns.
// Linked with ROCm's device library.
#include "captured.h"
#include "case.h"

__global__ void counted(int *counts, const char *name)
{
    counts[0] = printf("Hello, %d!\n", 42);
    counts[1] = printf("");
    counts[2] = printf("100%%");
    counts[3] = printf("[%s] [%10s] [%-6.2f]\n", name, "text", 2.5);
    counts[4] = printf("%*d|%c|%5.3s|", 6, -7, 'x', "abcdef");
    counts[5] = printf("%hhd %hd %lu %llx %zu\n", 300, 70000, 1ul << 40, ~0ull, size_t(3));
}

__global__ void each_lane(int *counts) { counts[threadIdx.x] = printf("%u\n", threadIdx.x); }

static int *words(int count)
{
    int *out = nullptr;
    CHECK(hipMallocManaged(&out, count * sizeof *out));
    return out;
}

CASE(the_number_of_characters)
{
    int *counts = words(6);
    char *name;
    CHECK(hipMallocManaged(&name, 8));
    std::strcpy(name, "name");
    const char *lines[] = {"Hello, 42!\n", "", "100%", "[name] [      text] [2.50  ]\n", "    -7|x|  abc|", "44 4464 1099511627776 ffffffffffffffff 3\n"};
    std::string all, said;
    {
        Captured captured(stdout);
        counted<<<1, 1>>>(counts, name);
        CHECK(hipDeviceSynchronize());
        said = captured.text();
    }
    for (int i = 0; i < 6; i++) {
        EQUAL(int(std::strlen(lines[i])), counts[i]);
        all += lines[i];
    }
    REQUIRE(said == all);
    CHECK(hipFree(counts));
    CHECK(hipFree(name));
}

CASE(each_lane_has_its_own)
{
    int *counts = words(100);
    {
        Captured captured(stdout);
        each_lane<<<1, 100>>>(counts);
        CHECK(hipDeviceSynchronize());
    }
    for (int i = 0; i < 100; i++)
        EQUAL(i < 10 ? 2 : 3, counts[i]);
    CHECK(hipFree(counts));
}
