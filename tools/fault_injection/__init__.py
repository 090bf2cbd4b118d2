"""Makes one register wrong while a kernel runs: once, from then on, or each time that an instruction writes one.

Behind each chosen instruction a hook counts the 32-bit registers that it has written. A fault is what options say, and
comes to the copy as launch parameters: one copy serves all faults of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import (
    LaunchParameter,
    LaunchResult,
    LaunchVariable,
    Mutator,
    OpFlag,
    Option,
    Reg,
    RegFile,
    Tool,
    Variable,
    WaveVariable,
    hardware_register,
    u32,
    u64,
    wave_in_launch,
)
from luthier_py.base.errors import Invalid, how_many
from luthier_py.isa import VCC, RegSet
from luthier_py.program.ir import Instr, Kernel
from luthier_py.rewrite.tool import (
    InstrPlace,
    InstrPlaces,
    Omission,
    group_and_wave,
    left_out_lines,
    left_out_rows,
    number_waves,
)
from luthier_py.tools.fault_injection.device import (
    NEVER,
    Hit,
    begin,
    begin_held,
    finish,
    held,
    held_scalar,
    in_launch,
    in_launch_lane,
    in_launch_scalar,
    in_wave,
    in_wave_lane,
    in_wave_scalar,
    stuck,
    stuck_scalar,
)

ALL_BITS = 0xFFFFFFFF
PERMANENT = "xor", "and", "or"
STUCK = "stuck_0", "stuck_1"
MOST_REGISTERS = 1024  # of one kind
LEAVING = OpFlag.BRANCH | OpFlag.CALL | OpFlag.INDIRECT | OpFlag.END
MOST_SCALARS = 106  # of the general ones; VCC has the two numbers behind


@dataclass(frozen=True, slots=True)
class Site:
    """A register of 32 bits that an instruction writes. ``group``: the instruction's class, as filters name it."""

    place: InstrPlace
    opcode: str
    group: str
    register: str


@dataclass(frozen=True, slots=True)
class Sites:
    """Of one program."""

    sites: tuple[Site, ...]
    left_out: tuple[Omission, ...]
    wave_size: int


@dataclass(frozen=True, slots=True)
class Unit:
    """Waves for which some bits of a register of the hardware are so."""

    register: str
    mask: int
    wanted: int

    @staticmethod
    def of(text: str) -> Unit:
        """``REGISTER:MASK=VALUE``."""
        register, colon, rest = text.partition(":")
        mask, equals, wanted = rest.partition("=")
        try:
            found = Unit(register, int(mask, 0), int(wanted, 0))
        except ValueError:
            found = Unit("", 0, 0)
        if not (register and 0 < found.mask <= ALL_BITS and found.wanted & ~found.mask == 0):
            raise Invalid(f"option UNIT={text}: give REGISTER:MASK=VALUE, as in HW_ID:0x30=0x10, with no bit of VALUE "
                          "outside of MASK")
        return found


