"""How the emulator covers each operation of a target: as data and as tables.

In: targets. Out: facts for JSON, tables for terminals and pages. Invariant: nothing is listed by hand here; standing,
implementation-defined results, reasons and evidence are what isa.semantics says of each row.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial

from rich.console import Group
from rich.table import Table

from luthier_py.base.errors import how_many
from luthier_py.base.records import dataclass
from luthier_py.isa import OpInfo, Target, instruction_set, target
from luthier_py.isa.encoding.dual import PREFIX
from luthier_py.isa.semantics.corners import CORNERS
from luthier_py.isa.semantics.evidence import Against, Tested, evidence
from luthier_py.isa.semantics.readers.implementation_defined import (
    ImplementationDefined,
    implementation_defined,
    open_on,
)
from luthier_py.isa.semantics.refusals import WhyRefused, refusal
from luthier_py.report.plain import Json


class Certainty(Enum):
    """Of an operation."""

    EXACT = "exact"
    ALL_BUT_NAN = "exact but for a NaN's bits"
    FREE = "implementation-defined"
    REFUSED = "refused"


_TO_BE_KNOWN = Certainty.REFUSED, Certainty.FREE


@dataclass(frozen=True, slots=True)
class Covered:
    """An operation in all its encodings."""

    operation: str
    standing: Certainty
    implementation_defined: tuple[ImplementationDefined, ...]
    tested: Tested
    refused: WhyRefused | None

    @property
    def details(self) -> str:
        """What is open, or why it is refused."""
        if self.refused is not None:
            return f"{self.refused.reason}; {self.refused.advice}"
        return "; ".join(defined_by.what for defined_by in self.implementation_defined)


def collect_coverage(of: Target) -> list[Covered]:
    """Each operation of a target, by name."""
    isa = instruction_set(of, of.wave_sizes[0])
    rows: dict[str, list[OpInfo]] = {}
    for op in isa.ops:
        rows.setdefault(op.base, []).append(op)
    return [_assess_operation(of, base, rows[base]) for base in sorted(rows)]


def _assess_operation(of: Target, base: str, ops: list[OpInfo]) -> Covered:
    isa = instruction_set(of, of.wave_sizes[0])
    refused = next((why for op in ops if (why := refusal(op, of)) is not None), None)
    if refused is not None:
        return Covered(base, Certainty.REFUSED, (), Tested(Against.NOTHING), refused)
    free = frozenset[ImplementationDefined]().union(*(implementation_defined(op).own | open_on(op, of) for op in ops))
    standing = (
        Certainty.EXACT
        if not free
        else Certainty.ALL_BUT_NAN
        if free == {ImplementationDefined.NAN}
        else Certainty.FREE
    )
    tested = max((evidence(isa, op) for op in ops), key=lambda each: each.against.value)  # the weakest
    return Covered(base, standing, tuple(each for each in ImplementationDefined if each in free), tested, None)


def coverage_facts(of: Target) -> Json:
    """The facts of one target."""
    found = collect_coverage(of)
    counts = Counter(each.standing for each in found)
    return {
        "target": of.name, "operations": len(found),
        "counts": {standing.value: counts[standing] for standing in Certainty},
        "implementation_defined": {
            each.name.lower(): {"what": each.what, "source": each.source} for each in ImplementationDefined
        },
        "list": [
            {
                "operation": each.operation, "standing": each.standing.value,
                "implementation_defined": [defined_by.name.lower() for defined_by in each.implementation_defined],
                "tested": str(each.tested) if each.refused is None else None,
                "reason": each.refused.reason if each.refused else None,
                "advice": each.refused.advice if each.refused else None,
            }
            for each in found
        ],
    }  # fmt: skip


def coverage_table(name: str, match: str = "") -> Group:
    """The table of one target, a line for each operation whose name ``match`` finds; without it, for each that is not
    exact."""
    found = collect_coverage(target(name))
    shown = [each for each in found if (
        re.search(match, each.operation, re.IGNORECASE) if match else each.standing in _TO_BE_KNOWN)]
    counts = Counter(each.standing for each in found)
    head = f"{name}: {how_many(len(found), 'operation')}: " + ", ".join(
        f"{counts[standing]} {standing.value}" for standing in Certainty)
    table = Table(box=None)
    table.add_column("operation", no_wrap=True)
    for title in ("", "what is open, or why it is refused", "tested against"):
        table.add_column(title)
    for each in sorted(shown, key=lambda each: -[*Certainty].index(each.standing)):
        tested = str(each.tested) if each.refused is None else ""
        table.add_row(each.operation, each.standing.value, each.details, tested)
    rest = len(found) - len(shown)
    return Group(head, "", table, "", f"{how_many(rest, 'other')}: --match REGEX shows them by name, --match . all")


# The page.

def page(targets: Iterable[Target]) -> Iterator[str]:
    """Paragraphs of docs/coverage.md."""
    groups: dict[tuple[Covered, ...], list[str]] = {}
    for of in targets:
        groups.setdefault(tuple(_anywhere(collect_coverage(of))), []).append(of.name)
    alike = {", ".join(names): found for found, names in groups.items()}
    yield _counts(alike)
    yield "## What is open\n\n" + "\n".join([
        "| | what the manuals leave open of a result | which |", "|---|---|---|",
        *(f"| {each.name.lower()} | {each.what} | {each.source} |" for each in ImplementationDefined)])
    for defined_by in ImplementationDefined:
        if defined_by is not ImplementationDefined.NAN:
            yield f"### {defined_by.name.lower()}: {defined_by.what}"
            yield _by_targets(alike, partial(_is_free, defined_by))
        if defined_by is ImplementationDefined.CORNER:
            yield "\n".join(["| operations | open | here | sources |", "|---|---|---|---|", *(
                f"| `{each.names.replace('|', chr(92) + '|')}` | {each.open} | {each.here} | {each.source} |"
                for each in CORNERS)])
    yield "## Refused"
    for why in WhyRefused:
        listed = _by_targets(alike, partial(_is_refused, why))
        if listed:
            yield f"### {why.reason}\n\nWhat to do: {why.advice}."
            yield listed
    yield "## Exact, or exact but for a NaN's bits"
    yield _by_targets(alike, lambda each: each.standing in (Certainty.EXACT, Certainty.ALL_BUT_NAN))
    yield "## Tested by what a file of tests works out by itself"
    yield _by_targets(alike, lambda each: each.tested.against is Against.TESTS, where=True)
    yield "## Run, but compared with nothing"
    yield _by_targets(alike, lambda each: each.refused is None and each.tested.against is Against.NOTHING) or "None."


def _is_free(defined_by: ImplementationDefined, each: Covered) -> bool:
    return defined_by in each.implementation_defined


def _is_refused(why: WhyRefused, each: Covered) -> bool:
    return each.refused is why


def _anywhere(found: Iterable[Covered]) -> Iterator[Covered]:
    """Without the target on which it was compared."""
    for each in found:
        plain = each.tested.against in (Against.REFERENCE, Against.ALIKE)
        tested = Tested(Against.REFERENCE) if plain else each.tested
        yield Covered(each.operation, each.standing, each.implementation_defined, tested, each.refused)


def _counts(alike: dict[str, tuple[Covered, ...]]) -> str:
    head = ["target", "operations", *(each.value for each in Certainty)]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for names, found in alike.items():
        counts = Counter(each.standing for each in found)
        lines.append(f"| {names} | {len(found)} | {' | '.join(str(counts[each]) for each in Certainty)} |")
    return "\n".join(lines)


def _by_targets(alike: dict[str, tuple[Covered, ...]], wanted: Callable[[Covered], bool], where: bool = False) -> str:
    """Names of operations, by the targets that have them so. Pairs are given by their number."""
    on: dict[tuple[str, str], list[str]] = {}
    for names, found in alike.items():
        for each in found:
            if wanted(each):
                on.setdefault((each.operation, str(each.tested) if where else ""), []).append(names)
    groups: dict[tuple[str, ...], list[str]] = {}
    for (operation, tested), names_of in on.items():
        groups.setdefault((tested, *names_of), []).append(operation)
    return "\n\n".join(_group(tested, names, operations, len(alike))
                       for (tested, *names), operations in sorted(groups.items(), key=lambda each: -len(each[0])))


def _group(tested: str, names: Sequence[str], operations: list[str], all_of_them: int) -> str:
    pairs = [name for name in operations if name.startswith(PREFIX)]
    words = [f"`{name}`" for name in sorted({*operations} - {*pairs})]
    words += [f"and {how_many(len(pairs), 'pair')} (`{PREFIX}...`)"] if pairs else []
    on = "All" if len(names) == all_of_them else ", ".join(names)
    return textwrap.fill(f"*{on}{': ' * bool(tested)}{tested}*: " + " ".join(words), 160, break_long_words=False)
