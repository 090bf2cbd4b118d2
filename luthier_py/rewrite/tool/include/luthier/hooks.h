// What hooks in HIP C++ are written with; docs/device-python.md says what hooks may do. Needs clang, nothing of ROCm.
//
//     #include <luthier/hooks.h>
//     using namespace luthier;
//
//     LUTHIER_HOOK(one) void flush(u64 *total, u64 count) { atomic_add(total, count); }
//
// Names are those of luthier_py.intrinsics, and mean the same.
#pragma once

#ifndef __device__
#define __device__ __attribute__((device))
#endif
#ifndef __constant__
#define __constant__ __attribute__((constant))
#endif
#ifndef __shared__
#define __shared__ __attribute__((shared)) // for messages: hooks have no LDS of their own
#endif

// Before a function that a tool inserts. In parentheses: nothing or `active`, `one`, `all`, the lanes that it runs in;
// then perhaps `fold` or `no_fold`: whether all constants of its calls are compiled in, or none; and `application_mode`:
// floats are rounded as the application has it.
#define LUTHIER_HOOK(...) __attribute__((device, used, annotate("luthier.hook:" #__VA_ARGS__)))

// Before a function that calls itself, or one that calls it again: how many of its calls may be unfinished at a time.
#define LUTHIER_DEPTH(levels) __attribute__((annotate("luthier.depth:" #levels)))

// Before a function that hooks in Python call.
#define LUTHIER_DEVICE __attribute__((device, used, annotate("luthier.device:")))

#define LUTHIER_INLINE __attribute__((device, always_inline)) inline

