/* What the checks of a launch share: what runs, what was found, and what each wave has done.

   In: calls of generated code, in the order in which waves take turns, from one thread. Out: findings. Invariant: a
   finding is reported once for each kind and pair of instructions, and counted. */
#ifndef LUTHIER_WATCHING_H
#define LUTHIER_WATCHING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watching_layout.h"

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

enum { MOST_FINDINGS = 4096, GUESSES = 1 << 16, GUESSES_LOOKED_AT = 16, REGISTERS = 768, COUNTERS = 16, CODES = 256, VECTORS = 256, LOOKS = 64, MOST_NUMBERS = 64 };

/* Columns of an access: access.py gives them. MOVED: of each part, the first register of what is read or written, 0
   where that is none. */
enum { PC, KIND, USE, SIZE, PARTS, TRAITS, MOVED, COLUMNS = MOVED + 2 };

/* A row of the array that Python reads: watch.py has the same columns. */
struct finding {
    u64 kind, detail, pc, other_pc, group, wave, lane, other_group, other_wave, other_lane, address, size, count, lanes;
};

enum { OF_LIBRARY = 1 }; /* beside BLOCK_FREE and BLOCK_LEFT */
enum stopped { STOPPED_PAGES = 1, STOPPED_FINDINGS = 2, STOPPED_CODES = 4, STOPPED_BYTES = 8, STOPPED_MEMORY = 16 };
enum written { UNWRITTEN, DEFINED, UNDEFINED }; /* UNDEFINED: by a register that never was */
enum space { IN_LDS, IN_MEMORY, IN_SCRATCH }; /* as checks.py has them */

/* One access in a shadow cell: mask has a bit for each byte of the dword. */
struct access_note {
    u64 time;
    u32 wave, phase, pc;
    u8 lane, mask, atomic, code;
};

struct cell {
    struct access_note write, atomic, reads[2]; /* the last ones, atomics separate */
    u64 before_atomic;                          /* time of the last atomic by another wave than `atomic` is by */
    struct bytes *bytes;                        /* where less than a dword was accessed: what counts instead */
};

struct bytes {
    struct cell cells[4];
    struct bytes *next;
};

/* A wave's accesses of one space, in phases. `signal`: the barrier that a phase came before, `release`: the time at
   which what others may acquire came after it. */
struct phases {
    u32 now, used, room, published, released, complete;
    u32 *signal;
    u64 *release;
    u32 last_write[COUNTERS]; /* serial of issue */
};

/* What a register waits for. */
struct pending {
    u32 serial, pc;
    u8 counter, ordered, code, is;
};

struct busy { /* of a wave that has not ended */
    u32 issued[COUNTERS], done[COUNTERS], zeros[COUNTERS];
    struct pending registers[REGISTERS];
    u64 defined[REGISTERS - VECTORS]; /* lanes */
    u32 undefined[VECTORS];           /* bits of scalars */
    u64 *scratch;                     /* lanes whose dword was written, with what was */
    u64 lane;                         /* of an instruction that reads or writes one */
    const u32 *step;
    u32 resolved[MOST_NUMBERS];       /* a step whose registers M0 chose */
};

/* An atomic or coherent load of a wave: where, and when. */
struct look {
    u64 address, time;
};

/* A plain load that races with atomics, until its wave compares and swaps what it has read: then it only was a guess.
   `rows`: of findings, each with how often it was counted for this. */
struct guess {
    u64 address, time;
    u32 wave, used;
    struct { u32 row, count; } rows[2];
};

struct wave {
    struct watch *watch;
    struct phases phases[2];
    struct look looks[LOOKS]; /* the last ones */
    u32 looked;
    u64 seen, acquired; /* the latest of what others let go that it knows of, and that its plain loads find */
    u64 began;          /* its lanes */
    u64 together;       /* when its lanes came to a barrier last */
    u32 group, number, id, signals, waits, barrier_pc;
    bool ended, meets, passes;
    bool idle; /* a lane of it has been far outside of LDS */
    u8 code; /* of barrier_pc */
    struct busy *busy;
    struct group *in;
};

