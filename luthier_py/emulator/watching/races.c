/* Accesses of two waves of which one writes, and nothing orders them; on request, of two lanes of one wave.

   What orders: a wave's own program (a lane's own, and its barriers alone, where lanes are looked at); barriers, for what the wave has waited for before (of memory outside LDS: whatever
   it did before); and, for what was waited for, an atomic or store that comes after it, and an atomic that returns
   something, or a coherent load, by another wave of what it did not write itself. By the latter a wave knows of
   all that any wave had released by then, which hides races and never makes one up; its plain loads find what other
   work-groups let go once it has made its caches forget (an acquire). Atomics do not race with each other; a
   plain store does not with coherent loads of memory, nor with a store that its wave has seen by one, nor with atomics
   on what was atomically changed before; nor with a store of the same value; nor a plain load with atomics if the next
   thing that its wave does there is to compare what it has read, and swap (as loops do that make an atomic of one). */
#include "watching.h"


struct page {
    u64 number; /* and 1, so that 0 is none */
    struct cell *cells;
};

/* For the phase that it is in. */
static bool has_room(struct watch *watch, struct phases *phases) {
    if (phases->now < phases->room) return true;
    u32 more = 2 * phases->now + 16 - phases->room;
    u32 *signal = need_more(watch, phases->signal, phases->room, more, sizeof *signal);
    if (signal != NULL) phases->signal = signal;
    u64 *release = need_more(watch, phases->release, phases->room, more, sizeof *release);
    if (release != NULL) phases->release = release;
    if (signal == NULL || release == NULL) return false;
    phases->room += more;
    return true;
}

/* A new phase, unless nothing was done in this one. */
static void next_phase(struct phases *phases) {
    phases->now += phases->used;
    phases->used = 0;
}

/* Whether every write has been waited for. */
bool counts_done(struct wave *wave, struct phases *phases) {
    for (int counter = 0; counter < COUNTERS; counter++)
        if (phases->last_write[counter] > wave->busy->done[counter]) return false;
    return true;
}

static bool close(struct wave *wave, struct phases *phases) {
    if (!counts_done(wave, phases) || !has_room(wave->watch, phases)) return false;
    next_phase(phases);
    phases->complete = phases->now;
    return true;
}

/* After a wait. */
void waited(struct wave *wave) {
    for (int space = 0; space < 2; space++) close(wave, &wave->phases[space]);
}

/* Before a wave comes to its next barrier. */
void signalled(struct wave *wave) {
    later(&wave->in->seen, wave->seen), later(&wave->in->acquired, wave->acquired);
    for (int space = 0; space < 2; space++) {
        struct phases *phases = &wave->phases[space];
        if (!has_room(wave->watch, phases)) return;
        bool all = close(wave, phases) || space == IN_MEMORY;
        u32 end = all ? phases->now + phases->used : phases->complete;
        for (; phases->published < end; phases->published++) phases->signal[phases->published] = wave->signals + 1;
        if (all) next_phase(phases);
    }
}

/* After something by which others may know of what came before: of its own what is complete, of the other waves of its
   work-group what came before a barrier that it has passed. */
void release(struct watch *watch, struct wave *wave) {
    for (u64 i = 0; i < watch->waves; i++) {
        struct wave *other = wave->in->waves[i];
        if (other == NULL) continue;
        for (int space = 0; space < 2; space++) {
            struct phases *phases = &other->phases[space];
            u32 *next = &phases->released, end = other == wave ? phases->complete : 0;
            while (*next < end || (*next < phases->published && phases->signal[*next] <= wave->waits))
                phases->release[(*next)++] = watch->time;
        }
    }
}

/* Before a wave comes to a named barrier: waves that wait there later know of what it has released. */
void let_go(struct watch *watch, struct wave *wave) {
    for (int space = 0; space < 2; space++) {
        struct phases *phases = &wave->phases[space];
        if (!has_room(wave->watch, phases)) return;
        bool all = close(wave, phases) || space == IN_MEMORY;
        u32 end = all ? phases->now + phases->used : phases->complete;
        for (; phases->released < end; phases->released++) phases->release[phases->released] = watch->time;
        if (all) next_phase(phases);
    }
    release(watch, wave);
}

/* Whether the same program made both: of a wave, or of a lane where lanes are looked at. */
static bool is_own(struct watch *watch, struct wave *wave, u32 lane, struct access_note *note) {
    return note->wave == wave->id && (note->lane == lane || !(watch->flags & CHECK_LOCKSTEP));
}

