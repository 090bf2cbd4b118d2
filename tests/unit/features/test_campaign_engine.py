"""The engine of campaigns: what is run, what is kept, in which order rows come, and how workers end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Barrier, Event
from typing import Any
from unittest.mock import patch

import pytest

from luthier_py.base.errors import Unsupported
from luthier_py.features.campaign.engine import Campaign, Ended, Variation, in_turn
from luthier_py.features.campaign.store import VERSION, RowStore
from luthier_py.features.campaign.workers import on_cluster, side_by_side
from luthier_py.report.plain import Json


class Stopped(Exception):
    """The campaign is stopped here."""


class Squares:
    """Runs numbers (mutable: which were run); ``until``: this one stops the campaign."""

    def __init__(self, until: int = -1) -> None:
        self.ran: list[int] = []
        self.until = until

    def __call__(self, number: int) -> int:
        if number == self.until:
            raise Stopped
        self.ran.append(number)
        return number * number


def varied(*numbers: int) -> list[Variation[int, int]]:
    return [Variation(number, number, lambda square, number=number: {"n": number, "square": square})
            for number in numbers]


def rows(*numbers: int) -> list[Json]:
    return [{"n": number, "square": number * number} for number in numbers]


@pytest.fixture
def store(tmp_path: Path) -> Callable[[], RowStore]:
    return lambda: RowStore(tmp_path / "folder" / "rows.ndjson", "n")


def lines(store: RowStore) -> list[Any]:
    return [json.loads(line) for line in store.path.read_text().splitlines()]


def test_each_key_is_run_once_and_rows_are_in_order() -> None:
    run, ended = Squares(), list[None]()
    campaign = Campaign(varied(3, 1, 3, 2))
    assert [each.key for each in campaign.waiting] == [3, 1, 2]
    assert list(campaign.run(in_turn(run), lambda: ended.append(None))) == rows(3, 1, 3, 2)
    assert run.ran == [3, 1, 2] and len(ended) == 3 and campaign.waiting == []


def test_a_stopped_campaign_goes_on_and_a_longer_one_adds_to_it(store: Callable[[], RowStore]) -> None:
    stopped, again, longer = Squares(until=2), Squares(), Squares()
    with pytest.raises(Stopped):
        list(Campaign(varied(0, 1, 2, 3), store()).run(in_turn(stopped)))
    assert lines(store()) == [{"version": VERSION}, *rows(0, 1)]
    assert list(Campaign(varied(0, 1, 2, 3), store()).run(in_turn(again))) == rows(0, 1, 2, 3)
    assert list(Campaign(varied(4, 3, 2), store()).run(in_turn(longer))) == rows(4, 3, 2)
    assert (stopped.ran, again.ran, longer.ran) == ([0, 1], [2, 3], [4])


def test_a_row_is_kept_before_the_next_variation_is_run(store: Callable[[], RowStore]) -> None:
    kept: list[int] = []

    def run(number: int) -> int:
        kept.append(len(store().read(range(3))))
        return number * number

    list(Campaign(varied(0, 1, 2), store()).run(in_turn(run)))
    assert kept == [0, 1, 2]


def test_rows_that_do_not_count_are_made_again(store: Callable[[], RowStore]) -> None:
    """And the last row of a key is its row."""
    list(Campaign(varied(1, 2), store()).run(in_turn(lambda number: -number)))
    run = Squares()
    again = Campaign(varied(1, 2), store(), lambda row: row["square"] == -2)
    assert list(again.run(in_turn(run))) == [*rows(1), {"n": 2, "square": -2}] and run.ran == [1]
    assert list(Campaign(varied(1), store()).run(in_turn(Squares(until=1)))) == rows(1)


def test_nobody_works_where_nothing_waits(store: Callable[[], RowStore]) -> None:
    def nobody(waiting: Sequence[Variation[int, int]]) -> Ended[int, int]:
        raise AssertionError("was started")
        yield

    list(Campaign(varied(1), store()).run(in_turn(Squares())))
    written = store().path.stat().st_mtime_ns
    assert list(Campaign(varied(1), store()).run(nobody)) == rows(1)
    assert store().path.stat().st_mtime_ns == written


def test_a_campaign_that_is_left_stops_its_workers() -> None:
    ended: list[str] = []

    def work(waiting: Sequence[Variation[int, int]]) -> Ended[int, int]:
        try:
            yield from in_turn(Squares())(waiting)
        finally:
            ended.append("stopped")

    def fail() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(Campaign(varied(1, 2)).run(work, fail))
    assert ended == ["stopped"]


def test_side_by_side_rows_are_in_order_and_kept_as_they_come(store: Callable[[], RowStore]) -> None:
    """All three run at once, and the last one ends first."""
    together, done = Barrier(3), [Event() for _ in range(4)]
    done[3].set()

    def run(number: int, over: Event) -> int:
        together.wait(60)
        assert done[number + 1].wait(60)
        return number * number

    def told() -> Iterator[None]:
        for number in (2, 1, 0):
            done[number].set()
            yield

    steps = told()
    assert list(Campaign(varied(0, 1, 2), store()).run(side_by_side(run, 3), lambda: next(steps))) == rows(0, 1, 2)
    assert lines(store()) == [{"version": VERSION}, *rows(2, 1, 0)]


def test_what_still_runs_is_told_to_stop() -> None:
    """One fails; another one waits for that, and those that have not begun never do."""
    begun: list[int] = []

    def run(number: int, over: Event) -> int:
        begun.append(number)
        if number == 0:
            raise Stopped
        assert over.wait(60)
        return 0

    with pytest.raises(Stopped):
        list(Campaign(varied(1, 0, *range(2, 50))).run(side_by_side(run, 2)))
    assert len(begun) < 10


@patch.dict(os.environ)  # Dask's nannies change it
def test_what_a_cluster_loses_has_a_row(store: Callable[[], RowStore], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")

    def run(number: int) -> int:
        return number * number // (number != 2)

    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None,
                                  local_directory=tmp_path / "dask") as cluster:
        workers = on_cluster(run, cluster.scheduler_address, lambda error: -1)
        found = list(Campaign(varied(0, 1, 2, 3), store()).run(workers))
    assert found == [*rows(0, 1), {"n": 2, "square": -1}, *rows(3)]


def test_lines_that_were_not_finished_are_none(store: Callable[[], RowStore]) -> None:
    list(Campaign(varied(0, 1), store()).run(in_turn(Squares())))
    whole = store().path.read_bytes()
    for cut in range(len(whole)):
        store().path.write_bytes(whole[:cut])
        there = [number for number in (0, 1) if whole[:cut].count(b"\n") >= number + 2]
        run = Squares()
        assert list(Campaign(varied(0, 1), store()).run(in_turn(run))) == rows(0, 1)
        assert run.ran == [number for number in (0, 1) if number not in there]
        assert store().read([0, 1]) == {row["n"]: row for row in rows(0, 1)}


def test_two_campaigns_may_share_a_file(store: Callable[[], RowStore]) -> None:
    one, other = (Campaign(varied(*numbers), store()).run(in_turn(Squares())) for numbers in ((0, 1), (1, 2)))
    assert [next(one), next(other), next(other), next(one)] == rows(0, 1, 2, 1)
    assert store().read(range(3)) == {row["n"]: row for row in rows(0, 1, 2)}


def test_version_1_had_no_head(store: Callable[[], RowStore]) -> None:
    store().make_folder()
    store().path.write_text(json.dumps(rows(1)[0]) + "\n")
    run = Squares()
    assert list(Campaign(varied(0, 1), store()).run(in_turn(run))) == rows(0, 1)
    assert run.ran == [0] and lines(store()) == rows(1, 0)


def test_a_newer_version_is_refused(store: Callable[[], RowStore]) -> None:
    store().make_folder()
    store().path.write_text(f'{{"version": {VERSION + 1}}}\n{{"n": 1}}\n')
    message = f"rows.ndjson: it is of version {VERSION + 1}, and this Luthier-py reads {VERSION}; take a newer one$"
    with pytest.raises(Unsupported, match=message):
        Campaign(varied(1), store())
