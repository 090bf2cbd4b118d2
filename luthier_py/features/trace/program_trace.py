"""What programs did while they ran, for trace viewers: ranges, marks, and what their streams carried out.

In: the records that LUTHIER_TRACED has collected (host/native/traced.h). Out: events of the Trace Event Format, with
this computer's time. Invariant: what is on one track nests or comes one after the other; work that a record requested
and no worker has done is counted, not drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import IntEnum

from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass, field
from luthier_py.features.trace.trace_events import complete, instant, process_name, track_name
from luthier_py.host.native.protocol import TRACED, Traced
from luthier_py.report.plain import Json

PROGRAMS = 1 << 20  # and its number is that of a program's process in the trace: beside devices
NANOSECONDS = 1000  # of a microsecond
_WORKS = {Traced.LAUNCH, Traced.COPY, Traced.FILL, Traced.CALL, Traced.EVENT}
_SHOWN = {Traced.FILL: "fill", Traced.CALL: "host function", Traced.EVENT: "event"}


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """Times are nanoseconds; ``number``: of a range of the process, or of a work in its worker."""

    kind: Traced
    name: str
    process: int
    thread: int
    device: int
    stream: int
    handle: int
    number: int
    asked: int
    begin: int
    end: int
    bytes: int

    @property
    def time(self) -> int:
        """The time of the program's call."""
        return self.asked or self.begin


class Track(IntEnum):
    """Kinds of tracks, in the order in which they are shown."""

    THREAD = 0
    PROCESS = 1  # its ranges, which may overlap
    STREAM = 2


TrackKey = tuple[int, Track, int, int]
"""A track: the process; its kind; thread or device; stream, or number among those that overlap."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An event on a track; ``end`` is None for what takes no time."""

    place: TrackKey
    name: str
    begin: int
    end: int | None
    facts: Json