/* Of one instruction's own lanes nothing is said. ``known``: up to when the wave knows what others had let go. */
static bool ordered_by(struct watch *watch, struct wave *wave, enum space space, u32 lane, struct access_note *note,
                       u64 known) {
    if (note->wave == wave->id)
        return is_own(watch, wave, lane, note) || note->time <= wave->together || note->time == watch->time;
    struct wave *other = watch->all[note->wave];
    struct phases *phases = &other->phases[space];
    if (other->group == wave->group && note->phase < phases->published && phases->signal[note->phase] <= wave->waits)
        return true;
    return note->phase < phases->released && phases->release[note->phase] <= known;
}

static bool ordered(struct watch *watch, struct wave *wave, enum space space, u32 lane, struct access_note *note) {
    return ordered_by(watch, wave, space, lane, note, wave->seen);
}

/* Whether nothing orders an access behind that of a note; a plain load (of memory) comes behind what other work-groups
   did where caches have forgotten. `why`: the wave knows of it nevertheless. */
static bool unordered(struct watch *watch, struct wave *wave, enum space space, u32 lane, struct access_note *note,
                      bool plain, u64 *why) {
    bool knows = ordered(watch, wave, space, lane, note), far = watch->all[note->wave]->group != wave->group;
    *why = knows ? RACE_NOT_ACQUIRED : 0;
    return !knows || (plain && far && !ordered_by(watch, wave, space, lane, note, wave->acquired));
}

void forget_cells(struct watch *watch) {
    for (u64 i = 0; i < watch->page_room; i++) free(watch->pages[i].cells);
    free(watch->pages);
    for (struct bytes *bytes = watch->all_bytes, *next; bytes != NULL; bytes = next) {
        next = bytes->next;
        free(bytes);
    }
}

/* Forget all accesses; cells divided into bytes stay divided. */
void clear_cells(struct cell *cells, u32 count) {
    for (u32 i = 0; i < count; i++) {
        struct bytes *bytes = cells[i].bytes;
        if (bytes != NULL) memset(bytes->cells, 0, sizeof bytes->cells);
        cells[i] = (struct cell){.bytes = bytes};
    }
}

/* Have notes of each byte. Where there are too many of them, a dword remembers its last accesses only. */
static void divide(struct watch *watch, struct cell *cell) {
    if (cell->bytes != NULL) return;
    if (watch->bytes_left == 0) {
        watch->stopped |= STOPPED_BYTES;
        return;
    }
    struct bytes *bytes = need(watch, 1, sizeof *bytes);
    if (bytes == NULL) return;
    for (int i = 0; i < 4; i++) {
        struct cell *byte = &bytes->cells[i];
        *byte = *cell;
        byte->write.mask &= 1 << i, byte->atomic.mask &= 1 << i;
        byte->reads[0].mask &= 1 << i, byte->reads[1].mask &= 1 << i;
    }
    bytes->next = watch->all_bytes;
    watch->all_bytes = cell->bytes = bytes;
    watch->bytes_left--;
}

static struct page *find(struct page *pages, u64 room, u64 number) {
    u64 i = number * 0x9e3779b97f4a7c15ull >> 20;
    while (pages[i & (room - 1)].number != 0 && pages[i & (room - 1)].number != number) i++;
    return &pages[i & (room - 1)];
}

static struct cell *cell_at(struct watch *watch, u64 address) {
    u64 number = address / PAGE + 1;
    if (2 * watch->page_count >= watch->page_room) {
        u64 room = watch->page_room ? 2 * watch->page_room : 1024;
        struct page *pages = need(watch, room, sizeof *pages);
        if (pages == NULL) return NULL;
        for (u64 i = 0; i < watch->page_room; i++)
            if (watch->pages[i].number) *find(pages, room, watch->pages[i].number) = watch->pages[i];
        free(watch->pages);
        watch->pages = pages, watch->page_room = room;
    }
    struct page *page = find(watch->pages, watch->page_room, number);
    if (page->number == 0) {
        if (watch->pages_left == 0) {
            watch->stopped |= STOPPED_PAGES;
            return NULL;
        }
        struct cell *cells = need(watch, PAGE / 4, sizeof *cells);
        if (cells == NULL) return NULL;
        watch->pages_left--, watch->page_count++;
        *page = (struct page){number, cells};
    }
    return page->cells + address % PAGE / 4;
}

/* The guess of a wave at an address, or the place for it: where no other one waits for its swap, if there is one. */
static struct guess *guess_at(struct watch *watch, u32 wave, u64 address) {
    u64 first = (address ^ (u64)wave << 40) * 0x9e3779b97f4a7c15ull >> 32;
    struct guess *place = NULL;
    for (u32 i = 0; i < GUESSES_LOOKED_AT; i++) {
        struct guess *guess = &watch->guesses[(first + i) % GUESSES];
        if (guess->address == address && guess->wave == wave) return guess;
        if (place == NULL && guess->used == 0) place = guess;
    }
    return place != NULL ? place : &watch->guesses[first % GUESSES];
}

