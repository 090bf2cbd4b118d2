"""What the proof works out of the original alone, kept from one trial to the next: that is most of what it does.

In: calls of a few functions of the proof, each of which gives the same for the same. Out: what they gave the last
times. Invariant: whether a copy is refused, and why, is what it is without this; a test compares the two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields
from typing import Any
from unittest import mock

from luthier_py.proof import insertions, judge, whole
from luthier_py.proof.graph import Graph

KEPT = 16  # results of each: functions of a subject


class Kept:
    """Mutable: arguments and results, the newest first."""

    def __init__(self, of: Callable[..., Any]) -> None:
        self.of = of
        self.known: list[tuple[tuple[Any, ...], Any]] = []

    def __call__(self, *args: Any) -> Any:
        for key, result in self.known:
            if key == args:
                return result
        result = self.of(*args)
        self.known = [(args, result), *self.known[: KEPT - 1]]
        return result


class Graphs:
    """Mutable: graphs of the same nodes and edges are one object, so that what is known of it is found again."""

    def __init__(self, of: Callable[..., Graph]) -> None:
        self.of, self.known = of, Kept(lambda *parts: Graph(*parts))

    def __call__(self, *args: Any) -> Any:
        graph = self.of(*args)
        return self.known(*(getattr(graph, each.name) for each in fields(Graph)))


PARTS = [mock.patch.object(room, name, Kept(getattr(room, name))) for room, names in (
    (whole, ("decode_functions", "body", "summary")), (insertions, ("solve_modes", "solve_pending", "Liveness")),
) for name in names]
PARTS += [mock.patch.object(whole, "build_graph", Graphs(whole.build_graph)),
          mock.patch.object(judge, "load", Kept(judge.load))]


@contextlib.contextmanager
def kept() -> Iterator[None]:
    with ExitStack() as stack:
        for part in PARTS:
            stack.enter_context(part)
        yield
