"""Replaces fused multiply-adds of floats by their emulation in double, and counts where other ways to round differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from luthier_py import Lane, LaunchResult, Mutator, Reg, Tool, Variable, device, f32, f64, hook, ptr, u32, u64
from luthier_py.intrinsics import active_mask, as_bits, atomic_add, ballot, from_bits, is_first_lane, popcount
from luthier_py.isa import Operand, OperandKind
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import SUM, InstrPlace, InstrPlaces, Omission, RowsBy, left_out_lines, left_out_rows

FUSED = "v_fma_f32", "v_fmac_f32_e32", "v_fmac_f32_e64"
PACKED = "v_pk_fma_f32"
COUNTS = 3  # lanes that computed; of those, in which separate rounding differs, and rounding in double first
NEG, ABS, FROM_HIGH, TO_HIGH_FROM_HIGH = 1, 2, 4, 8  # of an operand's modifiers, as LLVM numbers them


@device
def rounded_to_odd(product: Lane[f64], addend: Lane[f64]) -> Lane[f64]:
    """The sum of both, cut, with its last bit set where that is not exact: rounded again to 51 bits or fewer, it is
    what the exact sum is when rounded once (Boldo and Melquiond, 2008). The error of a sum is a double (Knuth)."""
    total = product + addend
    back = total - product
    rest = (product - (total - back)) + (addend - back)
    bits = as_bits(total)
    if bits & 1 == 0:
        if rest > 0:
            bits = bits + 1 if total > 0 else bits - 1
        elif rest < 0:
            bits = bits - 1 if total > 0 else bits + 1
    return from_bits(bits)


@device
def changed(x: Lane[f32], modifiers: u32) -> Lane[f32]:
    bits = as_bits(x)
    if modifiers & 2 != 0:
        bits = bits & u32(0x7FFFFFFF)
    if modifiers & 1 != 0:
        bits = bits ^ u32(0x80000000)
    return from_bits(bits)


@device
def fused(a: Lane[f32], b: Lane[f32], c: Lane[f32], counts: ptr[u64]) -> Lane[f32]:
    """``a * b`` has 48 bits at most, which a double holds."""
    product, addend = f64(a) * f64(b), f64(c)
    result = f32(rounded_to_odd(product, addend))
    active = popcount(active_mask())
    separately = ballot(as_bits(a * b + c) != as_bits(result))
    twice = ballot(as_bits(f32(product + addend)) != as_bits(result))
    if is_first_lane():
        atomic_add(counts, u64(active))
        if separately != 0:
            atomic_add(counts + 1, u64(popcount(separately)))
        if twice != 0:
            atomic_add(counts + 2, u64(popcount(twice)))
    return result


@hook(fold=("modifiers",))
def one(a: Lane[f32], b: Lane[f32], c: Lane[f32], modifiers: u32, counts: ptr[u64]) -> Lane[f32]:
    return fused(changed(a, modifiers), changed(b, modifiers >> 2), changed(c, modifiers >> 4), counts)


@hook(fold=("modifiers",))
def two(
    a: Lane[f32], b: Lane[f32], c: Lane[f32], d: Lane[f32], e: Lane[f32], f: Lane[f32], modifiers: u32, counts: ptr[u64]
) -> tuple[Lane[f32], Lane[f32]]:
    low = fused(changed(a, modifiers), changed(b, modifiers >> 2), changed(c, modifiers >> 4), counts)
    high = fused(changed(d, modifiers >> 6), changed(e, modifiers >> 8), changed(f, modifiers >> 10), counts)
    return low, high


@dataclass(frozen=True, slots=True)
class Sites:
    """Of one program."""

    replaced: tuple[InstrPlace, ...]
    left_out: tuple[Omission, ...]
    counts: Variable


class FmaInDouble(Tool):
    """Fused multiply-adds in single precision, computed in double and rounded once: the same results, and how often
    others would have come of rounding the product, or of rounding twice."""

    name = "fma_in_double"
    cacheable = True
    amounts = {"instructions": RowsBy(("pc",), {
        "results": SUM.of("lanes that computed"), "differ_separately": SUM.of("of these, where two roundings differ"),
        "differ_twice": SUM.of("of these, where rounding in double first differs")})}

    def instrument(self, m: Mutator) -> Sites:
        found = [instr for function in m.functions() for instr in m.instrs(function) if is_fused(instr)]
        counts = Variable(u64, max(len(found), 1) * COUNTS, name="FmaInDouble.counts")
        places, replaced = InstrPlaces(m.program), list[InstrPlace]()
        for instr in found:
            if replaceable(instr):
                self.put(m, instr, counts[len(replaced) * COUNTS])
                replaced.append(places.of(instr))
            else:
                places.leave_out(instr, "its result is clamped or multiplied, or a packed operand is a constant")
        return Sites(tuple(replaced), places.left_out, counts)

    def put(self, m: Mutator, instr: Instr, counts: Any) -> None:
        sources = sources_of(instr)
        if instr.op.mnemonic != PACKED:
            modifiers = (modifiers_of(instr, number) & (NEG | ABS) for number in range(3))
            word = sum(bits << 2 * number for number, bits in enumerate(modifiers))
            m.replace(instr, one, *sources, word, counts)
            return
        low, high = halves(instr, sources, FROM_HIGH), halves(instr, sources, TO_HIGH_FROM_HIGH)
        bits = [modifiers_of(instr, number) for number in range(3)]
        word = sum((bit & NEG) << 2 * number | (bit >> 1 & NEG) << 6 + 2 * number for number, bit in enumerate(bits))
        (into,) = (operand.reg for operand in instr.inst.operands if operand.name == "vdst")
        assert into is not None
        m.replace(instr, two, *low, *high, word, counts, into=(part(into, 0), part(into, 1)))

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Sites = launch.notes
        return {"instructions": list(_rows(notes, launch[notes.counts])), "left_out": left_out_rows(notes.left_out)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [self.headline(launch), f"  {'pc':>10} {'results':>12} {'separate':>12} {'twice':>12}"]
        for row in report["instructions"]:
            numbers = f"{row['results']:12} {row['differ_separately']:12} {row['differ_twice']:12}"
            lines.append(f"  {row['pc']:#10x} {numbers}  {row['instruction']}{_at(row['line'])}")
        return "\n".join([*lines, *left_out_lines(report["left_out"])])


def is_fused(instr: Instr) -> bool:
    return instr.op.mnemonic in (*FUSED, PACKED)


def replaceable(instr: Instr) -> bool:
    """Whether its result is that of the operation, and a packed one's operands are registers."""
    changes = [operand.value for operand in instr.inst.operands if operand.name in ("clamp", "omod")]
    constant = any(operand.kind is OperandKind.CONSTANT for operand in sources_of(instr))
    return not any(changes) and not (instr.op.mnemonic == PACKED and constant)


def sources_of(instr: Instr) -> list[Operand]:
    """What is multiplied, and what is added."""
    third = "src2" if instr.inst.find("src2") is not None else "vdst"
    return [instr.inst[name] for name in ("src0", "src1", third)]


def modifiers_of(instr: Instr, number: int) -> int:
    found = instr.inst.find(f"src{number}_modifiers")
    return 0 if found is None else found.value


def halves(instr: Instr, sources: list[Operand], bit: int) -> list[Reg]:
    """The dwords of a packed operation's operands that make one half of its result."""
    found = []
    for number, operand in enumerate(sources):
        assert operand.reg is not None
        found.append(part(operand.reg, int(bool(modifiers_of(instr, number) & bit))))
    return found


def part(reg: Reg, dword: int) -> Reg:
    return Reg(reg.file, reg.index + dword, 1)


def _at(line: str | None) -> str:
    return f"  ({line})" if line else ""


def _rows(notes: Sites, counts: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for number, place in enumerate(notes.replaced):
        results, separately, twice = counts[number * COUNTS : (number + 1) * COUNTS]
        yield {**place.facts(), "results": results, "differ_separately": separately, "differ_twice": twice}
