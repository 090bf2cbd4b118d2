/* What was found, and memory for what is noted. */
#include "watching.h"

/* As calloc. Without memory the launch is to stop, with an error, and nothing is looked at any more. */
void *need(struct watch *watch, u64 count, u64 size) { return need_more(watch, NULL, 0, count, size); }

/* A block of `count` elements with `more` behind them, which are zero. */
void *need_more(struct watch *watch, void *block, u64 count, u64 more, u64 size) {
    void *larger = NULL;
    if (more * size <= watch->allowed) larger = count ? realloc(block, (count + more) * size) : calloc(more, size);
    if (larger == NULL) {
        watch->stopped |= STOPPED_MEMORY;
        *watch->stop = 1;
        return NULL;
    }
    watch->allowed -= more * size;
    if (count) memset((u8 *)larger + count * size, 0, more * size);
    return larger;
}

/* The code that a wave runs, by a number. */
u8 code_of(struct watch *watch, u8 *memory) {
    u64 base = *(u64 *)(*field(memory, WAVE_WORKER) + WORKER_CODE_BASE);
    for (u32 i = 0; i < watch->codes; i++)
        if (watch->bases[i] == base) return i;
    if (watch->codes == CODES) {
        watch->stopped |= STOPPED_CODES;
        return CODES - 1;
    }
    watch->bases[watch->codes] = base;
    return watch->codes++;
}

/* Its row, counted; NULL where there is no room for one. Of barriers each way to miss one has its own. */
struct finding *counted(struct watch *watch, struct wave *wave, u64 kind, u64 detail, u64 pc, u64 other_pc, u64 lane) {
    struct finding *row = watch->findings, *end = row + watch->found;
    while (row < end && !(row->kind == kind && row->pc == pc && row->other_pc == other_pc &&
                          (kind != FOUND_BARRIER || row->detail == detail)))
        row++;
    if (row == watch->findings + MOST_FINDINGS) {
        watch->stopped |= STOPPED_FINDINGS;
        return NULL;
    }
    watch->found += row == end;
    if (row == end || row->count == 0)
        *row = (struct finding){.kind = kind, .detail = detail, .pc = pc, .other_pc = other_pc, .lane = lane,
                                .group = wave->group, .other_group = wave->group, .wave = wave->number};
    row->count++;
    return row;
}

/* A new row, or NULL where there is one already: then it is counted. */
struct finding *found_by(struct watch *watch, struct wave *wave, u64 kind, u64 detail, u64 pc, u64 other_pc, u64 lane) {
    struct finding *row = counted(watch, wave, kind, detail, pc, other_pc, lane);
    return row != NULL && row->count == 1 ? row : NULL;
}
