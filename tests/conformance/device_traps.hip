// A trap that no wave comes to costs nothing: assertions, __builtin_trap, and the *_sync builtins of HIP 7, which trap
// where their mask is wrong.
// Linked with ROCm's device library.
#include <cassert>

#include "case.h"

__global__ void sync_builtins(int *out)
{
    int lane = threadIdx.x;
    unsigned long long all = ~0ull;
    out[lane] = __shfl_sync(all, 3 * lane, 5) + __shfl_xor_sync(all, lane, 1) + __any_sync(all, lane == 7)
        + (__ballot_sync(all, lane & 1) == 0xaaaaaaaaaaaaaaaaull) + __shfl_down_sync(all, lane, 1);
}

__global__ void sync_in_halves(int *out)
{
    int lane = threadIdx.x;
    if (lane & 1) {
        unsigned long long odd = 0xaaaaaaaaaaaaaaaaull;
        out[lane] = __shfl_sync(odd, lane, 5) + __any_sync(odd, lane == 7);
    } else
        out[lane] = __shfl_down_sync(0x5555555555555555ull, lane, 2);
}

__global__ void guarded(int *out, int limit)
{
    int lane = threadIdx.x;
    unsigned long long before = __ballot(lane > 10);
    if (__popcll(before) > limit)
        __builtin_trap();
    out[lane] = __popcll(before) + lane;
}

static int *words()
{
    int *out = nullptr;
    return hipMallocManaged(&out, 64 * sizeof *out) == hipSuccess ? out : nullptr;
}

CASE(sync_builtins_with_a_full_mask)
{
    int *out = words();
    REQUIRE(out);
    sync_builtins<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
    for (int lane = 0; lane < 64; lane++)
        REQUIRE(out[lane] == 15 + (lane ^ 1) + 1 + 1 + (lane < 63 ? lane + 1 : lane));
    CHECK(hipFree(out));
}

CASE(sync_builtins_of_half_a_wave_each)
{
    int *out = words();
    REQUIRE(out);
    sync_in_halves<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
    for (int lane = 0; lane < 62; lane++)
        EQUAL(lane & 1 ? 6 : lane + 2, out[lane]);
    CHECK(hipFree(out));
}

CASE(a_trap_that_no_wave_comes_to)
{
    int *out = words();
    REQUIRE(out);
    guarded<<<1, 64>>>(out, 60);
    CHECK(hipDeviceSynchronize());
    for (int lane = 0; lane < 64; lane++)
        REQUIRE(out[lane] == 53 + lane);
    CHECK(hipFree(out));
}

ALONE(a_trap_ends_the_launch)
{
    int *out = words();
    REQUIRE(out);
    guarded<<<1, 64>>>(out, 50);
    GIVES(hipErrorLaunchFailure, hipDeviceSynchronize());
}
