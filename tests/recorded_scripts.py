"""Scripts and a record of everything in one launch: what tests of one-liners compare.

In: a sample, lines of scripts. Out: tables by line; the emulator's own counts of the bare kernel; each address and
value, by hooks of mem_trace and record_reg_vals, so that addresses are those that the scripts met.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from luthier_py.base.errors import HookError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.waves.profile import LaunchProfile
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.program.ir import Function, Instr, Program, lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Mutator, address, site_id, wave_in_group, workgroup_id
from luthier_py.rewrite.tool.chosen.filters import parse_filter
from luthier_py.samples import sample
from luthier_py.tools import mem_trace, record_reg_vals
from luthier_py.tools.script import Script


class Recorded(Script):
    """A script, and a record of all addresses, and of all values that the instructions of a filter read and write."""

    def __init__(self, text: str, valued: str) -> None:
        super().__init__(text)
        self.valued = valued
        self.channels = (*self.channels, mem_trace.MemTrace.accesses, record_reg_vals.RecordRegVals.values)
        self.records: dict[str, list[Any]] = defaultdict(list)

    def instrument(self, m: Mutator) -> Any:
        notes = super().instrument(m)
        place = (*map(workgroup_id, "xyz"), wave_in_group())
        for function in m.functions():
            for instr in m.instrs(function, where="memory"):
                for element in range(len(instr.memory.offsets)):
                    try:
                        m.before(instr, mem_trace.trace, mem_trace.MemTrace.accesses, site_id(instr), element, *place,
                                 address(instr, element))
                    except HookError:
                        continue
            for instr in m.instrs(function, where=self.valued) if self.valued else ():
                for put, registers, written in ((m.before, instr.inst.reads, 0), (m.after, instr.inst.writes, 1)):
                    for reg in record_reg_vals.dwords(registers):
                        put(instr, record_reg_vals.record, record_reg_vals.RecordRegVals.values, site_id(instr),
                            *place, record_reg_vals.number_of(reg), written, reg)
        return notes

    def received(self, channel: Any, launch: Any, records: Any) -> None:
        if channel in self.channels[:-2]:
            super().received(channel, launch, records)
        else:
            self.records[channel.name].append(records)


@dataclass(frozen=True)
class Access:
    """One element, by one wave, in its active lanes."""

    instr: Instr
    group: int
    wave: int
    lanes: Any
    at: Any

    @property
    def bytes(self) -> int:
        return int(self.instr.memory.bytes)

    @property
    def key(self) -> tuple[int, int, int]:
        return self.instr.pc, self.group, self.wave


@dataclass(frozen=True)
class Observed:
    """A launch, by the emulator's own counters and by the record. ``values``: of a register, by instruction."""

    program: Program
    profile: LaunchProfile
    tool: Recorded
    groups: Sequence[int]
    wave_size: int
    tables: dict[str, dict[str, Any]]
    printed: list[str]
    copy: Program
    copied: LaunchProfile  # of the copy, with all that was inserted
    report: dict[str, Any]

    @property
    def functions(self) -> Iterable[Function]:
        (kernel,) = (kernel for kernel in self.program.kernels if kernel.name == self.profile.kernel)
        return self.program.reachable(kernel.function)

    def instrs(self, where: str) -> Iterator[Instr]:
        chosen = parse_filter(where).of(self.program)
        return (instr for function in self.functions for instr in function.instrs if chosen(instr))

    def runs(self, instr: Instr) -> int:
        return self.profile.counts.get(instr.pc, 0)

    def lanes(self, instr: Instr) -> int:
        return self.profile.lanes.get(instr.pc, 0)

    def accesses(self, where: str) -> Iterator[Access]:
        instrs = {instr.pc: instr for instr in self.instrs(where)}
        for row in np.concatenate(self.tool.records["MemTrace.accesses"]):
            instr = instrs.get(int(row["pc"]))
            if instr is not None and int(row["lanes"]):
                scalar = instr.kind.value == "scalar_memory"
                lanes = np.array([n for n in range(64) if int(row["lanes"]) >> n & 1])
                lanes = lanes[:1] if scalar else lanes
                yield Access(instr, self.group(row), int(row["wave"]), lanes, row["address"][lanes].astype(np.int64))

    def group(self, row: Any) -> int:
        x, y, _ = self.groups
        return int(row["workgroup_x"]) + x * (int(row["workgroup_y"]) + y * int(row["workgroup_z"]))

    def executions(self) -> Iterator[tuple[Instr, Any]]:
        """Each of a vector instruction that has an active lane: one record of those that there are of it."""
        instrs, chosen = {instr.pc: instr for instr in self.instrs("vector_alu")}, dict[int, tuple[int, int]]()
        for row in np.concatenate(self.tool.records["RecordRegVals.values"]):
            which = int(row["register"]), int(row["written"])
            if int(row["pc"]) in instrs and chosen.setdefault(int(row["pc"]), which) == which:
                yield instrs[int(row["pc"])], row

    def values(self, where: str, name: str, written: bool = False, dwords: int = 1) -> Iterator[tuple[Instr, Any, Any]]:
        """Instruction, the record, and bits of an operand in active lanes, for each execution."""
        wanted = {}
        for instr in self.instrs(where):
            operand = instr.inst.find(name)
            if operand is not None and operand.reg is not None and operand.reg.dwords == dwords:
                wanted[instr.pc] = instr, record_reg_vals.number_of(operand.reg)
        for row in np.concatenate(self.tool.records["RecordRegVals.values"]):
            instr, register = wanted.get(int(row["pc"]), (None, None))
            if instr is not None and row["register"] == register and bool(row["written"]) == written:
                lanes = [n for n in range(64) if int(row["lanes"]) >> n & 1]
                if lanes:
                    yield instr, row, row["value"][lanes]


