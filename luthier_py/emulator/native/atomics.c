/* Atomics: one lane after the other, lowest first.

   In: a call (wave, exec, base, addresses, data, second, result, site) of a function that atomics.py writes beside this,
   with what is constant in it; `second` is the row of the compare value or second operand. Out: false after a fault was
   noted; the old values go to the row `result`. Invariant: in memory that others may share every lane's step is one
   atomic operation of the host; LDS belongs to one worker and needs none, nor does memory while a worker is alone. */
#include "accesses.h"
#include "lanes.h"
#include "resolve.h"

/* What the instruction leaves in memory, as the semantics say it, of numbers of its width: atomics.py writes it. */
u64 new_value(u64 old, u64 data, u64 second);

struct kind { /* of one function */
    u32 addresses, bytes, step, is_float;
};

struct call {
    struct wave *wave;
    u64 exec, base;
    const u32 *addresses, *data, *second;
    u32 *result;
    struct site *site;
};

#define ON_HOST(function) \
    (bytes == 4 ? function((u32 *)at, (u32)data, __ATOMIC_RELAXED) : function((u64 *)at, data, __ATOMIC_RELAXED))

GENERIC u64 load_atomic(const u8 *at, u32 bytes)
{
    return bytes == 4 ? __atomic_load_n((const u32 *)at, __ATOMIC_RELAXED)
                      : __atomic_load_n((const u64 *)at, __ATOMIC_RELAXED);
}

/* Whether memory had *old, which is what it had in any case afterwards. */
GENERIC bool exchange(u8 *at, u32 bytes, u64 *old, u64 value)
{
    if (bytes == 8)
        return __atomic_compare_exchange_n((u64 *)at, old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    u32 had = (u32)*old;
    bool done = __atomic_compare_exchange_n((u32 *)at, &had, (u32)value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    *old = had;
    return done;
}

/* The old value; the new one is in memory, in one step of the host. */
GENERIC u64 step_in_memory(u8 *at, u32 bytes, u32 step, u64 data, u64 second)
{
    u64 old = second;
    switch (step) {
    case STEP_ADD:
        return ON_HOST(__atomic_fetch_add);
    case STEP_SUB:
        return ON_HOST(__atomic_fetch_sub);
    case STEP_AND:
        return ON_HOST(__atomic_fetch_and);
    case STEP_OR:
        return ON_HOST(__atomic_fetch_or);
    case STEP_XOR:
        return ON_HOST(__atomic_fetch_xor);
    case STEP_SWAP:
        return ON_HOST(__atomic_exchange_n);
    case STEP_COMPARE_SWAP:
        exchange(at, bytes, &old, data);
        return old;
    default: /* until no other thread has changed it in between */
        old = load_atomic(at, bytes);
        while (!exchange(at, bytes, &old, new_value(old, data, second)))
            ;
        return old;
    }
}

/* The same in memory that no other thread sees meanwhile. */
GENERIC u64 step_unseen(u8 *at, u32 bytes, u64 data, u64 second)
{
    u64 old = bytes == 4 ? *(u32 *)at : *(u64 *)at, value = new_value(old, data, second);
    if (bytes == 4)
        *(u32 *)at = (u32)value;
    else
        *(u64 *)at = value;
    return old;
}

GENERIC u64 load_lane(const u32 *word, u32 bytes)
{
    return bytes == 4 ? word[0] : word[0] | (u64)word[LANES] << 32;
}

GENERIC void store_lane(u32 *word, u32 bytes, u64 value)
{
    word[0] = (u32)value;
    if (bytes == 8)
        word[LANES] = (u32)(value >> 32);
}

/* LDS: are all active lanes' dwords inside, and aligned? */
GENERIC bool all_in_lds(const struct call *call)
{
    int64_t room = (int64_t)(call->wave->lds_bytes - (call->base + 4));
    row offsets = load_row(call->addresses), late = __builtin_elementwise_sub_sat(offsets, (row)(u32)room);
    return all_zero(flags_of(call->exec) ? late | ((offsets + (u32)call->base) & 3) : 0) && room >= 0;
}

/* Whether there is one; else a fault was noted. */
GENERIC bool find_place(struct kind kind, const struct call *call, u64 at, u64 lane, u8 **place)
{
    bool in_lds = kind.addresses == LDS;
    u64 begin = in_lds ? call->wave->lds : call->site->base, end = in_lds ? begin + call->wave->lds_bytes : call->site->end;
    u64 direct = in_lds ? begin + at : at, flags = WRITES | ALIGNED;
    if (inside(direct, kind.bytes, begin, end) && !(at & (kind.bytes - 1))) {
        *place = (u8 *)direct;
        return true;
    }
    flags |= (kind.addresses == FLAT_OR_FAR ? FLAT : 0) | (in_lds ? IN_LDS : 0) | (kind.is_float ? FLOAT_ATOMIC : 0);
    *place = SUPPORT(resolve)(call->wave, at, kind.bytes, call->site, lane, flags);
    return *place != NULL;
}

/* LDS, where all lanes are inside. */
GENERIC void step_each_in_lds(const struct call *call)
{
    u64 origin = call->wave->lds + call->base;
    for (u64 left = call->exec; left; left &= left - 1) {
        u64 lane = first_lane(left);
        u8 *place = (u8 *)(origin + call->addresses[lane]);
        call->result[lane] = (u32)step_unseen(place, 4, call->data[lane], call->second[lane]);
    }
}

GENERIC bool step_each(struct kind kind, const struct call *call)
{
    bool in_lds = kind.addresses == LDS, unseen = in_lds || worker_of(call->wave)->alone;
    u32 bytes = kind.bytes;
    u64 changed = 0;
    for (u64 left = call->exec; left; left &= left - 1) {
        u64 lane = first_lane(left), at = call->base + call->addresses[lane];
        if (kind.addresses == FAR || kind.addresses == FLAT_OR_FAR)
            at += (u64)call->addresses[LANES + lane] << 32;
        u8 *place;
        if (!find_place(kind, call, at, lane, &place))
            return false;
        u64 data = load_lane(call->data + lane, bytes), second = load_lane(call->second + lane, bytes);
        u64 old = unseen ? step_unseen(place, bytes, data, second) : step_in_memory(place, bytes, kind.step, data, second);
        if (!in_lds) /* if another has changed it meanwhile, that counts as well */
            changed |= load_atomic(place, bytes) != old;
        store_lane(call->result + lane, bytes, old);
    }
    worker_of(call->wave)->changes += changed;
    return true;
}

GENERIC bool atomic(struct kind kind, const struct call *call)
{
    if (kind.addresses == LDS && kind.bytes == 4 && all_in_lds(call)) {
        step_each_in_lds(call);
        return true;
    }
    return step_each(kind, call);
}

/* Called by what atomics.py writes. */
#define ATOMIC(name, addresses_of) \
    __attribute__((always_inline)) bool name( \
        struct wave *wave, u64 exec, u64 base, const u32 *addresses, const u32 *data, const u32 *second, u32 *result, \
        struct site *site, u32 bytes, u32 step, u32 is_float) \
    { \
        struct call call = {wave, exec, base, addresses, data, second, result, site}; \
        return atomic((struct kind){addresses_of, bytes, step, is_float}, &call); \
    }

ATOMIC(near_atomic, NEAR)
ATOMIC(far_atomic, FAR)
ATOMIC(flat_atomic, FLAT_OR_FAR)
ATOMIC(lds_atomic, LDS)
ATOMIC(private_atomic, NEAR) /* of a buffer there: at offsets, which no allocation has, so a fault */