class FaultInjection(Tool):
    """One fault in a register: a bit flip, two, another value or zero at one execution, a bit that is stuck from then
    on, or a lane in which a result is always wrong; what was hit, and what was there before."""

    name = "fault_injection"
    cacheable = True
    model = Option("flip", choices=("flip", "flip_two", "value", "zero", "none", *STUCK, *PERMANENT),
                   help="once: the bit BIT flips, or it and the next one, the register is MASK, or 0, or nothing; from "
                        "then on: BIT of that register is 0 or 1; each time, in the lane LANE: the result is combined "
                        "with MASK")
    when = Option(-1, bounds=(-1, (1 << 62) - 1),
                  help="which written register is hit, counted from 0; -1: none, they are only counted")
    wave = Option(-1, bounds=(-1, ALL_BITS), help="only this wave of the launch counts; -1: all do, as they come")
    turns = Option("lanes", choices=("lanes", "waves"),
                   help="lanes: each active lane's register counts; waves: a wave's counts once, and LANE is hit")
    lane = Option(0, bounds=(-1, 63), help="the lane, where it is not WHEN that says which; -1: what is from then on, "
                                          "or each time, is so in every lane")
    bit = Option(0, bounds=(0, 31), help="the bit that flips; of 31 and the next one, the next is bit 0")
    mask = Option(ALL_BITS, bounds=(0, ALL_BITS), help="of xor, and, or; with value, the value")
    unit = Option("", help="each time: only for waves where (hardware register & MASK) is VALUE: REGISTER:MASK=VALUE")

    start = LaunchParameter(u64)
    chosen = LaunchParameter(u32)
    struck_lane = LaunchParameter(u32)
    keep = LaunchParameter(u32)
    flip = LaunchParameter(u32)
    times = Variable(u64)
    hit = Variable(Hit)
    counter = Variable(u64)
    executions = LaunchVariable(u64, "wave")
    left = WaveVariable(u64)
    stuck_register = WaveVariable(u32)
    stuck_lane = WaveVariable(u32)
    number = WaveVariable(u32)

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.start = NEVER if self.when < 0 else self.when
        self.struck_lane = self.lane & ALL_BITS
        self.chosen = max(self.wave, 0)
        self.keep, self.flip = effect(self.model, self.bit, self.mask)
        if self.unit and not self.permanent:
            raise Invalid(f"option UNIT={self.unit}: for MODEL={', '.join(PERMANENT)}; {self.model} has its turn")
        if self.stuck and (self.wave < 0 or self.turns != "lanes"):
            raise Invalid(f"option MODEL={self.model}: a register of one wave is stuck; give WAVE, leave out TURNS")
        if self.lane < 0 and not self.stuck and not self.permanent:
            raise Invalid(f"option LANE={self.lane}: for what happens more than once; {self.model} does not")

    @property
    def permanent(self) -> bool:
        return self.model in PERMANENT

    @property
    def stuck(self) -> bool:
        return self.model in STUCK

    def instrument(self, m: Mutator) -> Sites:
        places, sites = InstrPlaces(m.program), list[Site]()
        for function in m.functions():
            built = {part for each in function.pc_builders for part in each.sums}
            for instr in m.instrs(function):
                registers = [*dwords(instr.inst.writes)]
                if not registers or instr.op.flags & LEAVING or instr in built:
                    if registers or instr.inst.writes and not instr.op.flags & LEAVING:
                        places.leave_out(instr, "it leads elsewhere, makes an address of code or writes EXEC alone")
                    continue
                for register in registers:
                    self.put(m, instr, register, len(sites))
                    sites.append(Site(places.of(instr), instr.op.mnemonic, instr.kind.value, str(register)))
        if sites and self.wave < 0 and not self.permanent:
            number_waves(m, self.number)
        for kernel in m.kernels if sites else ():
            self.at_ends(m, kernel)
        return Sites(tuple(sites), places.left_out, m.program.isa.wave_size)

    def put(self, m: Mutator, instr: Instr, register: Reg, site: int) -> None:
        """The hook of the model behind an instruction."""
        scalar = register.file is RegFile.SGPR
        by_lane = [] if scalar or self.turns == "lanes" and not self.permanent else [self.struck_lane]
        fault = [*by_lane, self.keep, self.flip, self.times, self.hit, site]
        if self.permanent:
            hook = held_scalar if scalar else held
            m.after(instr, hook, register, self.number, *fault, into=register)
        elif self.stuck:
            self.put_stuck(m, instr, register, fault[len(by_lane):])
        elif self.wave < 0:
            hook = in_launch_scalar if scalar else in_launch_lane if by_lane else in_launch
            m.after(instr, hook, register, self.start, self.counter, *fault, self.number, into=register)
        else:
            hook = in_wave_scalar if scalar else in_wave_lane if by_lane else in_wave
            m.after(instr, hook, register, self.left, *fault, self.chosen, into=(register, self.left))

    def put_stuck(self, m: Mutator, instr: Instr, register: Reg, fault: Sequence[Any]) -> None:
        number, left, held, at = number_of(register), self.left, self.stuck_register, self.stuck_lane
        if register.file is RegFile.SGPR:
            m.after(instr, stuck_scalar, register, left, held, number, *fault, self.chosen, into=(register, left, held))
        else:
            m.after(instr, stuck, register, left, held, at, number, self.struck_lane, *fault, self.chosen,
                    into=(register, left, held, at))

    def at_ends(self, m: Mutator, kernel: Kernel) -> None:
        """What a wave begins with, and what it leaves."""
        if self.permanent:
            unit = Unit.of(self.unit) if self.unit else None
            where = (0, 0, 0) if unit is None else (hardware_register(kernel, unit.register), unit.mask, unit.wanted)
            m.at_entry(kernel, begin_held, wave_in_launch(), *where, into=self.number)
        elif self.wave >= 0:
            m.at_entry(kernel, begin, self.start, self.chosen, wave_in_launch(), into=self.left)
            m.at_exit(kernel, finish, self.executions.own, self.left, self.start, self.chosen, wave_in_launch())

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Sites = launch.notes
        found = {"model": self.model, "sites": len(notes.sites), "left_out": left_out_rows(notes.left_out),
                 "times": launch[self.times] if notes.sites else 0, "hit": None, "executions": None}
        if found["times"]:
            found["hit"] = hit_of(launch, notes, launch[self.hit])
        if notes.sites and self.wave >= 0 and not self.permanent:
            found["executions"] = [int(each) for each in launch[self.executions]]
        elif notes.sites and not self.permanent:
            found["executions"] = launch[self.counter]
        return found

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        places, written = how_many(report["sites"], "place"), report["executions"]
        head = f"{self.headline(launch)}: {report['model']} at one of {places} where registers are written"
        if written is not None:
            head += f", {sum(written) if isinstance(written, list) else written} times"
        hit = report["hit"]
        if hit is None:
            lines = [head, f"  nothing was hit: {self.why_not()}"]
        else:
            often = f", {report['times']} times, the first" if report["times"] > 1 else ""
            place = f"work-group {hit['workgroup']}, wave {hit['wave']}" + (
                "" if hit["lane"] is None else f", lane {hit['lane']}")
            line = f" [{hit['line']}]" if hit["line"] else ""
            lines = [head, f"  hit{often}: {hit['register']} of {hit['instruction']} at {hit['pc']:#x}{line}",
                     f"  {place}: 0x{hit['before']:08x} became 0x{hit['after']:08x}"]
        return "\n".join([*lines, *left_out_lines(report["left_out"])])

    def why_not(self) -> str:
        if self.permanent:
            return "that lane was never active there, or no wave ran in that unit"
        return "WHEN says none" if self.when < 0 else "it was not written so often, or the lane was not active there"

    def rows(self, report: dict[str, Any]) -> Sequence[Mapping[str, Any]]:
        return [{"model": report["model"], "times": report["times"], **(report["hit"] or {})}]


