/* Denormals that an instruction takes as zeros on this GPU, though MODE keeps them and other GPUs do. */
#include "watching.h"

static bool is_denormal(u32 value, u32 bits, u32 mantissa) {
    u32 sign = 1u << (bits - 1), exponent = (sign - 1) & ~((1u << mantissa) - 1);
    return !(value & exponent) && value & (sign - 1);
}

/* The denormal that a dword of this format has, or 0. */
static u32 denormal_of(u32 value, u32 kind) {
    if (kind == OF_F32) return is_denormal(value, 32, 23) ? value : 0;
    u32 mantissa = kind == OF_BF16 ? 7 : 10, low = value & 0xffff, high = value >> 16;
    return is_denormal(low, 16, mantissa) ? low : is_denormal(high, 16, mantissa) ? high : 0;
}

/* Before an instruction that takes denormals of some operands as zeros: its pc, whether EXEC does not matter, how many
   operands these are, each with its format, and its value if it is a constant. */
__attribute__((visibility("default"))) void luthier_watch_denormals(u8 *memory, const u32 *numbers) {
    struct watch *watch = watch_of(memory);
    struct wave *wave = wave_of(watch, memory);
    if (wave == NULL) return;
    u64 lanes = numbers[1] ? wave->began : exec_of(watch, memory);
    for (u32 i = 0; i < numbers[2]; i++) {
        u32 id = numbers[3 + 2 * i] & 0xffff, kind = role_of(numbers[3 + 2 * i]);
        for (u64 left = lanes; left != 0; left &= left - 1) {
            u32 lane = __builtin_ctzll(left);
            u32 value = id == CONSTANT  ? numbers[4 + 2 * i]
                        : id < VECTORS ? *scalar(memory, id)
                                       : row_of(watch, memory, id - VECTORS)[lane];
            u32 found = denormal_of(value, kind);
            if (found == 0) continue;
            u64 pc = watch->bases[code_of(watch, memory)] + numbers[0];
            struct finding *row = found_by(watch, wave, FOUND_HARDWARE, kind, pc, 0, lane);
            if (row != NULL) row->address = found;
            return;
        }
    }
}
