"""Events of the Trace Event Format, as its JSON object form has them.

In: what happened on a track of a process, in microseconds; names of both. Out: an event, or the events that say a name.
Invariant: tracks are shown in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from luthier_py.report.plain import Json


def complete(name: str, process: int, track: int, start: float, duration: float, facts: Json) -> Json:
    """Something with a begin and an end."""
    return {"name": name, "ph": "X", "pid": process, "tid": track, "ts": start, "dur": duration, "args": facts}


def instant(name: str, process: int, track: int, time: float, facts: Json) -> Json:
    """Something that takes no time."""
    return {"name": name, "ph": "i", "pid": process, "tid": track, "ts": time, "s": "t", "args": facts}


def process_name(process: int, name: str) -> Json:
    """The metadata event by which a viewer shows a process under a name."""
    return _about("process_name", process, 0, {"name": name})


def track_name(process: int, track: int, name: str) -> Iterator[Json]:
    """And the track's place among the others."""
    yield _about("thread_name", process, track, {"name": name})
    yield _about("thread_sort_index", process, track, {"sort_index": track})


def _about(what: str, process: int, track: int, facts: Json) -> Json:
    return {"name": what, "ph": "M", "pid": process, "tid": track, "args": facts}
