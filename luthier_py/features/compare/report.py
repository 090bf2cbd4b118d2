"""Two runs or two builds beside each other: what of their numbers is different, as data, tables and CSV.

In: two sides, each with its kernels' numbers by name. Out: what differs, greatest first. Invariant: every number of
either side is reported as different or counted as unchanged, and a kernel without a counterpart is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from luthier_py.base.errors import how_many, printable
from luthier_py.base.records import dataclass, field
from luthier_py.report.columns import align_columns
from luthier_py.report.plain import Json
from luthier_py.report.tallies import NumberName
from luthier_py.rewrite.tool import Option

COLUMNS = ("before", "after", "change", "ratio")
FACTS = ("section", "thing", "number", *COLUMNS)
NamedNumbers = Mapping[NumberName, float]


@dataclass(frozen=True, slots=True)
class RunSide:
    """``what``: a tool's name, or another word for what was counted, and ``how``: its options. ``notes``: what a reader
    has to know of it."""

    name: str
    what: str
    kernels: Mapping[str, NamedNumbers]
    how: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """None: that side has no such number, which is as good as 0."""

    name: NumberName
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        """After less before; a number that one side lacks counts as 0."""
        return (self.after or 0) - (self.before or 0)

    @property
    def ratio(self) -> float | None:
        """After by before; None where before is 0 or missing."""
        return (self.after or 0) / self.before if self.before else None

    def facts(self) -> Json:
        """A row of the columns in `FACTS`, JSON-ready."""
        return dict(zip(FACTS, (*self.name, self.before, self.after, self.change, self.ratio), strict=True))


@dataclass(frozen=True, slots=True)
class KernelPair:
    """One kernel of both sides, by the names that they have for it."""

    before: str
    after: str
    differences: tuple[Difference, ...]
    unchanged: int

    @property
    def title(self) -> str:
        """The kernel's name, or ``before -> after`` where the sides call it differently."""
        return self.before if self.before == self.after else f"{self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, kernel by kernel. ``pairs``: kernels that were matched, the greatest change first; ``only_before``,
    ``only_after``: names of kernels without a counterpart."""

    before: RunSide
    after: RunSide
    pairs: tuple[KernelPair, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def notes(self) -> list[str]:
        """The notes of both sides, and each option by which they counted differently, as sentences."""
        one, other = self.before.how, self.after.how
        changed = [f"{name}={Option.show(one.get(name))} before and {Option.show(other.get(name))} after"
                   for name in {**one, **other} if one.get(name) != other.get(name)]
        return [*self.before.notes, *self.after.notes, *(f"counted with {text}" for text in changed)]

    @property
    def same(self) -> bool:
        """Whether each kernel has a counterpart, and all their numbers are equal."""
        return not (self.only_before or self.only_after or any(pair.differences for pair in self.pairs))


def compare(before: RunSide, after: RunSide) -> Comparison:
    """Kernels of one name; then those whose names differ in arguments and template arguments alone, if there is one on
    each side; then the only one that is left on each side."""
    left, right = list(before.kernels), list(after.kernels)
    matched: list[tuple[str, str]] = []
    for key in (str, _bare_name, _anything):
        for pair in _unique(left, right, key):
            matched.append(pair)
            left.remove(pair[0])
            right.remove(pair[1])
    pairs = [_pair(one, other, before.kernels[one], after.kernels[other]) for one, other in matched]
    pairs.sort(key=lambda pair: -max((abs(each.change) for each in pair.differences), default=0))
    return Comparison(before, after, tuple(pairs), tuple(left), tuple(right))


def _unique(left: Iterable[str], right: Iterable[str], key: Callable[[str], str]) -> list[tuple[str, str]]:
    ours, theirs = _group_names(left, key), _group_names(right, key)
    return [(ours[name][0], theirs[name][0]) for name in ours
            if len(ours[name]) == 1 and len(theirs.get(name, ())) == 1]


def _group_names(names: Iterable[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(key(name), []).append(name)
    return found


def _bare_name(kernel: str) -> str:
    """``f`` of ``void f<int, 4>(float*)``."""
    named = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", named, maxsplit=1)[0]


def _anything(kernel: str) -> str:
    return ""


def _pair(one: str, other: str, before: NamedNumbers, after: NamedNumbers) -> KernelPair:
    before, after = _lines_of_one_file(before, after)
    names = dict.fromkeys([*before, *after])
    found = [Difference(name, before.get(name), after.get(name)) for name in names]
    different = [each for each in found if each.change]
    sections = {section: at for at, section in enumerate(dict.fromkeys(name.section for name in names))}
    different.sort(key=lambda each: (sections[each.name.section], -abs(each.change), each.name))
    return KernelPair(one, other, tuple(different), len(found) - len(different))


def _lines_of_one_file(*sides: NamedNumbers) -> Iterator[NamedNumbers]:
    """Where one file of each side is not among the other's, it is taken for the same under another name: then its lines
    are known by their numbers."""
    one, other = ({_file(name) for name in side if name.by_line} for side in sides)
    own = one ^ other if len(one - other) == len(other - one) == 1 else set()
    for side in sides:
        yield {_without_file(name) if name.by_line and _file(name) in own else name: value
               for name, value in side.items()}


def _file(name: NumberName) -> str:
    return name.thing.rpartition(":")[0]


def _without_file(name: NumberName) -> NumberName:
    return name._replace(thing=f"line {name.thing.rpartition(':')[2]}")


def difference_facts(found: Comparison) -> Json:
    """JSON-ready."""
    return {
        "before": found.before.name,
        "after": found.after.name,
        "of": found.before.what,
        "same": found.same,
        "kernels": [
            {"before": pair.before, "after": pair.after, "unchanged": pair.unchanged,
             "differences": [each.facts() for each in pair.differences]}
            for pair in found.pairs
        ],
        "only_before": list(found.only_before),
        "only_after": list(found.only_after),
        "notes": found.notes,
    }  # fmt: skip


def difference_rows(found: Comparison) -> list[Json]:
    """A row for each difference, as CSV has it."""
    return [{"kernel": pair.title, **each.facts()} for pair in found.pairs for each in pair.differences]


def difference_lines(found: Comparison, most: int) -> Iterator[str]:
    """Text for people; ``most`` differences of each section, 0 for all."""
    yield printable(f"{found.before.name} -> {found.after.name}: {found.before.what}")
    yield from map(printable, found.notes)
    for pair in found.pairs:
        if pair.differences:
            yield ""
            yield printable(pair.title)
        for section, members in groupby(pair.differences, key=lambda each: each.name.section):
            yield from _section(section, list(members), most)
        if pair.differences:
            yield f"  {how_many(pair.unchanged, 'number')} unchanged"
    yield from _others(found)


def _section(section: str, members: Sequence[Difference], most: int) -> Iterator[str]:
    shown = members[:most] if most else members
    header = (*COLUMNS, section, "")
    rows = [(*_cells(each), *map(printable, _texts(each.name))) for each in shown]
    yield from (f"  {line}" for line in align_columns(header, rows, left=2).split("\n"))
    if len(shown) < len(members):
        yield f"  and {len(members) - len(shown)} more: --most 0 shows all"


def _texts(name: NumberName) -> tuple[str, str]:
    return (name.thing, name.number) if name.thing else (name.number, "")


def _cells(each: Difference) -> tuple[str, ...]:
    change = f"{each.change:+.6g}" if isinstance(each.change, float) else f"{each.change:+}"
    return _text(each.before), _text(each.after), change, "" if each.ratio is None else f"{each.ratio:.3g}x"


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _others(found: Comparison) -> Iterator[str]:
    same = sum(not pair.differences for pair in found.pairs)
    yield ""
    for where, names in ((found.before.name, found.only_before), (found.after.name, found.only_after)):
        yield from (printable(f"only in {where}: {name}") for name in names)
    different = len(found.pairs) - same
    yield f"{how_many(different, 'kernel')} different, {same} the same" if found.pairs else "no kernel is on both sides"
