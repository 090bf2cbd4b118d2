"""Says which executed instructions were exact, and whether results that may differ decided anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator
from luthier_py.isa.semantics.readers.implementation_defined import ImplementationDefined
from luthier_py.program.analysis.differing import Decision, find_device_dependence
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import ANY, SUM, InstrPlace, InstrPlaces, RowsBy, Stretch, combined, place_text
from luthier_py.tools.opcode_histogram.blocks import BlockCounts, Parts

NAN = frozenset({ImplementationDefined.NAN})


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction whose result may differ, or that something decides. ``implementation_defined``: names, in
    Implementation-defined result's order."""

    where: InstrPlace
    implementation_defined: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision at ``place``, whose implementation-defined results are those that it hangs on, and the ``sources``
    that they are of."""

    place: Place
    decides: str
    sources: tuple[int, ...]
    earlier: bool
    through: bool


@dataclass(frozen=True, slots=True)
class Findings:
    """Of one program; numbers and texts only."""

    parts: Parts
    places: tuple[Place, ...]
    choices: tuple[Choice, ...]
    leaves: tuple[int, ...]
    unknown: tuple[str, ...]


class Exactness(BlockCounts):
    """Executed instructions that were exact, those with an implementation-defined result, and what the latter
    decided."""

    name = "exactness"
    cacheable = True
    amounts = {
        "exact": SUM.of("executed instructions"), "exact_but_nan": SUM.of("executed instructions"),
        "free": SUM.of("executed instructions with a documented defined_by"),
        **{kind: RowsBy(("pc", "decides"), {"executions": SUM.of("executions by waves"), "earlier_launch": ANY})
           for kind in ("free_instructions", "decided")},
        "memory_held_such_results": ANY, "left_out": RowsBy(("why",), {}),
    }  # fmt: skip

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.left = False  # whether global memory may hold such results

    def note(self, stretch: Stretch) -> tuple[int, ...]:
        return tuple(instr.pc for instr in stretch.instrs)

    def instrument(self, m: Mutator) -> Findings:
        found, places = find_device_dependence(m.program, m.facts), InstrPlaces(m.program)

        def place(instr: Instr, implementation_defined: Iterable[ImplementationDefined]) -> Place:
            return Place(places.of(instr), named(implementation_defined))

        return Findings(
            self.counted_parts(m), tuple(place(instr, free) for instr, free in found.sources.items()),
            tuple(Choice(place(each.instr, hanging_on(each)), each.decides.value,
                         tuple(source.pc for source in each.sources), each.earlier, each.through)
                  for each in found.decisions),
            tuple(instr.pc for instr in found.leaves), found.unknown)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Findings = launch.notes
        counts = notes.parts.by_pc(launch)
        kinds = Counter({"exact": sum(counts.values())})
        for place in notes.places:
            kind = "exact_but_nan" if place.implementation_defined == named(NAN) else "free"
            kinds.update({kind: counts[place.where.pc], "exact": -counts[place.where.pc]})
        decided = [row for choice in notes.choices if (row := self.row_of(choice, counts)) is not None]
        before = self.left
        self.left |= any(counts[pc] for pc in notes.leaves)
        return {
            **{kind: kinds[kind] for kind in ("exact", "exact_but_nan", "free")},
            "free_instructions": [row_at(place, counts) for place in notes.places
                                  if counts[place.where.pc] and place.implementation_defined != named(NAN)],
            "decided": decided, "memory_held_such_results": before, "left_out": [{"why": why} for why in notes.unknown],
            "verdict": verdict(decided, notes.unknown),
        }  # fmt: skip

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Sums, and whatever was decided in any launch."""
        found = combined(self.amounts, reports)
        return {**found, "verdict": verdict(found["decided"], tuple(row["why"] for row in found["left_out"]))}

    def row_of(self, choice: Choice, counts: Mapping[int, int]) -> dict[str, Any] | None:
        """None where it was not executed, or nothing that it hangs on was."""
        sources = [pc for pc in choice.sources if counts[pc]]
        earlier = choice.earlier and self.left
        if not counts[choice.place.where.pc] or not (sources or earlier):
            return None
        return {**row_at(choice.place, counts), "decides": choice.decides, "sources": sources,
                "earlier_launch": earlier, "through_memory": choice.through}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [f"{self.headline(launch)}: {report['exact']} wave instructions exact, {report['exact_but_nan']} exact "
                 f"but for a NaN's bits, {report['free']} implementation-defined"]
        lines += [f"  {shown(row)}: {', '.join(row['implementation_defined'])}" for row in report["free_instructions"]]
        lines += [f"  {shown(row)}: its {row['decides']} may hang on {origins(row)}" for row in report["decided"]]
        return "\n".join([*lines, f"  {report['verdict']}"])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [*report["free_instructions"], *report["decided"]]


def named(implementation_defined: Iterable[ImplementationDefined]) -> tuple[str, ...]:
    chosen = frozenset(implementation_defined)
    return tuple(each.name.lower() for each in ImplementationDefined if each in chosen)


def hanging_on(decision: Decision) -> frozenset[ImplementationDefined]:
    return frozenset[ImplementationDefined]().union(*decision.sources.values())


def row_at(place: Place, counts: Mapping[int, int]) -> dict[str, Any]:
    return {**place.where.facts(), "executions": counts[place.where.pc],
            "implementation_defined": list(place.implementation_defined)}


def shown(row: Mapping[str, Any]) -> str:
    return f"{place_text(row)}, {row['executions']} times"


def origins(row: Mapping[str, Any]) -> str:
    places = [f"0x{pc:x}" for pc in row["sources"]]
    parts = [f"{', '.join(places)} ({', '.join(row['implementation_defined'])})"] if places else []
    parts += ["what an earlier launch left in memory"] if row["earlier_launch"] else []
    return " and ".join(parts) + (", through memory" if row["through_memory"] else "")


def verdict(decided: list[dict[str, Any]], unknown: tuple[str, ...]) -> str:
    """The verdict in one line."""
    rest = f"; not followed: {', '.join(unknown)}" if unknown else ""
    if not decided:
        return f"verdict: no result that may differ decided a branch, an address or a mask{rest}"
    counts = Counter(each["decides"] for each in decided)
    plural = {"branch": "branches", "address": "addresses", "mask": "masks"}
    words = ", ".join(f"{counts[word]} {word if counts[word] == 1 else many}" for word, many in plural.items()
                      if counts[word])
    return f"verdict: results that may differ may have decided {words}{rest}"
