"""Floats of hooks compute alike whatever MODE the application has, and MODE is the application's afterwards."""

from __future__ import annotations

import struct

import pytest
from emulated import ISA, Bench, code_object

from luthier_py import Mutator, Tool, Variable, f16, f32, f64, hook, i32, ptr, sgpr, u32
from luthier_py.base.errors import HookError
from luthier_py.binary.loader import load
from luthier_py.intrinsics import as_bits
from luthier_py.isa import instruction_set, target, vgpr
from luthier_py.isa.properties.vector_modes import compute_written_mode_bits, field_bits, float_fields, mode_field
from luthier_py.program.analysis import fields_unlike_plain
from luthier_py.program.ir import Instr
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Hooks

A, B, OTHER = sgpr(20), sgpr(21), sgpr(22)
ROUNDING, BOTH_ROUNDINGS, DENORMALS = mode_field(0, 2), mode_field(0, 4), mode_field(4, 4)
CLAMP, IEEE, OVERFLOW = mode_field(8, 1), mode_field(9, 1), mode_field(23, 1)
SEEN = [("s_getreg_b32", sgpr(10), 1 | 31 << 11), ("v_mov_b32", vgpr(3), sgpr(10)), ("v_mov_b32", vgpr(2), 0),
        ISA.make("global_store_dword", vgpr(2), vgpr(3), sgpr(0, 2)).raw, ("s_endpgm",)]
WAYS = {
    "as kernels start": [],
    "to zero": [("s_setreg_imm32_b32", ROUNDING, 3)],
    "up": [("s_setreg_imm32_b32", BOTH_ROUNDINGS, 5)],
    "down, from a register": [("s_mov_b32", OTHER, 10), ("s_setreg_imm32_b32", BOTH_ROUNDINGS, 10),
                              ("s_setreg_imm32_b32", BOTH_ROUNDINGS, 0), ("s_setreg_b32", BOTH_ROUNDINGS, OTHER)],
    "no denormals": [("s_setreg_imm32_b32", DENORMALS, 0)],
    "no denormals as results": [("s_setreg_imm32_b32", DENORMALS, 5)],
    "DX10_CLAMP": [("s_setreg_imm32_b32", CLAMP, 0)],
    "IEEE": [("s_setreg_imm32_b32", IEEE, 0)],
    "FP16_OVFL": [("s_setreg_imm32_b32", OVERFLOW, 1)],
    "down, NaN stays, FP16_OVFL": [("s_setreg_imm32_b32", BOTH_ROUNDINGS, 10), ("s_setreg_imm32_b32", CLAMP, 0),
                                   ("s_setreg_imm32_b32", OVERFLOW, 1)],
}
FIELDS = {  # that a hook's floats find otherwise: of rounding and denormals, of NaN, of overflow
    "as kernels start": (), "DX10_CLAMP": (1,), "IEEE": (1,), "FP16_OVFL": (2,),
    "down, NaN stays, FP16_OVFL": (0, 1, 2),
}


class Floats(Tool):
    """Quotients that rounding changes, one that is a denormal, and one too large for f16."""

    found = Variable(u32, 5)

    @hook
    def compute(found: ptr[u32], a: u32, b: u32) -> None:
        quotient = f32(a) / f32(b)
        found[0] = u32(i32(quotient * f32(3.0)))
        found[1] = u32(f32(f64(a) / f64(b)) * f32(8388608.0))
        small = quotient * f32(1e-38) * f32(1e-3)
        found[2] = u32(small * f32(1e30) * f32(1e13))
        found[3] = a // b
        found[4] = u32(f32(f16(quotient * f32(60000.0))) > f32(1e9))

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                if instr.inst.op.base == "S_NOP":
                    m.before(instr, self.compute, self.found, A, B)


SMALL = 2.0**-80


class Rounded(Tool):
    """Sums and a product, as the application rounds them."""

    found = Variable(u32, 4)

    @hook(mode="application")
    def compute(found: ptr[u32], one: f32, small: f32) -> None:
        found[0] = as_bits(one + small * 3)
        found[1] = as_bits(one + small)
        found[2] = as_bits(-one - small)
        found[3] = as_bits(small * (small * SMALL))

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                if instr.inst.op.base == "S_NOP":
                    m.before(instr, self.compute, self.found, A, B)


