// Every shape of LDS access once, at addresses that the caller gives for each work-item.
#include "device.h"

#define LOAD(type, name, instruction)                                                                                  \
  type name;                                                                                                           \
  asm volatile(instruction "\n\ts_waitcnt lgkmcnt(0)" : "=v"(name) : "v"(at) : "memory")
#define STORE(instruction, ...) asm volatile(instruction "\n\ts_waitcnt lgkmcnt(0)" : : "v"(at), __VA_ARGS__ : "memory")

typedef unsigned long long u64;
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x3 __attribute__((ext_vector_type(3)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

// A work-item's address is its element of addresses, times unit; it takes no part if that is 12 KiB or more. All bytes
// are 1, and stores keep them so, whatever the addresses; what the atomics leave is not looked at.
KERNEL void __launch_bounds__(64) lds_widths(u32 unit, const u32 *addresses, u32 *out) {
  __shared__ u32 words[4096];
  u32 t = thread_x(), at = addresses[global_x()] * unit, sum = 0;
  for (u32 i = t; i < 4096; i += 64)
    words[i] = 0x01010101;
  sync_threads();
  if (at < 12288) {
    at += (u32)(u64)(__attribute__((address_space(3))) u32 *)words;
    LOAD(u32, byte, "ds_read_u8 %0, %1 offset:5");
    LOAD(u32, half, "ds_read_u16 %0, %1 offset:2");
    LOAD(u32, word, "ds_read_b32 %0, %1 offset:64");
    LOAD(u32x2, two, "ds_read_b64 %0, %1 offset:16");
    LOAD(u32x3, three, "ds_read_b96 %0, %1");
    LOAD(u32x4, four, "ds_read_b128 %0, %1 offset:1024");
    LOAD(u32x2, pair, "ds_read2_b32 %0, %1 offset0:1 offset1:32");
    LOAD(u32x4, wide_pair, "ds_read2_b64 %0, %1 offset0:3 offset1:10");
    LOAD(u32x2, far_pair, "ds_read2st64_b32 %0, %1 offset0:2 offset1:1");
    LOAD(u32x4, far_wide_pair, "ds_read2st64_b64 %0, %1 offset1:4");
    STORE("ds_write_b8 %0, %1 offset:3", "v"(byte));
    STORE("ds_write_b16 %0, %1", "v"(half));
    STORE("ds_write_b32 %0, %1 offset:8", "v"(word));
    STORE("ds_write_b64 %0, %1 offset:8", "v"(two));
    STORE("ds_write_b96 %0, %1 offset:16", "v"(three));
    STORE("ds_write_b128 %0, %1 offset:16", "v"(four));
    STORE("ds_write2_b32 %0, %1, %1 offset1:33", "v"(word));
    STORE("ds_write2_b64 %0, %1, %1 offset0:1 offset1:2", "v"(two));
    STORE("ds_write2st64_b32 %0, %1, %1 offset1:3", "v"(word));
    sum = byte + half + word + two.x + two.y + three.x + three.z + four.x + four.w + pair.x + pair.y + wide_pair.x +
          wide_pair.w + far_pair.x + far_pair.y + far_wide_pair.x + far_wide_pair.w;
    at &= ~7u; // atomics must be aligned
    STORE("ds_add_u32 %0, %1 offset:12", "v"(t));
    STORE("ds_add_u64 %0, %1", "v"((u64)t));
    u32 old;
    asm volatile("ds_or_rtn_b32 %0, %1, %2\n\ts_waitcnt lgkmcnt(0)" : "=v"(old) : "v"(at), "v"(0) : "memory");
  }
  out[global_x()] = sum;
}
