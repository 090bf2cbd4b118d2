"""Recursive descent: from the entries of one function to its blocks.

In: the columns of a function's extent, entries. Out: blocks, or the reason why they cannot be determined. Invariant:
only instructions that control can reach are in blocks (padding and data are not), no two overlap, and nothing outside
the function's extent is looked at.

The columns are a sweep, and padding or data may have it take other starts than control does. Where control comes to
an address at which the sweep has no instruction, the extent is swept anew with an instruction there. What that
cuts off has been none, or else two instructions that control reaches overlap.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from luthier_py.base.errors import Malformed
from luthier_py.base.records import dataclass, field
from luthier_py.isa import InstructionSet, OpFlag, sgpr
from luthier_py.isa.columns import NOWHERE, Columns, read_columns
from luthier_py.isa.encoding.scan import UNKNOWN
from luthier_py.program.ir.builders import find_chains
from luthier_py.program.ir.model import Block, Ending, Instrs, instr_at

SWEEPS = 16  # of one function, until it counts as made to waste time


@dataclass(frozen=True, slots=True)
class FunctionBytes:
    """The bytes of one function's extent, ``[address, address + len(data))``, and the sweep of them."""

    isa: InstructionSet
    address: int
    data: bytes
    columns: Columns

    @property
    def end(self) -> int:
        """First address behind the extent."""
        return self.address + len(self.data)


class _Refused(Exception):
    """The function cannot be followed; never leaves this module."""


Exit = tuple[Ending, tuple[int, ...]]


@dataclass(slots=True)
class _Descent:
    """Work in progress (mutable), in places of the columns. ``ends`` is where control leaves, or cannot go on; the last
    is behind all. ``exits``: of ends that were reached, and of all whose own encoding gives their targets. ``reached``:
    of ``ends``, with the first place from which control comes there."""

    code: FunctionBytes
    pcs: list[int]
    ends: list[int]
    exits: dict[int, Exit]
    leaders: set[int] = field(default_factory=set)
    reached: dict[int, int] = field(default_factory=dict)
    todo: list[int] = field(default_factory=list)
    missing: set[int] = field(default_factory=set)  # addresses that the sweep has not


def descend(code: FunctionBytes, entries: Iterable[int], kernel: bool) -> tuple[Columns, tuple[Block, ...]] | str:
    """The blocks that control can reach from ``entries``, ascending, and their code; or why they cannot be
    determined."""
    starts: set[int] = set()
    try:
        for _ in range(SWEEPS):
            descent = _descent(code)
            for entry in entries:
                _leader(descent, entry, None)
            while descent.todo:
                _run(descent, descent.todo.pop(), kernel)
            if not descent.missing:
                return _blocks(descent)
            starts |= descent.missing
            [columns] = read_columns(code.isa, [(code.address, code.data)], sorted(starts))
            code = FunctionBytes(code.isa, code.address, code.data, columns)
    except _Refused as refusal:
        return str(refusal)
    return "code and data cannot be told apart"


def _descent(code: FunctionBytes) -> _Descent:
    columns = code.columns
    stops = (columns.distinct.flags & OpFlag.TERMINATOR.value != 0) | (columns.distinct.rows == UNKNOWN)
    ends = columns.where(stops)
    if len(columns) and columns.pcs[-1] + columns.size(-1) > code.end and ends[-1:] != [len(columns) - 1]:
        ends.append(len(columns) - 1)
    return _Descent(code, columns.pcs.tolist(), [*ends, len(columns)], _find_direct_exits(columns, ends, code.end))


def _find_direct_exits(columns: Columns, ends: Sequence[int], behind: int) -> dict[int, Exit]:
    """Exits of the ends whose own encoding gives their targets. ``behind`` is the first address after the code."""
    columns = columns.select_places(np.array(ends, np.int64))
    flags, following, distances = columns.flags, columns.pcs + columns.sizes, columns.distinct.distances[columns.kinds]
    plain = (flags & OpFlag.FORKS.value == 0) & (following <= behind)
    stop, branch, conditional = (flags & flag.value != 0 for flag in (OpFlag.END, OpFlag.BRANCH, OpFlag.CONDITIONAL))
    found: dict[int, Exit] = {ends[number]: (Ending.END, ()) for number in np.flatnonzero(plain & stop).tolist()}
    chosen = np.flatnonzero(plain & ~stop & branch & (distances != NOWHERE))
    of_chosen = (chosen, columns.pcs[chosen] + distances[chosen], following[chosen], conditional[chosen])
    for number, target, after, either in zip(*(each.tolist() for each in of_chosen), strict=True):
        ways = (target, after) if either and after != target else (target,)
        found[ends[number]] = Ending.CONDITIONAL if either else Ending.BRANCH, ways
    return found


