// clock64 and wall_clock64 run at the rates that the device's attributes name.
#include <chrono>

#include "case.h"

__global__ void spin(long long *read, long long cycles, bool wall)
{
    long long begin = wall ? (long long)__builtin_amdgcn_s_memrealtime() : (long long)__builtin_readcyclecounter(), now = begin;
    while (now - begin < cycles)
        now = wall ? (long long)__builtin_amdgcn_s_memrealtime() : (long long)__builtin_readcyclecounter();
    *read = now - begin;
}

// A kernel that waits for 100 ms by its own clock, after one that has been compiled for it.
static void waits(hipDeviceAttribute_t attribute, bool wall)
{
    int khz = 0;
    long long *read;
    CHECK(hipDeviceGetAttribute(&khz, attribute, 0));
    REQUIRE(khz > 0);
    CHECK(hipMallocManaged(&read, sizeof *read));
    spin<<<1, 1>>>(read, 1, wall);
    CHECK(hipDeviceSynchronize());
    auto began = std::chrono::steady_clock::now();
    spin<<<1, 1>>>(read, 100ll * khz, wall);
    CHECK(hipDeviceSynchronize());
    double waited = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    REQUIRE(waited >= 99);
    REQUIRE(double(*read) / khz >= 100 && double(*read) / khz <= waited);
    CHECK(hipFree(read));
}

CASE(clock64_runs_at_the_clock_rate) { waits(hipDeviceAttributeClockRate, false); }
CASE(wall_clock64_runs_at_the_wall_clock_rate) { waits(hipDeviceAttributeWallClockRate, true); }
