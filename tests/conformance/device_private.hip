// Arrays of a thread's own in private memory, by indices that only the thread knows: of three bytes, whose addresses are a
// negative register and an immediate, and of halves.
#include "case.h"

struct Three {
    char x, y, z;
};

__global__ void pick(const int *indices, int *out)
{
    Three threes[8];
    short halves[9];
    int lane = threadIdx.x, index = indices[lane];
    for (int i = 0; i < 8; i++)
        threes[i] = {char(i + lane), char(2 * i), char(3 * i)};
    for (int i = 0; i < 9; i++)
        halves[i] = 7 * i;
    out[lane] = threes[index - 1].x + 256 * threes[index - 1].y + 65536 * threes[8 - index].z + halves[index];
}

CASE(arrays_of_three_bytes_and_of_halves)
{
    int *indices, *out;
    CHECK(hipMallocManaged(&indices, 64 * sizeof *indices));
    CHECK(hipMallocManaged(&out, 64 * sizeof *out));
    for (int i = 0; i < 64; i++)
        indices[i] = 1 + i % 8;
    pick<<<1, 64>>>(indices, out);
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < 64; i++) {
        int index = indices[i];
        EQUAL(char(index - 1 + i) + 256 * 2 * (index - 1) + 65536 * 3 * (8 - index) + 7 * index, out[i]);
    }
    CHECK(hipFree(indices));
    CHECK(hipFree(out));
}
