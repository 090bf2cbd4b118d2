"""Where calls go, and which scalar registers callees touch: each says something of the other.

In: functions, and how to follow one. Out: AddressFlow of all. Invariant: where a function was followed as if a callee,
with all that it calls, touched some registers only, no instruction that may run from the call to the return touches
others.

At first no callee touches anything, and functions are followed until what was taken for granted is what was found. What
is found explains itself: the first instruction of a run that broke it would be one of those that are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from luthier_py.isa import OpFlag
from luthier_py.isa.model.registers import SCALARS
from luthier_py.proof.addresses import RETURNS, AddressFlow
from luthier_py.proof.code import Body

Follow = Callable[[int, Callable[[int], int]], AddressFlow]


def solve_targets(bodies: Sequence[Body], changed: Sequence[int], follow: Follow) -> list[AddressFlow]:
    """Targets of the functions, by number. ``changed``: registers that hooks in each are to change; ``follow`` gets the
    number of a function, and a callable that gives the registers that the one at an address touches."""
    numbers = {each.address: k for k, each in enumerate(bodies)}
    alone = [0 if each.kernel else _alone(each) | regs for each, regs in zip(bodies, changed, strict=True)]
    found = [0] * len(bodies)

    def find_touched(address: int) -> int:
        number = numbers.get(address)
        return SCALARS if number is None or bodies[number].kernel else found[number]

    goes = [follow(k, find_touched) for k in range(len(bodies))]
    grown = set(numbers)
    while grown:
        before = list(found)
        for k, each in enumerate(bodies):
            if any(not grown.isdisjoint(goes[k].find_targets(at)) for at in goes[k].targets):
                goes[k] = follow(k, find_touched)
            found[k] |= alone[k] | _of_callees(each, goes[k], find_touched)
        grown = {each.address for k, each in enumerate(bodies) if found[k] != before[k]}
    return goes


def _alone(body: Body) -> int:
    return reduce(or_, (inst.reads.bits | inst.writes.bits for inst in body.code.insts), 0) & SCALARS


def _of_callees(body: Body, goes: AddressFlow, touched: Callable[[int], int]) -> int:
    """The registers touched by those that a function calls or jumps to."""
    found = 0
    for at in body.code.find_flagged(OpFlag.CALL | OpFlag.INDIRECT):
        reached, returns = goes.find_targets(at), at in goes.targets and goes.targets[at][0] == RETURNS
        if not reached and not returns:
            return SCALARS
        inside = OpFlag.CALL not in body.code.inst(at).op.flags and body.following[body.block_of(at)]
        if not inside:
            found |= reduce(or_, map(touched, reached), 0)
    return found
