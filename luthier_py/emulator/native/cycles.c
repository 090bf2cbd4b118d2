/* What the cycle model works out at run time: banks and lines from real addresses, waits from counters.

   In: a wave with a TIME record, addresses of its lanes. Out: cycles. Invariant: accesses that a counter counts come back
   in order. */
#include "lanes.h"
#include "native.h"

enum { BANKS = 64, GROUPS = 8, WORDS_OF_BANK = 32, MOST_LINES = 256 };

struct counter { /* when the last TIME_RING accesses that it has counted were there */
    u64 issued, there[TIME_RING];
};

struct pattern { /* of addresses in LDS, and what its banks take */
    u64 key, mask, cycles;
    u32 distances[64];
};

struct times { /* TIME of layout, and what is behind it */
    struct time fields;
    struct counter counters[TIME_COUNTERS];
    struct pattern patterns[];
};

struct service { /* isa/timing/lds_banks: how lanes are served in groups, and by how many banks */
    u64 parities, bits, banks, dwords, atomic;
};

GENERIC struct times *times_of(const struct wave *wave)
{
    return (struct times *)wave->time;
}

GENERIC u64 most(u64 a, u64 b)
{
    return a > b ? a : b;
}

static u64 group_of(const struct service *service, u64 lane)
{
    u64 group = 0;
    for (u64 bit = 0; bit < service->bits; bit++)
        group |= (u64)__builtin_parityll(lane & (service->parities >> 8 * bit & 0xff)) << bit;
    return group;
}

/* Whether a lane before wants the word, too, of the `count` that a bank gives so far. */
static bool is_given(const u64 *words, u64 count, u64 word)
{
    for (u64 i = 0; i < count; i++)
        if (words[i] == word)
            return true;
    return false;
}

/* Of each group what its fullest bank gives: each word once, to each lane for itself in an atomic. At least one, also
   where no lane of it is active. */
static u64 count_bank_cycles(const struct service *service, u64 mask, u64 base, const u32 *addresses)
{
    u64 counts[GROUPS][BANKS], words[GROUPS][BANKS][WORDS_OF_BANK], fullest[GROUPS] = {0};
    u64 groups = 1ull << service->bits, total = 0;
    __builtin_memset(counts, 0, groups * sizeof *counts);
    for (u64 left = mask; left; left &= left - 1) {
        u64 lane = first_lane(left), group = group_of(service, lane), first = (addresses[lane] + base) >> 2;
        for (u64 word = first; word < first + service->dwords; word++) {
            u64 bank = word & (service->banks - 1), *count = &counts[group][bank], *given = words[group][bank];
            if (!service->atomic) {
                if (is_given(given, *count, word))
                    continue;
                given[*count % WORDS_OF_BANK] = word;
            }
            fullest[group] = most(fullest[group], ++*count);
        }
    }
    for (u64 group = 0; group < groups; group++)
        total += most(fullest[group], 1);
    return total;
}

/* Cycles of an access of LDS; addresses with the same distances as before, in pattern `number`, take as long. */
u64 SUPPORT(time_banks)(struct wave *wave, u64 mask, u64 base, const u32 *addresses, u64 parities, u64 bits, u64 banks,
                        u64 dwords, u64 atomic, u64 number)
{
    if (!mask)
        return 0;
    struct pattern *pattern = &times_of(wave)->patterns[number];
    u32 lead = addresses[first_lane(mask)];
    row apart = flags_of(mask) ? load_row(addresses) - lead : 0;
    u64 key = parities | bits << 24 | banks << 28 | dwords << 40 | atomic << 44 | ((lead + base) & 3) << 48;
    if (key == pattern->key && mask == pattern->mask && all_zero(apart ^ load_row(pattern->distances)))
        return pattern->cycles;
    struct service service = {parities, bits, banks, dwords, atomic};
    u64 cycles = count_bank_cycles(&service, mask, base, addresses);
    pattern->key = key;
    pattern->mask = mask;
    pattern->cycles = cycles;
    store_row(pattern->distances, apart);
    return cycles;
}

/* Cycles of an access of memory: what lanes move at `rate` bytes in a cycle, a cycle for each line, `least`. */
u64 SUPPORT(time_lines)(struct wave *wave, u64 mask, u64 base, const u32 *addresses, u64 far, u64 bytes, u64 line_bytes,
                        u64 rate, u64 least)
{
    (void)wave;
    u64 lines[MOST_LINES], found = 0;
    for (u64 left = mask; left; left &= left - 1) {
        u64 lane = first_lane(left), high = far ? addresses[LANES + lane] : 0;
        u64 at = (high << 32 | addresses[lane]) + base;
        for (u64 line = at / line_bytes; line <= (at + bytes - 1) / line_bytes; line++) {
            u64 k = found;
            while (k && lines[k - 1] != line)
                k--;
            if (!k && found < MOST_LINES)
                lines[found++] = line;
        }
    }
    u64 moved = (u64)__builtin_popcountll(mask) * bytes;
    return most(most((moved + rate - 1) / rate, found), least);
}

/* An access begins, `offset` cycles from now: it holds what is free at the field `free` for `own` cycles, of which others
   cannot use `shared`, and is there after `latency` more. `first`: the instruction's first one; `counters`: bits. */
void SUPPORT(time_issue)(struct wave *wave, u64 offset, u64 own, u64 shared, u64 latency, u64 free, u64 busy, u64 first,
                         u64 counters)
{
    struct times *times = times_of(wave);
    u64 *free_at = (u64 *)((u64)times + free);
    u64 done = most(times->fields.now + offset, *free_at) + own, there = done + latency;
    *free_at = done;
    *(u64 *)((u64)times + busy) += shared;
    for (; counters; counters &= counters - 1) {
        struct counter *counter = &times->counters[first_lane(counters)];
        u64 last = counter->issued - 1, number = first ? counter->issued : last;
        counter->there[number % TIME_RING] = most(there, counter->there[last % TIME_RING]);
        counter->issued += first;
    }
}

/* The cycle in which at most `count` accesses of a counter are not yet there; 0 where none was. */
u64 SUPPORT(time_wait)(struct wave *wave, u64 number, u64 count)
{
    const struct counter *counter = &times_of(wave)->counters[number];
    return counter->issued > count ? counter->there[(counter->issued - count - 1) % TIME_RING] : 0;
}