@dataclass(slots=True)
class _Sweep:
    """Mutable: what is known up to a moment; ranges that are open, by who may end them, with their names and begins."""

    done: dict[tuple[int, int], TraceRecord]
    pushed: defaultdict[tuple[int, int], list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    started: defaultdict[int, dict[int, tuple[str, int]]] = field(default_factory=lambda: defaultdict(dict))
    free: dict[tuple[int, int], int] = field(default_factory=dict)
    names: dict[TrackKey, str] = field(default_factory=dict)
    streams: dict[tuple[int, int], str] = field(default_factory=dict)
    launches: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    unfinished: int = 0

    def take(self, record: TraceRecord) -> Iterator[Moment]:
        thread: TrackKey = (record.process, Track.THREAD, record.thread, 0)
        match record.kind:
            case Traced.PUSH:
                self.pushed[record.process, record.thread].append((record.name, record.begin))
            case Traced.POP if stack := self.pushed[record.process, record.thread]:
                name, begin = stack.pop()
                yield Moment(thread, name, begin, record.begin, {})
            case Traced.START:
                self.started[record.process][record.number] = record.name, record.begin
            case Traced.STOP if record.number in self.started[record.process]:
                yield self._place_range(record.process, *self.started[record.process].pop(record.number), record.begin,
                                        {})
            case Traced.MARK:
                yield Moment(thread, record.name, record.begin, None, {})
            case Traced.THREAD:
                self.names[thread] = record.name
            case Traced.STREAM:
                self.streams[record.process, record.handle] = record.name
            case Traced.DEVICE:
                self.names[record.process, Track.STREAM, record.device, -1] = record.name
            case kind if kind in _WORKS:
                yield from self._emit_stream_work(record)

    def close(self, end: int) -> Iterator[Moment]:
        """Ranges that the program has not ended."""
        for (process, thread), stack in self.pushed.items():
            for name, begin in stack:
                yield Moment((process, Track.THREAD, thread, 0), name, begin, end, {"ended": False})
        for process, ranges in self.started.items():
            for name, begin in ranges.values():
                yield self._place_range(process, name, begin, end, {"ended": False})

    def _place_range(self, process: int, name: str, begin: int, end: int, facts: Json) -> Moment:
        """On the first track where nothing that began before ends after."""
        slot = next(slot for slot in range(len(self.free) + 1) if self.free.get((process, slot), 0) <= begin)
        self.free[process, slot] = end
        return Moment((process, Track.PROCESS, 0, slot), name, begin, end, facts)

    def _emit_stream_work(self, record: TraceRecord) -> Iterator[Moment]:
        done = self.done.get((record.process, record.number)) if record.number else record
        number = self.launches[record.process]
        self.launches[record.process] += record.kind is Traced.LAUNCH
        if done is None:
            self.unfinished += 1
            return
        place: TrackKey = (record.process, Track.STREAM, record.device, record.stream)
        self.names.setdefault(place, self.streams.get((record.process, record.handle), ""))
        within = [name for name, _ in (*self.started[record.process].values(),
                                       *self.pushed[record.process, record.thread])]  # fmt: skip
        facts: Json = {"thread": record.thread, **({"ranges": within} if within else {})}
        if record.kind is Traced.LAUNCH:
            yield Moment(place, demangle(record.name), done.begin, done.end, {"launch": number, **facts})
        elif record.kind is Traced.EVENT:
            yield Moment(place, _SHOWN[record.kind], done.end, None, facts)
        else:
            name = f"copy, {record.name}" if record.kind is Traced.COPY else _SHOWN[record.kind]
            yield Moment(place, name, done.begin, done.end, {"bytes": record.bytes, **facts})


def read_records(data: bytes) -> Iterator[TraceRecord]:
    """Whole ones; behind one that was cut, as on a full disk, there is none."""
    at, known = 0, frozenset(map(int, Traced))
    while at + TRACED.size <= len(data):
        kind, *numbers, size = TRACED.unpack_from(data, at)
        start, at = at + TRACED.size, at + TRACED.size + size
        if at > len(data) or kind not in known:
            return
        yield TraceRecord(Traced(kind), data[start:at].decode(errors="backslashreplace"), *numbers)


def program_events(data: bytes) -> tuple[list[Json], int]:
    """Events with the names of their tracks; and how many works were requested and not done."""
    records = list(read_records(data))
    if not records:
        return [], 0
    first, last = (choose(time for one in records for time in (one.time, one.end) if time) for choose in (min, max))
    sweep = _Sweep({(one.process, one.number): one for one in records if one.kind is Traced.DONE})
    moments = [moment for record in sorted(records, key=lambda one: one.time) for moment in sweep.take(record)]
    moments += sweep.close(last)
    moments.sort(key=lambda one: (one.place, one.begin, -(one.end or one.begin)))
    tracks = {place: number for number, place in enumerate(sorted({moment.place for moment in moments}))}
    return [*_names(tracks, sweep.names), *(_event(one, tracks[one.place], first) for one in moments)], sweep.unfinished


def _event(moment: Moment, track: int, first: int) -> Json:
    process, start = PROGRAMS + moment.place[0], (moment.begin - first) / NANOSECONDS
    if moment.end is None:
        return instant(moment.name, process, track, start, moment.facts)
    return complete(moment.name, process, track, start, (moment.end - moment.begin) / NANOSECONDS, moment.facts)


def _names(tracks: dict[TrackKey, int], names: dict[TrackKey, str]) -> Iterator[Json]:
    for process in sorted({place[0] for place in tracks}):
        yield process_name(PROGRAMS + process, f"program {process}")
    for place, number in tracks.items():
        given = names.get(place)
        yield from track_name(PROGRAMS + place[0], number, _track(place, names) + (f": {given}" if given else ""))


def _track(place: TrackKey, names: dict[TrackKey, str]) -> str:
    process, kind, first, second = place
    if kind is Track.THREAD:
        return f"thread {first}"
    if kind is Track.PROCESS:
        return "ranges of the process" + (f", {second + 1}" if second else "")
    card = names.get((process, kind, first, -1), "")
    return f"device {first}{f' ({card})' * bool(card)}, {f'stream {second}' if second else 'default stream'}"
