/* Checked loads and stores of a whole wave, luthier_<addresses>_<operation>_<element>.

   In: (wave, exec, base, address row, data row, site, distance, second data row). Out: false after a fault was noted in
   the wave. Elements pb32 and pb64 are pairs: the second element lies `distance` bytes (>= 0) behind the first, and has
   rows of its own; other elements ignore the last two. A lane's addresses are read before its data is written.

   Invariant: no byte is touched that was not checked to lie in an allocation, LDS, or scratch. Of memory that other
   workers see, a lane's two dwords move at once, and what is loaded is read once. A site remembers the allocation of its
   last access, so one comparison of all lanes is the rule and the search the exception; lanes at consecutive or equal
   addresses, within a strip, move as vectors. */
#include "accesses.h"
#include "gathers.h"
#include "lane_words.h"
#include "lanes.h"
#include "move_lanes.h"
#include "strips.h"

static const row LANE_NUMBERS = {ALL_STRIPS(FROM)};

struct window { /* the offsets that lie inside of it, if it is possible that one does */
    u64 start;  /* what offsets count from */
    u32 least, span;
    bool possible;
};

GENERIC int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

GENERIC int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Overflow makes `most` negative, except in a window too small for anything. */
GENERIC struct window bound(struct shape shape, u64 begin, u64 finish, u64 start, u64 distance)
{
    u64 needed = shape.bytes + (shape.pair ? distance : 0);
    int64_t least = greater((int64_t)(begin - start), 0);
    int64_t most = smaller((int64_t)(finish - (start + needed)), UINT32_MAX);
    return (struct window){start, (u32)least, (u32)(most - least), (least <= most) & (finish - begin >= needed)};
}

/* The high half of the first active lane's address; the others must agree. */
GENERIC u32 read_high_half(const struct access *a)
{
    return a->addresses[LANES + (a->exec ? first_lane(a->exec) : 0)];
}

GENERIC struct window find_window(struct shape shape, const struct access *a)
{
    if (shape.addresses == LDS) {
        u64 begin = a->wave->lds;
        return bound(shape, begin, begin + a->wave->lds_bytes, begin + a->base, a->distance);
    }
    u64 high = has_high_half(shape) ? (u64)read_high_half(a) << 32 : 0;
    return bound(shape, a->site->base, a->site->end, a->base + high, a->distance);
}

/* Not 0 in lanes that are outside. */
GENERIC row find_outside(struct shape shape, const struct access *a, struct window window, row offsets)
{
    row over = __builtin_elementwise_sub_sat(offsets - window.least, (row)window.span);
    return has_high_half(shape) ? over | (load_row(a->addresses + LANES) ^ read_high_half(a)) : over;
}

GENERIC u8 *place_of(const struct access *a, struct window window, u64 lane, u32 part)
{
    return (u8 *)(window.start + a->addresses[lane] + (part ? a->distance : 0));
}

/* The lanes of EXEC, lowest first, all known to be inside. */
GENERIC void move_each(struct shape shape, const struct access *a, struct window window)
{
    for (u64 left = a->exec; left; left &= left - 1) {
        u64 lane = first_lane(left);
        u8 *first = place_of(a, window, lane, 0), *second = place_of(a, window, lane, 1);
        move_words(shape, first, a->data[0] + lane);
        if (shape.pair)
            move_words(shape, second, a->data[1] + lane);
    }
}

GENERIC void move_strips(struct shape shape, const struct access *a, struct window window, row offsets, bool same)
{
#pragma clang loop unroll(full)
    for (u32 lane = 0; lane < LANES; lane += STRIP)
        for (u32 part = 0; part < 1u + shape.pair; part++) {
            u8 *at = (u8 *)(window.start + offsets[lane] + (part ? a->distance : 0));
            u32 *data = a->data[part] + lane;
            if (shape.operation == STORE)
                store_consecutive(shape, at, data);
            else if (same)
                load_same(shape, at, data);
            else
                load_consecutive(shape, at, data);
        }
}

/* All lanes, known to be inside, where those of each strip are consecutive or (loads) all the same. */
GENERIC bool move_pattern(struct shape shape, const struct access *a, struct window window, row offsets)
{
    row firsts = __builtin_shufflevector(offsets, offsets, ALL_STRIPS(TIMES)), deltas = offsets - firsts;
    row wraps = (row)(offsets < firsts);
    bool consecutive = all_zero((deltas ^ LANE_NUMBERS % STRIP * shape.bytes) | wraps);
    if (consecutive)
        move_strips(shape, a, window, offsets, false);
    else if (shape.operation != STORE && all_zero(deltas))
        move_strips(shape, a, window, offsets, true);
    else
        return false;
    return true;
}

