// Float atomics of the hardware in fine-grained memory: they do nothing there and give 0 (AMD, "Hardware atomics operation
// support": MI200). Loops of compare and swap, and integers, work everywhere.
#include "case.h"

template <typename Real> __device__ Real hardware_add(Real *place, Real value);
template <> __device__ float hardware_add(float *place, float value)
{
    return __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) float *)place, value);
}
template <> __device__ double hardware_add(double *place, double value)
{
    return __builtin_amdgcn_global_atomic_fadd_f64((__attribute__((address_space(1))) double *)place, value);
}

template <typename Real> __global__ void add(Real *place, Real *given)
{
    *given = hardware_add(place, Real(1)); // with a result
    hardware_add(place, Real(1));          // without
}

template <typename Real> __global__ void swap_until_added(Real *place, Real *given)
{
    using Bits = typename std::conditional<sizeof(Real) == 4, unsigned, unsigned long long>::type;
    Bits old = *(volatile Bits *)place, seen;
    for (;; old = seen) {
        Bits next = __builtin_bit_cast(Bits, Real(__builtin_bit_cast(Real, old) + 2));
        seen = atomicCAS((Bits *)place, old, next);
        if (seen == old)
            break;
    }
    *given = __builtin_bit_cast(Real, old);
}

template <typename Real, typename Kernel> void adds(Kernel kernel, Real *place, Real *given, Real sum, Real old)
{
    Real seen[2] = {5, -1};
    CHECK(hipMemcpy(place, &seen[0], sizeof *seen, hipMemcpyDefault));
    CHECK(hipMemcpy(given, &seen[1], sizeof *seen, hipMemcpyDefault));
    kernel<<<1, 1>>>(place, given);
    CHECK(hipMemcpy(&seen[0], place, sizeof *seen, hipMemcpyDefault));
    CHECK(hipMemcpy(&seen[1], given, sizeof *seen, hipMemcpyDefault));
    EQUAL(sum, seen[0]);
    EQUAL(old, seen[1]);
}

template <typename Real> void fine_grained(Real *place)
{
    Real *given;
    CHECK(hipMalloc(&given, sizeof *given));
    adds<Real>(add<Real>, place, given, 5, 0);
    adds<Real>(swap_until_added<Real>, place, given, 7, 5);
    CHECK(hipFree(given));
}

template <typename Real> void coarse_grained(Real *place)
{
    Real *given;
    CHECK(hipMalloc(&given, sizeof *given));
    adds<Real>(add<Real>, place, given, 7, 5);
    adds<Real>(swap_until_added<Real>, place, given, 7, 5);
    CHECK(hipFree(given));
}

template <typename Real> void of_the_host(unsigned flags, void (*check)(Real *))
{
    Real *place;
    CHECK(hipHostMalloc((void **)&place, sizeof *place, flags));
    check(place);
    CHECK(hipHostFree(place));
}

CASE(device_memory_is_coarse_grained)
{
    float *place;
    double *wide;
    CHECK(hipMalloc(&place, sizeof *place));
    CHECK(hipMalloc(&wide, sizeof *wide));
    coarse_grained(place);
    coarse_grained(wide);
    CHECK(hipFree(place));
    CHECK(hipFree(wide));
}

CASE(memory_of_the_host_is_fine_grained)
{
    of_the_host<float>(hipHostMallocDefault, fine_grained<float>);
    of_the_host<double>(hipHostMallocDefault, fine_grained<double>);
    of_the_host<float>(hipHostMallocCoherent, fine_grained<float>);
}

CASE(memory_of_the_host_that_is_not_coherent) { of_the_host<float>(hipHostMallocNonCoherent, coarse_grained<float>); }

CASE(managed_memory_is_fine_grained)
{
    float *place;
    CHECK(hipMallocManaged(&place, sizeof *place));
    fine_grained(place);
    CHECK(hipFree(place));
}