def _leader(descent: _Descent, address: int, branch: int | None) -> None:
    """Start a block at ``address``, an entry or the target of the ``branch`` at a place."""
    at = bisect_left(descent.pcs, address)
    if at < len(descent.pcs) and descent.pcs[at] == address:
        if at not in descent.leaders:
            descent.leaders.add(at)
            descent.todo.append(at)
    elif descent.code.address <= address < descent.code.end and address % 4 == 0:
        descent.missing.add(address)
    else:
        what = f"entry 0x{address:x}" if branch is None else (
            f"0x{address:x}, where the branch at 0x{descent.pcs[branch]:x} goes,")
        raise _Refused(f"{what} is outside the function, which ends at 0x{descent.code.end:x}")


def _run(descent: _Descent, start: int, kernel: bool) -> None:
    """Follow straight-line code until it has been seen or control leaves it."""
    end = descent.ends[bisect_left(descent.ends, start)]
    seen = descent.reached.get(end)
    descent.reached[end] = start if seen is None else min(start, seen)
    if seen is not None:
        return
    if end not in descent.exits:
        descent.exits[end] = _leave(descent, start, end, kernel)
    for target in descent.exits[end][1]:
        _leader(descent, target, end)


def _check(descent: _Descent, at: int) -> None:
    """Whether there is an instruction."""
    code, pc = descent.code, descent.pcs[at]
    if code.columns.row(at) != UNKNOWN and pc + code.columns.size(at) <= code.end:
        return
    try:
        inst = code.isa.decode(code.data, pc - code.address)
    except Malformed as error:
        raise _Refused(f"no instruction at 0x{pc:x}: {error.message}") from None
    assert pc + inst.size_bytes > descent.pcs[at + 1]
    raise _Refused(f"the instructions at 0x{pc:x} and 0x{descent.pcs[at + 1]:x} overlap")


def _run_off(descent: _Descent) -> Exit:
    """Control runs off the end of the function: after a call or a trap that does not come back, that is all right."""
    last = instr_at(descent.code.columns, len(descent.pcs) - 1)
    if not last.op.flags & (OpFlag.CALL | OpFlag.MAY_STOP):
        raise _Refused(f"control runs off the function's end at 0x{last.end:x}")
    return Ending.NO_RETURN, ()


def _leave(descent: _Descent, start: int, end: int, kernel: bool) -> Exit:
    """How control that came from ``start`` leaves at ``end``, which does not say it, and to which addresses."""
    if end == len(descent.pcs):
        return _run_off(descent)
    _check(descent, end)
    inst = descent.code.columns.inst(end)
    if OpFlag.FORKS in inst.op.flags:
        text = descent.code.isa.text(inst)
        raise _Refused(f"{text} at 0x{descent.pcs[end]:x} forks control, which is not followed")
    return _jump(descent.code, start, end, kernel) if OpFlag.SETS_PC in inst.op.flags else (Ending.INDIRECT, ())


def _jump(code: FunctionBytes, start: int, end: int, kernel: bool) -> Exit:
    """A s_setpc: a long branch or tail call where its address is built just before, else a return."""
    columns = code.columns
    pair = columns.inst(end)["src0"].reg
    built = None
    for chain in find_chains(columns, start, end + 1):
        kept = all(not columns.inst(at).writes.sgpr >> chain.pair.index & 3 for at in range(chain.hi.at + 1, end + 1))
        if pair == sgpr(chain.pair.index, 2) and kept:
            built = chain.value
    if built is None:
        return (Ending.INDIRECT if kernel else Ending.RETURN), ()
    if code.address <= built < code.end:
        return Ending.BRANCH, (built,)
    return Ending.TAIL_CALL, ()


def _blocks(descent: _Descent) -> tuple[Columns, tuple[Block, ...]]:
    """Each leader starts a block, which ends before the next one or where control leaves."""
    pcs = descent.pcs
    runs = sorted((start, min(end + 1, len(pcs))) for end, start in descent.reached.items())
    starts = [start for start, _ in runs]
    gaps = [runs[0][0], *(b[0] - a[1] for a, b in pairwise(runs))]  # before each run
    columns = _select_segments(descent.code.columns, runs, any(gaps[1:]))
    leaders = sorted(descent.leaders)
    left_out = np.cumsum(gaps)[np.searchsorted(starts, leaders, side="right") - 1].tolist()
    numbers = np.searchsorted(descent.ends, leaders).tolist()
    blocks: list[Block] = []
    for start, following, gap, number in zip(leaders, [*leaders[1:], len(pcs) + 1], left_out, numbers, strict=True):
        end = descent.ends[number]
        ending, successors = descent.exits[end]
        stop = min(end + 1, len(pcs))
        if following < stop:
            stop, ending, successors = following, Ending.FALLTHROUGH, (pcs[following],)
        blocks.append(Block(pcs[start], Instrs(columns, start - gap, stop - gap), successors, ending))
    return columns, tuple(blocks)


def _select_segments(swept: Columns, runs: Sequence[tuple[int, int]], gaps: bool) -> Columns:
    if not gaps:
        return swept.select_places(slice(runs[0][0], runs[-1][1]))
    return swept.select_places(np.concatenate([np.arange(start, stop) for start, stop in runs]))
