"""What one execution of an instruction does, and where in the program it is.

In: a program, and which of its instructions the user chose. Out: a Site for each. Invariant: what an instruction does
in each active lane and what it does once for the wave are separate, so that counts of both make sums of work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from luthier_py.base.names import demangle
from luthier_py.isa import AccessKind, InstructionClass, OpFlag, Space
from luthier_py.isa.semantics.readers.work import once_in_a_wave
from luthier_py.isa.timing.lds_banks import bank_model, lds_access
from luthier_py.program.analysis import (
    Frames,
    LineRange,
    Loop,
    line_ranges,
    loops_of,
    source_frames,
    with_private_memory,
)
from luthier_py.program.ir import Function, Instr, Program
from luthier_py.rewrite.tool import InstrPlace

GLOBAL = {AccessKind.LOAD: "bytes_loaded", AccessKind.STORE: "bytes_stored", AccessKind.ATOMIC: "bytes_atomic"}
OTHERS = {Space.LDS: "lds_bytes", Space.SCRATCH: "private_bytes", Space.SCALAR: "scalar_bytes", Space.GDS: "gds_bytes"}
LDS_CYCLES = "lds_cycles"  # of its banks, without conflicts
UNSURE = "unsure_bytes"  # of flat instructions and, where there is private memory, of buffers
FLOPS = "flops "  # and the type: what such quantities are called
COUNTED = ("instructions", *GLOBAL.values(), *OTHERS.values(), UNSURE, LDS_CYCLES)  # what the others are called


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """An instruction: numbers and texts only. Work is by quantity, as rows of a report name it. ``place`` has the
    function of the source in which its line is, and a range of lines where it is between some."""

    place: InstrPlace
    loops: tuple[int, ...]  # it is in these: numbers of Sites.loops
    regions: tuple[int, ...]
    in_lane: Mapping[str, int]
    in_wave: Mapping[str, int]
    unsure: str             # what of its work is not known, or not certain


@dataclass(frozen=True, slots=True)
class LoopPlace:
    """A loop: its header, and the lines of its function between which it is."""

    function: str
    header: int
    lines: str


@dataclass(frozen=True, slots=True)
class Sites:
    sites: tuple[Site, ...]
    loops: tuple[LoopPlace, ...]


def sites_of(
    program: Program, chosen: Mapping[Function, Sequence[Instr]], regions: Iterable[Callable[[Instr], bool]]
) -> Sites:
    """``regions``: whether an instruction is of each."""
    frames, tests = source_frames(program.obj), tuple(regions)
    sites: list[Site] = []
    places: list[LoopPlace] = []
    private = with_private_memory(program)
    for function, instrs in chosen.items():
        blocks = {function.block(instr.pc) for instr in instrs}
        ranges, loops = line_ranges(function, frames), [each for each in loops_of(function) if each.blocks & blocks]
        first = len(places)
        places += [LoopPlace(demangle(function.name), loop.header.address, _around(loop, ranges)) for loop in loops]
        for instr in instrs:
            block = function.block(instr.pc)
            inside = tuple(number for number, loop in enumerate(loops, first) if block in loop.blocks)
            of = tuple(number for number, test in enumerate(tests) if test(instr))
            work = _work(instr, program, function in private)
            sites.append(_site(program, instr, frames, ranges, inside, of, work))
    return Sites(tuple(sites), tuple(places))


def _site(
    program: Program, instr: Instr, frames: Frames, ranges: Mapping[int, LineRange], loops: tuple[int, ...],
    regions: tuple[int, ...], work: tuple[dict[str, int], dict[str, int], str],
) -> Site:
    line, around = frames.lines.at(instr.pc), frames.at(instr.pc)
    function = around[0].function if around else program.function_of(instr).name
    text = program.isa.text(instr.inst, instr.pc)
    place = InstrPlace(instr.pc, text, demangle(function), str(line or ranges.get(instr.pc) or "") or None)
    return Site(place, loops, regions, *work)


def _around(loop: Loop, ranges: Mapping[int, LineRange]) -> str:
    """From the first to the last line of a loop's instructions."""
    inside = [ranges[instr.pc] for block in loop.blocks for instr in block.instrs if instr.pc in ranges]
    if not inside:
        return ""
    return str(LineRange(inside[0].file, min(each.first for each in inside), max(each.last for each in inside)))


def _work(instr: Instr, program: Program, private: bool) -> tuple[dict[str, int], dict[str, int], str]:
    """What it does in each active lane, and in the wave; and what is not certain of that. ``private``: whether its
    kernels have private memory."""
    in_lane: dict[str, int] = {}
    in_wave = {"instructions": 1}
    for type, count in instr.flops_by_type.items():
        if instr.kind is InstructionClass.MATRIX:  # in all lanes, whatever EXEC says
            in_wave[FLOPS + type] = count * program.isa.wave_size
        else:
            (in_wave if once_in_a_wave(instr.op) else in_lane)[FLOPS + type] = count
    if (in_banks := lds_access(instr.inst)) is not None:
        in_wave[LDS_CYCLES] = bank_model(program.obj.target).least(in_banks, program.isa.wave_size)
    access = instr.memory
    if access is None:
        return in_lane, in_wave, ""
    if access.total_bytes is None:
        return in_lane, in_wave, "of which nobody knows how many bytes they move"
    if Space.GLOBAL not in access.spaces:
        name = next(OTHERS[space] for space in OTHERS if space in access.spaces)
    elif Space.SCRATCH in access.spaces and (private or OpFlag.FLAT in instr.op.flags):
        name = UNSURE
    else:
        name = GLOBAL[access.kind]
    (in_wave if instr.kind is InstructionClass.SCALAR_MEMORY else in_lane)[name] = access.total_bytes
    return in_lane, in_wave, "which may access private memory or LDS" * (name == UNSURE)
