"""Whole kernels: every sample, and kernels that clang compiles here, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from launching import compile_hip, device, launch, run_sample

RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory):
    """All the sources below in one code object."""
    return compile_hip(require_tool("clang-22"), tmp_path_factory.mktemp("kernels"), SOURCE)


def test_samples(sample):
    dev = device()
    assert run_sample(dev, sample)
    profile = dev.profile
    assert profile is not None and profile.kernel == sample.kernel
    assert profile.total >= profile.waves > 0 and profile.total_lanes <= 64 * profile.total


def test_samples_on_threads(sample):
    assert run_sample(device(threads=2), sample)


def test_nothing_is_left_allocated(sample):
    dev = device()
    before = len(dev.memory.table())
    run_sample(dev, sample)
    assert len(dev.memory.table()) == before


SOURCE = r"""
KERNEL void ids(u32 *out) {
  u32 w = DIM, h = __builtin_amdgcn_workgroup_size_y();
  u32 item = (Z * h + Y) * w + X, group = (GZ * 3 + GY) * 2 + GX;
  u32 items = w * h * __builtin_amdgcn_workgroup_size_z();
  out[group * items + item] = X | Y << 4 | Z << 8 | GX << 12 | GY << 16 | GZ << 20;
}
KERNEL void division(const i32 *a, const i32 *b, i32 *q, u32 *r, const i64 *c, const i64 *d, i64 *s, u64 *t) {
  u32 i = I;
  q[i] = a[i] / b[i]; r[i] = (u32)a[i] % (u32)b[i]; s[i] = c[i] / d[i]; t[i] = (u64)c[i] % (u64)d[i];
}
KERNEL void floats(const float *a, const float *b, float *out, const double *c, double *dout) {
  u32 i = I;
  out[4 * i] = a[i] / b[i]; out[4 * i + 1] = __builtin_sqrtf(a[i]); out[4 * i + 2] = __builtin_fmaf(a[i], b[i], 1.0f);
  out[4 * i + 3] = __builtin_floorf(a[i] * 10) + (float)(i32)b[i];
  dout[2 * i] = 1.0 / c[i]; dout[2 * i + 1] = __builtin_sqrt(c[i]) + c[i] * 3;
}
KERNEL void halves(const f16 *a, const f16 *b, f16 *out) {
  typedef f16 h2 __attribute__((ext_vector_type(2)));
  u32 i = I;
  h2 x = ((const h2 *)a)[i], y = ((const h2 *)b)[i];
  ((h2 *)out)[i] = x * y + y;
}
KERNEL void bytes(const u8 *in, u8 *out, const i16 *sin, i16 *sout) {
  u32 i = I;
  out[i] = (in[i] + in[i + 1] + 1) >> 1; sout[i] = sin[i] < 0 ? -sin[i] : sin[i] * 2;
}
KERNEL void switches(const u32 *in, u32 *out) {
  u32 x = in[I], y = 0;
  switch (x % 9) {
    case 0: y = x * 3; break; case 1: y = x ^ 0x55; break; case 2: while (x > 3) { x /= 3; ++y; } break;
    case 3: y = __builtin_popcount(x); break; case 4: y = __builtin_clz(x | 1); break;
    case 5: y = __builtin_bitreverse32(x); break;
    case 6: for (u32 j = 0; j < x % 17; ++j) { if (j == 11) break; y += j * x; } break; default: y = 7;
  }
  out[I] = y;
}
KERNEL void scan(const u32 *in, u32 *out) {
  SHARED u32 tile[256];
  u32 t = X; tile[t] = in[I]; BARRIER
  for (u32 d = 1; d < 256; d *= 2) { u32 v = t >= d ? tile[t - d] : 0; BARRIER tile[t] += v; BARRIER }
  out[I] = tile[t];
}
KERNEL void votes(const u32 *in, u64 *ballots, u32 *shuffled) {
  u32 i = I;
  u64 mask = __builtin_amdgcn_ballot_w64(in[i] & 1);
  if (X % 64 == 0) ballots[i / 64] = mask;
  u32 other = __builtin_amdgcn_ds_bpermute((X ^ 5) * 4, in[i]);
  u32 below = __builtin_amdgcn_mbcnt_hi(mask >> 32, __builtin_amdgcn_mbcnt_lo(mask, 0));
  shuffled[i] = other + __builtin_amdgcn_readfirstlane(in[i]) + below;
}
KERNEL void atomics(u32 *sum, u64 *wide, float *fsum, u32 *cas, const u32 *in) {
  u32 x = in[I];
  __atomic_fetch_add(sum, x, __ATOMIC_RELAXED);
  __atomic_fetch_max(wide, (u64)x << 20, __ATOMIC_RELAXED);
  __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) float *)fsum, (float)(x & 3));
  u32 seen = __atomic_load_n(cas, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(cas, &seen, seen * 3 + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) ;
}
KERNEL void locked(u32 *lock, u32 *counter) {
  if (X == 0) {
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) __builtin_amdgcn_s_sleep(1);
    *counter += 1;
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
  }
}
KERNEL void flags(volatile u32 *flag, u32 *out) {
  SHARED volatile u32 ready;
  u32 wave = X / 64;
  if (X == 0) ready = 0;
  BARRIER
  if (wave == 0) { while (!ready) ; out[GX * 2] = 1; } else if (X == 64) { ready = 1; out[GX * 2 + 1] = 2; }
  if (X == 0 && GX > 0) { while (flag[GX - 1] == 0) ; }
  if (X == 0) flag[GX] = 1;
}
KERNEL void registers(const u32 *in, u32 *out, u32 k) {
  typedef u32 v16 __attribute__((ext_vector_type(16)));
  v16 v;
  for (int j = 0; j < 16; ++j) v[j] = in[j * 64 + X];
  v[(k * 7) & 15] = 99;
  out[X] = v[k & 15] + v[(k + 3) & 15];
}
KERNEL void dynamic(u32 *out, u32 n) {
  extern SHARED u32 shared_words[];
  shared_words[X] = X * n; BARRIER
  out[I] = shared_words[(X + 1) % DIM];
}
struct Big { u32 a[20]; float f; u64 l; };
KERNEL void by_value(struct Big big, u64 *out) { out[X] = big.a[X % 20] + (u64)big.f + big.l; }
DEVICE u32 table[4] = {10, 20, 30, 40};
DEVICE u32 counter;
KERNEL void globals(u32 *out) { out[X] = table[X & 3]; __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); }
DEVICE __attribute__((noinline)) u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
struct __attribute__((packed)) Packed { u8 a; u32 b; u16 c; u64 d; i16 e; };
DEVICE __attribute__((noinline)) void fill(volatile struct Packed *p, u32 x) {
  p->a = x; p->b = x * 0x01010101u; p->c = x * 257; p->d = 0x0102030405060708ul * x; p->e = -(i32)x;
}
KERNEL void packed(u64 *out, u32 n) {
  volatile struct Packed p[4] = {};
  u32 i = X % n;
  fill(&p[i], X + 1);
  p[i].b += 1; p[i].c += 1; p[i].d += 1; p[i].e -= 1;
  u64 sum = 0;
  for (u32 k = 0; k < 4; ++k) sum += p[k].a + p[k].b + p[k].c + p[k].d + p[k].e;
  out[X] = sum;
}
KERNEL void recursion(u32 *out) { out[X] = fib(X % 12); }
"""


def u32(*shape, low=0, high=1 << 32):
    return RNG.integers(low, high, shape, dtype=np.uint64).astype(np.uint32)


def test_ids(compiled):
    out = np.zeros(2 * 3 * 2 * 4 * 3 * 5, np.uint32)
    launch(device(), compiled, "ids", [out], (2, 3, 2), (4, 3, 5))
    expected = [
        x | y << 4 | z << 8 | gx << 12 | gy << 16 | gz << 20
        for gz in range(2)
        for gy in range(3)
        for gx in range(2)
        for z in range(5)
        for y in range(3)
        for x in range(4)
    ]
    assert list(out) == expected


def test_division(compiled):
    a, b = u32(256).view(np.int32), u32(256).view(np.int32)
    b[b == 0] = 1
    c, d = (RNG.integers(-(1 << 62), 1 << 62, 256) for _ in range(2))
    d[::3] = RNG.integers(1, 1000, len(d[::3]))
    q, r, s, t = np.zeros(256, np.int32), np.zeros(256, np.uint32), np.zeros(256, np.int64), np.zeros(256, np.uint64)
    launch(device(), compiled, "division", [a, b, q, r, c, d, s, t], (4, 1, 1))
    np.testing.assert_array_equal(q, (a.astype(np.float64) / b).astype(np.int64).astype(np.int32))
    np.testing.assert_array_equal(r, a.view(np.uint32) % b.view(np.uint32))
    np.testing.assert_array_equal(
        s, [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(c, d, strict=True)]
    )
    np.testing.assert_array_equal(t, c.view(np.uint64) % d.view(np.uint64))


def test_floats(compiled):
    a, b = (RNG.uniform(0.001, 1000, 128).astype(np.float32) for _ in range(2))
    c = RNG.uniform(1e-200, 1e3, 128)
    out, dout = np.zeros((128, 4), np.float32), np.zeros((128, 2))
    launch(device(), compiled, "floats", [a, b, out, c, dout], (2, 1, 1))
    np.testing.assert_array_equal(out[:, 0], a / b)
    np.testing.assert_array_equal(out[:, 1], np.sqrt(a))
    np.testing.assert_allclose(out[:, 2], a.astype(np.float64) * b + 1, rtol=1e-7)
    np.testing.assert_array_equal(out[:, 3], np.floor(a * np.float32(10)) + np.trunc(b))
    np.testing.assert_array_equal(dout[:, 0], 1 / c)
    np.testing.assert_allclose(dout[:, 1], np.sqrt(c) + c * 3, rtol=1e-15)


def test_narrow_types(compiled):
    a, b = (RNG.normal(size=256).astype(np.float16) for _ in range(2))
    out = np.zeros(256, np.float16)
    launch(device(), compiled, "halves", [a, b, out], (2, 1, 1))
    np.testing.assert_array_equal(out, (a.astype(np.float64) * b + b).astype(np.float16))
    data, shorts = RNG.integers(0, 256, 257).astype(np.uint8), RNG.integers(-16000, 16000, 256).astype(np.int16)
    means, doubled = np.zeros(256, np.uint8), np.zeros(256, np.int16)
    launch(device(), compiled, "bytes", [data, means, shorts, doubled], (4, 1, 1))
    np.testing.assert_array_equal(means, (data[:-1].astype(int) + data[1:] + 1) // 2)
    np.testing.assert_array_equal(doubled, np.where(shorts < 0, -shorts, shorts * 2))


def switched(x):
    case = x % 9
    if case == 2:
        y = 0
        while x > 3:
            x, y = x // 3, y + 1
        return y
    if case == 6:
        return sum(j * x for j in range(min(x % 17, 11)))
    return {0: x * 3, 1: x ^ 0x55, 3: x.bit_count(), 4: 32 - (x | 1).bit_length(), 5: int(f"{x:032b}"[::-1], 2)}.get(
        case, 7
    )


def test_divergent_switch(compiled):
    data, out = u32(512), np.zeros(512, np.uint32)
    launch(device(), compiled, "switches", [data, out], (2, 1, 1), (256, 1, 1))
    assert list(out) == [switched(int(x)) & 0xFFFFFFFF for x in data]


def test_scan_with_barriers(compiled):
    data, out = u32(1024, high=1000), np.zeros(1024, np.uint32)
    launch(device(), compiled, "scan", [data, out], (4, 1, 1), (256, 1, 1))
    np.testing.assert_array_equal(out.reshape(4, 256), np.cumsum(data.reshape(4, 256), axis=1))


def test_votes_and_shuffles(compiled):
    data, ballots, shuffled = u32(128), np.zeros(2, np.uint64), np.zeros(128, np.uint32)
    launch(device(), compiled, "votes", [data, ballots, shuffled], (1, 1, 1), (128, 1, 1))
    for wave in range(2):
        part = data[64 * wave : 64 * wave + 64]
        mask = sum(int(x & 1) << i for i, x in enumerate(part))
        assert int(ballots[wave]) == mask
        below = np.array([(mask & (1 << i) - 1).bit_count() for i in range(64)], np.uint32)
        np.testing.assert_array_equal(shuffled[64 * wave : 64 * wave + 64], part[np.arange(64) ^ 5] + part[0] + below)


@pytest.mark.parametrize("threads", [1, 2])
def test_atomics(compiled, threads):
    data = u32(2048, high=1 << 20)
    total, wide, fsum, cas = (
        np.zeros(1, np.uint32),
        np.zeros(1, np.uint64),
        np.zeros(1, np.float32),
        np.zeros(1, np.uint32),
    )
    launch(device(threads=threads), compiled, "atomics", [total, wide, fsum, cas, data], (8, 1, 1), (256, 1, 1))
    assert total[0] == data.sum(dtype=np.uint32) and wide[0] == int(data.max()) << 20
    assert fsum[0] == (data & 3).sum()
    steps = 0
    for _ in range(2048):
        steps = steps * 3 + 1 & 0xFFFFFFFF
    assert cas[0] == steps


@pytest.mark.parametrize("threads", [1, 2])
def test_a_lock_between_work_groups(compiled, threads):
    lock, counter = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    launch(device(threads=threads, time_limit=60), compiled, "locked", [lock, counter], (100, 1, 1), (128, 1, 1))
    assert counter[0] == 100


@pytest.mark.parametrize("threads", [1, 2])
def test_waves_and_work_groups_that_wait_for_each_other(compiled, threads):
    flag, out = np.zeros(20, np.uint32), np.zeros(40, np.uint32)
    launch(device(threads=threads, time_limit=60), compiled, "flags", [flag, out], (20, 1, 1), (128, 1, 1))
    assert flag.all() and list(out) == [1, 2] * 20


def test_dynamic_register_index(compiled):
    data = u32(16, 64)
    for k in range(16):
        out = np.zeros(64, np.uint32)
        launch(device(), compiled, "registers", [data, out, k])
        changed = data.copy()
        changed[k * 7 & 15] = 99
        np.testing.assert_array_equal(out, changed[k & 15] + changed[k + 3 & 15])


def test_dynamic_lds(compiled):
    out = np.zeros(256, np.uint32)
    launch(device(), compiled, "dynamic", [out, 3], (2, 1, 1), (128, 1, 1), lds_bytes=512)
    np.testing.assert_array_equal(out, np.tile((np.arange(128) + 1) % 128 * 3, 2))


def test_arguments_by_value(compiled):
    out = np.zeros(64, np.uint64)
    big = np.arange(20, dtype=np.uint32).tobytes() + np.float32(100).tobytes() + bytes(4) + np.uint64(1 << 40).tobytes()
    launch(device(), compiled, "by_value", [big, out])
    np.testing.assert_array_equal(out, np.arange(64) % 20 + 100 + (1 << 40))


def test_global_variables(compiled):
    dev = device()
    module = dev.load(compiled)
    counter = module.variable("counter")
    kernel = module.kernel("globals")
    out = dev.alloc(256)
    for launches in (1, 2):
        dev.launch(kernel, (1, 1, 1), (64, 1, 1), out.address.to_bytes(8, "little"))
        assert int.from_bytes(dev.read(counter.address, counter.size), "little") == 64 * launches
    assert list(np.frombuffer(dev.read(out.address, 256), np.uint32)) == [10, 20, 30, 40] * 16


def test_words_of_scratch_need_not_be_aligned(compiled):
    """By scratch instructions, and by flat ones in a function that gets a pointer."""
    out, x = np.zeros(64, np.uint64), np.arange(1, 65, dtype=np.uint64)
    launch(device(), compiled, "packed", [out, 3])
    wide = x * np.uint64(0x0102030405060708)
    expected = x + (x * 0x01010101 & 0xFFFFFFFF) + 1 + (x * 257 + 1) + wide + 1 - x - 1
    assert np.array_equal(out, expected)


def test_recursion(compiled):
    out = np.zeros(64, np.uint32)
    launch(device(), compiled, "recursion", [out])
    fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    assert list(out) == [fib[i % 12] for i in range(64)]


def test_flushed_denormals(require_tool, tmp_path):
    """Built to flush denormals: division switches MODE inside."""
    source = (
        "KERNEL void ratio(const float *a, const float *b, float *o) { o[X] = a[X] / b[X]; o[64 + X] = a[X] * 0.25f; }"
    )
    data = compile_hip(require_tool("clang-22"), tmp_path, source, "-fgpu-flush-denormals-to-zero")
    a, b = np.full(64, 2e-38, np.float32), RNG.uniform(0.1, 10, 64).astype(np.float32)
    out = np.zeros(128, np.float32)
    launch(device(), data, "ratio", [a, b, out])
    expected = a / b
    np.testing.assert_array_equal(out[:64], np.where(np.abs(expected) < 1.1754944e-38, 0, expected))
    assert not out[64:].any()