ONE, NEXT, MINUS, TINY = 0x3F800000, 0x3F800001, 0x80000000, 1 << 149 - 130
SUMS = {  # 1 + 3/4 ulp, 1 + 1/4 ulp, -1 - 1/4 ulp, 2**-130
    "as kernels start": (NEXT, ONE, ONE | MINUS, TINY), "to zero": (ONE, ONE, ONE | MINUS, TINY),
    "up": (NEXT, NEXT, ONE | MINUS, TINY), "down, from a register": (ONE, ONE, NEXT | MINUS, TINY),
    "no denormals": (NEXT, ONE, ONE | MINUS, 0), "no denormals as results": (NEXT, ONE, ONE | MINUS, 0),
    "DX10_CLAMP": (NEXT, ONE, ONE | MINUS, TINY), "IEEE": (NEXT, ONE, ONE | MINUS, TINY),
    "FP16_OVFL": (NEXT, ONE, ONE | MINUS, TINY), "down, NaN stays, FP16_OVFL": (ONE, ONE, NEXT | MINUS, TINY),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_floats_of_hooks_in_the_applications_mode(way):
    start = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("s_mov_b32", A, ONE),
             ("s_mov_b32", B, 127 - 25 << 23)]
    data = code_object({"k": [*start, *WAYS[way], ("s_nop", 0), *SEEN]})
    made, bench = instrument(data, Rounded(), kernels=["k"]), Bench(bytes(4))
    before, after = bench.run(data, "k"), bench.run(made.data, "k.luthier")
    assert after[Rounded.found] == SUMS[way]
    assert after.buffers == before.buffers
    assert sum("SETREG" in inst.op.base for inst in written(made)) == sum("setreg" in name for name, *_ in WAYS[way])


def test_integers_are_not_divided_in_it():
    @hook(mode="application")
    def divide(found: ptr[u32], a: u32, b: u32) -> None:
        found[0] = a // b + a % 8

    class Divides(Rounded):
        compute = divide

    with pytest.raises(HookError, match="integers are divided with floats"):
        instrument(kernel("up"), Divides(), kernels=["k"])
    with pytest.raises(HookError, match="mode='mine' is unknown; choose one of own, application"):
        hook(mode="mine")(divide.function)


def kernel(way):
    start = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("s_mov_b32", A, 7), ("s_mov_b32", B, 3)]
    return code_object({"k": [*start, *WAYS[way], ("s_nop", 0), ("s_nop", 1), *SEEN]})


@pytest.mark.parametrize("way", WAYS)
def test_floats_of_hooks_do_not_depend_on_the_applications_mode(way):
    data, bench = kernel(way), Bench(bytes(4))
    made = instrument(data, Floats(), kernels=["k"])
    before, after = bench.run(data, "k"), bench.run(made.data, "k.luthier")
    assert after[Floats.found] == (7, 19573418, 233, 2, 1)
    assert after.buffers == before.buffers and struct.unpack("<I", before.buffers[0])[0]
    own = sum("setreg" in name for name, *_ in WAYS[way])
    added = sum("SETREG" in inst.op.base for inst in written(made)) - own
    fields = len(FIELDS.get(way, (0,)))
    assert added == 2 * (fields + (fields > 0))  # of two calls; all fields are put back at once


def written(made):
    """Instructions of the clone."""
    linked = load(made.data)
    for source in made.patched.maps:
        symbol, at = linked.symbol(source.chunk), 0
        code = linked.read(symbol.address, symbol.size)
        while at < len(code):
            inst = ISA.decode(code, at)
            yield inst
            at += inst.size_bytes


def test_writes_of_a_field_and_other_descriptors_count():
    fields = float_fields(ISA.target)
    for way in WAYS:
        program = instrument(kernel(way), Floats(), kernels=["k"]).program
        (k,) = [k for k in program.kernels if k.name == "k"]
        descriptor = k.record.descriptor
        found = fields_unlike_plain(ISA.target, [descriptor], [k.function])
        assert found == tuple(fields[k] for k in FIELDS.get(way, (0,))), way
        for name, value, field in (
                ("float_denorm_mode_32", 0, 0), ("float_round_mode_16_64", 1, 0), ("enable_dx10_clamp", 0, 1),
                ("enable_ieee_mode", 0, 1), ("fp16_ovfl", 1, 2)):
            others = [descriptor, descriptor.replace(**{name: value})]
            assert {*fields_unlike_plain(ISA.target, others, [k.function])} == {*found, fields[field]}, name


