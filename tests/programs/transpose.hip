// Matrix transpose through LDS, once with 32-way bank conflicts and once with a padded tile that has none.
#include <hip/hip_runtime.h>
#include <vector>
#include "check.h"

constexpr int TILE = 32, ROWS = 8;

template <int PAD>
__device__ void transpose(const float *in, float *out, int width, int height)
{
    __shared__ float tile[TILE][TILE + PAD];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void transpose_plain(const float *in, float *out, int w, int h) { transpose<0>(in, out, w, h); }
extern "C" __global__ void transpose_padded(const float *in, float *out, int w, int h) { transpose<1>(in, out, w, h); }

int main()
{
    const int width = 96, height = 64, count = width * height;
    std::vector<float> in(count), out(count);
    for (int i = 0; i < count; i++)
        in[i] = float(i);
    float *din, *dout;
    CHECK(hipMalloc(&din, count * sizeof(float)));
    CHECK(hipMalloc(&dout, count * sizeof(float)));
    CHECK(hipMemcpy(din, in.data(), count * sizeof(float), hipMemcpyHostToDevice));
    for (int padded = 0; padded < 2; padded++) {
        CHECK(hipMemset(dout, 0xff, count * sizeof(float)));
        dim3 grid(width / TILE, height / TILE), block(TILE, ROWS);
        if (padded)
            transpose_padded<<<grid, block>>>(din, dout, width, height);
        else
            transpose_plain<<<grid, block>>>(din, dout, width, height);
        CHECK(hipGetLastError());
        CHECK(hipMemcpy(out.data(), dout, count * sizeof(float), hipMemcpyDeviceToHost));
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                REQUIRE(out[x * height + y] == in[y * width + x]);
    }
    return passed();
}
