"""`--trace` of a program: what its streams did, in the order in which it was asked for, its ranges and its marks."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from trace_events import Event, names_of, tracks

from luthier_py.features.exec.execute import execute
from luthier_py.features.settings.run_settings import run_settings
from luthier_py.features.trace.page import DEVICES, LAUNCHES, trace_document
from luthier_py.features.trace.program_trace import PROGRAMS, program_events, read_records
from luthier_py.host.native.protocol import TRACED, Traced
from luthier_py.host.worker.device.traced import FILE, CommandTrace
from luthier_py.samples import FOLDER

HostProgram = Callable[..., Path]
IN_RANGES = [
    [], ["step"], ["step", "forward pass"], ["step"], ["epoch"], ["epoch", "step"], ["epoch", "forward"], ["step"], [],
]  # fmt: skip
CODE = str(FOLDER / "saxpy.co")


def traced(program: Path, what: str, path: Path, clock: str | None = None) -> dict[str, list[Event]]:
    """Events by the names of their tracks."""
    settings = run_settings("emulator:gfx90a", {"--clock": clock}, times=True)
    done = execute([str(program), CODE, what], settings, trace=path)
    document = json.loads(path.read_text())
    assert done.exit_code == 0 and document["otherData"]["unfinished"] == 0
    names = names_of(document)
    assert (DEVICES in {process for process, _ in names}) == (clock is None)
    of_threads = frozenset(track for track, name in names.items() if name.startswith("thread"))
    found = tracks(document, of_threads)
    if clock is None:
        assert len(found[DEVICES, LAUNCHES]) == len(done.launches)
    return {names[track]: events for track, events in found.items() if track[0] >= PROGRAMS}


@pytest.fixture
def marking(host_program: HostProgram) -> Path:
    return host_program("ranges_program", "-Wl,--no-as-needed", "-l:libroctx64.so.4")


def end(event: Event) -> float:
    return float(event["ts"] + event.get("dur", 0))


def test_streams_are_tracks_with_what_they_did(marking: Path, tmp_path: Path) -> None:
    found = traced(marking, "streams", tmp_path / "trace.json", "instructions")
    [thread] = [events for name, events in found.items() if name.startswith("thread")]
    first, then = found["device 0 (card), stream 1: first"], found["device 0 (card), stream 2"]
    assert [event["name"] for event in first] == ["copy, host to device", "saxpy", "fill", "event"]
    assert [event["name"] for event in then] == ["saxpy", "copy, device to host"]
    assert [event["args"].get("bytes") for event in (*first, *then)] == [4096, None, 2048, None, None, 4096]
    assert [event["args"].get("launch") for event in (*first, *then)] == [None, 0, None, None, 1, None]
    assert end(first[-1]) <= then[0]["ts"]  # it waits for the event
    assert [event["args"].get("ranges") for event in (*first, *then)] == [["all"]] * 5 + [None]
    assert [(event["name"], event["ph"]) for event in thread] == [("all", "X")] and thread[0]["ts"] <= first[0]["ts"]


def test_ranges_and_marks_are_tracks_of_threads(marking: Path, tmp_path: Path) -> None:
    """And the model's launches are there beside those of the streams, as many."""
    found = traced(marking, "threads", tmp_path / "trace.json")
    launches = {event["args"]["launch"]: event for event in found["device 0, default stream"]}
    assert [launches[number]["args"].get("ranges", []) for number in range(9)] == IN_RANGES
    [second] = [events for name, events in found.items() if name.endswith(": second")]
    [own] = [events for name, events in found.items() if name == f"thread {launches[0]['args']['thread']}"]
    assert [event["name"] for event in own] == ["step", "forward pass", "half of it"] and own[2]["ph"] == "i"
    assert [(event["name"], event["args"]) for event in second] == [("forward", {"ended": False})]
    [epoch] = found["ranges of the process"]
    inside = {number for number, event in launches.items() if epoch["ts"] <= event["ts"] and end(event) <= end(epoch)}
    assert inside == {4, 5, 6}


def test_any_mistake_of_a_program_is_drawn(marking: Path, tmp_path: Path) -> None:
    found = traced(marking, "mistakes", tmp_path / "trace.json", "instructions")
    [thread] = [events for name, events in found.items() if name.startswith("thread")]
    assert {event["name"] for event in thread} == {"", 'odd \\xff"\n{\x01', "x" * 20000}
    assert [event["args"] for event in found["ranges of the process"]] == [{"ended": False}]


def record(kind: Traced, time: int, name: str = "", number: int = 0, thread: int = 5, end: int = 0, asked: int = 0,
           process: int = 77) -> bytes:  # fmt: skip
    text = name.encode()
    return TRACED.pack(kind, process, thread, 0, 0, 0, number, asked, time, end, 0, len(text)) + text


def shown(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(event["name"], event["tid"], event["ts"], event.get("dur")) for event in events if event["ph"] != "M"]


def test_ranges_of_a_process_that_overlap_have_a_track_each() -> None:
    data = b"".join([
        record(Traced.START, 1000, "a", 1), record(Traced.START, 2000, "b", 2), record(Traced.STOP, 3000, number=1),
        record(Traced.STOP, 4000, number=2), record(Traced.STOP, 4500, number=9), record(Traced.START, 5000, "c", 3),
        record(Traced.STOP, 6000, number=3)])  # fmt: skip
    assert shown(program_events(data)[0]) == [("a", 0, 0, 2), ("c", 0, 4, 1), ("b", 1, 1, 2)]
    tracks(trace_document([], told=data))


def test_what_a_worker_has_not_done_is_counted_and_a_record_that_was_cut_is_none() -> None:
    data = record(Traced.LAUNCH, 0, "k", 1, asked=1000) + record(Traced.LAUNCH, 0, "k", 2, asked=1500)
    done = record(Traced.DONE, 2000, number=1, end=2500) + record(Traced.DONE, 2600, number=2, end=2700, process=78)
    events, unfinished = program_events(data + done + record(Traced.MARK, 9000, "lost")[:-1])
    assert (shown(events), unfinished) == ([("k", 0, 1, 0.5)], 1)
    assert len(list(read_records(data))) == 2


def test_behind_a_record_that_a_full_disk_has_cut_there_is_none() -> None:
    first, cut, last = (record(Traced.MARK, 1000, name) for name in ("first", "cut", "last"))
    data = first + cut[:-2] + last
    assert next(iter(read_records(data))).name == "first"
    assert shown(program_events(data)[0])[0] == ("first", 0, 0, None)


@pytest.mark.parametrize(("path", "why"), [
    ("/dev/full", "No space left on device"), ("/dev/null/file", "Not a directory")])  # fmt: skip
def test_a_trace_that_cannot_be_written_stops_nothing(path: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    trace = CommandTrace({FILE: path}, 1)
    for number in (1, 2):
        trace.time_action(number, partial(done.append, number))()
    assert done == [1, 2] and capsys.readouterr().err == f"luthier: {FILE}={path}: {why}\n"
