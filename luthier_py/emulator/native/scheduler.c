/* The schedulers: they run the waves of work-groups until Python is needed.

   In: records of layout. Out: an Outcome. Waves of a group take turns; a turn ends at a barrier, at s_sleep, or when its
   budget is used up (records/budgets), so a wave that waits for another does not stop it. After some rounds, or when the
   launch is to stop, Python gets a chance to let another work-group run. At random each turn is some wave's, and of some
   length, both drawn from pseudo-random numbers whose state is in the group's record; it ends after the group's `turns`.
   Invariant: a group's records say all there is to know, so its worker can leave it and take it up at any time; a turn,
   a round and a span of rounds that were broken off continue where they were, so compilation decides nothing. */
#include "native.h"

typedef u32 part __attribute__((ext_vector_type(COPIED_BYTES / 4)));
typedef u32 host_function(struct wave *wave);

enum { GOES_ON = OUTCOMES }; /* the work-group, without Python */

struct schedule {
    struct worker *worker;
    struct launch *launch;
    struct group *group;
    u64 rounds; /* left, also at random, where each has one turn */
    bool watched, at_random;
};

static struct wave *wave_of(const struct group *group, u64 number)
{
    return (struct wave *)(group->waves + number * WAVE_STRIDE);
}

/* A memset of no bytes takes 150 ns on AMD's hosts: glibc does it by a masked store. */
static void clear(u64 memory, u64 bytes)
{
    if (bytes)
        __builtin_memset((void *)memory, 0, bytes);
}

/* What is so short is copied before memcpy knows how. At least COPIED_BYTES. */
GENERIC void copy(u64 to, u64 from, u64 bytes)
{
    u64 i = 0;
    do
        *(part *)(to + i) = *(const part *)(from + i);
    while ((i += COPIED_BYTES) < bytes);
}

/* A wave as it begins; what is between the scalars and the ids in its image it always gets. */
GENERIC void begin_wave(const struct launch *launch, u64 wave, u64 image)
{
    copy(wave, image, launch->scalar_bytes);
    copy(wave + NAMED_SCALAR_BYTES, image + NAMED_SCALAR_BYTES, WAVE_HEADER_BYTES - NAMED_SCALAR_BYTES);
    copy(wave + WAVE_HEADER_BYTES, image + WAVE_HEADER_BYTES, launch->id_bytes);
    clear(wave + WAVE_HEADER_BYTES + launch->id_bytes, launch->vector_bytes);
    clear(wave + AGPR_OFFSET, launch->agpr_bytes);
}

/* Work-group number `index` begins. Waves that it does not have come as ended. */
static void begin_group(const struct launch *launch, struct group *group, u64 index)
{
    u64 line = index / launch->count_x, x = index % launch->count_x;
    u64 y = line % launch->count_y, z = line / launch->count_y;
    u64 count_z = launch->total / (launch->count_x * launch->count_y);
    u64 last = (x + 1 == launch->count_x) | (y + 1 == launch->count_y) << 1 | (z + 1 == count_z) << 2;
    u64 edge = last & launch->edges, images = group->images + edge * launch->edge_stride;
    clear(group->lds, launch->lds_bytes);
    group->left = (&launch->waves_0)[edge];
    group->waiting = 0;
    group->active = 1;
    group->index = index;
    group->slice = FIRST_SLICE;
    group->spans = 0;
    for (u64 i = 0; i < launch->waves; i++) {
        u64 wave = (u64)wave_of(group, i);
        begin_wave(launch, wave, images + i * launch->image_stride);
        *(u32 *)(wave + launch->sgpr_x) = (u32)x;
        *(u32 *)(wave + launch->sgpr_z) = (u32)z;
        *(u32 *)(wave + launch->sgpr_y) = (u32)(y | (z * launch->ids_share) << 16);
    }
}

