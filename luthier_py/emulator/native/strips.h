/* How strips of lanes move at once, whose elements follow each other in memory, or are all the same one.

   In: data rows of a strip, a place in memory. Invariant: of memory that other workers see, what is loaded is read once
   (volatile). */
#ifndef LUTHIER_STRIPS_H
#define LUTHIER_STRIPS_H

#include "accesses.h"
#include "lane_words.h"
#include "lanes.h"

typedef u8 bytes_1 __attribute__((ext_vector_type(STRIP), aligned(1)));
typedef u16 bytes_2 __attribute__((ext_vector_type(STRIP), aligned(1)));
typedef int8_t signed_1 __attribute__((ext_vector_type(STRIP), aligned(1)));
typedef int16_t signed_2 __attribute__((ext_vector_type(STRIP), aligned(1)));
typedef u32 words_1 __attribute__((ext_vector_type(STRIP), aligned(1)));
typedef u32 words_2 __attribute__((ext_vector_type(2 * STRIP), aligned(1)));
typedef u32 words_3 __attribute__((ext_vector_type(3 * STRIP), aligned(1)));
typedef u32 words_4 __attribute__((ext_vector_type(4 * STRIP), aligned(1)));

/* Of each element of so many words the one that `word` says. */
#define EVERY(words, word) \
    word, words + word, 2 * words + word, 3 * words + word, 4 * words + word, 5 * words + word, 6 * words + word, \
        7 * words + word, 8 * words + word, 9 * words + word, 10 * words + word, 11 * words + word, 12 * words + word, \
        13 * words + word, 14 * words + word, 15 * words + word
/* The words of each lane, where those of all lanes follow each other word by word. */
#define GATHERED(words, of_lane) \
    of_lane(0), of_lane(1), of_lane(2), of_lane(3), of_lane(4), of_lane(5), of_lane(6), of_lane(7), of_lane(8), \
        of_lane(9), of_lane(10), of_lane(11), of_lane(12), of_lane(13), of_lane(14), of_lane(15)
#define TWO(lane) lane, lane + 16
#define THREE(lane) lane, lane + 16, lane + 32
#define FOUR(lane) lane, lane + 16, lane + 32, lane + 48
#define NO_LANES TIMES(-1)

GENERIC strip load_strip(const u32 *at)
{
    return *(const dword_strip *)at;
}

GENERIC void store_strip(u32 *at, strip value)
{
    *(dword_strip *)at = value;
}

GENERIC strip load_narrow(struct shape shape, const u8 *at)
{
    if (shape.bytes == 1)
        return shape.is_signed ? __builtin_convertvector(*(const volatile signed_1 *)at, strip)
                               : __builtin_convertvector(*(const volatile bytes_1 *)at, strip);
    return shape.is_signed ? __builtin_convertvector(*(const volatile signed_2 *)at, strip)
                           : __builtin_convertvector(*(const volatile bytes_2 *)at, strip);
}

#define SPREAD(words, word) store_strip(data + word * LANES, __builtin_shufflevector(all, all, EVERY(words, word)))

/* Consecutive elements to the rows of a strip. */
GENERIC void load_consecutive(struct shape shape, const u8 *at, u32 *data)
{
    switch (shape.bytes) {
    case 4:
        store_strip(data, *(const volatile words_1 *)at);
        break;
    case 8: {
        words_2 all = *(const volatile words_2 *)at;
        SPREAD(2, 0), SPREAD(2, 1);
        break;
    }
    case 12: {
        words_3 all = *(const volatile words_3 *)at;
        SPREAD(3, 0), SPREAD(3, 1), SPREAD(3, 2);
        break;
    }
    case 16: {
        words_4 all = *(const volatile words_4 *)at;
        SPREAD(4, 0), SPREAD(4, 1), SPREAD(4, 2), SPREAD(4, 3);
        break;
    }
    default:
        store_strip(data, load_narrow(shape, at));
    }
}

GENERIC words_2 join(strip low, strip high)
{
    return __builtin_shufflevector(low, high, FROM(0), FROM(16));
}

/* The rows of a strip to consecutive elements. */
GENERIC void store_consecutive(struct shape shape, u8 *at, const u32 *data)
{
    strip first = load_strip(data);
    if (shape.bytes < 4) {
        if (shape.bytes == 1)
            *(bytes_1 *)at = __builtin_convertvector(first, bytes_1);
        else
            *(bytes_2 *)at = __builtin_convertvector(first, bytes_2);
        return;
    }
    if (shape.bytes == 4) {
        *(words_1 *)at = first;
        return;
    }
    words_2 low = join(first, load_strip(data + LANES));
    if (shape.bytes == 8) {
        *(words_2 *)at = __builtin_shufflevector(low, low, GATHERED(2, TWO));
        return;
    }
    strip third = load_strip(data + 2 * LANES);
    if (shape.bytes == 12) {
        words_2 high = __builtin_shufflevector(third, third, FROM(0), NO_LANES);
        *(words_3 *)at = __builtin_shufflevector(low, high, GATHERED(3, THREE));
        return;
    }
    words_2 high = join(third, load_strip(data + 3 * LANES));
    *(words_4 *)at = __builtin_shufflevector(low, high, GATHERED(4, FOUR));
}

/* One element to all lanes of a strip. */
GENERIC void load_same(struct shape shape, const u8 *at, u32 *data)
{
    u32 word = 0;
    for (; word + 2 <= words_of(shape); word += 2) {
        u64 both = *(const volatile byte_u64 *)(at + 4 * word);
        store_strip(data + word * LANES, (strip)(u32)both);
        store_strip(data + (word + 1) * LANES, (strip)(u32)(both >> 32));
    }
    if (word < words_of(shape))
        store_strip(data + word * LANES, (strip)load_word(at + 4 * word, shape.bytes, shape.is_signed));
}

#endif
