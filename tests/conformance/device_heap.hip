// malloc, free, new and delete in kernels: the heap of AMD's device library, whose slabs the program gives.
// Linked with ROCm's device library.
#include <hip/hip_runtime.h>

#include "case.h"

// As clang's __clang_hip_runtime_wrapper.h has them, which programs here are compiled without.
extern "C" __device__ unsigned long long __ockl_dm_alloc(unsigned long long bytes);
extern "C" __device__ void __ockl_dm_dealloc(unsigned long long address);
extern "C" __device__ inline void *malloc(size_t bytes) { return (void *)__ockl_dm_alloc(bytes); }
extern "C" __device__ inline void free(void *address) { __ockl_dm_dealloc((unsigned long long)address); }

__global__ void allocate(int **places, size_t bytes, int mark)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int *place = (int *)malloc(bytes);
    if (place)
        place[0] = place[bytes / sizeof(int) - 1] = mark + i;
    places[i] = place;
}

__global__ void look(int **places, size_t bytes, int mark, int *right)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int *place = places[i];
    if (place && place[0] == mark + i && place[bytes / sizeof(int) - 1] == mark + i)
        atomicAdd(right, 1);
    free(place);
}

/* Each thread's block is its own, from one kernel to the next. */
static bool blocks_are_kept(int groups, int threads, size_t bytes)
{
    int n = groups * threads, **places, *right;
    if (hipMallocManaged(&places, n * sizeof *places) != hipSuccess || hipMallocManaged(&right, sizeof *right) != hipSuccess)
        return false;
    *right = 0;
    allocate<<<groups, threads>>>(places, bytes, 1000);
    look<<<groups, threads>>>(places, bytes, 1000, right);
    bool kept = hipDeviceSynchronize() == hipSuccess && *right == n;
    return hipFree(places) == hipSuccess && hipFree(right) == hipSuccess && kept;
}

CASE(small_blocks) { REQUIRE(blocks_are_kept(8, 128, 16)); }
CASE(middling_blocks) { REQUIRE(blocks_are_kept(4, 100, 1200)); }
CASE(blocks_of_more_slabs_than_the_heap_begins_with) { REQUIRE(blocks_are_kept(40, 64, 3072)); }
CASE(large_blocks) { REQUIRE(blocks_are_kept(2, 32, 100000)); }

CASE(many_rounds_reuse_memory)
{
    for (int i = 0; i < 20; i++)
        REQUIRE(blocks_are_kept(4, 64, 2048));
}

struct node {
    int value;
    node *next;
    __device__ node(int value, node *next) : value(value), next(next) {}
    __device__ virtual ~node() {}
    __device__ static void *operator new(size_t bytes) { return malloc(bytes); }
    __device__ static void operator delete(void *address) { free(address); }
    __device__ virtual int twice() const { return 2 * value; }
};

__global__ void lists(int *sums)
{
    node *first = nullptr;
    for (unsigned i = 0; i <= threadIdx.x % 7; i++)
        first = new node(i, first);
    int *array = (int *)malloc(10 * sizeof *array);
    for (int i = 0; i < 10; i++)
        array[i] = i;
    int sum = array[9];
    while (first) {
        node *next = first->next;
        sum += first->twice();
        delete first;
        first = next;
    }
    free(array);
    sums[threadIdx.x] = sum;
}

CASE(new_and_delete)
{
    int *sums;
    CHECK(hipMallocManaged(&sums, 64 * sizeof *sums));
    lists<<<1, 64>>>(sums);
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        REQUIRE(sums[i] == 9 + i % 7 * (i % 7 + 1));
    CHECK(hipFree(sums));
}

CASE(nothing_is_null)
{
    int **places;
    CHECK(hipMallocManaged(&places, 64 * sizeof *places));
    allocate<<<1, 1>>>(places, size_t(1) << 60, 0);
    CHECK(hipDeviceSynchronize());
    REQUIRE(!places[0]);
    CHECK(hipFree(places));
}

ALONE(memory_of_kernels_is_the_devices)
{
    size_t before, after, total;
    int **places;
    CHECK(hipMallocManaged(&places, sizeof *places));
    CHECK(hipMemGetInfo(&before, &total));
    allocate<<<1, 1>>>(places, 64 << 20, 0);
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemGetInfo(&after, &total));
    REQUIRE(places[0] && before - after >= 64 << 20);
}
