// Loops whose turns arguments and ids decide: for foreseen.py.
#define KERNEL extern "C" __attribute__((global)) void
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define ITEM __builtin_amdgcn_workitem_id_x()
typedef unsigned u32;
typedef unsigned long u64;

#define next(a) ((a) * (a) + 1.0f)

KERNEL argument(float *p, u64 n, u64 items) {
  float a = p[ITEM];
  for (u32 i = 0; i < (u32)n; i++) a = next(a);
  p[64 * GROUP + ITEM] = a;
}
KERNEL argument_of_64_bits(float *p, u64 n, u64 items) {
  float a = p[ITEM];
  for (u64 i = 0; i < n; i++) a = next(a);
  p[64 * GROUP + ITEM] = a;
}
KERNEL group(float *p, u64 n, u64 items) {
  float a = p[ITEM];
  for (u32 i = 0; i < GROUP; i++) a = next(a);
  p[64 * GROUP + ITEM] = a;
}
KERNEL lane(float *p, u64 n, u64 items) {
  float a = p[ITEM];
  u32 id = 64 * GROUP + ITEM;
  for (u32 i = 0; i < id; i++) a = next(a);
  p[id] = a;
}
KERNEL nest(float *p, u64 n, u64 items) {
  float a = p[ITEM];
  for (u32 i = 0; i < (u32)n; i++) {
    for (u32 j = 0; j < (u32)n; j++) a = next(a);
    a *= 3;
  }
  p[64 * GROUP + ITEM] = a;
}
KERNEL triangle(float *p, u64 n, u64 items) {
  float a = p[ITEM];
  for (u32 i = 0; i < (u32)n; i++) {
    for (u32 j = 0; j < i; j++) a = next(a);
    a *= 3;
  }
  p[64 * GROUP + ITEM] = a;
}
KERNEL grid_stride(float *p, u64 n, u64 items) {
  float a = 0;
  for (u64 i = 64 * GROUP + ITEM; i < 8 * items; i += items) a += p[i];
  p[64 * GROUP + ITEM] = a;
}
KERNEL every_sixteenth(float *p, u64 n, u64 items) {
  float a = p[ITEM];
  for (u32 i = 0; i < (u32)n; i++) {
    a = next(a);
    if (i % 16 == 3) __builtin_amdgcn_s_barrier();
  }
  p[64 * GROUP + ITEM] = a;
}
