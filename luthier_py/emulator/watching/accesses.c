/* Accesses of memory: which lanes may proceed, and what each does there.

   A lane whose access is out of bounds or not aligned is left out, as on a GPU that continues: it reads 0 and writes
   nothing. What loads of idle lanes give, far outside of LDS, counts as never written. */
#include "watching.h"

enum { MOST_ELEMENT_BYTES = 16, NEAR_LDS = 1 << 20 };

#define PUBLIC __attribute__((visibility("default")))

u32 luthier_watch_poison(u64 address) { return (u32)((address >> 2) * 0x9e3779b97f4a7c15ull >> 32); }

struct place {
    enum space space;
    u32 lane; /* whose memory it is */
    u64 address;
    u8 *host; /* NULL: where nothing is */
};

/* Whether a flat address is private memory; bits 56:52 say whose where its base lies that high. */
static bool is_private(u64 worker, u64 address, u32 *lane) {
    u64 base = *(u64 *)(worker + WORKER_PRIVATE_BASE) >> 32, high = address >> 32;
    if (base >> 26 == 0) return high == base;
    if ((high & ~(31ull << 20)) != base) return false;
    *lane = high >> 20 & 31;
    return true;
}

static struct place resolve(struct watch *watch, u8 *memory, u32 kind, u64 address, u32 size, u32 lane,
                            bool writes, u64 *allowed) {
    u64 worker = *field(memory, WAVE_WORKER);
    if (kind == FLAT && address >> 32 == *(u64 *)(worker + WORKER_SHARED_BASE) >> 32) kind = LDS;
    if (kind == FLAT && is_private(worker, address, &lane)) kind = PRIVATE;
    struct place place = {IN_MEMORY, lane, address, NULL};
    u64 low = address & 0xffffffff;
    if (kind == LDS) {
        place.space = IN_LDS, place.address = low;
        if (low + size <= *field(memory, WAVE_LDS_BYTES)) place.host = (u8 *)*field(memory, WAVE_LDS) + low;
    } else if (kind == PRIVATE) {
        place.space = IN_SCRATCH, place.address = low;
        if (low + size <= *field(memory, WAVE_SCRATCH_BYTES))
            place.host = (u8 *)*field(memory, WAVE_SCRATCH) + low / 4 * 4 * watch->wave_size + 4 * lane + low % 4;
    } else if (allocated(memory, address, size, writes, allowed)) {
        place.host = (u8 *)address;
    }
    return place;
}

static struct finding *tell(struct watch *watch, u8 *memory, struct wave *wave, const u32 *access, struct place place,
                            u32 lane, u64 kind, u64 detail) {
    u64 pc = watch->bases[code_of(watch, memory)] + access[PC];
    struct finding *row = found_by(watch, wave, kind, detail, pc, 0, lane);
    if (row != NULL) row->address = place.address, row->size = access[SIZE], row->other_lane = place.space;
    return row;
}

/* What some bytes of a place hold: UNWRITTEN where nothing of them was ever written, UNDEFINED where nothing was but by
   registers that never were. Of private memory only dwords are known. */
static enum written state_of(struct wave *wave, struct place place, u64 from, u64 to) {
    enum written found = UNWRITTEN;
    for (u64 at = from; at < to; at++) {
        u8 state = DEFINED;
        if (place.space == IN_LDS) state = wave->in->written[place.address + at];
        if (place.space == IN_SCRATCH)
            state = wave->busy->scratch[(place.address + at) / 4] >> place.lane & 1 ? DEFINED : UNDEFINED;
        if (state == DEFINED) return DEFINED;
        if (state == UNDEFINED) found = UNDEFINED;
    }
    return found;
}

/* Whether what is read there was never written; all of it, since compilers load more than they need. */
static bool unwritten(struct wave *wave, struct place place, u32 size) {
    if (place.space != IN_MEMORY) return state_of(wave, place, 0, size) == UNWRITTEN;
    for (u64 word = place.address & ~3ull; word < place.address + size; word += 4)
        if (*(u32 *)word != luthier_watch_poison(word)) return false;
    return true;
}

/* Loading what was stored from registers that were never written makes registers undefined, from `id` on; so does
   loading private memory that was never written: compilers load registers of lanes that they have not saved. */
static void hand_on(struct wave *wave, struct place place, u32 size, u32 id, u32 lane) {
    for (u32 at = 0; at < size && place.space != IN_MEMORY && id != 0; at += 4)
        if (state_of(wave, place, at, at + 4 < size ? at + 4 : size) != DEFINED) undefine(wave, id + at / 4, lane);
}

