// The program's own memory, registered: seen by kernels and copies, given back, registered again.
#include "resources.h"

#include <atomic>
#include <thread>

#include <sys/mman.h>

constexpr size_t PAGE = 4096;

__global__ void add_one(int *data) { data[threadIdx.x]++; }

static void *pages(size_t count)
{
    void *at = mmap(nullptr, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    return at;
}

CASE(refuses)
{
    int host[64];
    GIVES(hipErrorInvalidValue, hipHostRegister(nullptr, PAGE, hipHostRegisterDefault));
    GIVES(hipErrorInvalidValue, hipHostRegister(host, 0, hipHostRegisterDefault));
    GIVES(hipErrorInvalidValue, hipHostRegister(host, sizeof host, 0x100));
    GIVES(hipErrorInvalidValue, hipHostRegister(host, sizeof host, 0xFFFFFFFF));
    GIVES(hipErrorInvalidValue, hipHostRegister(nullptr, 0, hipHostRegisterDefault));
}
CASE(unregister_refuses)
{
    int host[64];
    GIVES(hipErrorInvalidValue, hipHostUnregister(nullptr));
    GIVES(hipErrorHostMemoryNotRegistered, hipHostUnregister(host));
    CHECK(hipHostRegister(host, sizeof host, hipHostRegisterDefault));
    CHECK(hipHostUnregister(host));
    GIVES(hipErrorHostMemoryNotRegistered, hipHostUnregister(host));
}
CASE(flags_that_are_good)
{
    int host[64];
    for (unsigned flags : {unsigned(hipHostRegisterDefault), unsigned(hipHostRegisterPortable), unsigned(hipHostRegisterMapped),
                           unsigned(hipHostRegisterPortable | hipHostRegisterMapped)}) {
        CHECK(hipHostRegister(host, sizeof host, flags));
        CHECK(hipHostUnregister(host));
    }
}
CASE(kernels_see_it)
{
    std::vector<int> host(64, 5);
    int *at;
    CHECK(hipHostRegister(host.data(), 256, hipHostRegisterMapped));
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&at), host.data(), 0));
    add_one<<<1, 64>>>(at);
    CHECK(hipDeviceSynchronize());
    REQUIRE(host == std::vector<int>(64, 6));
    CHECK(hipHostUnregister(host.data()));
}
CASE(copies_see_it)
{
    std::vector<int> host(64, 5);
    Device<int> d(64, 7);
    CHECK(hipHostRegister(host.data(), 256, hipHostRegisterDefault));
    CHECK(hipMemcpy(host.data(), d, 256, hipMemcpyDeviceToHost));
    REQUIRE(host == std::vector<int>(64, 7));
    host.assign(64, 9);
    CHECK(hipMemcpy(d, host.data(), 256, hipMemcpyHostToDevice));
    REQUIRE(d.all_are(9));
    GIVES(hipErrorInvalidValue, hipMemcpy(d, host.data() + 1, 256, hipMemcpyHostToDevice));
    CHECK(hipHostUnregister(host.data()));
    REQUIRE(host == std::vector<int>(64, 9));
}
CASE(what_is_in_it_stays)
{
    std::vector<int> host(5000);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = int(i);
    std::vector<int> before = host;
    CHECK(hipHostRegister(host.data(), host.size() * 4, hipHostRegisterDefault));
    REQUIRE(host == before);
    CHECK(hipHostUnregister(host.data()));
    REQUIRE(host == before);
}
CASE(neighbours_of_a_page_stay)
{
    int *at = static_cast<int *>(pages(2));
    for (int i = 0; i < 2048; i++)
        at[i] = i;
    CHECK(hipHostRegister(at + 100, 400, hipHostRegisterDefault));
    at[0] = 77;
    int *device;
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), at + 100, 0));
    add_one<<<1, 64>>>(device);
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostUnregister(at + 100));
    EQUAL(77, at[0]);
    EQUAL(99, at[99]);
    EQUAL(101, at[100]);
    EQUAL(164, at[163]);
    EQUAL(164, at[164]);
    EQUAL(2047, at[2047]);
    munmap(at, 2 * PAGE);
}
CASE(two_ranges_of_a_page)
{
    int *at = static_cast<int *>(pages(1)), *device;
    CHECK(hipHostRegister(at, 256, hipHostRegisterDefault));
    CHECK(hipHostRegister(at + 512, 256, hipHostRegisterDefault));
    for (int *start : {at, at + 512}) {
        CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), start, 0));
        add_one<<<1, 64>>>(device);
    }
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostUnregister(at));
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), at + 512, 0));
    add_one<<<1, 64>>>(device);
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostUnregister(at + 512));
    EQUAL(1, at[0]);
    EQUAL(2, at[512]);
    munmap(at, PAGE);
}
CASE(again_after_the_program_gave_the_memory_back)
{
    void *at = pages(4);
    CHECK(hipHostRegister(at, 4 * PAGE, hipHostRegisterDefault));
    CHECK(hipHostUnregister(at));
    munmap(at, 4 * PAGE);
    void *again = mmap(at, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(again == at);
    CHECK(hipHostRegister(again, 4 * PAGE, hipHostRegisterDefault));
    int *device;
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), again, 0));
    add_one<<<1, 64>>>(device);
    CHECK(hipDeviceSynchronize());
    EQUAL(1, *static_cast<int *>(again));
    CHECK(hipHostUnregister(again));
    munmap(again, 4 * PAGE);
}
CASE(again_though_it_was_freed_while_registered) // the program's mistake, which AMD's runtime survives
{
    void *at = pages(4);
    CHECK(hipHostRegister(at, 4 * PAGE, hipHostRegisterDefault));
    munmap(at, 4 * PAGE);
    void *again = mmap(at, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(again == at);
    hipError_t error = hipHostRegister(again, 4 * PAGE, hipHostRegisterDefault);
    REQUIRE(error == hipSuccess || error == hipErrorHostMemoryAlreadyRegistered);
    static_cast<int *>(again)[0] = 3;
    int *device;
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), again, 0));
    add_one<<<1, 64>>>(device);
    CHECK(hipDeviceSynchronize());
    EQUAL(4, *static_cast<int *>(again));
    CHECK(hipHostUnregister(again));
    munmap(again, 4 * PAGE);
}
CASE(again_at_the_address_of_a_block_that_was_freed_while_registered) // as a heap gives it out
{
    alignas(64) static int block[16];
    CHECK(hipHostRegister(block, 32, hipHostRegisterDefault));
    for (size_t bytes : {32, 16, 64}) {
        CHECK(hipHostRegister(block, bytes, hipHostRegisterDefault));
        int *device;
        CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), block, 0));
        block[0] = int(bytes);
        add_one<<<1, 1>>>(device);
        CHECK(hipDeviceSynchronize());
        EQUAL(int(bytes) + 1, block[0]);
    }
    CHECK(hipHostUnregister(block));
}
CASE(what_another_thread_writes_beside_a_range_meanwhile_stays)
{
    alignas(4096) static volatile unsigned page[1024];
    std::atomic<bool> over{false};
    bool lost = false;
    std::thread writer([&] {
        for (unsigned i = 1; !over; i++) {
            page[512] = i;
            lost |= page[512] != i;
        }
    });
    hipError_t error = hipSuccess;
    for (int i = 0; i < 200 && !error; i++) {
        error = hipHostRegister(const_cast<unsigned *>(page), 64, hipHostRegisterDefault);
        error = error ? error : hipHostUnregister(const_cast<unsigned *>(page));
    }
    over = true;
    writer.join();
    CHECK(error);
    REQUIRE(!lost);
}
CASE(many_ranges)
{
    std::vector<void *> all(100);
    for (void *&at : all) {
        at = pages(1);
        CHECK(hipHostRegister(at, PAGE, hipHostRegisterDefault));
    }
    for (void *at : all) {
        CHECK(hipHostUnregister(at));
        munmap(at, PAGE);
    }
}
CASE(stack_memory)
{
    int host[2048];
    for (int &value : host)
        value = 1;
    int *device;
    CHECK(hipHostRegister(host, sizeof host, hipHostRegisterDefault));
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void **>(&device), host, 0));
    add_one<<<1, 64>>>(device);
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostUnregister(host));
    EQUAL(2, host[63]);
    EQUAL(1, host[64]);
}