GENERIC void tell(const struct schedule *s, u64 event)
{
    if (s->watched)
        ((void (*)(struct group *, u64))s->launch->watcher)(s->group, event);
}

/* The next work-group, if there is one. */
GENERIC bool begin_next_group(const struct schedule *s)
{
    u64 index = __atomic_fetch_add(&s->launch->next, 1, __ATOMIC_RELAXED);
    if (index >= s->launch->total)
        return false;
    begin_group(s->launch, s->group, index);
    tell(s, EVENT_BEGINS);
    return true;
}

/* All waves are at the barrier: let them continue. */
static void release(struct group *group, u64 waves)
{
    group->waiting = 0;
    for (u64 i = 0; i < waves; i++) {
        struct wave *wave = wave_of(group, i);
        wave->signalled = 0;
        if (wave->status == STATUS_BARRIER)
            wave->status = STATUS_JUMP;
    }
}

/* Perhaps between the two halves of a barrier. */
GENERIC void end_wave(struct group *group, struct wave *wave)
{
    group->left--;
    group->waiting -= wave->signalled;
    wave->signalled = 0;
}

/* A round is broken off, since wave `number` needs attention, which has the same turn again, or whose turn is over. */
GENERIC u64 break_off(const struct schedule *s, u64 number, bool same_again, u64 outcome)
{
    s->group->wave = number;
    if (s->at_random)
        s->group->resume = same_again ? number + 1 : 0;
    else
        s->group->resume = same_again ? number << 1 | 1 : (number + 1) << 1;
    s->group->rounds = s->rounds;
    return outcome;
}

/* Whether a turn is over that began with `first` and has come to a way into other code. */
GENERIC bool used_up(const struct schedule *s, struct wave *first, const struct wave *wave)
{
    if (!s->at_random)
        return (int64_t)wave->budget < 0;
    first->budget -= OWN_STEP;
    return (int64_t)first->budget < 0;
}

/* Whether a wave that has come to `status` has its turn no longer. */
GENERIC bool gives_way(struct group *group, struct wave *wave, u64 status)
{
    switch (status) {
    case STATUS_DONE:
        end_wave(group, wave);
        return true;
    case STATUS_BARRIER:
        group->waiting++;
        return true;
    case STATUS_SIGNAL: /* the first half of a barrier */
        wave->signalled = 1;
        group->waiting++;
        return false;
    case STATUS_WAIT: /* the second half */
        if (wave->signalled)
            wave->status = STATUS_BARRIER;
        return wave->signalled;
    default:
        return status == STATUS_YIELD || status == STATUS_MEETING;
    }
}

/* The turn of wave *number, which may end with one behind it (see next_wave). */
GENERIC u64 take_turn(const struct schedule *s, u64 *number)
{
    struct worker *worker = s->worker;
    struct wave *first = wave_of(s->group, *number), *wave = first;
    for (;;) {
        u64 distance = wave->pc - worker->code_start;
        if (distance >> 2 >= worker->table_entries || distance & 3) {
            wave->fault_kind = FAULT_JUMP;
            return break_off(s, *number, true, OUTCOME_FAULT);
        }
        host_function *function = ((host_function **)worker->table)[distance >> 2];
        if (!function)
            return break_off(s, *number, true, OUTCOME_NEEDS_CODE);
        u64 result = function(wave), status = result % MOVED, moved = result / MOVED;
        *number += moved;
        wave = (struct wave *)((u64)wave + moved * WAVE_STRIDE);
        wave->status = status;
        if (status == STATUS_MESSAGE) {
            wave->status = STATUS_JUMP;
            return break_off(s, *number, false, OUTCOME_MESSAGE);
        }
        if (status == STATUS_FAULT || status > STATUS_WAIT)
            return break_off(s, *number, true, OUTCOME_FAULT);
        if (gives_way(s->group, wave, status) || used_up(s, first, wave))
            return GOES_ON;
    }
}

