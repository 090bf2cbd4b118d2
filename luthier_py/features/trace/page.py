"""When launches and their work-groups ran, and what programs did, for trace viewers: Perfetto, chrome://tracing.

In: launches with the cycle model's times, the verdicts of a tool, the records of programs. Out: a document of the Trace
Event Format, JSON object form: complete events (``X``), instants (``i``) and names (``M``); a microsecond of a device
is a cycle of the model, any other is one. Invariant: events of one track are in order and do not overlap, since
work-groups that share a compute unit have a track each; ranges of a thread nest. Of what is left out, its launch says
how much.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from luthier_py.base.names import demangle
from luthier_py.base.storage import write_file
from luthier_py.features.trace.program_trace import program_events
from luthier_py.features.trace.trace_events import complete, process_name, track_name
from luthier_py.report.plain import Json

MOST_GROUPS = 20_000  # of a launch
INSTRUMENTATION, DEVICES = 0, 1  # processes of the trace: the second is device 0, and so on
LAUNCHES = 0  # the first track of a device
SLOTS = 64  # tracks of a compute unit
MICROSECONDS = 1_000_000


def trace_document(
    launches: Sequence[Mapping[str, Any]], verdicts: Sequence[Mapping[str, Any]] = (), told: bytes = b""
) -> Json:
    """``told``: what programs have written to LUTHIER_TRACED."""
    of_programs, unfinished = program_events(told)
    events = [*_stages(verdicts), *_device_events(launches)]
    tracks = dict.fromkeys((event["pid"], event["tid"]) for event in events)
    events.sort(key=lambda event: (event["pid"], event["tid"], event["ts"], -event["dur"]))
    return {"traceEvents": [*_names(tracks), *events, *of_programs], "displayTimeUnit": "ns",
            "otherData": {"clock": "a microsecond of a device is a cycle of the emulator's model; all else is time",
                          "unfinished": unfinished,
                          "records": {name: count for facts in verdicts for name, count in facts["records"].items()}}}


def save_trace(
    path: Path, launches: Sequence[Mapping[str, Any]], verdicts: Sequence[Mapping[str, Any]], told: bytes = b""
) -> None:
    """Compressed if its name ends in .gz; raises OSError."""
    data = json.dumps(trace_document(launches, verdicts, told), separators=(",", ":")).encode()
    write_file(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _stages(verdicts: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
    """What it took to instrument each kernel, one after the other."""
    now = 0.0
    for kernel in (kernel for facts in verdicts for kernel in facts["kernels"]):
        start, name = now, demangle(kernel["name"])
        for stage, seconds in kernel["seconds"].items():
            yield complete(stage, INSTRUMENTATION, LAUNCHES + 1, now, seconds * MICROSECONDS, {"kernel": name})
            now += seconds * MICROSECONDS
        yield complete(name, INSTRUMENTATION, LAUNCHES, start, now - start, {"sites": kernel["sites"]})


def _device_events(launches: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
    for number, launch in enumerate(launches):
        if times := launch.get("times"):
            device, groups = DEVICES + launch["device"], len(times["units"])
            facts = {"launch": number, "work_groups": groups, "left_out": max(0, groups - MOST_GROUPS)}
            yield complete(demangle(launch["kernel"]), device, LAUNCHES, times["begin"], times["end"] - times["begin"],
                         facts)  # fmt: skip
            yield from _groups(device, times)


def _groups(device: int, times: Mapping[str, Any]) -> Iterator[Json]:
    """Each on the first track of its compute unit that is free."""
    free: dict[tuple[int, int], int] = {}
    found = zip(times["begins"], times["ends"], times["units"], times["waves"], strict=True)
    rows = sorted((begin, group, end, unit, waves) for group, (begin, end, unit, waves) in enumerate(found))
    for begin, group, end, unit, waves in rows[:MOST_GROUPS]:
        slot = next(slot for slot in range(len(rows)) if free.get((unit, slot), begin) <= begin)
        free[unit, slot] = end
        ran = [cycles for cycles in waves if cycles >= 0]
        yield complete(f"work-group {group}", device, 1 + unit * SLOTS + slot, begin, end - begin, {"wave_cycles": ran})


def _names(tracks: Iterable[tuple[int, int]]) -> Iterator[Json]:
    processes = dict.fromkeys(process for process, _ in tracks)
    for process in processes:
        yield process_name(process, _process(process))
    for process, track in sorted(tracks):
        yield from track_name(process, track, _track(process, track))


def _process(process: int) -> str:
    return "instrumentation" if process == INSTRUMENTATION else f"device {process - DEVICES}"


def _track(process: int, track: int) -> str:
    if track == LAUNCHES:
        return "kernels" if process == INSTRUMENTATION else "launches"
    if process == INSTRUMENTATION:
        return "stages"
    unit, slot = divmod(track - 1, SLOTS)
    return f"compute unit {unit}" + (f", {slot + 1}" if slot else "")
