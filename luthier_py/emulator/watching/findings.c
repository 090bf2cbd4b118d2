/* Launches, waves and work-groups that are watched, and what was found. */
#include "watching.h"

#define PUBLIC __attribute__((visibility("default")))

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

/* NULL without memory. `allowed`: bytes that may be taken, `stop`: the launch's. */
PUBLIC struct watch *luthier_watch_new(u64 flags, u64 wave_size, u64 waves, u64 groups, u64 scalars, u64 vectors,
                                       u64 allowed, u64 *stop) {
    struct watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) return NULL;
    watch->allowed = allowed, watch->stop = stop;
    watch->flags = flags, watch->wave_size = wave_size, watch->waves = waves, watch->groups = groups;
    watch->scalars = scalars, watch->vectors = vectors;
    watch->pages_left = MOST_PAGES, watch->bytes_left = MOST_BYTES;
    watch->all = calloc(waves * groups, sizeof *watch->all);
    if (watch->all == NULL) return free(watch), NULL;
    return watch;
}

static void end(struct wave *wave) {
    if (wave->busy == NULL) return;
    free(wave->busy->scratch);
    free(wave->busy);
    wave->busy = NULL;
}

PUBLIC void luthier_watch_free(struct watch *watch) {
    for (u64 i = 0; i < watch->waves * watch->groups; i++) {
        struct wave *wave = watch->all[i];
        if (wave == NULL) continue;
        end(wave);
        for (int space = 0; space < 2; space++) free(wave->phases[space].signal), free(wave->phases[space].release);
        free(wave);
    }
    free(watch->all);
    for (struct group *place = watch->places, *next; place != NULL; place = next) {
        next = place->next;
        free(place->cells), free(place->written), free(place->waves), free(place);
    }
    forget_cells(watch);
    forget_touched(watch);
    free(watch);
}

PUBLIC u64 luthier_watch_findings(struct watch *watch, struct finding **findings) {
    *findings = watch->findings;
    return watch->found;
}

PUBLIC u64 luthier_watch_stopped(struct watch *watch) { return watch->stopped; }

/* The place of a work-group: LDS begins there as nobody's. */
static struct group *place_of(struct watch *watch, u8 *memory, u64 index) {
    u64 lds = *field(memory, WAVE_LDS);
    u32 bytes = *field(memory, WAVE_LDS_BYTES), cells = (bytes + 3) / 4;
    struct group *place = watch->places;
    while (place != NULL && place->lds != lds) place = place->next;
    if (place == NULL) {
        place = need(watch, 1, sizeof *place);
        if (place == NULL) return NULL;
        *place = (struct group){.lds = lds, .index = ~0ull, .next = watch->places};
        watch->places = place;
        place->cells = need(watch, cells + 1, sizeof *place->cells);
        place->written = need(watch, cells + 1, 4);
        place->waves = need(watch, watch->waves, sizeof *place->waves);
        if (watch->stopped & STOPPED_MEMORY) return NULL;
    }
    if (place->index != index) {
        clear_cells(place->cells, cells);
        memset(place->written, 0, 4 * cells);
        memset(place->waves, 0, watch->waves * sizeof *place->waves);
        place->index = index, place->seen = place->acquired = 0;
    }
    return place;
}

static bool begin(struct watch *watch, u8 *memory, struct wave *wave) {
    struct busy *busy = wave->busy = need(watch, 1, sizeof *busy);
    u64 words = *field(memory, WAVE_SCRATCH_BYTES) / 4 + 1;
    if (busy == NULL || (busy->scratch = need(watch, words, sizeof *busy->scratch)) == NULL) return false;
    for (u64 i = watch->scalars; i < FIRST_TRAP_SCALAR; i++) busy->undefined[i] = ~0u;
    for (u64 i = 0; i < watch->vectors; i++) busy->defined[i] = ~0ull;
    return true;
}