def pc(instr: Instr) -> str:
    return f"0x{instr.pc:x}"


def opcode(instr: Instr) -> str:
    return str(instr.op.mnemonic)


def total(pairs: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for key, number in pairs:
        found[key] += int(number)
    return {key: number for key, number in found.items() if number}


def average(pairs: Iterable[tuple[Any, int]]) -> dict[Any, float]:
    found = defaultdict(list)
    for key, number in pairs:
        found[key].append(int(number))
    return {key: sum(numbers) / len(numbers) for key, numbers in found.items()}


def powers(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, dict[Any, int]]:
    """Numbers by the powers of two that are not above them."""
    found: dict[Any, Counter[Any]] = defaultdict(Counter)
    for key, numbers in pairs:
        for number in np.atleast_1d(numbers).tolist():
            found[key][low_of(number)] += 1
    return {key: dict(counts) for key, counts in found.items()}


def low_of(number: int | float) -> int | float:
    if isinstance(number, float):
        size = 2.0 ** (np.frexp(abs(number))[1] - 1) if abs(number) >= 2.0**-126 else 0.0
        return float(size if number > 0 or not size else -2 * size)
    return 0 if number == 0 else 1 << number.bit_length() - 1


@dataclass(frozen=True)
class Frequent:
    """How often each value is there; equal to rows that have the most frequent ones. Which of those that are equally
    frequent come first is nobody's business."""

    counts: Counter[int]
    most: int

    def __eq__(self, rows: object) -> bool:
        assert isinstance(rows, dict)
        return all(self.counts[value] == n for value, n in rows.items()) and sorted(rows.values()) == sorted(
            n for _, n in self.counts.most_common(self.most)) != []


def frequent(values: Iterable[int], most: int) -> Frequent:
    return Frequent(Counter(values), most)


def segments(access: Access, size: int) -> int:
    return len(np.union1d(access.at // size, (access.at + access.bytes - 1) // size))


def commonest(values: Any) -> int:
    return int(np.unique(values, return_counts=True)[1].max())


def blocks(o: Observed) -> Iterator[tuple[Function, Any]]:
    return ((function, block) for function in o.functions for block in function.blocks)


def observe(name: str, code: bytes, lines: Sequence[str], valued: str = "") -> Observed:
    """All lines for a sample in one launch. ``valued``: a filter for instructions whose registers are recorded."""
    obj, launch = load(code, name), launch_of(sample(name))
    device, tool, printed = EmulatorDevice(obj.target), Recorded("\n".join(lines), valued), StringIO()
    original = run_original(device, code, launch)
    profile = device.profile
    made = instrument(code, tool)
    with redirect_stderr(printed):
        ran = run_instrumented(device, made, tool, launch)
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}
    counting = [line for line in lines if "trace(" not in line]
    tables = dict(zip(counting, ran.report["tables"], strict=False))
    assert all(table["lost"] == 0 for table in tables.values())
    (kernel,) = (kernel for kernel in obj.kernels if kernel.name == name)
    return Observed(lift(obj), profile, tool, launch.grid, kernel.descriptor.wave_size, tables,
                    printed.getvalue().splitlines(), lift(load(made.data)), device.profile, ran.report)


def found(table: dict[str, Any]) -> dict[Any, Any]:
    """What a table says by key: a number, or of a histogram numbers by where intervals begin."""
    says: dict[Any, Any] = {}
    for row in table["rows"]:
        key = tuple(row[name] for name in table["keys"])
        key = key[0] if len(key) == 1 else key
        if "low" in row:
            says.setdefault(key, {})[row["low"]] = row["count"]
        else:
            says[key] = next(row[name] for name in ("avg", "sum", "min", "max", "count") if name in row)
    return says