/* Whether a wave can have a turn: it has not ended, and does not wait, or all have come to its grid barrier. */
GENERIC bool ready(const struct wave *wave)
{
    if (wave->status < STATUS_JUMP)
        return false;
    if (wave->status != STATUS_MEETING)
        return true;
    return __atomic_load_n((u64 *)wave->meeting, __ATOMIC_ACQUIRE) >= wave->expected;
}

GENERIC bool stopped(const struct schedule *s)
{
    return __atomic_load_n(&s->launch->stop, __ATOMIC_RELAXED) != 0;
}

/* A turn for each wave, from the one at which the round was broken off, and the rest of its turn. */
GENERIC u64 take_turns(const struct schedule *s)
{
    struct group *group = s->group;
    bool midway = group->resume & 1;
    u64 number = group->resume >> 1;
    group->resume = 0;
    for (; number < s->launch->waves; number++, midway = false) {
        struct wave *wave = wave_of(group, number);
        if (!ready(wave))
            continue;
        if (stopped(s))
            return OUTCOME_TIRED;
        if (!midway)
            wave->budget = group->slice;
        u64 outcome = take_turn(s, &number);
        if (outcome != GOES_ON)
            return outcome;
    }
    return GOES_ON;
}

/* Which wave's turn is next; its length is in the group's record. Turns are short, since errors of order happen between
   two accesses; one in 16 is long enough to get somewhere. */
GENERIC u64 draw_turn(struct group *group, u64 waves)
{
    u64 random = group->random; /* Marsaglia's xorshift */
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    group->random = random;
    u64 steps = random & 7;
    group->budget = (random & 0xf00 ? steps : steps << 8) * OWN_STEP;
    return (random >> 32) % waves;
}

/* One turn: the rest of one that was broken off, or another. */
GENERIC u64 take_random_turn(const struct schedule *s)
{
    struct group *group = s->group;
    u64 had = group->resume, number = had - 1;
    group->resume = 0;
    if (had) {
        group->budget = wave_of(group, number)->budget;
    } else {
        if (!group->turns)
            return OUTCOME_TIRED;
        group->turns--;
        number = draw_turn(group, s->launch->waves);
    }
    struct wave *wave = wave_of(group, number);
    if (!ready(wave))
        return GOES_ON;
    if (stopped(s))
        return OUTCOME_TIRED;
    wave->budget = group->budget;
    return take_turn(s, &number);
}

/* After a round: does the work-group end, or leave a barrier? */
GENERIC void end_round(const struct schedule *s)
{
    struct group *group = s->group;
    if (!group->left) {
        group->active = 0;
        tell(s, EVENT_ENDS);
    } else if (group->waiting == group->left) {
        tell(s, EVENT_RELEASES);
        release(group, s->launch->waves);
    }
}

GENERIC u64 run(struct schedule s)
{
    if (s.group->rounds)
        s.rounds = s.group->rounds;
    s.group->rounds = 0;
    u64 outcome = GOES_ON;
    for (;; s.rounds--) {
        if (!s.group->active && !begin_next_group(&s))
            return OUTCOME_FINISHED;
        if ((int64_t)s.rounds <= 0)
            outcome = OUTCOME_TIRED;
        else
            outcome = s.at_random ? take_random_turn(&s) : take_turns(&s);
        if (outcome != GOES_ON)
            break;
        end_round(&s);
    }
    s.group->spans += outcome == OUTCOME_TIRED;
    return outcome;
}

#define SCHEDULER(name, watched, at_random) \
    u64 SUPPORT(name)(struct worker *worker, struct launch *launch, struct group *group, u64 rounds) \
    { \
        return run((struct schedule){worker, launch, group, rounds, watched, at_random}); \
    }

SCHEDULER(run, false, false)
SCHEDULER(run_watched, true, false)
SCHEDULER(run_at_random, false, true)
SCHEDULER(run_watched_at_random, true, true)
