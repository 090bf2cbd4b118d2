/* Values of other lanes, and of places at offsets of lanes.

   In: rows of dwords. Out: a row, or a strip. Invariant: a lane without a source has 0. */
#include "gathers.h"
#include "lanes.h"
#include "native.h"

/* Lanes exchange in groups of `reach`, by 4 * a lane's number: forward each gives its value to the lane that it names,
   else it asks that for its value. Lanes outside of `exec` give nothing. */
GENERIC void permute(u64 exec, u64 offset, const u32 *addresses, const u32 *data, u32 *result, u64 reach, bool forward)
{
    store_row(result, 0);
    for (u64 lane = 0; lane < LANES; lane++) {
        u64 other = (lane & -reach) | ((addresses[lane] + offset) >> 2 & (reach - 1));
        u64 giver = forward ? lane : other, taker = forward ? other : lane;
        if (exec >> giver & 1)
            result[taker] = data[giver];
    }
}

#define PERMUTE(name, reach, forward) \
    void SUPPORT(name##_##reach)(struct wave *wave, u64 exec, u64 offset, const u32 *addresses, const u32 *data, \
                                 u32 *result) \
    { \
        (void)wave; \
        permute(exec, offset, addresses, data, result, reach, forward); \
    }

PERMUTE(permute, 32, true)
PERMUTE(bpermute, 32, false)
#if LANES == 64
PERMUTE(permute, 64, true)
PERMUTE(bpermute, 64, false)
#endif

/* The dwords at offsets from a place. */
strip SUPPORT(pick)(const u8 *place, strip offsets)
{
    return gather_dwords(place, offsets);
}
