/* The slow path of every memory access: which host memory an address is.

   In: an address of one lane. Out: a host pointer, or null after a fault was noted in the wave. Invariant: a pointer that
   it returns may be accessed for `bytes` bytes, and written if the flags say so. Nothing is compared with the end of an
   access, which wraps for the last addresses: its room is.

   LDS instructions outside of a work-group's LDS read 0 and write nothing, which the worker records (ISA manuals, "Data
   Share", out of range); flat ones there are faults. */
#include "resolve.h"

struct allocations { /* memory/allocations.py: sorted by address */
    u64 count;
    struct allocation records[];
};

struct request { /* of one lane */
    struct wave *wave;
    u64 address, bytes;
    struct site *site;
    u64 lane, flags;
};

/* In code of its own, as what follows: so addresses that are found at once cost little. */
static __attribute__((noinline)) u8 *write_fault(struct wave *wave, struct site *site, u64 lane, u64 address, u64 kind)
{
    wave->fault_site = ((u64)site - worker_of(wave)->sites) / sizeof(struct site);
    wave->fault_lane = lane;
    wave->fault_address = address;
    wave->fault_kind = kind;
    return NULL;
}

GENERIC u8 *note_fault(const struct request *r, u64 kind)
{
    return write_fault(r->wave, r->site, r->lane, r->address, kind);
}

/* The target of an access without effect: reads give 0, writes are dropped. */
GENERIC u8 *ignore(struct wave *wave)
{
    wave->ignored = wave->ignored_high = 0;
    return (u8 *)&wave->ignored;
}

GENERIC u32 low_half(u64 address)
{
    return (u32)address;
}

GENERIC u8 *resolve_lds(const struct request *r)
{
    struct wave *wave = r->wave;
    if (low_half(r->address) + r->bytes <= wave->lds_bytes)
        return (u8 *)(wave->lds + low_half(r->address));
    if ((r->flags & (IN_LDS | IN_SCRATCH)) != IN_LDS)
        return note_fault(r, FAULT_LDS);
    worker_of(wave)->outside_lds = (u64)r->site;
    return ignore(wave);
}

/* Private memory is rows of one dword of every lane, so an access lies in one dword. */
GENERIC u8 *resolve_private(const struct request *r, u64 lane)
{
    u64 offset = low_half(r->address), in_word = offset & 3;
    if (offset + r->bytes > r->wave->scratch_bytes)
        return note_fault(r, FAULT_SCRATCH);
    if (in_word + r->bytes > 4)
        return note_fault(r, FAULT_MISALIGNED);
    return (u8 *)(r->wave->scratch + (offset >> 2) * (4 * LANES) + lane * 4 + in_word);
}

GENERIC u8 *permit(const struct request *r, struct site found, u64 access)
{
    if ((r->flags & WRITES) & ~access)
        return note_fault(r, FAULT_READ_ONLY);
    if (r->flags & FLOAT_ATOMIC && access & FINE)
        return ignore(r->wave); /* not remembered: the next one comes here, too */
    *r->site = found;
    return (u8 *)r->address;
}

/* Another thread may empty a record meanwhile: each of its words is read once. */
static __attribute__((noinline)) u8 *search(struct wave *wave, u64 address, u64 bytes, struct site *site, u64 lane,
                                            u64 flags)
{
    struct request request = {wave, address, bytes, site, lane, flags}, *r = &request;
    u64 *holder = (u64 *)worker_of(r->wave)->allocations;
    const struct allocations *table = (const struct allocations *)__atomic_load_n(holder, __ATOMIC_ACQUIRE);
    for (u64 low = 0, size = table->count; size;) {
        u64 half = size / 2;
        const volatile struct allocation *record = &table->records[low + half];
        struct site found = {record->base, record->end};
        if (inside(r->address, r->bytes, found.base, found.end))
            return permit(r, found, record->access);
        if (r->address >= found.end) {
            low += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    return note_fault(r, FAULT_ADDRESS);
}

/* Where the private aperture is so high, bits 56:52 of an address are the lane whose memory it is. */
GENERIC bool in_private_aperture(u64 address, u64 private_base, u64 *lane)
{
    u64 high = address >> 32;
    if (private_base >> 58) {
        *lane = high >> 20 & 31;
        high &= ~(31ull << 20);
    }
    return high == private_base >> 32;
}

u8 *SUPPORT(resolve)(struct wave *wave, u64 address, u64 bytes, struct site *site, u64 lane, u64 flags)
{
    struct request request = {wave, address, bytes, site, lane, flags};
    const struct worker *worker = worker_of(wave);
    if (flags & ALIGNED && address & (bytes - 1))
        return note_fault(&request, FAULT_MISALIGNED);
    if (flags & IN_LDS)
        return resolve_lds(&request);
    if (flags & IN_SCRATCH)
        return resolve_private(&request, lane);
    if (inside(address, bytes, site->base, site->end))
        return (u8 *)address;
    if (flags & FLAT) {
        u64 column = lane;
        if (address >> 32 == worker->shared_base >> 32)
            return resolve_lds(&request);
        if (in_private_aperture(address, worker->private_base, &column))
            return resolve_private(&request, column);
    }
    return search(wave, address, bytes, site, lane, flags);
}

void SUPPORT(refuse)(struct wave *wave, const struct site *site, u64 lane, u64 refusal)
{
    struct request request = {wave, refusal, 0, (struct site *)site, lane, 0};
    note_fault(&request, FAULT_SURFACE);
}
