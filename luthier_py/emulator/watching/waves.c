/* Launches, work-groups and waves that are watched: they begin and end. */
#include "watching.h"

#define PUBLIC __attribute__((visibility("default")))

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

void end_wave(struct wave *wave) {
    if (wave->busy == NULL) return;
    free(wave->busy->scratch);
    free(wave->busy);
    wave->busy = NULL;
}

PUBLIC void luthier_watch_free(struct watch *watch) {
    for (u64 i = 0; i < watch->waves * watch->groups; i++) {
        struct wave *wave = watch->all[i];
        if (wave == NULL) continue;
        end_wave(wave);
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

/* The place of a work-group: LDS begins there without accesses. */
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
