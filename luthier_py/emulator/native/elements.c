/* Formatted elements between registers and memory: lane by lane, with conversions that elements.py writes beside this.

   In: a call (wave, exec, inside, addresses, data, site, format, selects). Out: false after a fault was noted in the wave.
   Lanes of `exec` that are not `inside` load zeros, and store nothing. Invariant: no byte is touched outside of
   allocations; what no manual says is a fault, no result. */
#include "lanes.h"
#include "resolve.h"

typedef unsigned __int128 element;
typedef u8 bytes_of_element __attribute__((ext_vector_type(16)));
typedef bool byte_flags __attribute__((ext_vector_type(16)));

/* What elements.py writes of each function: bytes of an element; why none of this format moves, a SurfaceRefusal or 0;
   the registers of a lane, of what was loaded, or the element of these, or why it cannot be stored. */
u64 size_of(u32 format, u32 selects);
u64 refusal_of(u32 format, u32 selects);
void load_element(element value, u32 *data, u32 format, u32 selects);
u64 store_element(element *value, const u32 *data, u32 format, u32 selects);

struct call {
    struct wave *wave;
    u64 exec, inside;
    const u32 *addresses;
    u32 *data;
    struct site *site;
    u32 format, selects;
};

GENERIC byte_flags first_bytes(u64 bytes)
{
    bytes_of_element numbers = {FROM(0)};
    return __builtin_convertvector(numbers < (u8)bytes, byte_flags);
}

GENERIC u8 *resolve(const struct call *call, u64 bytes, u64 lane, u64 flags)
{
    u64 address = call->addresses[lane] | (u64)call->addresses[LANES + lane] << 32;
    return SUPPORT(resolve)(call->wave, address, bytes, call->site, lane, flags);
}

GENERIC bool refuse(const struct call *call, u64 lane, u64 refusal)
{
    SUPPORT(refuse)(call->wave, call->site, lane, refusal);
    return false;
}

GENERIC bool load_each(const struct call *call)
{
    u64 bytes = size_of(call->format, call->selects), refusal = refusal_of(call->format, call->selects);
    for (u64 left = call->exec; left; left &= left - 1) {
        u64 lane = first_lane(left);
        if (refusal)
            return refuse(call, lane, refusal);
        element value = 0;
        if (call->inside >> lane & 1) {
            const u8 *at = resolve(call, bytes, lane, 0);
            if (!at)
                return false;
            value = __builtin_bit_cast(element, __builtin_masked_load(first_bytes(bytes), at, (bytes_of_element)0));
        }
        load_element(value, call->data + lane, call->format, call->selects);
    }
    return true;
}

GENERIC bool store_each(const struct call *call)
{
    u64 bytes = size_of(call->format, call->selects), refusal = refusal_of(call->format, call->selects);
    for (u64 left = call->exec; left; left &= left - 1) {
        u64 lane = first_lane(left);
        if (refusal)
            return refuse(call, lane, refusal);
        if (!(call->inside >> lane & 1))
            continue;
        element value;
        u64 unfit = store_element(&value, call->data + lane, call->format, call->selects);
        if (unfit)
            return refuse(call, lane, unfit);
        u8 *at = resolve(call, bytes, lane, WRITES);
        if (!at)
            return false;
        __builtin_masked_store(first_bytes(bytes), __builtin_bit_cast(bytes_of_element, value), at);
    }
    worker_of(call->wave)->changes++;
    return true;
}

/* Called by what elements.py writes. */
#define ELEMENTS(name) \
    __attribute__((always_inline)) bool name##_elements(struct wave *wave, u64 exec, u64 inside, const u32 *addresses, \
                                                        u32 *data, struct site *site, u32 format, u32 selects) \
    { \
        struct call call = {wave, exec, inside, addresses, data, site, format, selects}; \
        return name##_each(&call); \
    }

ELEMENTS(load)
ELEMENTS(store)
