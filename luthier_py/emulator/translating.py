"""A GPU function made into LLVM IR, with what is known of that beside: what is done where nothing was kept.

In: what decodes instructions, an entry. Out: a Translation, and the text of each of its host functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from luthier_py.emulator.discover import direct_calls, discover
from luthier_py.emulator.engine import imports_of
from luthier_py.emulator.first_reads import rows_read_first, scalars_named
from luthier_py.emulator.parts import effort
from luthier_py.emulator.settings import Settings
from luthier_py.emulator.translate import HostFunction, translate
from luthier_py.emulator.translation import CodeRun, HostPart, Translation
from luthier_py.isa.instruction import Inst
from luthier_py.storage import cache_key


def translated(decode: Callable[[int], Inst], entry: int, settings: Settings) -> tuple[Translation, dict[str, str]]:
    """The function at ``entry``, and the text of each of its host functions."""
    blocks = discover(decode, entry)
    functions = translate(blocks, entry, settings)
    parts = tuple(_described(one, imports_of(one.ir), cache_key(one.ir)) for one in functions)
    runs = _runs_of(pair for block in blocks for pair in block.insts)
    calls = tuple(sorted(direct_calls(blocks)))
    firsts = rows_read_first(blocks, entry), scalars_named(blocks)
    translation = Translation(runs, calls, effort(blocks), parts, *firsts)
    return translation, {one.name: one.ir for one in functions}


def text_of(name: str, decode: Callable[[int], Inst], entry: int, settings: Settings) -> str:
    """LLVM IR of the host function of that name; empty if there is none."""
    functions = translate(discover(decode, entry), entry, settings)
    return next((one.ir for one in functions if one.name == name), "")


def _described(function: HostFunction, imports: Iterable[str], ir: str) -> HostPart:
    """``function`` without its text, of which ``ir`` is the digest."""
    pcs = tuple(pc for block in function.blocks for pc, _ in block.insts)
    place = {pc: index for index, pc in enumerate(pcs)}
    counters = tuple((what, place[counted[0]], place[counted[-1]] + 1) for what, counted in function.numbers.counters)
    sites = tuple(place[pc] for pc in function.numbers.sites)
    starts = tuple(block.start for block in function.blocks)
    return HostPart(function.name, pcs, starts, counters, sites, tuple(sorted(imports)), ir)


def _runs_of(insts: Iterable[tuple[int, Inst]]) -> tuple[CodeRun, ...]:
    """The code of instructions that are sorted by address."""
    found: list[tuple[int, bytearray]] = []
    for pc, inst in insts:
        if found and found[-1][0] + len(found[-1][1]) == pc:
            found[-1][1].extend(inst.raw)
        else:
            found.append((pc, bytearray(inst.raw)))
    return tuple((start, bytes(data)) for start, data in found)
