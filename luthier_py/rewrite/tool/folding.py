"""Which constants of a hook's calls are compiled into its code, and which are written into finished code.

In: all calls that a tool recorded. Out: the same calls, with the parameters whose constants are fields. Invariant:
what becomes a field is a number of no more than 64 bits, each half of which is a separate literal; and all calls of a
hook agree on which ones these are.

Folding makes code smaller and faster, but each set of constants is compiled for itself. So, unless the author says it,
parameters are folded as long as few sets come of it, those with the fewest different constants first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from luthier_py.rewrite.tool.edits import Insertion
from luthier_py.rewrite.tool.hooks.hook import Hook
from luthier_py.rewrite.tool.hooks.types import BOOL, Scalar

MOST_SETS = 8  # of constants that a hook is compiled for


def with_fields(insertions: Iterable[Insertion]) -> tuple[Insertion, ...]:
    """``insertions``, in their order."""
    found = tuple(insertions)
    calls: dict[Hook, list[Insertion]] = defaultdict(list)
    for insertion in found:
        calls[insertion.hook].append(insertion)
    fields = {hook: _fields(hook, each) for hook, each in calls.items()}
    return tuple(_with(insertion, fields[insertion.hook]) for insertion in found)


def _with(insertion: Insertion, fields: frozenset[int]) -> Insertion:
    own = frozenset(position for position in fields if isinstance(insertion.args[position], (int, float)))
    if not own:
        return insertion
    i = insertion  # `replace` takes four times as long
    return Insertion(i.places, i.hook, i.args, i.into, i.order, i.turn, i.priority, own)


def _fields(hook: Hook, calls: list[Insertion]) -> frozenset[int]:
    numbers = frozenset(
        position for position, parameter in enumerate(hook.signature.parameters)
        if isinstance(parameter.type, Scalar) and parameter.type != BOOL
    )
    if hook.folded is not None:
        return numbers - hook.folded
    texts = [[repr(arg) if isinstance(arg, (int, float)) else "" for arg in call.args] for call in calls]
    columns = list(zip(*texts, strict=True))
    different = [len(set(column)) for column in columns]
    folded = [position for position in range(len(different)) if position not in numbers]
    fields = set()
    for position in sorted(numbers, key=lambda position: (different[position], position)):
        if len(set(zip(*(columns[p] for p in (*folded, position)), strict=True))) <= MOST_SETS:
            folded.append(position)
        else:
            fields.add(position)
    return frozenset(fields)