def effect(model: str, bit: int, mask: int) -> tuple[int, int]:
    """``keep`` and ``flip`` of a model: a value becomes ``(value & keep) ^ flip``."""
    two = 1 << bit | 1 << (bit + 1) % 32
    return {"flip": (ALL_BITS, 1 << bit), "flip_two": (ALL_BITS, two), "value": (0, mask), "zero": (0, 0),
            "none": (ALL_BITS, 0),
            "stuck_0": (ALL_BITS ^ 1 << bit, 0), "stuck_1": (ALL_BITS ^ 1 << bit, 1 << bit), "xor": (ALL_BITS, mask),
             "and": (mask, 0), "or": (ALL_BITS ^ mask, mask)}[model]


def hit_of(launch: LaunchResult, notes: Sites, hit: Any) -> dict[str, Any]:
    """``wave``: in its launch; ``lane``: None of a scalar."""
    site, wave = notes.sites[int(hit["site"])], int(hit["wave"])
    scalar = site.register.startswith(("s", "vcc"))
    return {**site.place.facts(), "opcode": site.opcode, "group": site.group, "register": site.register,
            "wave": wave, "workgroup": group_and_wave(launch, notes.wave_size, wave)[0],
            "lane": None if scalar else int(hit["lane"]), "before": int(hit["before"]), "after": int(hit["after"])}


def number_of(register: Reg) -> int:
    """Another one for each, and never 0."""
    return 1 + register.index + MOST_REGISTERS * [*RegFile].index(register.file)


def dwords(registers: RegSet) -> Iterator[Reg]:
    """Registers of 32 bits that a fault may be in: general ones, and VCC."""
    for file in RegFile:
        mask = registers.mask(file)
        for index in range(mask.bit_length()):
            if mask >> index & 1 and (file is not RegFile.SGPR or index < MOST_SCALARS or index in (VCC, VCC + 1)):
                yield Reg(file, index, 1)
