"""How far what a kernel stores could be compressed. Its hook is HIP C++ (coding.hip): 4 kB of array, and recursion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from luthier_py import Hooks, LaunchResult, Mutator, Tool, Variable, source, u64
from luthier_py.isa import OperandKind
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import (
    MOST,
    SUM,
    InstrPlace,
    InstrPlaces,
    Omission,
    RowsBy,
    left_out_lines,
    left_out_rows,
    share,
)

HOOKS = Hooks.from_hip("coding.hip")
TOTALS = 4  # executions, bytes, bits, longest word
MOST_DWORDS = 4


@dataclass(frozen=True, slots=True)
class Stores:
    """Stores of one program."""

    sites: tuple[InstrPlace, ...]
    left_out: tuple[Omission, ...]
    totals: Variable


class Compressibility(Tool):
    """Bits for each byte that a wave stores, in the best code for the bytes of that store alone."""

    name = "compressibility"
    cacheable = True
    amounts = {"stores": RowsBy(("pc",), {
        "executions": SUM.of("executions by waves"), "bytes": SUM.of("bytes stored"),
        "bits": SUM.of("bits in that code"), "longest": MOST.of("bits of a byte"),
        "bits_per_byte": share("bits", "bytes", "bits for each byte", nothing=0.0)})}

    def instrument(self, m: Mutator) -> Stores:
        found = [instr for function in m.functions() for instr in m.instrs(function, where="global & store")]
        counted = [(instr, dwords) for instr in found if (dwords := stored_dwords(instr))]
        totals = Variable(u64, max(len(counted), 1) * TOTALS, name="Compressibility.totals")
        for number, (instr, dwords) in enumerate(counted):
            values = [source(instr, data_of(instr), dword) for dword in range(dwords)]
            m.before(instr, HOOKS.code, *values, *[0] * (MOST_DWORDS - dwords), dwords, totals[number * TOTALS])
        places = InstrPlaces(m.program)
        for instr in found:
            if not stored_dwords(instr):
                places.leave_out(instr, "it stores parts of registers, or scalars of the application")
        return Stores(tuple(places.of(instr) for instr, _ in counted), places.left_out, totals)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Stores = launch.notes
        return {"stores": list(_rows(notes, launch[notes.totals])), "left_out": left_out_rows(notes.left_out)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        head = f"  {'pc':>10} {'executions':>10} {'bytes':>12} {'bits/byte':>9} {'longest':>7}"
        lines = [self.headline(launch), head]
        for row in report["stores"]:
            numbers = f"{row['executions']:10} {row['bytes']:12} {row['bits_per_byte']:9.2f} {row['longest']:7}"
            lines.append(f"  {row['pc']:#10x} {numbers}  {row['instruction']}")
        return "\n".join([*lines, *left_out_lines(report["left_out"])])


def data_of(instr: Instr) -> str:
    """The operand that has what is stored."""
    return "vdata" if instr.inst.find("vdata") is not None else "data"


def stored_dwords(instr: Instr) -> int:
    """The dwords of a store of whole registers; 0 of others."""
    access, data = instr.memory, instr.inst.find(data_of(instr))
    if access is None or data is None or data.kind is not OperandKind.REGISTER or data.reg is None:
        return 0
    return data.reg.dwords if access.bytes == 4 * data.reg.dwords <= 4 * MOST_DWORDS else 0


def _rows(notes: Stores, totals: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for number, place in enumerate(notes.sites):
        executions, size, bits, longest = totals[number * TOTALS : (number + 1) * TOTALS]
        yield {**place.row(), "executions": executions, "bytes": size,
               "bits": bits, "bits_per_byte": bits / size if size else 0.0, "longest": longest}
