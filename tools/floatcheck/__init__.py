"""Says where NaNs, infinities and denormals are made, passed on, or taken as zeros, and where a sum cancels.

Behind each instruction that makes floats a hook looks at bits of results and operands. What the instruction overwrites
of its operands a hook before it has put into memory of the wave. Before those that lose denormals whatever MODE says
one looks at the operands.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from luthier_py import (
    LaunchResult,
    LaunchVariable,
    Mutator,
    Option,
    Reg,
    RegFile,
    Tool,
    Variable,
    WaveVariable,
    computed,
    u32,
    u64,
)
from luthier_py.isa import EXEC, OperandKind, RegSet, Target, sgpr
from luthier_py.isa.properties.float_results import FloatFormat, FloatPart, FloatResult, ends_division, float_results
from luthier_py.isa.properties.lost_denormals import find_flushed_denormals
from luthier_py.isa.semantics.operand_parts import constant_of
from luthier_py.program.ir import Function, Instr
from luthier_py.rewrite.tool import (
    FIRST,
    SAME,
    CountsBy,
    InstrPlace,
    InstrPlaces,
    Omission,
    RowsBy,
    combined,
    group_and_wave,
    left_out_lines,
    left_out_rows,
    number_waves,
    place_text,
)
from luthier_py.tools.floatcheck.device import (
    DENORMAL_LOST,
    KEPT,
    KINDS,
    Example,
    check,
    high_half,
    keep,
    kept,
    lose,
    low_half,
    pair,
    whole,
)
from luthier_py.tools.floatcheck.numbers import number, operand

MOST_OPERANDS = 3
LOST = KINDS[DENORMAL_LOST]
FAULTS = {"nan", "infinity", "division_by_zero", LOST}
"""That are findings; the others are made on purpose, or passed on."""
WHOLE = -1  # of a part that is a dword
STEP = "it is a step of a division, whose last instruction is judged"
EXEC_MASK = RegSet.of(sgpr(EXEC, 2))


@dataclass(frozen=True, slots=True)
class Site:
    """An instruction that is judged, the results that it has, and dwords of operands whose denormals are lost."""

    place: InstrPlace
    results: tuple[FloatResult, ...]
    losing: tuple[FloatPart, ...]


@dataclass(frozen=True, slots=True)
class Sites:
    """Of one program."""

    judged: tuple[Site, ...]
    left_out: tuple[Omission, ...]
    counts: Variable
    examples: Variable
    wave_size: int


class FloatCheck(Tool):
    """NaNs, infinities, divisions by zero, denormals and cancellations in floating point, by instruction: where they
    are made, and where they are passed on."""

    name = "floatcheck"
    cacheable = True
    finds = True
    amounts = {
        "instructions": RowsBy(("pc",), {"counts": CountsBy("lanes, by what they made"), "first": {"*": FIRST}},
                               ascending=True),
        "totals": CountsBy("lanes, by what they made"), "judged": SAME.of("instructions"),
    }  # fmt: skip
    cancel = Option(0, help="bits that a sum loses to be told; 0: half of those of its format", bounds=(0, 64))
    olds = LaunchVariable(u32, "wave", KEPT * 64)
    wave = WaveVariable(u32)

    def instrument(self, m: Mutator) -> Sites:
        places, judged = InstrPlaces(m.program, inlined=True), list[Site]()
        chosen = list[tuple[Instr, tuple[FloatResult, ...], tuple[FloatPart, ...]]]()
        for function in m.functions():
            inside = steps_of_divisions(function)
            for instr in m.instrs(function):
                found, losing = float_results(instr.inst), tuple(losing_dwords(instr, m.program.isa.target))
                if instr in inside:
                    places.leave_out(instr, STEP)
                elif found is None:
                    places.leave_out(instr, "what its results are is not known")
                if losing or found and instr not in inside:
                    chosen.append((instr, found or (), losing))
        size = max(len(chosen), 1) * len(KINDS)
        counts = Variable(u64, size, name="FloatCheck.counts")
        examples = Variable(Example, size, name="FloatCheck.examples")
        if chosen:
            number_waves(m, self.wave)
        for at, (instr, results, losing) in enumerate(chosen):
            place = counts[at * len(KINDS)], examples[at * len(KINDS)]
            for part in losing:
                m.before(instr, lose, *place, self.wave, self.value(part, []), part.format.infinity)
            self.watch(m, instr, results, place)
            judged.append(Site(places.of(instr), results, losing))
        return Sites(tuple(judged), places.left_out, counts, examples, m.program.isa.wave_size)

    def watch(self, m: Mutator, instr: Instr, results: tuple[FloatResult, ...], place: tuple[object, object]) -> None:
        overwritten = [reg for reg in dwords(part for each in results for part in each.sources or ())
                       if instr.inst.writes.overlaps(RegSet.of(reg))]
        for at, reg in enumerate(overwritten):
            m.before(instr, keep, self.olds, self.wave, at, reg)
        for each in results:
            sources = each.sources or ()
            values = [self.value(source, overwritten) for source in sources]
            infinities = [infinity(source.format) for source in sources]
            empty = [0] * (MOST_OPERANDS - len(sources))
            scalar = isinstance(each.result.place, Reg) and each.result.place.file is RegFile.SGPR
            m.after(instr, check, *place, self.wave, *values, *empty, self.value(each.result, []), *infinities, *empty,
                    infinity(each.result.format), terms_of(each), self.cancel or each.result.format.mantissa_bits // 2,
                    each.pole, scalar)

    def value(self, part: FloatPart, overwritten: list[Reg]) -> object:
        """The value as a ``Lane[u64]``."""
        if not isinstance(part.place, Reg):
            return part.place
        low, *high = (computed(kept, self.olds, self.wave, overwritten.index(reg)) if reg in overwritten else reg
                      for reg in dwords([part]))
        if high:
            return computed(pair, low, *high)
        if part.first_bit == WHOLE or part.format.bits == 32:
            return computed(whole, low)
        return computed(high_half if part.first_bit else low_half, low)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Sites = launch.notes
        counts, examples, rows = launch[notes.counts], launch[notes.examples], []
        for row, site in enumerate(notes.judged):
            first = row * len(KINDS)
            found = {kind: counts[first + at] for at, kind in enumerate(KINDS) if counts[first + at]}
            told = {kind: self.example(launch, site, kind, examples[first + KINDS.index(kind)]) for kind in found}
            if found:
                rows.append({**site.place.facts(), "counts": found, "first": told})
        return {"totals": totals(rows), "instructions": rows, "judged": len(notes.judged),
                "left_out": left_out_rows(notes.left_out)}

    def example(self, launch: LaunchResult, site: Site, kind: str, row: Any) -> dict[str, Any]:
        """``workitem``: the number in its work-group. Of several results the formats are the first one's; of what is
        lost the result is what was lost."""
        notes: Sites = launch.notes
        group, wave = group_and_wave(launch, notes.wave_size, int(row["wave"]))
        sources = () if kind == LOST else site.results[0].sources or ()
        format = site.losing[0].format if kind == LOST else site.results[0].result.format
        return {
            "operands": [operand(each, int(row[name])) for each, name in zip(sources, "abc", strict=False)],
            "result": number(format, int(row["result"])), "workgroup": group,
            "workitem": wave * notes.wave_size + int(row["lane"]),
        }  # fmt: skip

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Kinds in their own order."""
        found = combined(self.amounts, reports)
        return {**found, "totals": totals(found["instructions"])}

    def findings(self, report: dict[str, Any]) -> int:
        return sum(not FAULTS.isdisjoint(row["counts"]) for row in report["instructions"])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        words = ", ".join(f"{count} {kind}" for kind, count in report["totals"].items()) or "nothing to tell"
        lines = [f"{self.headline(launch)}: {report['judged']} instructions judged; {words}"]
        for row in report["instructions"]:
            lines.append(f"  {place_text(row)}")
            lines += [f"    {count:10} {kind}{shown(row['first'][kind])}" for kind, count in row["counts"].items()]
        return "\n".join([*lines, *left_out_lines(report["left_out"])])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"pc": row["pc"], "instruction": row["instruction"], "line": row["line"], "kind": kind, "lanes": count,
                 **row["first"][kind]} for row in report["instructions"] for kind, count in row["counts"].items()]


