/* Steps: instructions whose registers, waits or barriers matter; and waves that barriers miss. */
#include "watching.h"

#define PUBLIC __attribute__((visibility("default")))

static void barrier_differs(struct watch *watch, struct wave *wave, struct wave *other, u64 pc, u64 detail) {
    u64 other_pc = other->barrier_pc == 0 ? 0 : watch->bases[other->code] + other->barrier_pc - 1;
    struct finding *row = found_by(watch, wave, FOUND_BARRIER, detail, pc, other_pc, 0);
    if (row != NULL) row->other_wave = other->number;
}

/* A wave has come to a barrier: check that all its lanes have, that the others came to it, and that none ended. */
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
    end_wave(wave);
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
