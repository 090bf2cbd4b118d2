"""Writes down what each instruction reads from registers and writes to them, lane by lane, while the kernel runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from luthier_py import (
    Channel,
    Lane,
    LaunchResult,
    Mutator,
    OpFlag,
    Option,
    Reg,
    RegFile,
    Tool,
    channel,
    hook,
    site_id,
    u32,
    u64,
    wave_in_group,
    workgroup_id,
)
from luthier_py.intrinsics import active_mask, push
from luthier_py.isa import VCC, RegSet, sgpr
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import SAME, SUM, lanes_of

LEAVING = OpFlag.BRANCH | OpFlag.CALL | OpFlag.INDIRECT | OpFlag.END
FILES = tuple(RegFile)
MOST_SCALARS = 106  # of the general ones; VCC has the two numbers behind


class Value:
    """One register at one execution by a wave. ``register``: its number, and 1000 times that of its file."""

    pc: u64
    lanes: u64
    workgroup_x: u32
    workgroup_y: u32
    workgroup_z: u32
    wave: u32
    register: u32
    written: u32
    value: Lane[u32]


@hook(fold=())
def record(
    out: channel[Value], pc: u64, x: u32, y: u32, z: u32, wave: u32, register: u32, written: u32, value: Lane[u32]
) -> None:
    """Scalars are the same in each lane."""
    push(out, pc, active_mask(), x, y, z, wave, register, written, value)


@dataclass(frozen=True, slots=True)
class Sites:
    """Instructions of one program, by address: texts of those that are recorded, and of those that are not."""

    recorded: dict[int, str]
    not_recorded: dict[int, str]


class RecordRegVals(Tool):
    """Values of registers: scalars, vectors and accumulators, a record for each register and wave."""

    name = "record_reg_vals"
    cacheable = True
    amounts = {"records": SUM.of("registers that were recorded"), "instructions": SAME.of("that are recorded"),
               "without_registers": SAME.of("instructions that are not")}
    operands = Option("read,written", several=("read", "written"),
                  help="what is recorded of an instruction: registers that it reads, or has written")
    print_records = Option(True, help="0: print no line for each record; with LUTHIER_RECORDS none is printed")
    values = Channel(Value)

    def instrument(self, m: Mutator) -> Sites:
        chosen = set(self.operands.split(","))
        sites = Sites({}, {})
        for function in m.functions():
            for instr in m.instrs(function):
                calls = list(self.calls(m, instr, chosen))
                (sites.recorded if calls else sites.not_recorded)[instr.pc] = m.program.isa.text(instr.inst)
        return sites

    def calls(self, m: Mutator, instr: Instr, chosen: set[str]) -> Iterator[Reg]:
        """Registers for which a call is recorded. Behind an instruction that leads elsewhere nothing is."""
        places = [(m.before, instr.inst.reads, 0)] if "read" in chosen else []
        if "written" in chosen and not instr.op.flags & LEAVING:
            places.append((m.after, instr.inst.writes, 1))
        for put, registers, written in places:
            for reg in dwords(registers):
                put(instr, record, self.values, site_id(instr), *map(workgroup_id, "xyz"), wave_in_group(),
                    number_of(reg), written, reg)
                yield reg

    def received(self, channel: Channel, launch: LaunchResult, records: NDArray[Any]) -> None:
        self.gathered[launch.index] = self.gathered.get(launch.index, 0) + len(records)
        if self.print_records and self.selection.records is None:
            for each in records:
                print(self.told(launch, each), file=sys.stderr)

    def told(self, launch: LaunchResult, each: Any) -> str:
        values = " ".join(f"0x{value:08x}" for value in each["value"][lanes_of(int(each["lanes"]))].tolist())
        place = ",".join(str(each[f"workgroup_{axis}"]) for axis in "xyz")
        text = launch.notes.recorded[int(each["pc"])] if launch.notes else "?"
        return (f"work-group {place} - wave {each['wave']} - {text} at 0x{int(each['pc']):x} - "
                f"{'wrote' if each['written'] else 'reads'} {register_of(int(each['register']))}: {values}")

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Sites = launch.notes
        return {"records": self.gathered.pop(launch.index, 0), "instructions": len(notes.recorded),
                "without_registers": len(notes.not_recorded)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        return f"{self.headline(launch)} - {report['records']} values at {report['instructions']} instructions"


def dwords(registers: RegSet) -> Iterator[Reg]:
    """Registers of 32 bits: general ones, and VCC."""
    for file in FILES:
        mask = registers.mask(file)
        for index in range(mask.bit_length()):
            if mask >> index & 1 and (file is not RegFile.SGPR or index < MOST_SCALARS or index in (VCC, VCC + 1)):
                yield Reg(file, index, 1)


def number_of(reg: Reg) -> int:
    return FILES.index(reg.file) * 1000 + reg.index


def register_of(number: int) -> Reg:
    """The register of a record."""
    return sgpr(number) if number < 1000 else Reg(FILES[number // 1000], number % 1000, 1)
