"""WMMA and SWMMAC against NumPy's matmul in doubles, with elements placed as AMD's manuals and hip-fpsan have them.

There a lane is 16 * group + index: of A the index is a row, of B a column. Which of the depth a group's elements are is
``depth_of``; D's rows are ``row_of``.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from reference.small import FORMATS
from waves import run

from luthier_py.base.errors import Unsupported
from luthier_py.isa import instruction_set, target, vgpr

pytestmark = pytest.mark.usefixtures("compiled_fast")
RNG = np.random.default_rng(5)
WIDTHS = {"f32": 32, "f16": 16, "bf16": 16, "iu8": 8, "iu4": 4, "fp8": 8, "bf8": 8}
HALVES = [("f32", "f16"), ("f32", "bf16"), ("f16", "f16"), ("bf16", "bf16")]
SMALL = [("fp8", "fp8"), ("fp8", "bf8"), ("bf8", "fp8"), ("bf8", "bf8")]
A, B, C, D, INDEX = 0, 16, 40, 64, 80  # registers


def shapes(out_in, depths, sparse_depths=()):
    """(name, kinds, kind of C and D, depth, sparse)."""
    for (out, *kinds), depth in itertools.product(out_in, depths):
        yield f"v_wmma_{out}_16x16x{depth}_{'_'.join(kinds)}", (kinds * 2)[:2], out, depth, False
    for (out, *kinds), depth in itertools.product(out_in, sparse_depths):
        yield f"v_swmmac_{out}_16x16x{depth}_{'_'.join(kinds)}", (kinds * 2)[:2], out, depth, True


OLD = [*shapes(HALVES, [16]), *shapes([("i32", "iu8"), ("i32", "iu4")], [16])]
NEW = [*OLD, *shapes(HALVES, [], [32]), *shapes([("i32", "iu8")], [], [32]), *shapes([("i32", "iu4")], [32], [32, 64]),
       *shapes([("f32", *two) for two in SMALL], [16], [32])]
NEWEST = [*shapes([("f32", "f32")], [4]), *shapes(HALVES, [32], [64]), *shapes([("i32", "iu8")], [64], [128]),
          *shapes([("f32", *two) for two in SMALL], [64]), *shapes([("f32", "fp8", "bf8")], [128], [128]),
          *shapes([("f16", "bf8", "fp8")], [64, 128], [128])]
CASES = [(gpu, size, *shape) for gpu, sizes, rows in (
    ("gfx1100", (32, 64), OLD), ("gfx1151", (32,), OLD[:1]), ("gfx1201", (32, 64), NEW), ("gfx1250", (32,), NEWEST))
    for size in sizes for shape in rows]  # fmt: skip
BY_NIGHT = (("gfx1100", 32), ("gfx1151", 32), ("gfx1201", 64))  # other sizes and targets of the same shapes


class Bench:
    """How a target and a size of waves place matrices."""

    def __init__(self, gpu, size):
        self.isa = instruction_set(target(gpu), size)
        self.size, self.old = size, gpu.startswith("gfx11")

    def row_of(self, lane, number):
        if self.old:
            return number * (self.size // 16) + lane // 16
        if self.size == 32:
            return lane // 16 * 8 + number
        return (0, 8, 4, 12)[lane // 16] + number

    def depth_of(self, group, element, per_lane, depth, run):
        """None of lanes that hold nothing."""
        if self.old:
            return element
        if self.size == 32:
            return element // run * 2 * run + group * run + element % run
        blocks = depth // per_lane
        block = (0, 2, 1, 3)[group] if blocks == 4 else group
        return block * per_lane + element if block < blocks else None

    def registers_of(self, codes, width, run, dwords):
        """(row, k) to words of each lane; what no element is in is noise."""
        count, depth = codes.shape
        per_lane = dwords * 32 // width
        words = RNG.integers(0, 1 << 32, (dwords, 64), dtype=np.uint64)
        for lane, element in itertools.product(range(self.size), range(per_lane)):
            k = self.depth_of(lane // 16, element, per_lane, depth, run)
            if k is not None and k < depth:
                word, place = divmod(element * width, 32)
                mask = np.uint64((1 << width) - 1 << place)
                code = np.uint64(int(codes[lane % 16, k]) & (1 << width) - 1) << np.uint64(place)
                words[word, lane] = words[word, lane] & ~mask | code
        assert count == 16
        return words.astype(np.uint32)


def numbers(kind, shape, signed):
    """Codes, and what they are."""
    if kind.startswith("iu"):
        codes = RNG.integers(0, 1 << WIDTHS[kind], shape)
        return codes, np.where(codes >> WIDTHS[kind] - 1 & signed, codes - (1 << WIDTHS[kind]), codes)
    if kind in ("fp8", "bf8"):
        codes = RNG.integers(0, 0x50 if kind == "fp8" else 0x4C, shape) | RNG.integers(0, 2, shape) << 7
        return codes, np.array([float(FORMATS[kind].number(code) or 0) for code in range(256)])[codes]
    exact = RNG.normal(size=shape)
    codes = encoded(exact, kind)
    return codes, decoded(codes, kind)


def encoded(values, kind):
    if kind == "f16":
        return np.asarray(values, np.float16).view(np.uint16).astype(np.int64)
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.int64)
    return bits if kind == "f32" else bits + 0x7FFF + (bits >> 16 & 1) >> 16


def decoded(codes, kind):
    codes = np.asarray(codes)
    if kind == "i32":
        return codes.astype(np.uint32).view(np.int32).astype(np.float64)
    if kind == "f16":
        return codes.astype(np.uint16).view(np.float16).astype(np.float64)
    return (codes << (16 if kind == "bf16" else 0)).astype(np.uint32).view(np.float32).astype(np.float64)


def run_of(width, per_lane, longer=1):
    return min(per_lane, longer * 128 // width)


class Product:
    """One instruction with random matrices: what goes in, and what is to come out."""

    def __init__(self, bench, name, kinds, out, depth, sparse, modifiers=None):
        self.bench, self.out, self.sparse = bench, out, sparse
        self.op = next(op for op in bench.isa.ops if op.base == name.upper())
        self.dwords = {operand.name: operand.dwords for operand in self.op.operands}
        neg_lo, neg_hi = ((modifiers or {}).get(key, 0) for key in ("neg_lo", "neg_hi"))
        signed = [bool(neg_lo & 1), bool(neg_lo & 2)]
        depths = depth // 2 if sparse else depth, depth
        (self.a, a), (self.b, b) = (numbers(kind, (16, k), sign)
                                    for kind, k, sign in zip(kinds, depths, signed, strict=True))
        for number, (kind, matrix) in enumerate(zip(kinds, (a, b), strict=True)):
            if kind in ("f16", "bf16", "f32"):  # elements in lower and upper halves
                for element in range(2):
                    if (neg_lo, neg_hi if kind != "f32" else neg_lo)[element] >> number & 1:
                        matrix[:, element::2] *= -1
        self.vgprs = {}
        for first, codes, kind, source, longer in (
                (A, self.a, kinds[0], "src0", 1), (B, self.b, kinds[1], "src1", 1 + sparse)):
            width, dwords = WIDTHS[kind], self.dwords[source]
            placed = bench.registers_of(codes, width, run_of(width, dwords * 32 // width, longer), dwords)
            self.vgprs |= {first + i: words for i, words in enumerate(placed)}
        if sparse:
            a = self._whole(a, depth)
        c_codes = RNG.integers(-1000, 1000, (16, 16)) if out == "i32" else encoded(RNG.normal(size=(16, 16)), out)
        c = decoded(c_codes, out)
        self._place_addends(D if sparse else C, c_codes)
        if not sparse and neg_hi & 4:
            c = abs(c)
        if not sparse and neg_lo & 4 and out != "i32":
            c = -c
        self.expected = c + a @ b.T
        self.terms = abs(c) + abs(a) @ abs(b.T)  # by which sums are rounded, also where they cancel

    def _whole(self, kept, depth):
        """Two of each four; which, the index says (in the lanes of the pairs, but for gfx1250's deeper shapes, where
        the first half of the depth has the first 16 lanes)."""
        chosen = np.sort(RNG.random((16, depth // 4, 4)).argsort(2)[:, :, :2], 2)
        whole, half = np.zeros((16, depth)), self.bench.size == 32
        bits = depth // 2 if half else 2 * self._held(depth)
        words = np.zeros((64, 16), np.uint64)
        for i, four, which in itertools.product(range(16), range(depth // 4), range(2)):
            whole[i, 4 * four + chosen[i, four, which]] = kept[i, 2 * four + which]
            part, place = divmod(4 * four, bits)
            group = (0, 2, 1, 3)[part] if depth // bits == 4 else part
            words[i + 16 * group, (place + 2 * which) // 32] |= np.uint64(
                int(chosen[i, four, which]) << (place + 2 * which) % 32)
        self.index, self.index_bits = words, bits
        return whole

    def _held(self, depth):
        """Elements of A in a lane, of wave64."""
        return max(16 * (depth // 2) // 64, 8 if "IU4" in self.op.base else 0)

    def _place_addends(self, first, codes):
        words = RNG.integers(0, 1 << 32, (16, 64), dtype=np.uint64)
        for lane, number in itertools.product(range(self.bench.size), range(256 // self.bench.size)):
            code = np.uint64(int(codes[self.bench.row_of(lane, number), lane % 16]) & 0xFFFFFFFF)
            register, half = self.slot(number)
            if half is None:
                words[register, lane] = code
            else:
                kept = words[register, lane] & np.uint64(0xFFFF << 16 * (1 - half))
                words[register, lane] = kept | code << np.uint64(16 * half)
        self.vgprs |= {first + i: words[i].astype(np.uint32) for i in range(self.dwords["vdst"])}

    def slot(self, number):
        if self.out not in ("f16", "bf16"):
            return number, None
        return (number, 0) if self.bench.old else divmod(number, 2)

    def execute(self, key=0, result=D, half=0, neg_lo=0, neg_hi=0, **modifiers):
        """``result``: the first register of D. ``half``: op_sel of C and D."""
        self.result, result, isa = result, vgpr(result, self.dwords["vdst"]), self.bench.isa
        for number, has_half in enumerate((0, 0, half)):
            bits = neg_lo >> number & 1 | (neg_hi >> number & 1) << 1 | 4 * has_half
            modifiers |= {f"src{number}_modifiers": bits} if bits else {}
        sources = vgpr(A, self.dwords["src0"]), vgpr(B, self.dwords["src1"])
        if self.sparse:
            noise = RNG.integers(0, 1 << 32, (64, 16), dtype=np.uint64)
            keep = np.uint64((1 << self.index_bits) - 1 << key * self.index_bits & 0xFFFFFFFF)
            words = self.index << np.uint64(key * self.index_bits) & keep | noise & ~keep & np.uint64(0xFFFFFFFF)
            self.vgprs |= {INDEX + i: words[:, i].astype(np.uint32) for i in range(self.dwords["src2"])}
            modifiers |= {next(o.name for o in self.op.operands if "index_key" in o.name): key} if key else {}
            addend = vgpr(INDEX, self.dwords["src2"])
        else:
            addend = vgpr(C, self.dwords["src2"])
        inst = isa.make(self.op.base.lower(), result, *sources, addend, **modifiers)
        self.state = run([inst], vgprs=self.vgprs, exec_mask=0, isa=isa)
        actual = np.zeros((16, 16))
        for lane, number in itertools.product(range(self.bench.size), range(256 // self.bench.size)):
            register, place = self.slot(number)
            word = int(self.state.vgpr(self.result + register)[lane])
            code = word if place is None else word >> 16 * (place or half) & 0xFFFF
            actual[self.bench.row_of(lane, number), lane % 16] = decoded(code, self.out)
        return actual

    def check(self, actual):
        if self.out == "i32":
            np.testing.assert_array_equal(actual, self.expected)
        else:
            relative = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}[self.out]
            allowed = relative * (1 + abs(self.expected)) + 1e-6 * self.terms
            np.testing.assert_array_less(abs(actual - self.expected), allowed)


@pytest.mark.parametrize("gpu,size,name,kinds,out,depth,sparse", [
    pytest.param(*case, id=f"{case[0]}w{case[1]}_{case[2]}", marks=pytest.mark.slow if case[:2] in BY_NIGHT else ())
    for case in CASES])
def test_shape(gpu, size, name, kinds, out, depth, sparse):
    modifiers = {"neg_lo": 1} if out == "i32" else {}
    case = Product(Bench(gpu, size), name, kinds, out, depth, sparse, modifiers)
    case.check(case.execute(**modifiers))


@pytest.mark.parametrize("gpu,name,kinds,out,depth,sparse", [
    ("gfx1100", "v_wmma_f32_16x16x16_f16", ["f16", "f16"], "f32", 16, False),
    ("gfx1201", "v_wmma_f16_16x16x16_f16", ["f16", "f16"], "f16", 16, False),
    ("gfx1201", "v_wmma_f32_16x16x16_bf16", ["bf16", "bf16"], "f32", 16, False),
    ("gfx1201", "v_wmma_f32_16x16x16_fp8_bf8", ["fp8", "bf8"], "f32", 16, False),
    ("gfx1201", "v_swmmac_f32_16x16x32_f16", ["f16", "f16"], "f32", 32, True),
    ("gfx1250", "v_wmma_bf16_16x16x32_bf16", ["bf16", "bf16"], "bf16", 32, False),
    ("gfx1250", "v_wmma_f32_16x16x4_f32", ["f32", "f32"], "f32", 4, False),
    ("gfx1250", "v_wmma_f16_16x16x64_fp8_fp8", ["fp8", "fp8"], "f16", 64, False),
])  # fmt: skip
@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("bit", range(2))
def test_signs(gpu, name, kinds, out, depth, sparse, number, bit):
    """neg_lo and neg_hi of A and B, each half for itself; of C, sign and magnitude."""
    bench = Bench(gpu, 32)
    names = {operand.name: operand for operand in next(o for o in bench.isa.ops if o.base == name.upper()).operands}
    info = names.get(f"src{number}_modifiers")
    if info is None or not any(to <= bit < to + width for _, width, to in info.segments):
        pytest.skip("it has no such modifier")
    modifiers = {("neg_lo", "neg_hi")[bit]: 1 << number}
    case = Product(bench, name, kinds, out, depth, sparse, modifiers)
    case.check(case.execute(**modifiers))


@pytest.mark.parametrize("out", ["f16", "bf16"])
@pytest.mark.parametrize("size", [32, 64])
def test_half_of_the_registers(out, size):
    """op_sel of C: its upper halves are added to, those of D written, and the lower ones stay."""
    case = Product(Bench("gfx1100", size), f"v_wmma_{out}_16x16x16_{out}", [out, out], out, 16, False)
    before = {}
    for number in range(case.dwords["vdst"]):
        words = case.vgprs[C + number]
        case.vgprs[C + number] = words << np.uint32(16) | words >> np.uint32(16)
        before[number] = case.vgprs[D + number] = RNG.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
    case.check(case.execute(half=1))
    for number, words in before.items():
        np.testing.assert_array_equal(case.state.vgpr(D + number) & 0xFFFF, words[:size] & 0xFFFF)


@pytest.mark.parametrize("gpu,size,name,kinds,out,depth,key", [
    ("gfx1201", 32, "v_swmmac_f32_16x16x32_f16", ["f16", "f16"], "f32", 32, 1),
    *(("gfx1201", 64, "v_swmmac_f32_16x16x32_f16", ["f16", "f16"], "f32", 32, key) for key in (1, 2, 3)),
    ("gfx1201", 64, "v_swmmac_i32_16x16x64_iu4", ["iu4", "iu4"], "i32", 64, 1),
    ("gfx1201", 32, "v_swmmac_i32_16x16x32_iu8", ["iu8", "iu8"], "i32", 32, 1),
])  # fmt: skip
def test_index_key(gpu, size, name, kinds, out, depth, key):
    case = Product(Bench(gpu, size), name, kinds, out, depth, True)
    case.check(case.execute(key=key))


def test_a_key_where_the_index_has_all_bits_is_refused():
    case = Product(Bench("gfx1250", 32), "v_swmmac_f32_16x16x64_f16", ["f16", "f16"], "f32", 64, True)
    with pytest.raises(Unsupported, match="index key"):
        case.execute(key=1)


@pytest.mark.parametrize("signs", range(4))
@pytest.mark.parametrize("name,width,depth,sparse", [
    ("v_wmma_i32_16x16x16_iu8", 8, 16, False), ("v_wmma_i32_16x16x32_iu4", 4, 32, False),
    ("v_swmmac_i32_16x16x32_iu8", 8, 32, True), ("v_swmmac_i32_16x16x64_iu4", 4, 64, True),
])  # fmt: skip
def test_signs_of_integers(name, width, depth, sparse, signs):
    kinds = [f"iu{width}"] * 2
    case = Product(Bench("gfx1201", 32), name, kinds, "i32", depth, sparse, {"neg_lo": signs})
    case.check(case.execute(neg_lo=signs))


@pytest.mark.parametrize("gpu,name,count", [
    ("gfx1100", "v_wmma_i32_16x16x16_iu8", 16), ("gfx1201", "v_wmma_i32_16x16x16_iu8", 16),
    ("gfx1250", "v_wmma_i32_16x16x64_iu8", 64),
])  # fmt: skip
@pytest.mark.parametrize("start,sign", [((1 << 31) - 5, 1), (-(1 << 31) + 5, -1)])
@pytest.mark.parametrize("clamp", [0, 1])
def test_clamp(gpu, name, count, start, sign, clamp):
    """Sums beyond 32 bits saturate, or wrap."""
    bench = Bench(gpu, 32)
    op = next(op for op in bench.isa.ops if op.base == name.upper())
    size = {operand.name: operand.dwords for operand in op.operands}["src0"]
    ones, signed = np.full(64, 0x01010101, np.uint32), np.full(64, 0xFFFFFFFF if sign < 0 else 0x01010101, np.uint32)
    inst = bench.isa.make(name, vgpr(D, 8), vgpr(A, size), vgpr(B, size), vgpr(C, 8), clamp=clamp,
                          src0_modifiers=1, src1_modifiers=1)
    vgprs = {A + i: ones for i in range(size)} | {B + i: signed for i in range(size)}
    state = run([inst], vgprs=vgprs | {C + i: np.full(64, start & 0xFFFFFFFF, np.uint32) for i in range(8)},
                isa=bench.isa)
    total = start + sign * count
    limit = min(max(total, -(1 << 31)), (1 << 31) - 1)
    expected = (limit if clamp else total) & 0xFFFFFFFF
    assert {int(x) for i in range(8) for x in state.vgpr(D + i)[:32]} == {expected}


@pytest.mark.parametrize("negative_first", [False, True])
@pytest.mark.parametrize("name,ones,count", [("iu8", 0x01010101, 8), ("iu4", 0x11111111, 8)])
def test_sparse_sums_saturate_twice(name, ones, count, negative_first):
    """Each half of the depth for itself, as captured on gfx1201: what the second half takes back was cut off before."""
    isa = instruction_set(target("gfx1201"), 32)
    dwords = {"iu8": (2, 4), "iu4": (1, 2)}[name]
    lower = np.where((np.arange(64) % 32 >= 16) != negative_first, 0xFFFFFFFF, ones).astype(np.uint32)
    start = 1 << 31 if negative_first else (1 << 31) - 1
    inst = isa.make(f"v_swmmac_i32_16x16x32_{name}", vgpr(D, 8), vgpr(A, dwords[0]), vgpr(B, dwords[1]), vgpr(INDEX),
                    clamp=1, src0_modifiers=1)
    vgprs = {A + i: lower for i in range(2)} | {B + i: np.full(64, ones, np.uint32) for i in range(4)}
    vgprs |= {D + i: np.full(64, start, np.uint32) for i in range(8)} | {INDEX: np.zeros(64, np.uint32)}
    state = run([inst], vgprs=vgprs, isa=isa)
    expected = start + count if negative_first else start - count
    assert {int(x) for i in range(8) for x in state.vgpr(D + i)[:32]} == {expected}


@pytest.mark.parametrize("gpu", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("name,constant,bits", [
    ("f32_16x16x16_f16", 1.0, 0x3F800000), ("f32_16x16x16_bf16", -4.0, 0xC0800000), ("f16_16x16x16_f16", 0.5, 0x3800),
    ("i32_16x16x16_iu8", -7, 0xFFFFFFF9), ("f32_16x16x16_f16", 3, 3), ("bf16_16x16x16_bf16", 5, 5),
])  # fmt: skip
def test_constant_addend(gpu, name, constant, bits):
    """What no product changes, with 16 bits in each half."""
    isa, old = instruction_set(target(gpu), 32), gpu == "gfx1100"
    op = next(op for op in isa.ops if op.base == f"V_WMMA_{name}".upper())
    size = {operand.name: operand.dwords for operand in op.operands}
    inst = isa.make(f"v_wmma_{name}", vgpr(D, size["vdst"]), vgpr(A, size["src0"]), vgpr(B, size["src1"]), constant)
    state = run([inst], isa=isa)
    packed = name[:3] in ("f16", "bf1") and not old
    assert {int(x) for x in state.vgpr(D)[:32]} == {bits * 0x10001 if packed else bits}


@pytest.mark.parametrize("gpu,size", [("gfx1100", 32), ("gfx1201", 32), ("gfx1201", 64)])
@pytest.mark.parametrize("out", ["f32", "f16"])
@pytest.mark.parametrize("first", [A, A + 1, B, C - 3, C, C + 2])
def test_result_that_overlaps_sources(gpu, size, out, first):
    """All is read before anything is written."""
    case = Product(Bench(gpu, size), f"v_wmma_{out}_16x16x16_f16", ["f16", "f16"], out, 16, False)
    case.check(case.execute(result=first))


@pytest.mark.parametrize("a,b,c,expected", [
    (0x7C00, 0x3C00, 0x3F800000, "inf"), (0x7C00, 0x0000, 0x3F800000, "nan"), (0xFC00, 0x3C00, 0x7F800000, "nan"),
    (0x7E01, 0x3C00, 0, "nan"), (0x8000, 0x3C00, 0x80000000, "-0.0"), (0x8000, 0x3C00, 0, "0.0"),
    (0x0001, 0x3C00, 0, str(16 * 2.0**-24)), (0x0001, 0x0001, 0x80000001, str(16 * 2.0**-48)),
])  # fmt: skip
@pytest.mark.parametrize("gpu", ["gfx1100", "gfx1201"])
def test_special_numbers(gpu, a, b, c, expected):
    """The same number in all of A, another in all of B: infinities, NaN, zeros and denormals."""
    isa = instruction_set(target(gpu), 32)
    size = 8 if gpu == "gfx1100" else 4
    inst = isa.make("v_wmma_f32_16x16x16_f16", vgpr(D, 8), vgpr(A, size), vgpr(B, size), vgpr(C, 8))
    fill = {A: a * 0x10001, B: b * 0x10001, C: c}
    vgprs = {first + i: np.full(64, bits, np.uint32) for first, bits in fill.items() for i in range(8)}
    state = run([inst], vgprs=vgprs, isa=isa)
    results = state.vgpr(D, np.float32)[:32].astype(np.float64)
    np.testing.assert_array_equal(results, np.full(32, float(expected)))
    np.testing.assert_array_equal(np.signbit(results[~np.isnan(results)]), np.signbit(float(expected)))


def test_sums_of_small_ones_are_rounded_at_each_step():
    """1 + 2**-24 sixteen times is 1, since each step rounds to even; a sum in doubles would round once."""
    isa = instruction_set(target("gfx1201"), 32)
    inst = isa.make("v_wmma_f32_16x16x16_f16", vgpr(D, 8), vgpr(A, 4), vgpr(B, 4), 1.0)
    vgprs = {A + i: np.full(64, 0x00010001, np.uint32) for i in range(4)}
    vgprs |= {B + i: np.full(64, 0x3C003C00, np.uint32) for i in range(4)}
    assert set(run([inst], vgprs=vgprs, isa=isa).vgpr(D, np.float32)[:32]) == {1.0}
