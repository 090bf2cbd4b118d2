// Copies between the device and memory of the program's own, large enough that the runtime pins it instead of passing
// through a buffer; in pieces that share pages, as rectangles, and while a kernel uses another part.
#include <hip/hip_runtime.h>
#include <vector>
#include "../check.h"

__global__ void invert(unsigned *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] = ~data[i];
}

int main()
{
    const int n = 600000, width = 700, height = 90, at = 12345;
    std::vector<unsigned> host(n), back(n, 1u), box(width * height, 2u);
    for (int i = 0; i < n; i++)
        host[i] = 2654435761u * i;
    unsigned *data;
    CHECK(hipMalloc(&data, n * sizeof *data));
    CHECK(hipMemcpy(data, host.data(), at * sizeof *data, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(data + at, host.data() + at, (n - at) * sizeof *data, hipMemcpyHostToDevice));
    invert<<<4, 256>>>(data + at, 1000);
    CHECK(hipMemcpy(back.data(), data, n * sizeof *data, hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        REQUIRE(back[i] == (i >= at && i < at + 1000 ? ~host[i] : host[i]));

    unsigned *pitched;
    size_t pitch;
    CHECK(hipMallocPitch(reinterpret_cast<void **>(&pitched), &pitch, width * sizeof *data, height));
    CHECK(hipMemcpy2D(pitched, pitch, host.data() + 5, width * sizeof *data, width * sizeof *data, height, hipMemcpyHostToDevice));
    CHECK(hipMemcpy2D(box.data(), width * sizeof *data, pitched, pitch, width * sizeof *data, height, hipMemcpyDeviceToHost));
    for (int i = 0; i < width * height; i++)
        REQUIRE(box[i] == host[i + 5]);
    std::vector<unsigned>(back).swap(host); // pages that were pinned go and come
    for (int i = 0; i < n; i++)
        REQUIRE(host[i] == back[i]);
    return passed();
}
