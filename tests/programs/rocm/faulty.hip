// What goes wrong on the device: argv[1] says what. `many` launches argv[2] kernels on eight threads, and checks.
#include <hip/hip_runtime.h>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include "../check.h"

__global__ void address(int *to) { to[blockIdx.x] = 1; }
__global__ void trap() { __builtin_trap(); }
__global__ void illegal() { asm volatile(".long 0xffffffff"); }
__global__ void lds(int *to)
{
    extern __shared__ int shared[];
    int *generic = shared;
    asm volatile("" : "+v"(generic)); // a flat access
    generic[threadIdx.x * 100000] = 1;
    to[0] = generic[threadIdx.x];
}
__global__ void idle(int *to)
{
    __shared__ int shared[64];
    shared[threadIdx.x] = 7;
    int value = 5;
    unsigned place = threadIdx.x < 32 ? 4 * threadIdx.x + (unsigned)(size_t)shared : 0xf00000;
    asm volatile("ds_read_b32 %0, %1\ns_waitcnt lgkmcnt(0)" : "+v"(value) : "v"(place) : "memory");
    to[threadIdx.x] = value;
}
__global__ void beyond(int *to) { to[threadIdx.x] = 1; }
__global__ void endless(volatile int *flag)
{
    while (*flag == 0)
        ;
}
__global__ void add(int *to, int n) { atomicAdd(to, n); }

static void launch_many(int count)
{
    const int threads = 8;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++)
        all.emplace_back([=] {
            int *sum, host = -1;
            hipStream_t stream;
            CHECK(hipStreamCreate(&stream));
            CHECK(hipMalloc(&sum, 4));
            CHECK(hipMemsetAsync(sum, 0, 4, stream));
            for (int i = 0; i < count / threads; i++)
                add<<<1, 64, 0, stream>>>(sum, t);
            CHECK(hipMemcpyAsync(&host, sum, 4, hipMemcpyDeviceToHost, stream));
            CHECK(hipStreamSynchronize(stream));
            REQUIRE(host == count / threads * 64 * t);
            CHECK(hipFree(sum));
            CHECK(hipStreamDestroy(stream));
        });
    for (auto &thread : all)
        thread.join();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int *memory;
    CHECK(hipMalloc(&memory, 4096));
    CHECK(hipMemset(memory, 0, 4096));
    if (std::strcmp(what, "address") == 0)
        address<<<2, 64>>>(reinterpret_cast<int *>(0x123456789000));
    else if (std::strcmp(what, "trap") == 0)
        trap<<<1, 64>>>();
    else if (std::strcmp(what, "illegal") == 0)
        illegal<<<1, 64>>>();
    else if (std::strcmp(what, "lds") == 0)
        lds<<<1, 64>>>(memory);
    else if (std::strcmp(what, "idle") == 0) {
        int found[64];
        idle<<<1, 64>>>(memory);
        CHECK(hipMemcpy(found, memory, sizeof found, hipMemcpyDeviceToHost));
        for (int i = 0; i < 64; i++)
            REQUIRE(found[i] == (i < 32 ? 7 : 0));
        idle<<<1, 64>>>(memory);
    } else if (std::strcmp(what, "beyond") == 0) { // what lies behind the buffer is the page of another one, or free
        beyond<<<1, 64>>>(memory);
        beyond<<<1, 64>>>(memory + 1024);
        beyond<<<1, 64>>>(memory);
    } else if (std::strcmp(what, "endless") == 0) {
        endless<<<1, 64>>>(memory);
        std::puts("running");
        std::fflush(stdout);
    } else if (std::strcmp(what, "many") == 0)
        launch_many(argc > 2 ? std::atoi(argv[2]) : 800);
    CHECK(hipDeviceSynchronize());
    return passed();
}
