// Pages of files that the program has mapped with MAP_SHARED and registers: they stay the file's, and the device sees them.
// With an argument, a folder, also one with a name; with `shortened` behind it, it is made shorter meanwhile.
#include <hip/hip_runtime.h>
#include "check.h"
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

constexpr int PAGE = 4096 / sizeof(int);

__global__ void add(int *to, int n, int value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] += value;
}

static void add_to(int *host, int n, int value)
{
    int *device;
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), host, 0));
    add<<<(n + 255) / 256, 256>>>(device, n, value);
}

static int *map(int file, int pages, int first)
{
    void *got = mmap(nullptr, pages * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, first * 4096);
    REQUIRE(got != MAP_FAILED);
    return static_cast<int *>(got);
}

static int in_file(int file, int at)
{
    int value = 77;
    REQUIRE(pread(file, &value, sizeof value, at * sizeof value) == sizeof value);
    return value;
}

// Two mappings of one file, of which one is registered, in parts that share a page.
static void use(int file)
{
    REQUIRE(ftruncate(file, 0) == 0 && ftruncate(file, 8 * 4096) == 0);
    int *whole = map(file, 8, 0), *part = map(file, 4, 2);
    part[0] = 5;
    CHECK(hipHostRegister(part, PAGE * 3 / 2 * sizeof(int), hipHostRegisterMapped));
    CHECK(hipHostRegister(part + PAGE * 3 / 2, PAGE * sizeof(int), hipHostRegisterMapped));
    add_to(part, PAGE * 3 / 2, 10);
    add_to(part + PAGE * 3 / 2, PAGE, 20);
    CHECK(hipDeviceSynchronize());
    REQUIRE(part[0] == 15 && whole[2 * PAGE] == 15 && in_file(file, 2 * PAGE) == 15);
    REQUIRE(whole[2 * PAGE + PAGE * 3 / 2 - 1] == 10 && in_file(file, 2 * PAGE + PAGE * 3 / 2) == 20);
    whole[2 * PAGE + 1] = 100; // by whoever has the file
    CHECK(hipHostUnregister(part + PAGE * 3 / 2));
    add_to(part, 2, 1);
    CHECK(hipDeviceSynchronize());
    REQUIRE(part[1] == 101 && in_file(file, 2 * PAGE + 1) == 101);
    CHECK(hipHostUnregister(part));
    REQUIRE(part[1] == 101 && part[PAGE * 3 / 2] == 20);
    part[1] = 7;
    REQUIRE(in_file(file, 2 * PAGE + 1) == 7);
    int *none;
    REQUIRE(hipHostGetDevicePointer(reinterpret_cast<void **>(&none), part, 0) == hipErrorInvalidValue);
    (void)hipGetLastError();

    CHECK(hipHostRegister(whole, 8 * 4096, hipHostRegisterMapped));
    REQUIRE(munmap(whole, 8 * 4096) == 0); // without telling the runtime; the next one there is another
    void *again = mmap(whole, 8 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    REQUIRE(again == whole);
    CHECK(hipHostUnregister(whole));
    CHECK(hipHostRegister(whole, 4096, hipHostRegisterMapped));
    add_to(whole, 1, 3);
    CHECK(hipDeviceSynchronize());
    REQUIRE(in_file(file, 0) == 3);
    CHECK(hipHostUnregister(whole));
    REQUIRE(munmap(whole, 8 * 4096) == 0 && munmap(part, 4 * 4096) == 0);
}

int main(int argc, char **argv)
{
    int file = memfd_create("registered", MFD_CLOEXEC);
    REQUIRE(file >= 0);
    if (argc < 3)
        use(file);
    if (argc > 1) {
        std::string name = std::string(argv[1]) + "/pages";
        int named = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
        REQUIRE(named >= 0);
        if (argc < 3) {
            use(named);
            REQUIRE(unlink(name.c_str()) == 0);
            use(named); // it has no name any more
        } else {
            REQUIRE(ftruncate(named, 4 * 4096) == 0);
            int *pages = map(named, 4, 0);
            CHECK(hipHostRegister(pages, 4 * 4096, hipHostRegisterMapped));
            add_to(pages, PAGE, 1);
            CHECK(hipDeviceSynchronize());
            REQUIRE(ftruncate(named, 4096) == 0);
            add_to(pages, 4 * PAGE, 1);
            REQUIRE(hipDeviceSynchronize() == hipErrorIllegalAddress);
            REQUIRE(in_file(named, 0) == 2);
            printf("SHORTENED\n");
            return 0;
        }
    }
    return passed();
}
