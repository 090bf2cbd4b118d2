"""A sample in a cell: bare, beside NumPy's results, and under tools, beside the bare run and the emulator's counts.

In: a cell, tools with their options. Out: for each tool what is not so (or nothing), and whether there was something
for it to do. Invariant: what is compared with is never a number of the tool's or of the engine's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from cells import BARE, ROOT, TOOLS, Cell, source_of
from compiled_samples import CompiledSamples
from narrowed import LANES, MOST, QUIET, RECORDS, affordable, filter_of, keeps_lanes, of_profile
from truth import wrong
from ways import parsed

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchOptions, LaunchProfile
from luthier_py.features.demo.samples import is_right, launch_of, profile_of
from luthier_py.features.run.launch import Launch, Ran, run_instrumented, run_original
from luthier_py.isa import RegFile
from luthier_py.isa.model.registers import VCC
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

OBJECTS = ROOT / "build" / "table" / "samples"
NOTHING = "none"
SECONDS = 120  # of a launch
SCALARS = 106  # of the general ones; VCC is behind


@dataclass(frozen=True, slots=True)
class Bare:
    code: bytes
    launch: Launch
    device: EmulatorDevice
    ran: Ran
    profile: LaunchProfile
    right: bool


def compiled(cell: Cell) -> bytes:
    """The code object; CalledProcessError where the compiler does not take it."""
    folder = OBJECTS / source_of(cell.kind, cell.name)
    folder.mkdir(parents=True, exist_ok=True)
    return CompiledSamples("clang-22", folder).code(cell.name, cell.target, cell.wave_size, cell.level,
                                                      f"-mcode-object-version={cell.code_object}")


@lru_cache(maxsize=1)
def bare(cell: Cell) -> Bare:
    one, code = sample(cell.name), compiled(cell)
    device, launch = EmulatorDevice(load(code).target, options=LaunchOptions(time_limit=SECONDS)), launch_of(one)
    ran = run_original(device, code, launch)
    named = SimpleNamespace(reference=one.reference, agrees=one.agrees)
    return Bare(code, launch, device, ran, profile_of(device), is_right(named, launch, ran))


def tried(cell: Cell, tool: str) -> tuple[str, bool]:
    """What is wrong; and whether the tool had anything to do."""
    known = bare(cell)
    if tool == BARE:
        return "" if known.right else "wrong: not as NumPy's", True
    name, words = parsed(tool)
    if name == NOTHING:
        same = instrument(known.code, load_tool(f"{TOOLS / name}/")).data == known.code
        return "" if same else "wrong: the copy is not the original", True
    options: dict[str, Any] = words | ({"print_records": False} if name in QUIET else {})
    profile = narrowed(known.profile, name, str(cell), options)
    loaded = load_tool(f"{TOOLS / name}/", options)
    ran = run_instrumented(known.device, instrument(known.code, loaded), loaded, known.launch)
    before, after = known.ran.outputs, ran.outputs
    if any(before[number].tobytes() != after[number].tobytes() for number in before):
        return "wrong: the application's memory differs", True
    if ran.cloned is None or not ran.cloned.sites:
        return "", False
    what = wrong_records(ran, profile) if name == RECORDS else wrong(tool, ran, profile, known.device.target)
    return f"wrong: {what}" if what else "", True


def narrowed(profile: LaunchProfile, tool: str, lot: str, options: dict[str, Any]) -> LaunchProfile:
    """The profile of those instructions that the tool is to see; ``options`` say so to it."""
    if tool not in MOST:
        return profile
    counts = {pc: count for pc, count in (profile.lanes if tool == LANES else profile.active).items() if count}
    if tool == RECORDS:
        counts = {pc: count * len(list(registers(profile, pc))) for pc, count in counts.items()
                  if keeps_lanes(profile.insts[pc])}
    else:
        counts = {pc: count for pc, count in counts.items() if profile.insts[pc].op.spaces}
    chosen = affordable(counts, MOST[tool], f"{lot} {tool}")
    if chosen is None and tool != RECORDS:
        return profile
    chosen = chosen or list(counts)
    options["INSTRUMENT"] = filter_of("pc", map(hex, chosen))
    return of_profile(profile, chosen)


def registers(profile: LaunchProfile, pc: int) -> Iterator[tuple[RegFile, int]]:
    """Of 32 bits, that the instruction reads, and then those that it writes."""
    inst = profile.insts[pc]
    for which in (inst.reads, inst.writes):
        for file in RegFile:
            mask = which.mask(file)
            yield from ((file, index) for index in range(mask.bit_length()) if mask >> index & 1 and (
                file is not RegFile.SGPR or index < SCALARS or index in (VCC, VCC + 1)))


def wrong_records(ran: Ran, profile: LaunchProfile) -> str:
    """One for each register and each execution by a wave with an active lane."""
    expected = sum(count * len(list(registers(profile, pc))) for pc, count in profile.active.items())
    return "" if ran.report["records"] == expected else f"{ran.report['records']} records, not {expected}"
