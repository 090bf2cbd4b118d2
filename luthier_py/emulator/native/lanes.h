/* Rows of registers, a dword of each lane, and sets of lanes.

   In: addresses of rows, masks with a bit for each lane. Out: vectors. Invariant: a row is aligned as a dword is; what is
   outside of rows is aligned as a byte. */
#ifndef LUTHIER_LANES_H
#define LUTHIER_LANES_H

#include "native.h"

enum { ROW_BYTES = 4 * LANES, STRIPS = LANES / STRIP };

typedef u32 row __attribute__((ext_vector_type(LANES)));
typedef bool flags __attribute__((ext_vector_type(LANES)));
typedef u32 strip __attribute__((ext_vector_type(STRIP)));
typedef bool strip_flags __attribute__((ext_vector_type(STRIP)));
typedef row dword_row __attribute__((aligned(4)));
typedef strip dword_strip __attribute__((aligned(4)));
typedef u16 byte_u16 __attribute__((aligned(1)));
typedef u32 byte_u32 __attribute__((aligned(1)));
typedef u64 byte_u64 __attribute__((aligned(1)));

/* Lists for vectors: numbers of a strip's lanes from the first on; 16 times one number; and of all lanes. */
#define FROM(n) \
    n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14, n + 15
#define TIMES(n) n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n
#if LANES == 64
#define ALL_STRIPS(list) list(0), list(16), list(32), list(48)
typedef u64 row_bits;
#else
#define ALL_STRIPS(list) list(0), list(16)
typedef u32 row_bits;
#endif

GENERIC row load_row(const u32 *at)
{
    return *(const dword_row *)at;
}

GENERIC void store_row(u32 *at, row value)
{
    *(dword_row *)at = value;
}

/* The lowest lane of a set that is not empty. */
GENERIC u64 first_lane(u64 mask)
{
    return (u64)__builtin_ctzll(mask);
}

GENERIC flags flags_of(u64 mask)
{
    return __builtin_bit_cast(flags, (row_bits)mask);
}

GENERIC bool is_full(u64 mask)
{
    return mask == (row_bits)-1;
}

GENERIC bool all_zero(row value)
{
    return !__builtin_reduce_or(value);
}

#endif
