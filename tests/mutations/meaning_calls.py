"""What the function of a meaning was given in a case: a mutant that gives the same for all of that changes nothing.

In: a case in a program of its own. Out: the right state at its end, and each call. So a mutant is tried on a few values
first, and a whole wave is read with it only where these differ.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from luthier_py.isa import Inst
from luthier_py.isa.semantics import Lanes, Scalar, find_meaning
from luthier_py.isa.semantics.algebra import Value
from luthier_py.isa.semantics.meaning import Variants

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from meaning_mutants import Mutant  # noqa: E402
from reference.batch import Batch  # noqa: E402
from reference.reader import read, rule  # noqa: E402
from reference.vector import field, in_situation  # noqa: E402
from reference.wave import Wave  # noqa: E402


@dataclass(frozen=True, slots=True)
class Taken:
    """The function of values that a case came to, what it was given, and what it gave; None: it is none."""

    wave: Wave
    inst: Inst
    row: Lanes | Scalar | None
    calls: dict[tuple[Any, ...], tuple[tuple[Value, ...], Any]]

    def may_tell(self, mutant: Mutant, told: set[tuple[Any, ...]]) -> bool:
        """False where a wrong function gives the same for all that the case has: so its state is the same.

        ``told``: for what the mutant is known to give the same; more is added.
        """
        if self.row is None or mutant.change is not None or mutant.everywhere:
            return True
        other = _resolved(self.wave, self.inst, mutant.row)
        own, wrong = (_used(self.inst, each) for each in (self.row, other))
        if other is None or wrong is None or _shape(other) != _shape(self.row):
            return True
        try:
            for key, (values, found) in self.calls.items() if own is not wrong else ():
                if (own, key) not in told and refs(wrong(*values)) != found:
                    return True
                told.add((own, key))
            return False
        except (AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return True


def recorded(batch: Batch) -> tuple[Wave, Taken]:
    """The right state at the end, and what the meaning was given on the way there."""
    subject, calls = batch.cases[0][0].inst, dict[tuple[Any, ...], tuple[tuple[Value, ...], Any]]()
    row = _resolved(batch.wave(), subject, find_meaning(subject.op))
    if row is None:
        return read(batch.wave(), batch.code), Taken(batch.wave(), subject, None, calls)
    compute = _used(subject, row)

    def recording(*values: Any) -> Any:
        found = compute(*values)
        first = values[0][0] if isinstance(values[0], tuple) else values[0]
        key = tuple(refs(each) if isinstance(each, Value) else tuple(refs(each)) for each in values)
        calls.setdefault((first.ops.lane, *key), (values, refs(found)))
        return found

    other = replace(row, compute=recording)
    if isinstance(other, Lanes) and other.saturating is not None:
        other = replace(other, saturating=recording)
    right = read(batch.wave(), batch.code, lambda wave, inst: rule(
        wave, inst, other if inst is subject else find_meaning(inst.op)))
    return right, Taken(batch.wave(), subject, row, calls)


def _resolved(wave: Wave, inst: Inst, row: Any) -> Lanes | Scalar | None:
    row = in_situation(wave, inst, row) if isinstance(row, Variants) else row
    return row if isinstance(row, Lanes | Scalar) else None


def _used(inst: Inst, row: Lanes | Scalar | None) -> Any:
    clamped = isinstance(row, Lanes) and row.saturating is not None and bool(field(inst, "clamp"))
    return None if row is None else row.saturating if clamped and isinstance(row, Lanes) else row.compute


def _shape(row: Lanes | Scalar) -> tuple[object, ...]:
    if isinstance(row, Scalar):
        return (row.signature,)
    return row.signature, row.saturating is None, row.flushes, row.whole, row.clamps


def refs(found: Any) -> Any:
    return [value.ref for value in found] if isinstance(found, tuple) else found.ref
