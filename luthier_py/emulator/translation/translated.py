"""What is known of a translated function beside its machine code, as data that can be cached.

In: facts of host functions (see translating), or the text that :meth:`Translation.pack` made. Out: the same.
Invariant: whatever a text says, a Translation that was read from one names only instructions inside its own runs of
code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from luthier_py.base.errors import Malformed
from luthier_py.base.llvm import Effort
from luthier_py.base.records import dataclass
from luthier_py.emulator.options.settings import CounterKind

_NAME = re.compile(r"\w{1,64}")

CodeRun = tuple[int, bytes]
"""Code without gaps: the address of its first instruction, and its bytes."""


@dataclass(frozen=True, slots=True)
class HostPart:
    """A host function."""

    name: str
    pcs: tuple[int, ...]
    """Its instructions, ascending."""
    starts: tuple[int, ...]
    """Those at which waves may enter it."""
    counters: tuple[tuple[CounterKind, int, int], ...]
    """(what it sums, the first instruction it counts, the one behind the last), as indices in ``pcs``."""
    sites: tuple[int, ...]
    """The instruction of each memory site, as an index in ``pcs``."""
    digest: str
    """Of all that its code depends on."""

    def resolve_counters(self) -> Iterator[tuple[CounterKind, tuple[int, ...]]]:
        """What each counter sums, and the addresses of the instructions it counts."""
        return ((what, self.pcs[first:end]) for what, first, end in self.counters)

    @property
    def site_pcs(self) -> list[int]:
        """The address of the instruction of each memory site, by the site's number."""
        return [self.pcs[index] for index in self.sites]


@dataclass(frozen=True, slots=True)
class Translation:
    """A GPU function."""

    runs: tuple[CodeRun, ...]
    """All code that it was made of."""
    effort: Effort
    parts: tuple[HostPart, ...]
    rows_read_first: int
    scalars_named: int
    """See first_reads."""

    def pack(self) -> bytes:
        """As a text, without the code of ``runs``."""
        return json.dumps({
            "runs": [[start, len(data)] for start, data in self.runs],
            "effort": self.effort.name,
            "rows_read_first": self.rows_read_first,
            "scalars_named": self.scalars_named,
            "parts": [[part.name, part.pcs, part.starts, [[what.name, *places] for what, *places in part.counters],
                       part.sites, part.digest] for part in self.parts],
        }, separators=(",", ":")).encode()  # fmt: skip


def unpack_translation(text: bytes, runs: tuple[CodeRun, ...]) -> Translation:
    """The translation of ``runs`` that was packed; Malformed for anything else."""
    try:
        facts = json.loads(text)
        if facts["runs"] != [[start, len(data)] for start, data in runs]:
            raise Malformed("a translation of other code")
        known = {pc for start, data in runs for pc in range(start, start + len(data), 4)}
        parts = tuple(_part(row, known) for row in facts["parts"])
        firsts = _whole(facts["rows_read_first"]), _whole(facts["scalars_named"])
        return Translation(runs, Effort[facts["effort"]], parts, *firsts)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise Malformed(f"not a translation: {error}") from error


def _part(row: Any, known: set[int]) -> HostPart:
    name, pcs, starts, counters, sites, digest = row
    if not all(type(pc) is int for pc in (*pcs, *starts)):
        raise Malformed("addresses that are no whole numbers")
    if not known.issuperset(pcs) or not set(pcs).issuperset(starts) or sorted(set(pcs)) != pcs or not pcs:
        raise Malformed("addresses outside its code")
    rows = tuple((CounterKind[what], _whole(first), _whole(end)) for what, first, end in counters)
    if not all(0 <= first < end <= len(pcs) for _, first, end in rows):
        raise Malformed("a counter of no instruction")
    if not all(0 <= _whole(site) < len(pcs) for site in sites):
        raise Malformed("a memory site that is no instruction")
    if not all(_NAME.fullmatch(word) for word in (name, digest)):
        raise Malformed("a name that is none")
    return HostPart(name, tuple(pcs), tuple(starts), rows, tuple(sites), digest)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise Malformed(f"{value!r} is no whole number")
    return value