/* `id`: 0 where what is written was written before. */
static void write_down(struct wave *wave, struct place place, u32 size, u32 id, u32 lane) {
    for (u32 at = 0; at < size && place.space != IN_MEMORY; at++) {
        bool defined = id == 0 || is_defined(wave, id + at / 4, lane);
        if (place.space == IN_LDS) {
            wave->in->written[place.address + at] = defined ? DEFINED : UNDEFINED;
            continue;
        }
        u64 *lanes = &wave->busy->scratch[(place.address + at) / 4];
        if (defined) *lanes |= 1ull << place.lane;
        else if (size >= 4) *lanes &= ~(1ull << place.lane);
    }
}

static u64 refused(bool writes, u64 allowed) { return writes && !(allowed & WRITABLE) ? READ_ONLY : 0; }

/* What an access is to the heap of kernels (place_in_heap); where it is in no block that is in use, it is reported. */
static u64 look_in_heap(struct watch *watch, u8 *memory, struct wave *wave, const u32 *access, struct place place,
                        u32 size, u32 lane, u64 allowed) {
    u64 block, bytes, found = 0;
    if (place.space == IN_MEMORY) found = place_in_heap(memory, allowed, place.address, size, &block, &bytes);
    if (!(found & (BLOCK_FREE | BLOCK_LEFT)) || !(watch->flags & CHECK_BOUNDS)) return found;
    struct finding *row = tell(watch, memory, wave, access, place, lane, FOUND_BOUNDS, access[USE] | found);
    if (row != NULL) row->other_group = block, row->other_wave = bytes;
    return found;
}

static bool is_left_out(struct watch *watch, u64 in_heap) {
    return in_heap & (BLOCK_FREE | BLOCK_LEFT) && watch->flags & CHECK_BOUNDS;
}

/* Whether a lane is so far outside of LDS that the kernel's author means it to do nothing: hand-written code gives idle
   lanes such addresses. */
static bool is_idle(u8 *memory, const u32 *access, struct place place) {
    return access[KIND] == LDS && place.space == IN_LDS && place.address <= (1ull << 32) - NEAR_LDS &&
           place.address >= *field(memory, WAVE_LDS_BYTES) + NEAR_LDS;
}

/* Whether the lane may proceed; `id`: the first register of what is moved, or 0. */
static bool look(struct watch *watch, u8 *memory, struct wave *wave, const u32 *access, u64 address, u32 lane,
                 const u8 *data, u32 id) {
    bool writes = access[USE] != READS;
    u64 allowed = WRITABLE;
    u32 size = access[SIZE], grain = access[USE] == MODIFIES || size < 4 ? size : 4;
    struct place place = resolve(watch, memory, access[KIND], address, size, lane, writes, &allowed);
    if (place.host == NULL) {
        bool idle = is_idle(memory, access, place);
        for (u32 at = 0; watch->flags & CHECK_INIT && idle && !writes && id != 0 && at < size; at += 4)
            undefine(wave, id + at / 4, lane);
        wave->idle |= idle;
        if (idle || !(watch->flags & CHECK_BOUNDS)) return true; /* the access itself says what is wrong */
        tell(watch, memory, wave, access, place, lane, FOUND_BOUNDS, access[USE] | refused(writes, allowed));
        return false;
    }
    u64 in_heap = look_in_heap(watch, memory, wave, access, place, size, lane, allowed);
    if (is_left_out(watch, in_heap)) return false;
    if (address & (grain - 1) && watch->flags & CHECK_ALIGNMENT) {
        tell(watch, memory, wave, access, place, lane, FOUND_ALIGNMENT, grain);
        if (access[USE] == MODIFIES) return false;
    }
    if (watch->flags & CHECK_HARDWARE && place.space == IN_MEMORY && access[TRAITS] & FLOATS && allowed & FINE)
        tell(watch, memory, wave, access, place, lane, FOUND_HARDWARE, 0);
    if (watch->flags & CHECK_INIT) {
        bool reads = access[USE] != WRITES;
        if (reads && unwritten(wave, place, size))
            tell(watch, memory, wave, access, place, lane, FOUND_MEMORY, 0);
        else if (reads)
            hand_on(wave, place, size, id, lane);
        if (writes) write_down(wave, place, size, reads ? 0 : id, lane); /* of what atomics leave no more is known */
    }
    if (watch->flags & CHECK_TOUCHED && place.space == IN_MEMORY) note_page(watch, address, size, writes);
    if (watch->flags & CHECK_RACES && place.space != IN_SCRATCH && in_heap != OF_LIBRARY)
        note_access(watch, memory, wave, place.space, access, place.address, size, lane, data);
    return true;
}

