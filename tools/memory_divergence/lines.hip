// Cache lines that one memory instruction touches.
#include <luthier/hooks.h>
using namespace luthier;

// How many different lines of 1 << shift bytes the active lanes touch with one access of `bytes` each, which is no more
// than a line: histogram[lines] goes up by one.
LUTHIER_HOOK() void lines(lane<u64> address, u32 bytes, u32 shift, u64 *histogram) {
    u64 first = address >> shift, last = (address + bytes - 1) >> shift;
    u64 firsts = active_mask(), lasts = ballot(last != first);
    u32 count = 0;
    while ((firsts | lasts) != 0) { // one line each time: that of the lowest lane that has one left
        u64 line = firsts != 0 ? read_lane(first, count_trailing_zeros(firsts))
                               : read_lane(last, count_trailing_zeros(lasts));
        firsts &= ~ballot(first == line);
        lasts &= ~ballot(last == line);
        ++count;
    }
    if (is_first_lane()) atomic_add(&histogram[count], 1);
}
