"""Documents of the Trace Event Format, read as strictly as Perfetto could."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Event = dict[str, Any]
_EVERY = {"name", "ph", "pid", "tid", "args"}
SPECIFIED = {"X": _EVERY | {"ts", "dur"}, "i": _EVERY | {"ts", "s"}, "M": _EVERY}
"""Keys of complete events, instants and metadata."""
SLACK = 1e-6  # of a microsecond: sums of floats


TrackNumber = tuple[int, int]


def tracks(document: dict[str, Any], nested: frozenset[TrackNumber] = frozenset()) -> dict[TrackNumber, list[Event]]:
    """Events by track; each is as specified, in order, and beside the others of its track, or on one of ``nested``
    inside of them."""
    found: dict[TrackNumber, list[Event]] = defaultdict(list)
    for event in document["traceEvents"]:
        assert event.keys() == SPECIFIED[event["ph"]]
        assert event["ph"] != "i" or event["s"] == "t"
        if event["ph"] != "M":
            found[event["pid"], event["tid"]].append(event)
    for track, events in found.items():
        check_order(events, track in nested)
    assert names_of(document).keys() == found.keys()
    return found


def names_of(document: dict[str, Any]) -> dict[TrackNumber, str]:
    """Of tracks."""
    return {(event["pid"], event["tid"]): event["args"]["name"] for event in document["traceEvents"]
            if event["ph"] == "M" and event["name"] == "thread_name"}  # fmt: skip


def check_order(events: list[Event], nested: bool) -> None:
    around: list[float] = []  # ends of what has begun
    last = 0.0
    for event in events:
        begin, end = event["ts"], event["ts"] + event.get("dur", 0)
        assert last <= begin + SLACK and begin <= end
        last = begin
        while around and around[-1] <= begin + SLACK:
            around.pop()
        assert not around or nested and end <= around[-1] + SLACK
        around.append(end)