/* It waits for no swap any more. */
static void settle(struct watch *watch, struct guess *guess) {
    watch->guessed -= guess->used != 0;
    guess->used = 0;
}

/* This race may have been no mistake: `wave` compares and swaps what it has read there, or does not. */
static void guess(struct watch *watch, u32 wave, u64 address, struct finding *row) {
    if (row == NULL) return;
    struct guess *guess = guess_at(watch, wave, address);
    if (guess->address != address || guess->wave != wave) {
        settle(watch, guess);
        *guess = (struct guess){.address = address, .wave = wave};
    }
    u32 number = row - watch->findings, i = 0;
    while (i < guess->used && guess->rows[i].row != number) i++;
    if (i == 2) return;
    if (i == guess->used) {
        watch->guessed += guess->used == 0;
        guess->used++, guess->rows[i].row = number, guess->rows[i].count = 0;
    }
    guess->time = watch->time;
    guess->rows[i].count++;
}

/* A wave compares what is there with what it has read, which decides nothing else that another value could harm. */
static void confirm(struct watch *watch, u32 wave, u64 address) {
    struct guess *guess = guess_at(watch, wave, address);
    if (guess->address != address || guess->wave != wave) return;
    for (u32 i = 0; i < guess->used; i++) watch->findings[guess->rows[i].row].count -= guess->rows[i].count;
    settle(watch, guess);
}

/* It does something else there first, so what was reported stays. */
static void give_up(struct watch *watch, u32 wave, u64 address) {
    struct guess *guess = guess_at(watch, wave, address);
    if (guess->address == address && guess->wave == wave && guess->time != watch->time) settle(watch, guess);
}

/* Its row, counted; NULL where it was the last one reported. */
static struct finding *tell(struct watch *watch, u8 *memory, struct wave *wave, enum space space, const u32 *access,
                            u64 address, u32 lane, struct access_note *note, u64 detail) {
    u64 pc = watch->bases[code_of(watch, memory)] + access[PC], other_pc = watch->bases[note->code] + note->pc;
    if (watch->told.time == watch->time && watch->told.other_pc == other_pc && watch->told.lane == lane)
        return NULL;
    watch->told.time = watch->time, watch->told.other_pc = other_pc, watch->told.lane = lane;
    struct finding *row = counted(watch, wave, FOUND_RACE, detail, pc, other_pc, lane);
    if (row == NULL) return NULL;
    struct wave *other = watch->all[note->wave];
    if (row->count != 1) return row;
    struct phases *phases = &other->phases[space];
    bool passed = space == IN_LDS && other != wave && other->group == wave->group && wave->waits > 0 && note->phase >= phases->complete;
    if (space == IN_LDS) row->detail |= RACE_IN_LDS;
    if (passed && detail != RACE_WRITE_AFTER_READ) row->detail |= RACE_NOT_WAITED;
    row->other_group = other->group, row->other_wave = other->number, row->other_lane = note->lane;
    row->address = address, row->size = access[SIZE];
    return row;
}

/* What a write leaves there is what is there. */
static bool same(struct wave *wave, enum space space, u64 address, const u8 *data, u32 size) {
    const u8 *there = space == IN_LDS ? (u8 *)wave->in->lds + address : (u8 *)address;
    return data != NULL && memcmp(there, data, size) == 0;
}

static void put(struct access_note *place, struct access_note note) {
    if (place->wave == note.wave && place->phase == note.phase) note.mask |= place->mask;
    *place = note;
}

static void remember(struct watch *watch, struct wave *wave, enum space space, struct cell *cell, u32 use,
                     struct access_note note) {
    struct access_note *first = &cell->reads[0];
    if (use == READS) {
        bool replaced = first->mask == 0 || is_own(watch, wave, note.lane, first) ||
                        ordered(watch, wave, space, note.lane, first);
        put(replaced ? first : &cell->reads[1], note);
        return;
    }
    if (use == MODIFIES && cell->atomic.wave != note.wave) cell->before_atomic = cell->atomic.time;
    put(use == MODIFIES ? &cell->atomic : &cell->write, note);
    cell->reads[0].mask = cell->reads[1].mask = 0;
}

/* By an atomic or coherent load of what another wave has written, a wave knows what was done before. */
static void acquire(struct watch *watch, struct wave *wave, u64 address, struct cell *cell) {
    wave->looks[wave->looked++ % LOOKS] = (struct look){address, watch->time};
    u64 write = cell->write.wave != wave->id ? cell->write.time : 0;
    u64 atomic = cell->atomic.wave != wave->id ? cell->atomic.time : cell->before_atomic;
    later(&wave->seen, write), later(&wave->seen, atomic);
}

