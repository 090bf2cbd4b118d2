"""A GPU function made into LLVM IR, with what is known of that beside: what is done where nothing was cached.

In: what decodes instructions, an entry. Out: a Translation, and what writes the text of each of its host functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.emulator.reading.discover import discover
from luthier_py.emulator.reading.first_reads import rows_read_first, scalars_named
from luthier_py.emulator.translation.host_functions import DividedFunction, HostFunction
from luthier_py.emulator.translation.translated import CodeRun, HostPart, Translation
from luthier_py.isa.encoding.instruction import Inst

if TYPE_CHECKING:
    from luthier_py.binary.loader.origins import Origins
    from luthier_py.emulator.options.settings import Settings


@dataclass(frozen=True, slots=True)
class Translated:
    """``texts``: of each host function as it is compiled at first, by name."""

    function: DividedFunction
    translation: Translation
    texts: dict[str, str]


def translate_function(decode: Callable[[int], Inst], entry: int, settings: Settings,
                       origins: Origins | None) -> Translated:
    """The function at ``entry``; ``origins``: of its instructions, in a copy."""
    blocks = discover(decode, entry)
    function = DividedFunction(blocks, entry, settings, origins)
    written = [function.translate_part(name, function.effort) for name in function.parts]
    runs = _runs_of(pair for block in blocks for pair in block.insts)
    parts = tuple(map(make_host_part, written))
    firsts = rows_read_first(blocks, entry), scalars_named(blocks)
    translation = Translation(runs, function.effort, parts, *firsts)
    return Translated(function, translation, {one.name: one.ir for one in written})


def split_function(
    decode: Callable[[int], Inst], entry: int, settings: Settings, origins: Origins | None
) -> DividedFunction:
    """The function at ``entry``, of which nothing is written yet."""
    return DividedFunction(discover(decode, entry), entry, settings, origins)


def make_host_part(function: HostFunction) -> HostPart:
    """``function`` without its text."""
    pcs = tuple(pc for block in function.blocks for pc, _ in block.insts)
    place = {pc: index for index, pc in enumerate(pcs)}
    counters = tuple((what, place[counted[0]], place[counted[-1]] + 1) for what, counted in function.numbers.counters)
    sites = tuple(place[pc] for pc in function.numbers.sites)
    starts = tuple(block.start for block in function.blocks)
    return HostPart(function.name, pcs, starts, counters, sites, function.digest)


def _runs_of(insts: Iterable[tuple[int, Inst]]) -> tuple[CodeRun, ...]:
    """The code of instructions that are sorted by address."""
    found: list[tuple[int, bytearray]] = []
    for pc, inst in insts:
        if found and found[-1][0] + len(found[-1][1]) == pc:
            found[-1][1].extend(inst.raw)
        else:
            found.append((pc, bytearray(inst.raw)))
    return tuple((start, bytes(data)) for start, data in found)