// AMD's device library, which is put into the hooks that ask for it.
#define LUTHIER_LIBRARY_1(name)                                                                                        \
    extern "C" __attribute__((device)) _Float16 __ocml_##name##_f16(_Float16);                                         \
    extern "C" __attribute__((device)) float __ocml_##name##_f32(float);                                               \
    extern "C" __attribute__((device)) double __ocml_##name##_f64(double);                                             \
    namespace luthier {                                                                                                \
    LUTHIER_INLINE _Float16 name(_Float16 x) { return __ocml_##name##_f16(x); }                                        \
    LUTHIER_INLINE float name(float x) { return __ocml_##name##_f32(x); }                                              \
    LUTHIER_INLINE double name(double x) { return __ocml_##name##_f64(x); }                                            \
    }
#define LUTHIER_LIBRARY_2(name)                                                                                        \
    extern "C" __attribute__((device)) _Float16 __ocml_##name##_f16(_Float16, _Float16);                               \
    extern "C" __attribute__((device)) float __ocml_##name##_f32(float, float);                                        \
    extern "C" __attribute__((device)) double __ocml_##name##_f64(double, double);                                     \
    namespace luthier {                                                                                                \
    LUTHIER_INLINE _Float16 name(_Float16 x, _Float16 y) { return __ocml_##name##_f16(x, y); }                         \
    LUTHIER_INLINE float name(float x, float y) { return __ocml_##name##_f32(x, y); }                                  \
    LUTHIER_INLINE double name(double x, double y) { return __ocml_##name##_f64(x, y); }                               \
    }
LUTHIER_LIBRARY_1(sqrt)
LUTHIER_LIBRARY_1(floor)
LUTHIER_LIBRARY_1(ceil)
LUTHIER_LIBRARY_1(trunc)
LUTHIER_LIBRARY_1(exp)
LUTHIER_LIBRARY_1(exp2)
LUTHIER_LIBRARY_1(log)
LUTHIER_LIBRARY_1(log2)
LUTHIER_LIBRARY_1(log10)
LUTHIER_LIBRARY_1(sin)
LUTHIER_LIBRARY_1(cos)
LUTHIER_LIBRARY_1(tan)
LUTHIER_LIBRARY_1(atan)
LUTHIER_LIBRARY_1(tanh)
LUTHIER_LIBRARY_2(pow)
LUTHIER_LIBRARY_2(atan2)
LUTHIER_LIBRARY_2(hypot)
LUTHIER_LIBRARY_2(fmod)
#undef LUTHIER_LIBRARY_1
#undef LUTHIER_LIBRARY_2

namespace luthier {

using u8 = unsigned char;
using i8 = signed char;
using u16 = unsigned short;
using i16 = short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long;
using i64 = long;
using f16 = _Float16;
using bf16 = __bf16;
using f32 = float;
using f64 = double;
static_assert(sizeof(u64) == 8, "hooks are compiled where unsigned long has 64 bits");

// A parameter or result that each lane has for itself; all others are one value for the wave.
template <class T> struct lane {
    T value;
    lane() = default;
    LUTHIER_INLINE constexpr lane(T given) : value(given) {}
    LUTHIER_INLINE constexpr operator T &() { return value; }
    LUTHIER_INLINE constexpr operator const T &() const { return value; }
};

// Where a T is in the application's LDS, or in each lane's private memory; hooks read it. Address 0 is one as any other:
// clang's null pointer is another number there, so these are not clang's pointers, and compare with each other alone.
template <class T, int space> class near_pointer {
    using pointer = const T __attribute__((address_space(space))) *;
    using place = const T __attribute__((address_space(space))) &;
    pointer at;
    LUTHIER_INLINE static near_pointer of(pointer p) {
        near_pointer found;
        found.at = p;
        return found;
    }

  public:
    near_pointer() = default;
    LUTHIER_INLINE explicit near_pointer(u32 address) : at(reinterpret_cast<pointer>(address)) {}
    template <class U> LUTHIER_INLINE explicit near_pointer(near_pointer<U, space> p) : near_pointer(u32(p)) {}
    LUTHIER_INLINE explicit operator u32() const { return reinterpret_cast<u32>(at); }
    explicit operator bool() const = delete; // every address is one

    LUTHIER_INLINE place operator*() const { return *at; }
    LUTHIER_INLINE pointer operator->() const { return at; }
    LUTHIER_INLINE place operator[](i64 index) const { return at[index]; }
    LUTHIER_INLINE near_pointer operator+(i64 count) const { return of(at + count); }
    LUTHIER_INLINE near_pointer operator-(i64 count) const { return of(at - count); }
    LUTHIER_INLINE i32 operator-(near_pointer p) const { return i32(at - p.at); }
    LUTHIER_INLINE near_pointer &operator+=(i64 count) { return *this = *this + count; }
    LUTHIER_INLINE near_pointer &operator-=(i64 count) { return *this = *this - count; }
    LUTHIER_INLINE near_pointer &operator++() { return *this += 1; }
    LUTHIER_INLINE near_pointer &operator--() { return *this -= 1; }
    LUTHIER_INLINE bool operator==(near_pointer p) const { return u32(*this) == u32(p); }
    LUTHIER_INLINE bool operator!=(near_pointer p) const { return u32(*this) != u32(p); }
    LUTHIER_INLINE bool operator<(near_pointer p) const { return u32(*this) < u32(p); }
};
template <class T> using lds = near_pointer<T, 3>;
template <class T> using scratch = near_pointer<T, 5>;

template <class T, int space> struct lane<near_pointer<T, space>> : near_pointer<T, space> {
    lane() = default;
    LUTHIER_INLINE lane(near_pointer<T, space> given) : near_pointer<T, space>(given) {}
};

namespace detail {
template <class T> struct same { using type = T; };
} // namespace detail
template <class T> using as_given = typename detail::same<T>::type; // not what T is deduced from

// -- lanes ------------------------------------------------------------------------------------------------------------

LUTHIER_INLINE constexpr u32 wave_size() { return LUTHIER_WAVE_SIZE; }

LUTHIER_INLINE u64 ballot(bool condition) {
#if LUTHIER_WAVE_SIZE == 64
    return __builtin_amdgcn_ballot_w64(condition);
#else
    return __builtin_amdgcn_ballot_w32(condition);
#endif
}

LUTHIER_INLINE u64 active_mask() { return ballot(true); }
LUTHIER_INLINE bool any(bool condition) { return ballot(condition) != 0; }
LUTHIER_INLINE bool all(bool condition) { return ballot(!condition) == 0; }

LUTHIER_INLINE u32 mbcnt(u64 mask) {
    u32 low = __builtin_amdgcn_mbcnt_lo(u32(mask), 0);
    return wave_size() == 32 ? low : __builtin_amdgcn_mbcnt_hi(u32(mask >> 32), low);
}

LUTHIER_INLINE u32 lane_id() { return mbcnt(~0ul); }
LUTHIER_INLINE bool is_first_lane() { return mbcnt(active_mask()) == 0; }

template <class T> LUTHIER_INLINE T read_first_lane(T x) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "values of 32 or 64 bits go from lane to lane");
    if constexpr (sizeof(T) == 4) {
        return __builtin_bit_cast(T, __builtin_amdgcn_readfirstlane(__builtin_bit_cast(int, x)));
    } else {
        u64 bits = __builtin_bit_cast(u64, x);
        u64 low = u32(__builtin_amdgcn_readfirstlane(int(u32(bits))));
        return __builtin_bit_cast(T, low | u64(u32(__builtin_amdgcn_readfirstlane(int(bits >> 32)))) << 32);
    }
}

template <class T> LUTHIER_INLINE T read_lane(T x, u32 number) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "values of 32 or 64 bits go from lane to lane");
    if constexpr (sizeof(T) == 4) {
        return __builtin_bit_cast(T, __builtin_amdgcn_readlane(__builtin_bit_cast(int, x), int(number)));
    } else {
        u64 bits = __builtin_bit_cast(u64, x);
        u64 low = u32(__builtin_amdgcn_readlane(int(u32(bits)), int(number)));
        return __builtin_bit_cast(T, low | u64(u32(__builtin_amdgcn_readlane(int(bits >> 32), int(number)))) << 32);
    }
}

template <class T> LUTHIER_INLINE T read_first_lane(lane<T> x) { return read_first_lane(x.value); }
template <class T> LUTHIER_INLINE T read_lane(lane<T> x, u32 number) { return read_lane(x.value, number); }

LUTHIER_INLINE bool is_lds(u64 address) { return __builtin_amdgcn_is_shared((const void *)address); }
LUTHIER_INLINE bool is_private(u64 address) { return __builtin_amdgcn_is_private((const void *)address); }

// -- bits and cycles --------------------------------------------------------------------------------------------------

LUTHIER_INLINE u32 popcount(u64 x) { return u32(__builtin_popcountll(x)); }
LUTHIER_INLINE u32 count_trailing_zeros(u32 x) { return x == 0 ? 32 : u32(__builtin_ctz(x)); }
LUTHIER_INLINE u32 count_trailing_zeros(u64 x) { return x == 0 ? 64 : u32(__builtin_ctzll(x)); }
LUTHIER_INLINE u16 as_bits(f16 x) { return __builtin_bit_cast(u16, x); }
LUTHIER_INLINE u32 as_bits(f32 x) { return __builtin_bit_cast(u32, x); }
LUTHIER_INLINE u64 as_bits(f64 x) { return __builtin_bit_cast(u64, x); }
LUTHIER_INLINE f16 from_bits(u16 x) { return __builtin_bit_cast(f16, x); }
LUTHIER_INLINE f32 from_bits(u32 x) { return __builtin_bit_cast(f32, x); }
LUTHIER_INLINE f64 from_bits(u64 x) { return __builtin_bit_cast(f64, x); }
LUTHIER_INLINE void pause() { __builtin_amdgcn_s_sleep(8); }
LUTHIER_INLINE u64 clock() { return __builtin_readcyclecounter(); }

// -- atomics, in every active lane, in the GPU's own memory, relaxed, seen by the whole GPU; the old value -------------

#define LUTHIER_ATOMIC(name, operation)                                                                                \
    template <class T> LUTHIER_INLINE T name(T *p, as_given<T> x) {                                                    \
        return __hip_atomic_##operation(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                             \
    }
LUTHIER_ATOMIC(atomic_add, fetch_add)
LUTHIER_ATOMIC(atomic_min, fetch_min)
LUTHIER_ATOMIC(atomic_max, fetch_max)
LUTHIER_ATOMIC(atomic_and, fetch_and)
LUTHIER_ATOMIC(atomic_or, fetch_or)
LUTHIER_ATOMIC(atomic_xor, fetch_xor)
LUTHIER_ATOMIC(atomic_exchange, exchange)
#undef LUTHIER_ATOMIC

template <class T> LUTHIER_INLINE T atomic_sub(T *p, as_given<T> x) { return atomic_add(p, T(-x)); }

template <class T> LUTHIER_INLINE T atomic_load(T *p) {
    return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// As the whole system sees it: what was written before a release is seen after an acquire that saw it.
template <class T> LUTHIER_INLINE T load_acquire(T *p) {
    return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
template <class T> LUTHIER_INLINE void store_release(T *p, as_given<T> x) {
    __hip_atomic_store(p, x, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

template <class T> LUTHIER_INLINE T atomic_cas(T *p, as_given<T> expected, as_given<T> x) {
    __hip_atomic_compare_exchange_strong(p, &expected, x, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return expected;
}

// -- channels ---------------------------------------------------------------------------------------------------------

namespace detail {
// The code of `push` takes the place of this when a hook is put together: all that it may read is in memory before it.
template <class Record>
__attribute__((device, used, noinline, annotate("luthier.push:"))) void send(u64 *cell, const Record &record) {
    asm volatile("" : : "v"(cell), "v"(&record) : "memory");
}
} // namespace detail

// A parameter that takes a Channel of a tool. A Record is a structure with the fields of the tool's own, by name and in
// their order; fields that each lane has for itself are lane<T>.
template <class Record> class channel {
    u64 *cell;

  public:
    channel() = delete;
    // A record for each active lane; one for the wave where it has a field that is lane<T>.
    LUTHIER_INLINE void push(const Record &record) const { detail::send(cell, record); }
};

} // namespace luthier
