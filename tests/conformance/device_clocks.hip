// wall_clock64 runs at the rate that the device's attribute names; clock64 advances while a kernel waits for it.
#include <chrono>

#include "case.h"

__global__ void spin(long long *read, long long cycles, bool wall)
{
    long long begin = wall ? (long long)__builtin_amdgcn_s_memrealtime() : (long long)__builtin_readcyclecounter(), now = begin;
    while (now - begin < cycles)
        now = wall ? (long long)__builtin_amdgcn_s_memrealtime() : (long long)__builtin_readcyclecounter();
    *read = now - begin;
}

// A kernel that waits for 100 ms by the wall clock, or 10 by the core's, after one that has been compiled for it. On the emulator
// the core's clock counts instructions, so how long they take is anybody's guess.
static void waits(hipDeviceAttribute_t attribute, bool wall)
{
    long long ms = wall ? 100 : 10;
    int khz = 0;
    long long *read;
    CHECK(hipDeviceGetAttribute(&khz, attribute, 0));
    REQUIRE(khz > 0);
    CHECK(hipMallocManaged(&read, sizeof *read));
    spin<<<1, 1>>>(read, 1, wall);
    CHECK(hipDeviceSynchronize());
    auto began = std::chrono::steady_clock::now();
    spin<<<1, 1>>>(read, ms * khz, wall);
    CHECK(hipDeviceSynchronize());
    double waited = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    REQUIRE(*read >= ms * khz);
    if (wall)
        REQUIRE(waited >= 99 && double(*read) / khz <= waited);
    CHECK(hipFree(read));
}

CASE(clock64_advances) { waits(hipDeviceAttributeClockRate, false); }
CASE(wall_clock64_runs_at_the_wall_clock_rate) { waits(hipDeviceAttributeWallClockRate, true); }
