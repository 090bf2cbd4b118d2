// What kernels compute and what the processor computes, bit for bit: quotients, most of them subnormal.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "case.h"

template <typename Real> __global__ void divide(const Real *a, const Real *b, Real *c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] / b[i];
}

template <typename Real, typename Bits> Real number(std::mt19937_64 &random, int exponent)
{
    const int mantissa = std::numeric_limits<Real>::digits - 1;
    Bits bits = (Bits(random()) >> 1 & ((Bits(1) << mantissa) - 1)) | Bits(exponent) << mantissa | Bits(random() & 1) << (8 * sizeof bits - 1);
    Real value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Numbers whose exponents differ by about as much as makes the quotient subnormal; at first those that are given.
template <typename Real, typename Bits> void quotients_are_rounded_once(Real first, Real second)
{
    const int count = 1 << 14, bias = std::numeric_limits<Real>::max_exponent - 1, digits = std::numeric_limits<Real>::digits;
    Real *a, *b, *c;
    CHECK(hipMallocManaged(&a, count * sizeof *a));
    CHECK(hipMallocManaged(&b, count * sizeof *b));
    CHECK(hipMallocManaged(&c, count * sizeof *c));
    std::mt19937_64 random(1);
    for (int i = 0; i < count; i++) {
        int apart = bias - 2 + int(random() % (digits + 3)), exponent = apart + int(random() % (2 * bias - apart));
        a[i] = i ? number<Real, Bits>(random, exponent - apart) : first;
        b[i] = i ? number<Real, Bits>(random, exponent) : second;
    }
    divide<<<count / 256, 256>>>(a, b, c);
    CHECK(hipDeviceSynchronize());
    int subnormal = 0;
    for (int i = 0; i < count; i++) {
        volatile Real quotient = a[i] / b[i];
        EQUAL(Real(quotient), c[i]);
        subnormal += std::fpclassify(Real(quotient)) == FP_SUBNORMAL;
    }
    REQUIRE(subnormal > count / 2);
    CHECK(hipFree(a));
    CHECK(hipFree(b));
    CHECK(hipFree(c));
}

CASE(quotients_of_doubles) { quotients_are_rounded_once<double, uint64_t>(1.0, -1.5068552147034071e+308); }
CASE(quotients_of_floats) { quotients_are_rounded_once<float, uint32_t>(1.0f, -3.0e38f); }
