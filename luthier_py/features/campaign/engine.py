"""The engine of all campaigns: faults, causal profiles, studies, budgets, schedules.

In: Variations, each with what names it, what it is run with, and how its result becomes a row; workers that run them;
perhaps a store. Out: the rows. Invariants:

* A key is run at most once: not twice in one campaign, and not at all where the store has a row of it that counts.
* A row is in the store, whole, before another result is waited for, so that a campaign continues where it was
  stopped.
* Rows come in the order of the variations, wherever and in whatever order these ran.
* Workers are started where something waits for them, and have stopped when the campaign ends, however it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Generic, TypeVar

from luthier_py.base.records import dataclass
from luthier_py.features.campaign.store import RowKey, RowStore
from luthier_py.report.plain import Json

VariedT = TypeVar("VariedT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Variation(Generic[VariedT, ResultT]):
    """One run of a campaign. ``settings``: what it is run with; plain data where it may run in another process."""

    key: RowKey
    settings: VariedT
    reduce: Callable[[ResultT], Json]


Ended = Generator[tuple[Variation[VariedT, ResultT], ResultT], None, None]
"""Variations with their results, as they end."""
Workers = Callable[[Sequence[Variation[VariedT, ResultT]]], Ended[VariedT, ResultT]]
"""What runs variations; closing its generator stops all that still run."""


class Campaign(Generic[VariedT, ResultT]):
    """Mutable: ``rows`` that are known, by key; at first those of the store that count."""

    def __init__(self, variations: Sequence[Variation[VariedT, ResultT]], store: RowStore | None = None,
                 counts: Callable[[Json], bool] = lambda row: True) -> None:
        self._variations, self._store = variations, store
        kept = {} if store is None else store.read([each.key for each in variations])
        self.rows = {key: row for key, row in kept.items() if counts(row)}

    @property
    def waiting(self) -> list[Variation[VariedT, ResultT]]:
        """What is to be run, each key once."""
        return [*{each.key: each for each in self._variations if each.key not in self.rows}.values()]

    def run(self, workers: Workers[VariedT, ResultT], ended: Callable[[], object] = lambda: None) -> Iterator[Json]:
        """The row of each variation, as soon as it and all before it are known; ``ended`` is called after each run.
        What a run raises ends the campaign."""
        waiting = self.waiting
        if waiting and self._store is not None:
            self._store.make_folder()
        with closing(workers(waiting)) as results:
            for wanted in self._variations:
                while wanted.key not in self.rows:
                    each, result = next(results)
                    row = each.reduce(result)
                    if self._store is not None:
                        self._store.add(row)
                    self.rows[each.key] = row
                    ended()
                yield self.rows[wanted.key]


def in_turn(run: Callable[[VariedT], ResultT]) -> Workers[VariedT, ResultT]:
    """Run variations in this process, in order."""
    def work(waiting: Sequence[Variation[VariedT, ResultT]]) -> Ended[VariedT, ResultT]:
        for each in waiting:
            yield each, run(each.settings)

    return work