def losing_dwords(instr: Instr, target: Target) -> Iterator[FloatPart]:
    """Of two numbers each; addends of 32 bits are left out."""
    for name, kind in find_flushed_denormals(instr.inst, target).items():
        given = instr.inst[name]
        if kind.bits == 16 and given.kind is OperandKind.CONSTANT:
            yield FloatPart(kind, constant_of(instr.inst, given) & 0xFFFFFFFF)
        elif kind.bits == 16:
            yield from (FloatPart(kind, reg, WHOLE) for reg in operand_dwords(instr, name))


def totals(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        found.update(row["counts"])
    return {kind: found[kind] for kind in KINDS if found[kind]}


def shown(example: dict[str, Any]) -> str:
    given = f" of {', '.join(map(digits, example['operands']))}" if example["operands"] else ""
    who = f"work-group {example['workgroup']}, work-item {example['workitem']}"
    return f", as {digits(example['result'])}{given} ({who})"


def digits(number: float) -> str:
    """As many digits as distinguish it from all others of its format."""
    with np.errstate(over="ignore"):
        short = math.isnan(number) or float(np.float32(number)) == number
    return f"{number:.9g}" if short else f"{number:.17g}"


def infinity(kind: FloatFormat) -> int:
    """As hooks take it: of a double the upper half."""
    return kind.infinity >> max(kind.bits - 32, 0)


def terms_of(result: FloatResult) -> int:
    product, addend = (sum(1 << each for each in term) for term in result.terms or ((), ()))
    return product | addend << MOST_OPERANDS


def dwords(parts: Iterable[FloatPart]) -> list[Reg]:
    """Registers of 32 bits, each once."""
    registers = [each.place for each in parts if isinstance(each.place, Reg)]
    found = (Reg(reg.file, reg.index + at) for reg in registers for at in range(reg.dwords))
    return list(dict.fromkeys(found))


def steps_of_divisions(function: Function) -> set[Instr]:
    """What only leads to the quotient that the end of a division gives its special cases: there 0 / x has NaNs."""
    found = set[Instr]()
    for block in function.blocks:
        instrs = tuple(block.instrs)
        for at, end in enumerate(instrs):
            if ends_division(end.op):
                found |= steps_before(instrs, at)
    return found


def steps_before(instrs: Sequence[Instr], end: int) -> set[Instr]:
    """Back from the quotient, up to what made denominator and numerator."""
    given = {maker(instrs, end, reg) for name in ("src1", "src2") for reg in operand_dwords(instrs[end], name)}
    work = [maker(instrs, end, reg) for reg in operand_dwords(instrs[end], "src0")]
    found = set[int]()
    while work:
        at = work.pop()
        if at is None or at in found or at in given or not float_results(instrs[at].inst):
            continue
        found.add(at)
        sources = (part for each in float_results(instrs[at].inst) or () for part in each.sources or ())
        work += [maker(instrs, at, reg) for reg in dwords(sources)]
    return {instrs[at] for at in found}


def maker(instrs: Sequence[Instr], at: int, reg: Reg) -> int | None:
    """What wrote a register last in the same lanes, before the instruction of that number; None if it is not here."""
    for before in range(at - 1, -1, -1):
        writes = instrs[before].inst.writes
        if writes.overlaps(RegSet.of(reg)):
            return before
        if writes.overlaps(EXEC_MASK):
            return None
    return None


def operand_dwords(instr: Instr, name: str) -> list[Reg]:
    reg = instr.inst[name].reg
    return [] if reg is None else [Reg(reg.file, reg.index + at) for at in range(reg.dwords)]