struct wave *wave_of(struct watch *watch, u8 *memory) {
    struct wave *wave = *(struct wave **)field(memory, WAVE_WATCHED);
    if (watch->stopped & STOPPED_MEMORY) return NULL;
    if (watch->flags == CHECK_TOUCHED) return &watch->nobody;
    if (wave != NULL) return wave;
    u64 group = *(u64 *)(*field(memory, WAVE_GROUP) + GROUP_INDEX), number = *field(memory, WAVE_NUMBER);
    wave = need(watch, 1, sizeof *wave);
    if (wave == NULL) return NULL;
    wave->watch = watch, wave->group = group, wave->number = number, wave->id = group * watch->waves + number;
    watch->all[wave->id] = wave;
    wave->began = exec_of(watch, memory);
    if (!begin(watch, memory, wave) || (wave->in = place_of(watch, memory, group)) == NULL) return NULL;
    wave->in->waves[number] = wave;
    *(struct wave **)field(memory, WAVE_WATCHED) = wave;
    return wave;
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

static void barrier_differs(struct watch *watch, struct wave *wave, struct wave *other, u64 pc, u64 detail) {
    u64 other_pc = other->barrier_pc == 0 ? 0 : watch->bases[other->code] + other->barrier_pc - 1;
    struct finding *row = found_by(watch, wave, FOUND_BARRIER, detail, pc, other_pc, 0);
    if (row != NULL) row->other_wave = other->number;
}

/* A wave has come to a barrier: all of it, to the same as the others, and nobody has left. */
static void came(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step) {
    u64 pc = watch->bases[code_of(watch, memory)] + step[STEP_PC], exec = exec_of(watch, memory), began = wave->began;
    wave->barrier_pc = step[STEP_PC] + 1;
    wave->code = code_of(watch, memory);
    if (!(watch->flags & CHECK_BARRIERS)) return;
    if ((exec & began) != began) {
        u64 missing = began & ~exec;
        u64 lane = __builtin_ctzll(missing);
        struct finding *row = found_by(watch, wave, FOUND_BARRIER, BARRIER_OF_SOME_LANES, pc, 0, lane);
        if (row != NULL) row->lanes = missing;
    }
    for (u64 i = 0; i < watch->waves; i++) {
        struct wave *other = wave->in->waves[i];
        if (other == NULL || other == wave) continue;
        if (other->ended && other->signals < wave->signals)
            barrier_differs(watch, wave, other, pc, BARRIER_WITHOUT_WAVE);
        else if (other->signals == wave->signals && (other->barrier_pc != wave->barrier_pc || other->code != wave->code))
            barrier_differs(watch, wave, other, pc, BARRIER_ELSEWHERE);
    }
}

static void left(struct watch *watch, struct wave *wave) {
    for (int space = 0; space < 2; space++) {
        struct phases *phases = &wave->phases[space];
        for (; phases->published < phases->room && phases->published <= phases->now; phases->published++)
            phases->signal[phases->published] = wave->signals + 1;
    }
    for (u64 i = 0; watch->flags & CHECK_BARRIERS && i < watch->waves; i++) {
        struct wave *other = wave->in->waves[i];
        if (other != NULL && other->signals > wave->signals && !other->ended)
            barrier_differs(watch, other, wave, watch->bases[other->code] + other->barrier_pc - 1,
                            BARRIER_WITHOUT_WAVE);
    }
    wave->ended = true;
    end(wave);
}

/* Before each instruction whose registers, waits or barriers matter. */
PUBLIC void luthier_watch_step(u8 *memory, const u32 *step) {
    struct watch *watch = watch_of(memory);
    struct wave *wave = wave_of(watch, memory);
    if (wave == NULL) return;
    step = wave->busy->step = resolved(memory, wave->busy, step);
    if (wave->meets) wave->seen = wave->acquired = ++watch->time; /* all have come */
    if (wave->passes) later(&wave->seen, wave->in->seen), later(&wave->acquired, wave->in->acquired);
    if (step[STEP_KIND] & ACQUIRES) wave->acquired = wave->seen;
    wave->meets = wave->passes = false;
    track(watch, memory, wave, step);
    u32 kind = step[STEP_KIND] & 0xff;
    if (kind != STEP_PLAIN && kind != STEP_SIGNAL && kind != STEP_NAMED_SIGNAL) wave->together = watch->time;
    switch (kind) {
    case STEP_BARRIER:
        signalled(wave);
        wave->waits = ++wave->signals;
        wave->passes = true;
        came(watch, memory, wave, step);
        break;
    case STEP_SIGNAL:
        signalled(wave);
        wave->signals++;
        came(watch, memory, wave, step);
        break;
    case STEP_WAIT:
        wave->waits = wave->signals;
        wave->passes = true;
        wave->busy->registers[SCC_ID].is = 0; /* whether it was the first is known by now */
        break;
    case STEP_MEET:
        waited(wave);
        release(watch, wave);
        wave->meets = true;
        break;
    case STEP_NAMED_SIGNAL:
        let_go(watch, wave);
        break;
    case STEP_NAMED_WAIT:
        wave->meets = true;
        wave->busy->registers[SCC_ID].is = 0;
        break;
    case STEP_END:
        left(watch, wave);
    }
}
