// Softmax of each row: maximum and sum in LDS, exponentials.
#include <hip/hip_runtime.h>
#include <cmath>
#include <vector>
#include "check.h"

constexpr int BLOCK = 128;

__global__ void softmax(const float *in, float *out, int columns)
{
    __shared__ float part[BLOCK];
    int t = threadIdx.x;
    const float *row = in + blockIdx.x * columns;
    float most = -__builtin_inff();
    for (int c = t; c < columns; c += BLOCK)
        most = __builtin_fmaxf(most, row[c]);
    part[t] = most;
    __syncthreads();
    for (int s = BLOCK / 2; s > 0; s /= 2) {
        if (t < s)
            part[t] = __builtin_fmaxf(part[t], part[t + s]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    float sum = 0;
    for (int c = t; c < columns; c += BLOCK)
        sum += __builtin_expf(row[c] - most);
    part[t] = sum;
    __syncthreads();
    for (int s = BLOCK / 2; s > 0; s /= 2) {
        if (t < s)
            part[t] += part[t + s];
        __syncthreads();
    }
    for (int c = t; c < columns; c += BLOCK)
        out[blockIdx.x * columns + c] = __builtin_expf(row[c] - most) / part[0];
}

int main()
{
    const int rows = 5, columns = 300, count = rows * columns;
    std::vector<float> in(count), out(count);
    for (int i = 0; i < count; i++)
        in[i] = float((i * 31) % 97) * 0.1f;
    float *din, *dout;
    CHECK(hipMalloc(&din, count * sizeof(float)));
    CHECK(hipMalloc(&dout, count * sizeof(float)));
    CHECK(hipMemcpy(din, in.data(), count * sizeof(float), hipMemcpyHostToDevice));
    softmax<<<rows, BLOCK>>>(din, dout, columns);
    CHECK(hipMemcpy(out.data(), dout, count * sizeof(float), hipMemcpyDeviceToHost));
    for (int r = 0; r < rows; r++) {
        double sum = 0, total = 0;
        for (int c = 0; c < columns; c++)
            sum += std::exp(double(in[r * columns + c]));
        for (int c = 0; c < columns; c++) {
            REQUIRE(std::fabs(out[r * columns + c] - std::exp(double(in[r * columns + c])) / sum) < 1e-6);
            total += out[r * columns + c];
        }
        REQUIRE(std::fabs(total - 1) < 1e-5);
    }
    return passed();
}
