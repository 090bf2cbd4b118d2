/* Which host memory an address is: resolve.c. */
#ifndef LUTHIER_RESOLVE_H
#define LUTHIER_RESOLVE_H

#include "native.h"

/* IN_LDS and IN_SCRATCH: the address is an offset there, of 32 bits: what is above them is carry. WRITES is the bit
   WRITABLE of an allocation. */
enum access_flags { WRITES = WRITABLE, FLAT = 2, ALIGNED = 4, IN_LDS = 8, IN_SCRATCH = 16, FLOAT_ATOMIC = 32 };

/* The host's pointer, for `bytes` bytes of one lane, or null after a fault was noted in the wave. */
u8 *SUPPORT(resolve)(struct wave *wave, u64 address, u64 bytes, struct site *site, u64 lane, u64 flags);

/* Note what of a surface is refused, a SurfaceRefusal. */
void SUPPORT(refuse)(struct wave *wave, const struct site *site, u64 lane, u64 refusal);

/* Whether `bytes` (not 0) from `at` on lie from `begin` to `end`, even where their end wraps. */
GENERIC bool inside(u64 at, u64 bytes, u64 begin, u64 end)
{
    u64 into = at - begin, length = end - begin;
    return (into < length) & (bytes <= length - into);
}

#endif
