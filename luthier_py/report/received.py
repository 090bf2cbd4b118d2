"""What channels sent, on its way from slots to the tool and to files; and how many records there were.

In: slots of a channel, in order, and the launches that were begun. Out: calls of the tool's ``received``, files, and a
count of what became of each record. Invariant: pushed = received + dropped, and received = kept + failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import printable_lines
from luthier_py.base.late_modules import np
from luthier_py.base.records import dataclass
from luthier_py.report.record_files import RecordFile, record_file
from luthier_py.rewrite.tool import Channel, LaunchResult, Tool
from luthier_py.rewrite.tool.hooks.printing import PRINTED, failures, line_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from luthier_py.report.plain import Json

KNOWN_LAUNCHES = 1 << 14


@dataclass(slots=True)
class RecordCount:
    """Mutable: the records of one channel so far."""

    received: int = 0
    dropped: int = 0
    failed: int = 0
    """That came here and no further: the tool or the file did not take them."""

    @property
    def pushed(self) -> int:
        """Records that waves have pushed: those that came, and those that found no room."""
        return self.received + self.dropped

    @property
    def kept(self) -> int:
        """Records that the tool and the file have taken."""
        return self.received - self.failed

    def facts(self) -> Json:
        """JSON-ready: the four counts."""
        return {"pushed": self.pushed, "kept": self.kept, "dropped": self.dropped, "failed": self.failed}

    def __str__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.pushed} records, {self.kept} kept, {self.dropped} dropped{failed}"


class Received:
    """Mutable: what one tool gets. After the tool or a file has failed once, records are counted as failed alone."""

    def __init__(self, tool: Tool) -> None:
        self.tool, self._broken = tool, False
        self.counts: dict[str, RecordCount] = {}
        self._launches: dict[int, LaunchResult] = {}
        self._files: dict[Channel, RecordFile] = {}
        self.failures: list[str] = []
        """What assertions of device code said."""

    def begin(self, launch: LaunchResult) -> None:
        """Accept records of a launch. Where ends of launches are not reported, the last KNOWN_LAUNCHES are
        remembered."""
        self._launches[launch.index] = launch
        if len(self._launches) > KNOWN_LAUNCHES:
            del self._launches[next(iter(self._launches))]

    def end(self, launch: int) -> None:
        """No more records will."""
        self._launches.pop(launch, None)

    def count(self, channel: Channel) -> RecordCount:
        """The counts of a channel, which begin at 0 for one that has sent nothing yet."""
        return self.counts.setdefault(self.tool.name_channel(channel), RecordCount())

    def take(self, channel: Channel, slots: NDArray[Any]) -> None:
        """Pass what was taken out of a ring to the tool and its file; raises what these raise, the first time."""
        count = self.count(channel)
        count.received += len(slots)
        count.failed += len(slots)
        if self._broken:
            return
        self._broken = True  # until all went well
        for number, part in _by_launch(slots):
            self._hand_on(channel, number, channel.record.unpack_records(part))
            count.failed -= len(part)
        self._broken = False

    def close(self) -> None:
        """Files are complete; raises what writing them raises."""
        files, self._files = list(self._files.values()), {}
        for file in files:
            file.close()

    def _hand_on(self, channel: Channel, number: int, records: NDArray[Any]) -> None:
        if channel is PRINTED:
            for record in records:
                print(printable_lines(line_of(record)), flush=True)
            self.failures += failures(records)
            return
        launch = self._launches.get(number) or LaunchResult(number, "", (0, 0, 0), (0, 0, 0), {})
        self.tool.received(channel, launch, records)
        path = self.tool.selection.records
        if path is not None:
            if channel not in self._files:
                name = self.tool.name_channel(channel) if len(self.tool.channels) > 1 else ""
                self._files[channel] = record_file(path, channel, name)
            self._files[channel].append(records, number)


def _by_launch(slots: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Ranges of slots of one launch each."""
    numbers = slots["#launch"]
    ends = [*(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(slots)] if len(slots) else []
    start = 0
    for end in ends:
        yield int(numbers[start]), slots[start:end]
        start = end
