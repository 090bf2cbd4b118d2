/* Memory that kernels may access, and the heap from which kernels allocate (malloc, new): which of its blocks are in use.

   Kernels keep the heap themselves. Memory that may be a slab says in its access whose heap it is of; it is one where that
   heap has recorded it (ROCm device libraries, ockl/src/dm.cl: heap_t, sdata_t, slab_t, kinfo). A block has no record of
   the size that was requested, so it counts as a whole. What a slab begins with, up to the bits that say which are in
   use, is the library's own. */
#include "watching.h"

/* Whether an allocation holds these bytes, and what may be done there. */
bool allocated(u8 *memory, u64 address, u64 size, bool writes, u64 *access) {
    u64 *table = *(u64 **)*(u64 *)(*field(memory, WAVE_WORKER) + WORKER_ALLOCATIONS);
    u64 low = 0, high = table[0];
    while (low < high) {
        u64 middle = (low + high) / 2, *row = table + 1 + 3 * middle;
        if (address >= row[1]) low = middle + 1;
        else if (address < row[0]) high = middle;
        else {
            *access = row[2];
            return size <= row[1] - address && (!writes || *access & WRITABLE);
        }
    }
    return false;
}

enum { KINDS = 16, SLAB = 1 << 21, DIRECT = 256, FIRST_RECORD = 5 * KINDS * 128, UNUSABLE = 0xfff };

struct record {
    u64 array, slab;
    u32 used;
};

struct slab {
    u32 kind, index, start, pad, in_use[];
};

static const u32 blocks_from[KINDS] = {16288, 10904, 8192, 5504, 4160, 2816, 2176, 1472,
                                       1280, 896, 1024, 512, 1024, 512, 2048, 2048};

static u64 block_bytes(u32 kind) { return kind & 1 ? 24ull << kind / 2 : 16ull << kind / 2; }

/* Whether the heap has recorded it, directly or in an array of more records. */
static bool is_recorded(u8 *memory, u64 heap, struct slab *slab) {
    if (slab->kind >= KINDS || slab->index >= DIRECT * (DIRECT + 1)) return false;
    struct record *records = (struct record *)(heap + FIRST_RECORD) + slab->kind * DIRECT;
    if (slab->index < DIRECT) return records[slab->index].slab == (u64)slab;
    u64 array = records[slab->index / DIRECT - 1].array, access;
    return allocated(memory, array, DIRECT * sizeof *records, false, &access) &&
           ((struct record *)array)[slab->index % DIRECT].slab == (u64)slab;
}

/* What these bytes, in memory that may be accessed so, are to the heap: nothing or part of a block that is in use, the
   library's own, or how they are in no such block; then also which block they begin in. */
u64 place_in_heap(u8 *memory, u64 access, u64 address, u64 size, u64 *block, u64 *bytes) {
    u64 heap = access & ~(u64)UNUSABLE;
    struct slab *slab = (struct slab *)(address & ~(u64)(SLAB - 1));
    if (heap == 0 || !is_recorded(memory, heap, slab)) return 0;
    u64 first = *block = (u64)slab + blocks_from[slab->kind], blocks, number;
    *bytes = block_bytes(slab->kind);
    blocks = ((u64)slab + SLAB - first) / *bytes;
    if (address < first) return address >= (u64)&slab->in_use[(blocks + 31) / 32] ? BLOCK_FREE : OF_LIBRARY;
    number = (address - first) / *bytes;
    *block += number * *bytes;
    if (number >= blocks || !(*block & UNUSABLE) || !(slab->in_use[number / 32] >> number % 32 & 1)) return BLOCK_FREE;
    return address + size > *block + *bytes ? BLOCK_LEFT : 0;
}
