"""Many schedules of one launch, or of a program: whether what comes out depends on the order of waves.

In: something that runs once by a schedule, and a number. Out: the seeds whose outcome is another than that of waves in
their order. Invariant: `--schedule seed=N` with such a seed gives that outcome again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from luthier_py.base.errors import how_many
from luthier_py.base.records import dataclass
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.features.campaign.engine import Campaign, Variation, in_turn

SHOWN = 12  # seeds that are reported


@dataclass(frozen=True, slots=True)
class Shuffled:
    """``others``: for each outcome but the first, by name, the seeds that gave it."""

    count: int
    others: dict[str, tuple[int, ...]]

    @property
    def lines(self) -> list[str]:
        """The outcome in words."""
        if not self.others:
            return [f"shuffle: the same by {how_many(self.count, 'schedule')} as with waves in their order"]
        return [f"shuffle: {name} with seed {_seeds(seeds)} ({len(seeds)} of {self.count})"
                for name, seeds in self.others.items()]

    def facts(self) -> dict[str, object]:
        """JSON-ready. ``schedules``: how many were tried; ``differ``: seeds by what differs with them."""
        differ = {name: list(seeds) for name, seeds in self.others.items()}
        return {"text": self.lines, "schedules": self.count, "differ": differ}


def compare_schedules(count: int, run: Callable[[Schedule | None], dict[str, bytes]]) -> Shuffled:
    """``run`` gives its outcome, part by part; once with waves in their order, and by ``count`` schedules."""
    orders = [None, *map(Schedule, range(count))]
    first, *rest = Campaign([Variation(number, order, _hash_parts) for number, order in enumerate(orders)]).run(
        in_turn(run))
    others: dict[str, list[int]] = {}
    for seed, found in enumerate(rest):
        for name in sorted(first.keys() | found.keys()):
            if first.get(name) != found.get(name):
                others.setdefault(f"{name} differs", []).append(seed)
    return Shuffled(count, {name: tuple(seeds) for name, seeds in others.items()})


def _hash_parts(outcome: Mapping[str, bytes]) -> dict[str, bytes]:
    """So that outcomes of many schedules take no more memory than one."""
    return {name: sha256(part).digest() for name, part in outcome.items()}


def encode_findings(findings: Iterable[Mapping[str, Any]]) -> bytes:
    """What checks found: of two places it does not matter which was first."""
    def place(at: Mapping[str, Any] | None) -> int:
        return -1 if at is None else int(at["pc"])

    return repr(sorted({(one["kernel"], one["kind"], *sorted((place(one["at"]), place(one["other_at"]))))
                        for one in findings})).encode()


def _seeds(seeds: tuple[int, ...]) -> str:
    text = ", ".join(map(str, seeds[:SHOWN]))
    return text if len(seeds) <= SHOWN else f"{text}, ..."
