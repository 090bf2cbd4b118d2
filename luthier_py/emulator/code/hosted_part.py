"""A host function in use: how far its machine code is, and how much waves run of it.

In: what the translator made. Out: its machine code, the best that is there. Invariant: code of every effort gives the
same results and counts, so one may take the place of another whenever no wave is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from luthier_py.base import llvm
from luthier_py.base.llvm import Effort
from luthier_py.base.records import dataclass
from luthier_py.emulator.code.compile_queue import COMPILE_QUEUE, Job
from luthier_py.emulator.code.engine import keep_code, read_cached_code
from luthier_py.emulator.options.settings import FIRST_COUNTER, CounterKind
from luthier_py.emulator.translation.translated import HostPart

HOT = 4_000_000
"""Wave instructions after which better code pays."""


@dataclass(slots=True, eq=False)
class HostedPart:
    """Mutable. Methods are given what makes its LLVM IR, which may mean to translate it again."""

    part: HostPart
    entry: int               # of the function that it is a part of
    effort: Effort           # to begin with
    first: dict[str, int]    # its first counter and memory site
    starts: tuple[int, ...]  # where waves enter it, and nothing else that was there before
    ir: str | None           # until it is compiled
    job: Job | None = None   # in which code is being made

    def begin(self, text: Callable[[], str], effort: Effort) -> None:
        """Begin to compile it, while other threads continue."""
        if self.job is None:
            self.job = COMPILE_QUEUE.begin(lambda: llvm.host_object(text(), effort))

    def code(self, text: Callable[[], str]) -> tuple[bytes, Effort]:
        """Machine code to begin with, or better."""
        job, self.job = self.job, None
        for effort in {Effort.GENERATE: None, self.effort: None}:
            if (code := read_cached_code(self.part.digest, effort)) is not None:
                return code, effort
        made = None if job is None else COMPILE_QUEUE.result(job)
        if made is None:
            made = llvm.host_object(text(), self.effort)
        keep_code(self.part.digest, self.effort, made)
        self.ir = None
        return made, self.effort

    @property
    def is_kept(self) -> bool:
        """Whether the cache on disk has its machine code, of the effort to begin with or better."""
        return any(read_cached_code(self.part.digest, effort) is not None for effort in (Effort.GENERATE, self.effort))

    def take_improved_code(self) -> bytes | None:
        """What a job for better code gave."""
        assert self.job is not None
        if (made := self.job.made) is not None:
            keep_code(self.part.digest, Effort.GENERATE, made)
        return made


class Improvable:
    """Mutable: host functions that may get better code, and how many wave instructions each has run."""

    def __init__(self) -> None:
        self.parts: tuple[HostedPart, ...] = ()
        self._weights: dict[HostedPart, list[tuple[int, int]]] = {}
        self._executed: dict[HostedPart, int] = {}

    def add(self, part: HostedPart) -> None:
        """Count from now on how many wave instructions the part runs: it runs code that was compiled fast."""
        self.parts, self._executed[part] = (*self.parts, part), 0
        self._weights[part] = _counters(part)

    def remove(self, part: HostedPart) -> None:
        """Stop counting: its better code is there, or could not be made."""
        self.parts = tuple(one for one in self.parts if one is not part)
        del self._executed[part], self._weights[part]

    def note(self, counters: memoryview) -> None:
        """A launch has ended."""
        for part, executed in zip(self.parts, self._executions(counters), strict=True):
            self._executed[part] += executed

    def hot(self, running: Sequence[memoryview]) -> list[HostedPart]:
        """Those that run often, by launches that have ended and the counters of others."""
        each = [self._executions(counters) for counters in running]
        return [part for place, part in enumerate(self.parts)
                if self._executed[part] + sum(one[place] for one in each) >= HOT]

    def _executions(self, counters: memoryview) -> list[int]:
        return [sum(counters[number] * length for number, length in self._weights[part]) for part in self.parts]


def _counters(hosted: HostedPart) -> list[tuple[int, int]]:
    """Number of the counter of each block, and how many instructions that has."""
    numbered = enumerate(hosted.part.counters, hosted.first[FIRST_COUNTER])
    return [(number, end - start) for number, (what, start, end) in numbered if what is CounterKind.WAVES]