/* Whether all is done; else nothing is, or what is done again changes nothing. */
GENERIC bool move_in_window(struct shape shape, const struct access *a)
{
    struct window window = find_window(shape, a);
    if (!window.possible)
        return false;
    row offsets = load_row(a->addresses), outside = find_outside(shape, a, window, offsets);
    if (is_full(a->exec)) {
        if (!all_zero(outside))
            return false;
        if (move_pattern(shape, a, window, offsets))
            return true;
    } else if (!all_zero(flags_of(a->exec) ? outside : 0)) {
        return false;
    }
    move_each(shape, a, window);
    return true;
}

/* Whether all is done, for lanes of one strip: the others get anything. */
GENERIC bool gather_in_window(struct shape shape, const struct access *a)
{
    struct window window = find_window(shape, a);
    if (!a->exec || !window.possible)
        return !a->exec;
    u64 lane = first_lane(a->exec) & -STRIP;
    strip_flags active = __builtin_bit_cast(strip_flags, (u16)(a->exec >> lane));
    strip into = active ? load_strip(a->addresses + lane) - window.least : 0;
    strip outside = __builtin_elementwise_sub_sat(into, (strip)window.span);
    if (has_high_half(shape))
        outside |= active ? load_strip(a->addresses + LANES + lane) ^ read_high_half(a) : 0;
    if (__builtin_reduce_or(outside))
        return false;
    const u8 *start = (const u8 *)(window.start + window.least);
    for (u32 part = 0; part < 1u + shape.pair; part++)
        gather_elements(shape, start + (part ? a->distance : 0), into, a->data[part] + lane);
    return true;
}

/* A strip of lanes, some of which store a dword each to LDS, which no other thread sees meanwhile: what is stored
   between them stays what it was. */
GENERIC bool store_strip_to_lds(const struct access *a, struct window window, u32 lane, u16 active)
{
    strip offsets = load_strip(a->addresses + lane), deltas = offsets - offsets[0];
    strip over = __builtin_elementwise_sub_sat(offsets - window.least, (strip)window.span);
    strip_flags flags = __builtin_bit_cast(strip_flags, active);
    if (__builtin_reduce_or(flags ? over : 0))
        return false;
    strip wraps = (strip)(offsets < offsets[0]), steps = (strip){FROM(0)} * 4;
    if (!__builtin_reduce_or((deltas ^ steps) | wraps | over)) {
        words_1 *at = (words_1 *)(window.start + offsets[0]);
        *(volatile words_1 *)at = flags ? load_strip(a->data[0] + lane) : *at;
        return true;
    }
    for (u32 left = active; left; left &= left - 1) {
        u64 number = lane + first_lane(left);
        *(byte_u32 *)(window.start + a->addresses[number]) = a->data[0][number];
    }
    return true;
}

/* Where not all is done, the slow way begins with the first lane again: what was stored is stored once more, and stays
   what it was. */
GENERIC bool store_dwords_to_lds(struct shape shape, const struct access *a)
{
    struct window window = find_window(shape, a);
    if (!window.possible)
        return false;
    if (is_full(a->exec)) {
        row offsets = load_row(a->addresses);
        if (!all_zero(find_outside(shape, a, window, offsets)))
            return false;
        if (move_pattern(shape, a, window, offsets))
            return true;
    }
    for (u32 lane = 0; lane < LANES; lane += STRIP) {
        u16 active = (u16)(a->exec >> lane);
        if (active && !store_strip_to_lds(a, window, lane, active))
            return false;
    }
    return true;
}

/* Where all lanes of EXEC have one offset, a word of scratch is a row like any other. Volatile: a select, no masked
   store. */
GENERIC void move_rows(struct shape shape, const struct access *a, u64 offset)
{
    u32 *cells = (u32 *)(a->wave->scratch + offset * LANES);
    for (u32 word = 0; word < words_of(shape); word++) {
        u32 *cell = cells + word * LANES, *data = a->data[0] + word * LANES;
        u32 *from = shape.operation == STORE ? data : cell, *to = shape.operation == STORE ? cell : data;
        *(volatile dword_row *)to = flags_of(a->exec) ? load_row(from) : load_row(to);
    }
}

/* One lane's element at an offset of its private memory. */
GENERIC void move_cells(struct shape shape, u64 scratch, u64 lane, u64 offset, u32 *data)
{
    u64 in_dword = shape.bytes < 4 ? offset & 3 : 0;
    u8 *cell = (u8 *)(scratch + (offset - in_dword) * LANES + 4 * lane + in_dword);
    for (u32 word = 0; word < words_of(shape); word++)
        move_word(shape, cell + word * ROW_BYTES, data + word * LANES);
}

/* Lanes with offsets of their own, whose dwords are all inside. */
GENERIC void move_each_in_scratch(struct shape shape, const struct access *a)
{
    for (u64 left = a->exec; left; left &= left - 1) {
        u64 lane = first_lane(left);
        u32 first = a->addresses[lane] + (u32)a->base, second = first + (u32)a->distance;
        move_cells(shape, a->wave->scratch, lane, first, a->data[0] + lane);
        if (shape.pair)
            move_cells(shape, a->wave->scratch, lane, second, a->data[1] + lane);
    }
}