/* Of those lanes of `mask` that may proceed. `offsets`: a row, with a second one behind it where addresses are far;
   `data`, `second`: rows of what is moved, of the two parts of a pair. */
PUBLIC u64 luthier_watch_access(u8 *memory, u64 mask, u64 base, const u32 *offsets, u32 *data, u32 *second,
                                u64 distance, const u32 *access) {
    struct watch *watch = watch_of(memory);
    struct wave *wave = wave_of(watch, memory);
    if (wave == NULL) return 0;
    u64 allowed = mask;
    u32 words = access[SIZE] < 4 ? 1 : access[SIZE] / 4, lanes = watch->wave_size;
    watch->time++;
    for (u64 left = mask; left != 0; left &= left - 1) {
        u32 lane = __builtin_ctzll(left);
        u64 address = base + offsets[lane];
        if (access[KIND] == FAR || access[KIND] == FLAT) address += (u64)offsets[lane + lanes] << 32;
        bool goes = true;
        for (u32 part = 0; part < access[PARTS]; part++) {
            u32 value[8], *row = part ? second : data;
            for (u32 word = 0; word < words; word++) value[word] = row[lane + word * lanes];
            goes &= look(watch, memory, wave, access, address + part * distance, lane, (u8 *)value, access[MOVED + part]);
        }
        if (goes) continue;
        allowed &= ~(1ull << lane);
        for (u32 part = 0; access[USE] == READS && part < access[PARTS]; part++)
            for (u32 word = 0; word < words; word++) (part ? second : data)[lane + word * lanes] = 0;
    }
    if (access[USE] != READS && watch->flags & CHECK_RACES) release(watch, wave);
    return allowed;
}

/* The same for elements of `size` bytes at far addresses, which are converted on their way: what is left out is not
   moved, and what a store leaves is not known here. */
PUBLIC u64 luthier_watch_elements(u8 *memory, u64 mask, u64 size, const u32 *addresses, const u32 *given) {
    struct watch *watch = watch_of(memory);
    struct wave *wave = wave_of(watch, memory);
    if (wave == NULL) return 0;
    u64 allowed = mask;
    u32 access[COLUMNS], lanes = watch->wave_size;
    if (size == 0 || size > MOST_ELEMENT_BYTES) return mask; /* a format that is going to be refused */
    memcpy(access, given, sizeof access);
    access[SIZE] = size;
    watch->time++;
    for (u64 left = mask; left != 0; left &= left - 1) {
        u32 lane = __builtin_ctzll(left);
        u64 address = addresses[lane] | (u64)addresses[lane + lanes] << 32;
        if (!look(watch, memory, wave, access, address, lane, NULL, 0)) allowed &= ~(1ull << lane);
    }
    if (access[USE] != READS && watch->flags & CHECK_RACES) release(watch, wave);
    return allowed;
}

/* The same for a scalar access: where it is, or NULL: then the access itself says what is wrong. */
PUBLIC u8 *luthier_watch_scalar(u8 *memory, u64 address, u64 size, const u32 *access) {
    struct watch *watch = watch_of(memory);
    struct wave *wave = wave_of(watch, memory);
    if (wave == NULL) return watch->nothing;
    bool writes = access[USE] != READS;
    u64 allowed = WRITABLE;
    struct place place = {IN_MEMORY, 0, address, NULL};
    watch->time++;
    bool outside = !allocated(memory, address, size, writes, &allowed);
    if (outside && !(watch->flags & CHECK_BOUNDS)) return NULL;
    if (outside) tell(watch, memory, wave, access, place, 0, FOUND_BOUNDS, access[USE] | refused(writes, allowed));
    u64 in_heap = outside ? 0 : look_in_heap(watch, memory, wave, access, place, size, 0, allowed);
    if (outside || is_left_out(watch, in_heap)) {
        memset(watch->nothing, 0, sizeof watch->nothing);
        return watch->nothing;
    }
    if (watch->flags & CHECK_INIT && !writes && unwritten(wave, place, size))
        tell(watch, memory, wave, access, place, 0, FOUND_MEMORY, 0);
    if (watch->flags & CHECK_TOUCHED) note_page(watch, address, size, writes);
    if (watch->flags & CHECK_RACES && in_heap != OF_LIBRARY)
        note_access(watch, memory, wave, IN_MEMORY, access, address, size, 0, NULL);
    return (u8 *)address;
}
