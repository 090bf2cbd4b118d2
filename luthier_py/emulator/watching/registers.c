/* Registers: which M0 chooses, and whether what they wait for has come.

   Loads that finish in order are done once a wait leaves fewer than came after; others by a wait for 0. */
#include "watching.h"

static void tell(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step, u64 kind, u32 id, u64 other_pc,
                 u64 lanes) {
    u64 pc = watch->bases[code_of(watch, memory)] + step[STEP_PC];
    struct finding *row = found_by(watch, wave, kind, id, pc, other_pc, lanes ? __builtin_ctzll(lanes) : 0);
    if (row != NULL) row->lanes = lanes;
}

static bool is_pending(struct busy *busy, struct pending *entry) {
    if (!entry->is) return false;
    if (entry->ordered) return entry->serial > busy->done[entry->counter];
    return entry->serial == busy->zeros[entry->counter];
}

static void apply_wait(struct busy *busy, u32 counter, u32 most) {
    u32 done = busy->issued[counter] > most ? busy->issued[counter] - most : 0;
    if (done > busy->done[counter]) busy->done[counter] = done;
    busy->zeros[counter] += most == 0;
}

/* A register is used or written before what was loaded into it has come. */
static void check_pending(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step, u32 id, u64 exec) {
    struct pending *entry = &wave->busy->registers[id];
    if (!is_pending(wave->busy, entry) || (id >= VECTORS && exec == 0 && !(step[STEP_KIND] & IGNORES_EXEC))) return;
    if (watch->flags & CHECK_WAITS)
        tell(watch, memory, wave, step, FOUND_WAIT, id, watch->bases[entry->code] + entry->pc, exec);
    entry->is = 0;
}

/* The register that an entry means. */
static u32 chosen(u32 m0, u32 entry) {
    u32 way = entry >> RELATIVE & 3, id = entry & 0xffff;
    u32 by = way == RELATIVE_NONE ? 0 : way == RELATIVE_ALL ? m0 : (way == RELATIVE_LOW ? m0 : m0 >> 16) & 0x3ff;
    u32 number = id < VECTORS ? (id + by) & 127 : ((id + by) & 255) + VECTORS;
    return way == RELATIVE_NONE ? entry : (entry & 0xffff0000) | number;
}

/* The step with the numbers of the registers that M0 chooses. */
const u32 *resolved(u8 *memory, struct busy *busy, const u32 *step) {
    u32 reads = step[STEP_COUNTS] & 0xff, writes = step[STEP_COUNTS] >> 8 & 0xff, m0 = *scalar(memory, M0_ID);
    u32 registers = STEP_LISTS + reads + writes;
    u32 all = registers + (step[STEP_COUNTS] >> 16 & 0xff) + (step[STEP_COUNTS] >> 24), logic = step[STEP_LOGIC];
    if (!(step[STEP_KIND] & INDEXED) || all + logic * LOGIC_COLUMNS > MOST_NUMBERS) return step;
    memcpy(busy->resolved, step, (all + logic * LOGIC_COLUMNS) * sizeof *step);
    for (u32 i = STEP_LISTS; i < registers; i++) busy->resolved[i] = chosen(m0, step[i]);
    for (u32 *row = busy->resolved + all; logic--; row += LOGIC_COLUMNS)
        row[0] = chosen(m0, row[0]) & 0xffff, row[3] = chosen(m0, row[3]) & 0xffff;
    return busy->resolved;
}

void track(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step) {
    struct busy *busy = wave->busy;
    u32 reads = step[STEP_COUNTS] & 0xff, writes = step[STEP_COUNTS] >> 8 & 0xff, waits = step[STEP_COUNTS] >> 16 & 0xff;
    u32 issues = step[STEP_COUNTS] >> 24;
    const u32 *read = step + STEP_LISTS, *written = read + reads, *wait = written + writes, *issue = wait + waits;
    u64 exec = exec_of(watch, memory);
    for (u32 i = 0; i < waits; i++) apply_wait(busy, wait[i] & 0xff, wait[i] >> 8);
    if (waits) waited(wave);
    u32 counter = issues ? issue[0] & 0xff : 0, in_order = issues ? issue[0] >> 8 & 1 : 0;
    for (u32 i = 0; i < reads; i++) check_pending(watch, memory, wave, step, read[i] & 0xffff, exec);
    for (u32 i = 0; i < writes; i++) {
        struct pending *entry = &busy->registers[written[i] & 0xffff];
        bool follows = issues && in_order && entry->ordered && entry->counter == counter;
        if (!follows) check_pending(watch, memory, wave, step, written[i] & 0xffff, exec);
    }
    for (u32 i = 0; i < issues; i++) busy->issued[issue[i] & 0xff] += issue[i] >> 8 & 1;
    u8 code = code_of(watch, memory);
    for (u32 i = 0; i < writes; i++) {
        struct pending entry = {busy->issued[counter], step[STEP_PC], counter, in_order, code, issues > 0};
        if (!in_order) entry.serial = busy->zeros[counter];
        if ((written[i] & 0xffff) >= VECTORS && exec == 0) continue;
        busy->registers[written[i] & 0xffff] = entry;
    }
    if (watch->flags & CHECK_INIT) define(watch, memory, wave, step, exec);
}
