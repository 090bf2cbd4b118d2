/* Registers that were never written, where their bits decide something: an address, a branch, which lanes are active, or
   what memory outside LDS gets.

   Lanes of a vector register are defined or not as a whole, bits of a scalar one each for itself. A result is undefined
   in a lane where a source is; of operations that put parts together, where all sources are. Of what lanes read of others,
   rows of shadows say which were never written; of those that look at all lanes (matrices) a result is undefined where
   nothing of the sources is defined. So a register counts as defined that is so in part. LDS and private memory keep what
   they got. */
#include "watching.h"

#define PUBLIC __attribute__((visibility("default")))

static void tell(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step, u32 id, u32 decides, u64 lanes) {
    u64 pc = watch->bases[code_of(watch, memory)] + step[STEP_PC];
    u64 detail = id | decides << 16 | wave->idle << 24;
    struct finding *row = found_by(watch, wave, FOUND_REGISTER, detail, pc, 0, lanes ? __builtin_ctzll(lanes) : 0);
    if (row != NULL) row->lanes = lanes;
}

static u64 *lanes_of(struct busy *busy, u32 id) { return &busy->defined[id - VECTORS]; }

/* A row of vector registers, or behind those, as a mask. */
static u64 mask_of(struct watch *watch, u8 *memory, u32 row) {
    const u32 *words = row_of(watch, memory, row);
    u64 found = 0;
    for (u32 lane = 0; lane < watch->wave_size; lane++) found |= (u64)(words[lane] != 0) << lane;
    return found;
}

/* Lanes in which a source is defined; a scalar written to one lane is defined if any part of it is. */
static u64 source(struct watch *watch, u8 *memory, struct busy *busy, const u32 *step, u32 read) {
    u32 id = read & 0xffff, role = role_of(read), routed = read >> ROUTED & 3;
    if (routed) return ~mask_of(watch, memory, ROUTED_SHADOWS + routed - 1);
    if (id >= VECTORS) return *lanes_of(busy, id);
    u64 undefined = busy->undefined[id];
    if (role == ROLE_LOW_LANES) return ~undefined;
    if (role == ROLE_HIGH_LANES) return ~(undefined << 32);
    if (step[STEP_KIND] & WRITES_LANE) return (u32)undefined == ~0u ? 0 : ~0ull;
    return undefined ? 0 : ~0ull;
}

/* What must be defined before the instruction does anything. */
static void require(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step, const u32 *read, u32 reads,
                    u64 exec) {
    struct busy *busy = wave->busy;
    u64 stored = exec;
    u32 last = 0;
    for (u32 i = 0; i < reads; i++) {
        u32 id = read[i] & 0xffff, role = role_of(read[i]);
        u64 undefined = ~source(watch, memory, busy, step, read[i]) & exec;
        if (role == ROLE_STORED) last = id, stored &= undefined;
        bool decides = role == ROLE_ADDRESS || (step[STEP_KIND] & BRANCHES && id < VECTORS);
        if (!decides || !undefined) continue;
        tell(watch, memory, wave, step, id, role == ROLE_ADDRESS ? DECIDES_ADDRESS : DECIDES_BRANCH, undefined);
        if (id >= VECTORS) *lanes_of(busy, id) |= exec;
        else busy->undefined[id] = 0;
    }
    if (last && stored) tell(watch, memory, wave, step, last, DECIDES_STORED, stored);
}

/* Lanes in which a result is defined. */
static u64 combined(struct watch *watch, u8 *memory, struct busy *busy, const u32 *step, const u32 *read, u32 reads,
                    u32 result) {
    u64 all = ~0ull, any = 0, vectors = 0, first = ~0ull, second = ~0ull, mask = 0;
    bool has_vectors = false, to_scalar = (result & 0xffff) < VECTORS;
    for (u32 i = 0; i < reads; i++) {
        u64 lanes = source(watch, memory, busy, step, read[i]);
        u32 id = read[i] & 0xffff, role = role_of(read[i]);
        bool is_mask = role == ROLE_LOW_LANES || role == ROLE_HIGH_LANES;
        if (role == ROLE_LOW_LANES) mask |= *scalar(memory, id);
        if (role == ROLE_HIGH_LANES) mask |= (u64)*scalar(memory, id) << 32;
        if (!is_mask && !(read[i] >> PLACE & result >> PLACE)) continue;
        if (id >= VECTORS) has_vectors = true, vectors |= lanes;
        any |= lanes;
        if (role == ROLE_FIRST) first &= lanes;
        else if (role == ROLE_SECOND) second &= lanes;
        else all &= lanes;
    }
    if (step[STEP_KIND] & CROSSES) return (to_scalar && has_vectors ? vectors : any) || !reads ? ~0ull : 0;
    if (step[STEP_KIND] & READS_LANE) return all >> busy->lane & 1 ? ~0ull : 0;
    if (step[STEP_KIND] & MERGES) return reads ? any : ~0ull;
    if (step[STEP_KIND] & SELECTS) return all & ((mask & second) | (~mask & first));
    return all & first & second;
}

