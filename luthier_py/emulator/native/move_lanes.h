/* Loads and stores of one lane after the other, wherever each element lies.

   In: an access, and its shape. Out: whether all went well; else a fault was noted in the wave. Invariant: all bytes of a
   lane are known to be there before the first of them moves; an element of two dwords moves at once, but where its words
   are not adjacent, in private memory, which no other lane sees. */
#ifndef LUTHIER_MOVE_LANES_H
#define LUTHIER_MOVE_LANES_H

#include "lane_words.h"
#include "resolve.h"

enum { MOST_PARTS = 2, MOST_WORDS = 4, MOST_BYTES = MOST_PARTS * MOST_WORDS * 4 };

struct lane {
    const struct access *access;
    struct shape shape;
    u64 number, address, flags;
};

GENERIC u64 flags_of_shape(struct shape shape)
{
    u64 flags = shape.operation == STORE ? WRITES : 0;
    switch (shape.addresses) {
    case FLAT_OR_FAR:
        return flags | FLAT;
    case LDS:
        return flags | IN_LDS;
    case SCRATCH:
        return flags | IN_SCRATCH;
    default:
        return flags;
    }
}

GENERIC u32 parts_of(const struct lane *lane)
{
    return 1 + lane->shape.pair;
}

GENERIC u8 *resolve(const struct lane *lane, u32 part, u64 offset, u64 bytes)
{
    u64 address = lane->address + (part ? lane->access->distance : 0) + offset;
    return SUPPORT(resolve)(lane->access->wave, address, bytes, lane->access->site, lane->number, lane->flags);
}

GENERIC u32 *data_of(const struct lane *lane, u32 part, u32 word)
{
    return lane->access->data[part] + word * LANES + lane->number;
}

/* Elements whose words follow each other. */
GENERIC bool move_whole(const struct lane *lane)
{
    u8 *at[MOST_PARTS];
    for (u32 part = 0; part < parts_of(lane); part++)
        if (!(at[part] = resolve(lane, part, 0, lane->shape.bytes)))
            return false;
    for (u32 part = 0; part < parts_of(lane); part++)
        move_words(lane->shape, at[part], data_of(lane, part, 0));
    return true;
}

/* Two words of an element, or its last one. */
GENERIC void move_if_adjacent(const struct lane *lane, u8 **at, u32 *data, u32 count)
{
    if (count > 1 && at[1] - at[0] == 4) {
        move_two_words(lane->shape, at[0], data);
        return;
    }
    move_word(lane->shape, at[0], data);
    if (count > 1)
        move_word(lane->shape, at[1], data + LANES);
}

/* Elements whose words need not be adjacent. */
GENERIC bool move_by_words(const struct lane *lane)
{
    u8 *at[MOST_PARTS][MOST_WORDS];
    u32 words = words_of(lane->shape), size = lane->shape.bytes / words;
    for (u32 part = 0; part < parts_of(lane); part++)
        for (u32 word = 0; word < words; word++)
            if (!(at[part][word] = resolve(lane, part, 4 * word, size)))
                return false;
    for (u32 part = 0; part < parts_of(lane); part++)
        for (u32 word = 0; word < words; word += 2)
            move_if_adjacent(lane, at[part] + word, data_of(lane, part, word), words - word);
    return true;
}

/* A byte of an element: the upper ones of its dword are not there yet, and become its sign where it is the last one. */
GENERIC void move_byte(const struct lane *lane, u8 *at, u32 part, u32 offset)
{
    u32 *data = data_of(lane, part, offset / 4), shift = offset % 4 * 8;
    bool is_signed = lane->shape.is_signed && offset + 1 == lane->shape.bytes;
    if (lane->shape.operation == STORE)
        *at = (u8)(*data >> shift);
    else
        *data = (shift ? *data : 0) | load_word(at, 1, is_signed) << shift;
}

/* Elements that lie across dwords, perhaps of private memory. */
GENERIC bool move_by_bytes(const struct lane *lane)
{
    u8 *at[MOST_BYTES];
    u32 bytes = lane->shape.bytes, count = bytes * parts_of(lane);
    for (u32 i = 0; i < count; i++)
        if (!(at[i] = resolve(lane, i >= bytes, i % bytes, 1)))
            return false;
    for (u32 i = 0; i < count; i++)
        move_byte(lane, at[i], i >= bytes, i % bytes);
    return true;
}

GENERIC bool move_lane(const struct lane *lane)
{
    struct shape shape = lane->shape;
    if (shape.addresses != SCRATCH && shape.addresses != FLAT_OR_FAR)
        return move_whole(lane);
    u64 where = lane->address | (shape.pair ? lane->access->distance : 0);
    return (where & 3) + (shape.bytes < 4 ? shape.bytes : 4) > 4 ? move_by_bytes(lane) : move_by_words(lane);
}

GENERIC bool move_lanes(const struct access *access, struct shape shape)
{
    for (u64 left = access->exec; left; left &= left - 1) {
        u64 number = first_lane(left), address = access->base + access->addresses[number];
        if (has_high_half(shape))
            address += (u64)access->addresses[LANES + number] << 32;
        struct lane lane = {access, shape, number, address, flags_of_shape(shape)};
        if (!move_lane(&lane))
            return false;
    }
    return true;
}

#endif