/* Not 0 in lanes whose elements lie across dwords, or begin so late that they do not end inside. */
GENERIC row find_outside_scratch(struct shape shape, row places, u64 room)
{
    row late = __builtin_elementwise_sub_sat(places, (row)(u32)(room - shape.bytes));
    return late | __builtin_elementwise_sub_sat(places & 3, (row)(shape.bytes < 4 ? 4 - shape.bytes : 0));
}

GENERIC bool move_in_scratch(struct shape shape, const struct access *a)
{
    flags active = flags_of(a->exec);
    u64 room = a->wave->scratch_bytes, distance = shape.pair ? a->distance : 0;
    u32 first = a->addresses[a->exec ? first_lane(a->exec) : 0], base = (u32)a->base;
    row offsets = load_row(a->addresses), places = offsets + base;
    u64 offset = first + base;
    if (shape.bytes >= 4 && !shape.pair && all_zero(active ? offsets ^ first : 0) && !(offset & 3) && offset < room &&
        offset + shape.bytes <= room) {
        move_rows(shape, a, offset);
        return true;
    }
    if (room < distance + shape.bytes)
        return false;
    row outside = find_outside_scratch(shape, places, room - distance);
    if (shape.pair)
        outside |= find_outside_scratch(shape, places + (u32)distance, room);
    if (!all_zero(active ? outside : 0))
        return false;
    move_each_in_scratch(shape, a);
    return true;
}

GENERIC bool move_fast(struct shape shape, const struct access *a)
{
    if (shape.addresses == SCRATCH)
        return move_in_scratch(shape, a);
    if (shape.operation == GATHER)
        return gather_in_window(shape, a);
    if (shape.addresses == LDS && shape.operation == STORE && shape.bytes == 4 && !shape.pair)
        return store_dwords_to_lds(shape, a);
    return move_in_window(shape, a);
}

/* In code of its own, so that the fast ways keep nothing in memory. Flat addresses go this way as a rule where they are
   those of LDS or private memory. */
static __attribute__((noinline)) bool move_slowly(const struct access *access, struct shape shape)
{
    if (shape.addresses == FLAT_OR_FAR)
        return move_lanes(access, shape);
    return SUPPORT(move_lanes)(access, &shape);
}

/* A copy, member by member: so the fast ways need none in memory. */
GENERIC bool move_copy_slowly(const struct access *a, struct shape shape)
{
    struct access copy = {a->wave, a->exec, a->base, a->addresses, {a->data[0], a->data[1]}, a->site, a->distance};
    return move_slowly(&copy, shape);
}

GENERIC bool move(struct shape shape, struct access access)
{
    if (!move_fast(shape, &access) && !move_copy_slowly(&access, shape))
        return false;
    if (shape.operation == STORE && shape.addresses != SCRATCH && shape.addresses != LDS)
        worker_of(access.wave)->changes += access.exec != 0;
    return true;
}

#define MOVE(name, ...) \
    bool SUPPORT(name)(struct wave *wave, u64 exec, u64 base, const u32 *addresses, u32 *data, struct site *site, \
                       u64 distance, u32 *second) \
    { \
        struct access access = {wave, exec, base, addresses, {data, second}, site, distance}; \
        return move((struct shape){__VA_ARGS__}, access); \
    }

#define WIDE(name, ...) \
    MOVE(name##_b32, __VA_ARGS__, 4, false, false) \
    MOVE(name##_b64, __VA_ARGS__, 8, false, false) \
    MOVE(name##_b96, __VA_ARGS__, 12, false, false) \
    MOVE(name##_b128, __VA_ARGS__, 16, false, false) \
    MOVE(name##_pb32, __VA_ARGS__, 4, false, true) \
    MOVE(name##_pb64, __VA_ARGS__, 8, false, true)
#define LOADS(name, ...) \
    MOVE(name##_u8, __VA_ARGS__, 1, false, false) \
    MOVE(name##_i8, __VA_ARGS__, 1, true, false) \
    MOVE(name##_u16, __VA_ARGS__, 2, false, false) \
    MOVE(name##_i16, __VA_ARGS__, 2, true, false) \
    WIDE(name, __VA_ARGS__)
#define STORES(name, ...) \
    MOVE(name##_b8, __VA_ARGS__, 1, false, false) \
    MOVE(name##_b16, __VA_ARGS__, 2, false, false) \
    WIDE(name, __VA_ARGS__)
#define MOVES(name, addresses) \
    LOADS(name##_load, addresses, LOAD) \
    LOADS(name##_gather, addresses, GATHER) \
    STORES(name##_store, addresses, STORE)

MOVES(near, NEAR)
MOVES(far, FAR)
MOVES(flat, FLAT_OR_FAR)
MOVES(lds, LDS)
MOVES(private, SCRATCH)
