"""Wait states where inserted code meets application code.

In: a clone whose inner sequences (the application's own, each fragment's own) are free of hazards.
Out: the same clone with `s_nop`s. Invariant: on every path the data hazards of `isa.hazards` keep their
distance; nothing is inserted where the distance is there already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from luthier_py.inject.model import Clone, Item
from luthier_py.isa import Inst, InstructionSet, OpFlag
from luthier_py.isa.hazards import WINDOW, wait_states

MAX_PATHS = 64
NOP_STATES = 16  # s_nop waits for SIMM16[3:0] + 1 states (AMD ISA, SOPP)


def settle(isa: InstructionSet, clone: Clone) -> None:
    """Insert what is missing (mutates ``clone``)."""
    previous = _predecessors(clone)
    since = WINDOW  # items since the last inserted one
    out: list[Item] = []
    for item in clone.items:
        since = 0 if item.inserted else since + 1
        states = _missing(isa, item, previous) if since <= WINDOW else 0
        while states > 0:
            nop = Item(isa.make("s_nop", min(states, NOP_STATES) - 1))
            out.append(nop)
            _stand_before(clone, item, nop, previous)
            states -= NOP_STATES
        out.append(item)
    clone.items = out


def _missing(isa: InstructionSet, item: Item, previous: dict[Item, list[Item]]) -> int:
    return max((wait_states(isa, path, item.inst) for path in _paths(item, previous)), default=0)


def _paths(item: Item, previous: dict[Item, list[Item]]) -> Iterator[list[Inst]]:
    """Instruction sequences that may run just before ``item``, oldest first, up to the window's length."""
    open_paths: list[tuple[Item, list[Inst]]] = [(item, [])]
    found = 0
    while open_paths and found < MAX_PATHS:
        at, tail = open_paths.pop()
        befores = previous[at] if len(tail) < WINDOW else []
        if not befores:
            found += 1
            yield tail[::-1]
        open_paths += [(before, [*tail, before.inst]) for before in befores]


def _predecessors(clone: Clone) -> dict[Item, list[Item]]:
    previous: dict[Item, list[Item]] = defaultdict(list)
    last: Item | None = None
    for item in clone.items:
        if last is not None:
            previous[item].append(last)
        flags = item.inst.op.flags
        if item.jump is not None:
            to = item.jump if isinstance(item.jump, Item) else clone.labels[item.jump]
            previous[to].append(item)
        leaves = flags & OpFlag.TERMINATOR and not flags & OpFlag.CONDITIONAL
        last = None if leaves else item
    return previous


def _stand_before(clone: Clone, item: Item, nop: Item, previous: dict[Item, list[Item]]) -> None:
    """Whoever came to ``item`` comes to ``nop`` now."""
    previous[nop], previous[item] = previous[item], [nop]
    for address, labelled in clone.labels.items():
        if labelled is item:
            clone.labels[address] = nop
    for before in previous[nop]:
        if before.jump is item:
            before.jump = nop
