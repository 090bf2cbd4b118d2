/* How the dwords of one lane move between its registers and memory.

   In: a lane's dword of a row, a place in memory. Invariant: two dwords that follow each other move at once, so another
   worker sees none or both; what is loaded so is read once (volatile), or LLVM would read memory again for another half,
   and find there what was stored meanwhile. */
#ifndef LUTHIER_LANE_WORDS_H
#define LUTHIER_LANE_WORDS_H

#include "accesses.h"
#include "lanes.h"

GENERIC u32 load_word(const u8 *at, u32 bytes, bool is_signed)
{
    switch (bytes) {
    case 1:
        return is_signed ? (u32)(int8_t)*at : *at;
    case 2:
        return is_signed ? (u32)(int16_t)*(const byte_u16 *)at : *(const byte_u16 *)at;
    default:
        return *(const byte_u32 *)at;
    }
}

GENERIC void store_word(u8 *at, u32 bytes, u32 value)
{
    if (bytes == 1)
        *at = (u8)value;
    else if (bytes == 2)
        *(byte_u16 *)at = (u16)value;
    else
        *(byte_u32 *)at = value;
}

GENERIC void move_word(struct shape shape, u8 *at, u32 *data)
{
    if (shape.operation == STORE)
        store_word(at, shape.bytes, *data);
    else
        *data = load_word(at, shape.bytes, shape.is_signed);
}

GENERIC void move_two_words(struct shape shape, u8 *at, u32 *data)
{
    if (shape.operation == STORE) {
        *(volatile byte_u64 *)at = data[0] | (u64)data[LANES] << 32;
    } else {
        u64 both = *(const volatile byte_u64 *)at;
        data[0] = (u32)both;
        data[LANES] = (u32)(both >> 32);
    }
}

/* An element whose words follow each other. */
GENERIC void move_words(struct shape shape, u8 *at, u32 *data)
{
    u32 word = 0;
    for (; word + 2 <= words_of(shape); word += 2)
        move_two_words(shape, at + 4 * word, data + word * LANES);
    if (word < words_of(shape))
        move_word(shape, at + 4 * word, data + word * LANES);
}

#endif