/* Whether what was written there was seen by this wave. */
static bool has_seen(struct wave *wave, u64 address, struct access_note *write) {
    for (int i = 0; i < LOOKS; i++)
        if (wave->looks[i].address == address && wave->looks[i].time >= write->time) return true;
    return false;
}

static void touch(struct watch *watch, u8 *memory, struct wave *wave, enum space space, const u32 *access, u64 address,
                  u32 first, u32 size, u32 lane, const u8 *data, struct cell *cell) {
    u32 use = access[USE];
    u8 mask = ((1u << size) - 1) << first, atomic = use == WRITES && cell->atomic.mask;
    struct access_note *write = &cell->write, *changed = &cell->atomic;
    struct access_note note = {watch->time, wave->id, wave->phases[space].now, access[PC], lane, mask, atomic,
                               code_of(watch, memory)};
    bool scoped = access[TRAITS] & COHERENT && space != IN_LDS; /* LDS has one scope only */
    bool coherent = use == READS && scoped;
    if (watch->guessed) (access[TRAITS] & COMPARES ? confirm : give_up)(watch, wave->id, address);
    if (coherent || (use == MODIFIES && access[TRAITS] & COHERENT)) acquire(watch, wave, address, cell);
    bool unlike = !coherent && !(use == MODIFIES && write->atomic) && !(use == WRITES && atomic && write->atomic);
    bool plain = use == READS && space == IN_MEMORY;
    u64 why;
    if (unlike && write->mask & mask && unordered(watch, wave, space, lane, write, plain, &why) &&
        !(use == WRITES && same(wave, space, address, data, size)) && !(use != READS && has_seen(wave, address, write)))
        tell(watch, memory, wave, space, access, address, lane, write,
             (use == READS ? RACE_READ_AFTER_WRITE : RACE_WRITE_AFTER_WRITE) | why);
    if (use == READS && !coherent && changed->mask & mask && unordered(watch, wave, space, lane, changed, plain, &why))
        guess(watch, wave->id, address,
              tell(watch, memory, wave, space, access, address, lane, changed, RACE_READ_AFTER_WRITE | why));
    for (int i = 0; use != READS && i < 2; i++) {
        struct access_note *read = &cell->reads[i];
        if (!(read->mask & mask) || ordered(watch, wave, space, lane, read)) continue;
        struct finding *row = tell(watch, memory, wave, space, access, address, lane, read, RACE_WRITE_AFTER_READ);
        if (use == MODIFIES) guess(watch, read->wave, address, row);
    }
    if (!coherent) remember(watch, wave, space, cell, use, note);
}

/* What a wait has to wait for before this write has been done: of a flat one, which is counted twice, in LDS what counts
   accesses to LDS, and in memory what does not. */
static void remember_counters(struct busy *busy, struct phases *phases, bool flat, enum space space) {
    u32 counts = busy->step[STEP_COUNTS], before = (counts & 0xff) + (counts >> 8 & 0xff) + (counts >> 16 & 0xff);
    for (u32 i = 0; i < counts >> 24; i++) {
        u32 counter = busy->step[STEP_LISTS + before + i] & 0xff;
        if (flat && (counter == LDS_COUNTER) != (space == IN_LDS)) continue;
        phases->last_write[counter] = busy->issued[counter];
    }
}

/* `size` bytes at `address`, which in LDS counts from its start; `data`: what is written. */
void note_access(struct watch *watch, u8 *memory, struct wave *wave, enum space space, const u32 *access, u64 address,
                 u32 size, u32 lane, const u8 *data) {
    struct phases *phases = &wave->phases[space];
    if (!has_room(wave->watch, phases)) return;
    if (access[USE] == MODIFIES) close(wave, phases);
    phases->used = 1;
    if (access[USE] == MODIFIES) data = NULL;
    while (size > 0) {
        u32 first = address % 4, part = size < 4 - first ? size : 4 - first;
        struct cell *cell = space == IN_LDS ? &wave->in->cells[address / 4] : cell_at(watch, address);
        if (cell != NULL && part < 4) divide(watch, cell);
        u32 each = cell != NULL && cell->bytes != NULL ? 1 : part;
        for (u32 i = 0; cell != NULL && i < part; i += each)
            touch(watch, memory, wave, space, access, address + i, first + i, each, lane,
                  data == NULL ? NULL : data + i,
                  cell->bytes == NULL ? cell : &cell->bytes->cells[first + i]);
        address += part, size -= part;
        data = data == NULL ? NULL : data + part;
    }
    if (access[USE] != READS && wave->busy->step != NULL)
        remember_counters(wave->busy, phases, access[KIND] == FLAT, space);
}