/* Logic on bits of scalars: which bits of the results depend on undefined ones. */
static void logic(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step, const u32 *entry, u32 entries) {
    struct busy *busy = wave->busy;
    u32 results[8];
    for (u32 i = 0; i < entries && i < 8; i++) {
        const u32 *row = entry + LOGIC_COLUMNS * i;
        u32 zero = 0, one = 0, count = row[1];
        for (u32 each = 0; each < 1u << count; each++) {
            u32 possible = ~0u;
            for (u32 k = 0; k < count; k++) {
                u32 value = *scalar(memory, row[3 + k]), undefined = busy->undefined[row[3 + k]];
                possible &= undefined | (each >> k & 1 ? value : ~value);
            }
            if (row[2] >> each & 1) one |= possible;
            else zero |= possible;
        }
        results[i] = zero & one;
    }
    u32 all = ~0u;
    for (u32 i = 0; i < entries && i < 8; i++) {
        u32 id = entry[LOGIC_COLUMNS * i];
        all &= results[i];
        busy->undefined[id] = results[i];
        if ((id == EXEC_LO || (id == EXEC_LO + 1 && watch->wave_size == 64)) && results[i]) {
            tell(watch, memory, wave, step, id, DECIDES_MASK, 0);
            busy->undefined[id] = 0;
        }
    }
    if (step[STEP_KIND] & WRITES_SCC) busy->undefined[SCC_ID] = all;
}

void define(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step, u64 exec) {
    struct busy *busy = wave->busy;
    u32 reads = step[STEP_COUNTS] & 0xff, writes = step[STEP_COUNTS] >> 8 & 0xff;
    u32 others = (step[STEP_COUNTS] >> 16 & 0xff) + (step[STEP_COUNTS] >> 24);
    const u32 *read = step + STEP_LISTS, *written = read + reads, *entry = written + writes + others;
    u64 active = step[STEP_KIND] & IGNORES_EXEC ? ~0ull : exec, written_lanes = active;
    if (step[STEP_KIND] & WRITES_LANE) written_lanes = 1ull << busy->lane;
    if (step[STEP_KIND] & MASKED) written_lanes &= mask_of(watch, memory, WRITTEN_LANES);
    require(watch, memory, wave, step, read, reads, active);
    if (step[STEP_LOGIC]) {
        logic(watch, memory, wave, step, entry, step[STEP_LOGIC]);
        return;
    }
    u64 results[256];
    for (u32 i = 0; i < writes; i++)
        results[i] = step[STEP_KIND] & DEFINES ? ~0ull : combined(watch, memory, busy, step, read, reads, written[i]);
    if (step[STEP_KIND] & WRITES_EXEC && !(step[STEP_KIND] & DEFINES)) {
        u64 undefined = active & ~combined(watch, memory, busy, step, read, reads, ~0u);
        if (undefined) tell(watch, memory, wave, step, EXEC_LO, DECIDES_MASK, undefined);
    }
    for (u32 i = 0; i < writes; i++) {
        u32 id = written[i] & 0xffff, role = role_of(written[i]);
        u64 undefined = active & ~results[i];
        if (id >= VECTORS) *lanes_of(busy, id) = (*lanes_of(busy, id) & ~written_lanes) | (results[i] & written_lanes);
        else if (role == ROLE_LOW_LANES) busy->undefined[id] = undefined;
        else if (role == ROLE_HIGH_LANES) busy->undefined[id] = undefined >> 32;
        else busy->undefined[id] = results[i] == ~0ull ? 0 : ~0u;
    }
}

/* Before an instruction that crosses lanes: in `row`, 1 in those of a register that were never written. */
PUBLIC void luthier_watch_cast(u8 *memory, u64 id, u32 *row) {
    struct watch *watch = watch_of(memory);
    struct wave *wave = wave_of(watch, memory);
    u64 lanes = wave == NULL ? ~0ull : *lanes_of(wave->busy, id);
    for (u32 lane = 0; lane < watch->wave_size; lane++) row[lane] = ~lanes >> lane & 1;
}

/* Before one that reads or writes this lane alone. */
PUBLIC void luthier_watch_lane(u8 *memory, u64 lane) {
    struct wave *wave = wave_of(watch_of(memory), memory);
    if (wave != NULL) wave->busy->lane = lane;
}

/* What a load gave a lane of the register was never written. */
void undefine(struct wave *wave, u32 id, u32 lane) { *lanes_of(wave->busy, id) &= ~(1ull << lane); }

bool is_defined(struct wave *wave, u32 id, u32 lane) { return *lanes_of(wave->busy, id) >> lane & 1; }
