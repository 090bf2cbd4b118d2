// Occupancy: how many blocks fit a compute unit, and block sizes that fill it.
#include "own_module.h"

extern "C" __global__ void light(int *to) { to[threadIdx.x] = 1; }
extern "C" __global__ void with_shared(int *to)
{
    __shared__ int room[8192]; // half of a compute unit's
    room[threadIdx.x] = int(threadIdx.x);
    __syncthreads();
    to[threadIdx.x] = room[63 - threadIdx.x];
}

CASE(blocks)
{
    int blocks = -1, threads;
    CHECK(hipDeviceGetAttribute(&threads, hipDeviceAttributeMaxThreadsPerMultiProcessor, 0));
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, 256, 0));
    EQUAL(threads / 256, blocks);
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, 1024, 0));
    EQUAL(threads / 1024, blocks);
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, 65, 0)); // rounded up to whole waves
    EQUAL(threads / 128, blocks);
}
CASE(blocks_that_share_memory)
{
    int blocks = -1;
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 64, 0));
    EQUAL(2, blocks);
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, 64, 16384));
    EQUAL(4, blocks);
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, 64, 65536));
    EQUAL(1, blocks);
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, 64, 65537));
    EQUAL(0, blocks);
}
CASE(blocks_that_are_too_large)
{
    int blocks = -1;
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, 1025, 0));
    EQUAL(0, blocks);
}
CASE(blocks_refuse)
{
    int blocks, host;
    GIVES(hipErrorInvalidValue, hipOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, light, 64, 0));
    GIVES(hipErrorInvalidValue, hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, 0, 0));
    GIVES(hipErrorInvalidValue, hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, light, -1, 0));
    REQUIRE(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, static_cast<const void *>(nullptr), 64, 0) != hipSuccess);
    REQUIRE(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, static_cast<const void *>(&host), 64, 0) != hipSuccess);
}
CASE(flags)
{
    int plain, blocks;
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&plain, light, 64, 0));
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, light, 64, 0, hipOccupancyDefault));
    EQUAL(plain, blocks);
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, light, 64, 0, 1 /* hipOccupancyDisableCachingOverride */));
    EQUAL(plain, blocks);
    GIVES(hipErrorInvalidValue, hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, light, 64, 0, 0xFFFF));
}
CASE(flags_of_modules)
{
    Module module;
    hipFunction_t f = module.function("light");
    int blocks, size;
    CHECK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, f, 64, 0, hipOccupancyDefault));
    GIVES(hipErrorInvalidValue, hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, f, 64, 0, 0xFFFF));
    CHECK(hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&blocks, &size, f, 0, 0, hipOccupancyDefault));
    GIVES(hipErrorInvalidValue, hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&blocks, &size, f, 0, 0, 0xFFFF));
}
CASE(modules_agree)
{
    Module module;
    hipFunction_t f = module.function("light");
    int by_symbol, by_function;
    CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&by_symbol, light, 128, 4096));
    CHECK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&by_function, f, 128, 4096));
    EQUAL(by_symbol, by_function);
    int grid, block, other_grid, other_block;
    CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, light, 0, 0));
    CHECK(hipModuleOccupancyMaxPotentialBlockSize(&other_grid, &other_block, f, 0, 0));
    EQUAL(grid, other_grid);
    EQUAL(block, other_block);
    GIVES(hipErrorInvalidValue, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, f, 64, 0));
    GIVES(hipErrorInvalidValue, hipModuleOccupancyMaxPotentialBlockSize(nullptr, &block, f, 0, 0));
    GIVES(hipErrorInvalidValue, hipModuleOccupancyMaxPotentialBlockSize(&grid, nullptr, f, 0, 0));
}
CASE(best_block_size)
{
    int grid = -1, block = -1, units, threads;
    CHECK(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    CHECK(hipDeviceGetAttribute(&threads, hipDeviceAttributeMaxThreadsPerMultiProcessor, 0));
    CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, light, 0, 0));
    EQUAL(1024, block);
    EQUAL(units * threads / 1024, grid);
    CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, light, 0, 256));
    EQUAL(256, block);
    EQUAL(units * threads / 256, grid);
    light<<<1, block>>>(Device<int>(1024, 0));
    CHECK(hipDeviceSynchronize());
    GIVES(hipErrorInvalidValue, hipOccupancyMaxPotentialBlockSize(nullptr, &block, light, 0, 0));
    GIVES(hipErrorInvalidValue, hipOccupancyMaxPotentialBlockSize(&grid, nullptr, light, 0, 0));
}
