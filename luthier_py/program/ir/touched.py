"""Which scalar registers functions touch, with all that they call.

In: functions, and what each calls. Out: masks of SGPRs, by function. Invariant: from where a call enters a function to
where it returns, no instruction reads or writes a register that is not in the function's mask. Where it is not known
which instructions run, all registers are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from luthier_py.isa.model.registers import SCALARS

if TYPE_CHECKING:
    from luthier_py.isa.columns import Columns

EVERYTHING = SCALARS


def collect_touched_scalars(code: Columns) -> int:
    """Scalar registers that some instruction of ``code`` may read or write."""
    return code.touched & SCALARS


def with_callees(alone: Mapping[int, int], callees: Mapping[int, Collection[int]]) -> dict[int, int]:
    """What the functions in ``alone`` touch with all that they call, by address."""
    found = dict(alone)
    callers: defaultdict[int, list[int]] = defaultdict(list)
    for caller in callees.keys() & alone.keys():
        for callee in callees[caller]:
            callers[callee].append(caller)
    todo = list(found)
    while todo:
        callee = todo.pop()
        for caller in callers[callee]:
            if found[callee] & ~found[caller]:
                found[caller] |= found[callee]
                todo.append(caller)
    return found
