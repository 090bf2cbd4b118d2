"""Why accesses conflict, and which other layout of LDS would help.

In: samples of a kernel's accesses, the target's banks. Out: a cause for each instruction; the best padding and the best
swizzle for the whole kernel, with the cycles that every instruction takes then. A layout moves each word of LDS, as if
all of it were one array of such rows, and is tried on the sampled addresses with the same bank model that counts.
Invariant: a layout that would split or misalign an access is not proposed, nor is what gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from luthier_py.isa.timing.lds_banks import BankModel, Way, cycles_of

from .results import Site
from .samples import Sample

ROWS_BYTES = tuple(1 << bits for bits in range(5, 13))
PADDINGS = (1, 2, 4)  # of the widest access


class Layout(Protocol):
    """Where words of LDS go, and how much memory that costs."""

    @property
    def text(self) -> str: ...
    @property
    def extra(self) -> float: ...
    def moved(self, word: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Padding:
    """``by`` unused words after every ``row`` words."""

    row: int
    by: int

    @property
    def text(self) -> str:
        return f"pad by {4 * self.by} bytes after every {4 * self.row}"

    @property
    def extra(self) -> float:
        return self.by / self.row

    def moved(self, word: int) -> int:
        return word + word // self.row * self.by


@dataclass(frozen=True, slots=True)
class Swizzle:
    """In each row of ``row`` words, ``1 << shift`` neighbours trade places with others by the row's number."""

    row: int
    mask: int
    shift: int

    @property
    def text(self) -> str:
        row = (4 * self.row).bit_length() - 1
        return f"swizzle: byte address ^ (address >> {row} & {self.mask}) << {self.shift + 2}"

    @property
    def extra(self) -> float:
        return 0

    def moved(self, word: int) -> int:
        return word ^ (word // self.row & self.mask) << self.shift


@dataclass(frozen=True, slots=True)
class Remedy:
    """``cycles``: of each instruction, by its address."""

    layout: Layout
    cycles: dict[int, int]

    @property
    def total(self) -> int:
        return sum(self.cycles.values())

    def facts(self) -> dict[str, Any]:
        return {"text": self.layout.text, "cycles": self.total, "extra_memory": self.layout.extra,
                "instructions": [{"pc": pc, "cycles": count} for pc, count in self.cycles.items()]}  # fmt: skip


def sampled_cycles(samples: Iterable[Sample], model: BankModel, wave_size: int) -> dict[int, int]:
    """Of each instruction as it is; what was counted, unless accesses of one kind differ."""
    found: dict[int, int] = {}
    for sample in samples:
        pc = sample.site.instr.pc
        found[pc] = found.get(pc, 0) + sample.times * sample.cycles(model, wave_size)
    return found


def remedies(samples: Sequence[Sample], model: BankModel, wave_size: int) -> list[Remedy]:
    """The best of each sort, best first; none where nothing helps."""
    now = sum(sampled_cycles(samples, model, wave_size).values())
    widest = max((sample.site.access.dwords for sample in samples), default=1)
    unit = 1 << (widest - 1).bit_length()
    found = []
    for layouts in (_paddings(unit), _swizzles(unit)):
        tried = (_tried(layout, samples, model, wave_size) for layout in layouts)
        better = [each for each in tried if each is not None and each.total < now]
        found += sorted(better, key=lambda each: (each.total, each.layout.extra))[:1]
    return sorted(found, key=lambda each: each.total)


def _paddings(unit: int) -> Iterator[Layout]:
    for row in ROWS_BYTES:
        yield from (Padding(row // 4, unit * many) for many in PADDINGS if unit * many < row // 4)


def _swizzles(unit: int) -> Iterator[Layout]:
    """Fewest bits first: of equal ones the simplest is proposed."""
    shift = unit.bit_length() - 1
    for bits in range(1, 6):
        for row in ROWS_BYTES:
            if bits + shift < (row // 4).bit_length():
                yield Swizzle(row // 4, (1 << bits) - 1, shift)


def _tried(layout: Layout, samples: Iterable[Sample], model: BankModel, wave_size: int) -> Remedy | None:
    """None where an access's words would not stay together, or not as aligned as they are."""
    cycles: dict[int, int] = {}
    for sample in samples:
        access, pc = sample.site.access, sample.site.instr.pc
        for words in sample.words():
            moved = {lane: layout.moved(word) for lane, word in words.items()}
            if access.dwords > 1 and not all(_stays(layout, words[lane], moved[lane], access.dwords) for lane in words):
                return None
            cycles[pc] = cycles.get(pc, 0) + sample.times * cycles_of(model, access, moved, wave_size)
    return Remedy(layout, cycles)


def _stays(layout: Layout, word: int, moved: int, dwords: int) -> bool:
    unit = 1 << (dwords - 1).bit_length()
    together = all(layout.moved(word + more) == moved + more for more in range(1, dwords))
    return together and moved % unit == word % unit


# -- causes -----------------------------------------------------------------------------------------


def cause_of(samples: Sequence[Sample], model: BankModel, wave_size: int) -> dict[str, Any] | None:
    """Of the worst of an instruction's samples, in the group of lanes that waits longest; None without a conflict.

    ``stride_bytes``: between neighbouring lanes of the group, None where that differs; ``lanes`` want ``words``
    different words of ``banks`` banks, ``deepest`` of them of one.
    """
    worst = samples[-1]  # kinds ascend
    site, words = worst.site, next(worst.words())
    service = model.service(site.access.way, site.access.dwords)
    found: dict[str, Any] = {"deepest": 1}
    for lanes in service.groups(wave_size):
        there = [lane for lane in lanes if lane in words]
        wanted = [words[lane] + more for lane in there for more in range(site.access.dwords)]
        given = wanted if site.access.way is Way.ATOMIC else sorted(set(wanted))
        banks = [word % service.banks for word in given]
        deepest = max(map(banks.count, banks), default=0)
        if deepest > found["deepest"]:
            found = {"stride_bytes": _stride(worst, there), "width_bytes": 4 * site.access.dwords, "lanes": len(there),
                     "words": len(given), "banks": len(set(banks)), "deepest": deepest, "of_banks": service.banks}
    return {**found, "text": _text(site, found)} if found["deepest"] > 1 else None


def _stride(sample: Sample, lanes: Sequence[int]) -> int | None:
    """Bytes from each lane's address to that of its neighbour, where both take part."""
    pairs = zip(lanes, lanes[1:], strict=False)
    steps = {sample.addresses[b] - sample.addresses[a] for a, b in pairs if b == a + 1}
    return steps.pop() if len(steps) == 1 else None


def _text(site: Site, found: dict[str, Any]) -> str:
    stride = found["stride_bytes"]
    apart = "at various distances" if stride is None else f"{stride} bytes apart"
    if site.access.way is Way.ATOMIC:
        return f"lanes {apart}: {found['deepest']} of {found['lanes']} modify words of one bank, one after the other"
    banks = f"{found['banks']} of {found['of_banks']} banks"
    return f"lanes {apart}: {found['words']} words in {banks}, up to {found['deepest']} in one"