class Skips(Tool):
    """Leaves out the product where a hook says so, which it never does."""

    @hook
    def never() -> u32:
        return u32(0)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                if instr.inst.op.base == "V_MUL_F32":
                    self.visit(m, instr)

    def visit(self, m: Mutator, instr: Instr) -> None:
        m.skip_if(instr, self.never)


class Writes(Skips):
    """The same product again, as text."""

    def visit(self, m: Mutator, instr: Instr) -> None:
        m.insert("v_mul_f32_e32 v3, v5, v4", after=instr, writes=vgpr(3))


@pytest.mark.parametrize("tool", [Skips, Writes])
def test_instructions_of_the_application_and_text_compute_as_it_does(tool):
    data = code_object({"k": [
        ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("s_setreg_imm32_b32", DENORMALS, 0),
        ("v_mov_b32", vgpr(3), 0x00800000), ("v_mov_b32", vgpr(4), 0x3F000000), ("v_mov_b32", vgpr(5), vgpr(3)),
        ISA.make("v_mul_f32_e32", vgpr(3), vgpr(3), vgpr(4)).raw, ("v_mov_b32", vgpr(2), 0),
        ISA.make("global_store_dword", vgpr(2), vgpr(3), sgpr(0, 2)).raw, ("s_endpgm",)]})
    made, bench = instrument(data, tool(), kernels=["k"]), Bench(bytes(4))
    assert bench.run(made.data, "k.luthier").buffers == bench.run(data, "k").buffers == (bytes(4),)


@pytest.mark.parametrize(("name", "bits"), [
    ("gfx803", (0xFF, 0x300)), ("gfx900", (0xFF, 0x300, 1 << 23)), ("gfx1100", (0xFF, 0x300, 1 << 23)),
    ("gfx1201", (0xFF, 1 << 23)), ("gfx1250", (0xFF, 1 << 23)),
])
def test_fields_of_each_generation(name: str, bits: tuple[int, ...]) -> None:
    assert tuple(map(field_bits, float_fields(target(name)))) == bits


@pytest.mark.parametrize(("name", "text", "bits"), [
    ("gfx900", "s_setreg_b32 hwreg(HW_REG_MODE), s0", 0xFFFFFFFF),
    ("gfx900", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 2), 0", 3 << 23),
    ("gfx900", "s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS), 0", 0), ("gfx900", "s_getreg_b32 s0, hwreg(HW_REG_MODE)", 0),
    ("gfx900", "s_setvskip 0, 0", 0), ("gfx1030", "s_round_mode 0x0", 0xF), ("gfx1030", "s_denorm_mode 0x0", 0xF0),
    ("gfx1250", "s_set_vgpr_msb 1", 0), ("gfx1250", "v_add_f32 v0, v1, v2", 0),
])
def test_bits_of_mode_that_instructions_write(name: str, text: str, bits: int) -> None:
    assert compute_written_mode_bits(instruction_set(target(name)).parse(text)) == bits


NATIVE = r"""
#include <luthier/hooks.h>
using namespace luthier;
LUTHIER_HOOK() void compute(u32 *found, u32 nan, u32 one) {
    float x = __builtin_bit_cast(float, nan), y = __builtin_bit_cast(float, one);
    found[0] = __builtin_bit_cast(u32, __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f));
    found[1] = __builtin_bit_cast(u32, __builtin_fminimum_numf(x, y));
}
"""


@pytest.mark.parametrize("nan", [0x7FC00000, 0x7F800001])
def test_nan_in_hooks_does_not_depend_on_the_applications_mode(nan: int, require_tool, monkeypatch) -> None:
    """A clamp of NaN is 0 (DX10_CLAMP); a minimum of a number and any NaN is the number (LLVM, minimumnum), which IEEE
    mode has of a signalling NaN only where that is made quiet before."""
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))

    class Nan(Floats):
        compute = Hooks.from_hip(NATIVE).compute

    start = [("s_mov_b32", A, nan), ("s_mov_b32", B, ONE)]
    for way in ("as kernels start", "DX10_CLAMP", "IEEE"):
        data = code_object({"k": [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), *start, *WAYS[way],
                                  ("s_nop", 0), *SEEN]})
        made, bench = instrument(data, Nan(), kernels=["k"]), Bench(bytes(4))
        before, after = bench.run(data, "k"), bench.run(made.data, "k.luthier")
        assert after[Nan.found][:2] == (0, ONE), way
        assert after.buffers == before.buffers
