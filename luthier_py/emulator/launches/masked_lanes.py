"""Where lanes of a wave continue that are masked off while others of it run a loop.

In: the code that a wave runs, and where it stands. Out: the address behind the loop from which they are active again.
Invariant: only code that the wave can come to is looked at; calls are taken to come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from luthier_py.emulator.code.code import HostedCode
from luthier_py.isa.encoding.instruction import OpFlag
from luthier_py.isa.model.registers import EXEC
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action, Branch

_MOST_INSTRUCTIONS = 20_000
_RANGES = 4


def lanes_text(mask: int) -> str:
    """In ranges, the first ones of many, and a verb."""
    lanes = [lane for lane in range(mask.bit_length()) if mask >> lane & 1]
    starts, ends = (
        [lane for lane in lanes if not others >> lane & 1] for others in (mask << 1, mask >> 1))
    ranges = [str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)]
    more = f" and others, {len(lanes)} in all" if len(ranges) > _RANGES else ""
    named = f"{', '.join(ranges[:_RANGES])}{more}"
    return f"lanes {named} are" if len(lanes) > 1 else f"lane {named} is"


def behind_loop(code: HostedCode, pc: int) -> int | None:
    """Where lanes continue that have left the loop around ``pc``: the first instruction behind it under another EXEC.
    None without a loop, and where nothing that they come to then writes memory, so that no wave can wait for them."""
    ways = _ways(code, [pc])
    body = _comes_to(ways, pc)
    if pc not in (after for here in body for after in ways[here]):
        return None
    left = [after for here in body for after in ways[here] if after not in body]
    for here in _in_order(ways, left):
        if code.insts[here].writes.sgpr >> EXEC & 3:
            after = here + code.insts[here].size_bytes
            return after if any(_writes(code, at) for at in _in_order(ways, [after])) else None
    return None


def _writes(code: HostedCode, pc: int) -> bool:
    return bool(code.insts[pc].op.flags & (OpFlag.MAY_STORE | OpFlag.ATOMIC)) if pc in code.insts else False


def _ways(code: HostedCode, starts: list[int]) -> dict[int, list[int]]:
    """The successors of each reachable instruction."""
    found: dict[int, list[int]] = {}
    left = starts
    while left and len(found) < _MOST_INSTRUCTIONS:
        here = left.pop()
        if here not in found and here in code.insts:
            found[here] = list(_after(code, here))
            left += found[here]
    return found


def _after(code: HostedCode, pc: int) -> Iterator[int]:
    inst = code.insts.get(pc)
    row = None if inst is None else find_meaning(inst.op)
    if inst is None or row in (Action.END, Action.SETPC, Action.ADD_PC):
        return
    target = inst.branch_target(pc) if isinstance(row, Branch) else None
    if target is not None:
        yield target
    if target is None or isinstance(row, Branch) and row.register is not None:
        yield pc + inst.size_bytes


def _comes_to(ways: dict[int, list[int]], pc: int) -> set[int]:
    """The instructions from which control comes to ``pc``, with itself."""
    before: dict[int, list[int]] = {}
    for here, then in ways.items():
        for after in then:
            before.setdefault(after, []).append(here)
    return set(_in_order(before, [pc]))


def _in_order(ways: dict[int, list[int]], starts: Iterable[int]) -> Iterator[int]:
    """All that can be come to, the nearest first."""
    left, seen = list(starts), set(starts)
    for here in left:
        if here in ways:
            yield here
        more = [after for after in ways.get(here, ()) if after not in seen]
        seen.update(more)
        left += more
