/* Loads of a strip of lanes, each from a place of its own.

   In: offsets that are known to be inside, data rows of the strip. Invariant: of memory that other workers see, what is
   loaded is read once, an element's two dwords at once. Rows are written as vectors: what reads them next would wait for
   dwords. */
#ifndef LUTHIER_GATHERS_H
#define LUTHIER_GATHERS_H

#include "strips.h"

typedef u64 wide_strip __attribute__((ext_vector_type(STRIP)));

/* gathers.py writes them. */
strip gather_dwords(const u8 *start, strip offsets);
wide_strip gather_pairs(const u8 *start, strip offsets);

/* Elements of whole dwords. */
GENERIC void gather_elements(struct shape shape, const u8 *start, strip offsets, u32 *data)
{
    u32 word = 0;
    for (; word + 2 <= words_of(shape); word += 2) {
        words_2 all = __builtin_bit_cast(words_2, gather_pairs(start + 4 * word, offsets));
        store_strip(data + word * LANES, __builtin_shufflevector(all, all, EVERY(2, 0)));
        store_strip(data + (word + 1) * LANES, __builtin_shufflevector(all, all, EVERY(2, 1)));
    }
    if (word < words_of(shape))
        store_strip(data + word * LANES, gather_dwords(start + 4 * word, offsets));
}

#endif
