"""Traces: blocks that mostly run one after the other.

In: how often blocks ran, and ways between them were taken. Out: traces, the hottest first. Invariant: each block that
ran is in one trace; what follows a block in its trace is where control went most often from it, and came from most
often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Way = tuple[int, int]
"""From block to block, by their addresses."""


@dataclass(frozen=True, slots=True)
class TraceOfBlocks:
    """``likely``: of each but the last block, the share of its executions behind which control went to the next."""

    blocks: tuple[int, ...]
    likely: tuple[float, ...]
    instructions: int


def traces(
    executions: Mapping[int, int], instructions: Mapping[int, int], passed: Mapping[Way, int]
) -> list[TraceOfBlocks]:
    """``instructions``: that each block executed. Greedy, from the block with the most executed instructions: on to the
    likeliest next block, and back, as long as these are in no trace and each is the likeliest neighbour of the
    other."""
    onward, back = _likeliest(passed, 0), _likeliest(passed, 1)
    ran = [block for block, n in executions.items() if n]
    left, found = dict.fromkeys(sorted(ran, key=lambda block: (-instructions[block], block))), list[TraceOfBlocks]()
    while left:
        first = next(iter(left))
        del left[first]
        blocks = [first]
        while (to := onward.get(blocks[-1])) in left and to is not None and back[to] == blocks[-1]:
            del left[to]
            blocks.append(to)
        while (of := back.get(blocks[0])) in left and of is not None and onward[of] == blocks[0]:
            del left[of]
            blocks.insert(0, of)
        likely = tuple(passed[way] / executions[way[0]] for way in zip(blocks, blocks[1:], strict=False))
        found.append(TraceOfBlocks(tuple(blocks), likely, sum(instructions[block] for block in blocks)))
    return sorted(found, key=lambda trace: (-trace.instructions, trace.blocks))


def _likeliest(passed: Mapping[Way, int], end: int) -> dict[int, int]:
    """Of each block at this end of ways the block at the other end of the one that was taken most often."""
    best: dict[int, Way] = {}
    for way, n in passed.items():
        if n and n > passed.get(best.get(way[end], (-1, -1)), 0):
            best[way[end]] = way
    return {block: way[1 - end] for block, way in best.items()}