struct group { /* a place for a resident work-group */
    u64 lds; /* its address */
    u64 index, seen, acquired; /* the latest of its waves, when they came to a barrier */
    u32 cells_used;
    struct cell *cells;
    u8 *written; /* bytes of LDS, each as one of enum written */
    struct wave **waves;
    struct group *next;
};

struct watch {
    u64 flags, stopped; /* stopped: where it does not look any more */
    u64 allowed;        /* bytes that may still be taken */
    u64 *stop;          /* of the launch: not 0 when it is to stop */
    u64 wave_size, waves, groups, scalars, vectors; /* scalars, vectors: that are set when a wave begins */
    u64 time, pages_left;
    struct wave **all;
    struct group *places;
    u64 bases[CODES];
    u32 codes, found;
    struct finding findings[MOST_FINDINGS];
    struct page *pages;
    u64 page_room, page_count;
    struct bytes *all_bytes;
    u64 bytes_left;
    struct { u64 time, other_pc; u32 lane; } told; /* the last race */
    u64 guessed; /* how many guesses wait for their swap */
    struct guess guesses[GUESSES]; /* by address and wave; where there are too many, a later one takes the place of another */
    struct touched *touched; /* a table by page, with holes */
    u64 touched_room, touched_count;
    struct wave nobody; /* for all waves, where no check looks for mistakes */
    u8 nothing[256]; /* what is read where nothing is */
};

static inline void later(u64 *time, u64 other) { if (other > *time) *time = other; }
static inline u64 *field(u8 *wave, u32 place) { return (u64 *)(wave + place); }
static inline struct watch *watch_of(u8 *wave) { return *(struct watch **)(*field(wave, WAVE_WORKER) + WORKER_WATCH); }
static inline u32 *scalar(u8 *wave, u32 index) { return (u32 *)wave + index; }
static inline u32 role_of(u32 entry) { return entry >> ROLE & 0xf; }
static inline u64 exec_of(struct watch *watch, u8 *wave) {
    u64 exec = *scalar(wave, EXEC_LO) | (u64)*scalar(wave, EXEC_LO + 1) << 32;
    return watch->wave_size == 32 ? exec & 0xffffffff : exec;
}

/* Of vector registers, or behind those. */
static inline const u32 *row_of(struct watch *watch, u8 *memory, u32 row) {
    return (u32 *)(memory + ROWS) + row * watch->wave_size;
}

bool allocated(u8 *memory, u64 address, u64 size, bool writes, u64 *access);
u64 place_in_heap(u8 *memory, u64 access, u64 address, u64 size, u64 *block, u64 *bytes);
void *need(struct watch *watch, u64 count, u64 size);
void *need_more(struct watch *watch, void *block, u64 count, u64 more, u64 size);
struct wave *wave_of(struct watch *watch, u8 *wave); /* NULL without memory: then nothing is looked at */
void end_wave(struct wave *wave);
u8 code_of(struct watch *watch, u8 *wave);
struct finding *counted(struct watch *watch, struct wave *wave, u64 kind, u64 detail, u64 pc, u64 other_pc, u64 lane);
struct finding *found_by(struct watch *watch, struct wave *wave, u64 kind, u64 detail, u64 pc, u64 other_pc, u64 lane);
bool counts_done(struct wave *wave, struct phases *phases);
void waited(struct wave *wave);
void signalled(struct wave *wave);
void note_access(struct watch *watch, u8 *memory, struct wave *wave, enum space space, const u32 *access, u64 address,
                 u32 size, u32 lane, const u8 *data);
void release(struct watch *watch, struct wave *wave);
void let_go(struct watch *watch, struct wave *wave);
const u32 *resolved(u8 *memory, struct busy *busy, const u32 *step);
void track(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step);
void define(struct watch *watch, u8 *memory, struct wave *wave, const u32 *step, u64 exec);
void undefine(struct wave *wave, u32 id, u32 lane);
bool is_defined(struct wave *wave, u32 id, u32 lane);
void forget_cells(struct watch *watch);
void note_page(struct watch *watch, u64 address, u64 size, bool writes);
void forget_touched(struct watch *watch);
void clear_cells(struct cell *cells, u32 count);

#endif
