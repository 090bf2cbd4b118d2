// Distances of records to a place on the GPU, the nearest found on the host (after Rodinia's nn); pitched memory.
#include <hip/hip_runtime.h>
#include <cmath>
#include <vector>
#include "check.h"

struct Place { float latitude, longitude; };

__global__ void distances(const Place *places, float *result, int n, Place from)
{
    int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
    if (i < n) {
        float y = from.latitude - places[i].latitude, x = from.longitude - places[i].longitude;
        result[i] = __builtin_sqrtf(y * y + x * x);
    }
}

int main()
{
    const int n = 700;
    std::vector<Place> places(n);
    std::vector<float> result(n);
    for (int i = 0; i < n; i++)
        places[i] = {float(i * 73 % 181 - 90), float(i * 151 % 361 - 180)};
    const Place from{30, 90};
    Place *dplaces;
    float *dresult;
    size_t pitch;
    CHECK(hipMallocPitch(reinterpret_cast<void **>(&dplaces), &pitch, n * sizeof(Place), 1));
    REQUIRE(pitch >= n * sizeof(Place));
    CHECK(hipMalloc(&dresult, n * sizeof(float)));
    CHECK(hipMemcpy2D(dplaces, pitch, places.data(), n * sizeof(Place), n * sizeof(Place), 1, hipMemcpyHostToDevice));
    distances<<<dim3(2, 2), 256>>>(dplaces, dresult, n, from);
    CHECK(hipMemcpy(result.data(), dresult, n * sizeof(float), hipMemcpyDeviceToHost));
    int best = 0;
    for (int i = 0; i < n; i++) {
        float y = from.latitude - places[i].latitude, x = from.longitude - places[i].longitude;
        REQUIRE(std::fabs(result[i] - std::sqrt(y * y + x * x)) < 1e-3f);
        best = result[i] < result[best] ? i : best;
    }
    for (int i = 0; i < n; i++)
        REQUIRE(result[best] <= result[i]);
    return passed();
}
