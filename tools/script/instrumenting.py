"""A script's actions put into a program: where each is done, and what is to be known of it when tables are read.

In: a script that was read, a Mutator. Out: Probed. Invariant: what is not done at a site is noted with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from luthier_py import Channel, Mutator, Variable, WaveVariable, hook, u64
from luthier_py.base.errors import EditConflict, HookError, Invalid
from luthier_py.intrinsics import clock
from luthier_py.program.ir import Kernel
from luthier_py.rewrite.tool import Omission, reason
from luthier_py.tools.instr_count.hooks import add, flush

from .actions import RECORDING, Action
from .hooks import Hooks
from .reporting import Key, Table
from .sites import Places, Site
from .understood import ReadScript
from .values import BEGUN, ELAPSED, key_of

MOST_BYTES = 1 << 28  # of one table
MOST_IN_REGISTERS = 8  # numbers that waves keep for themselves


@hook
def begin() -> u64:
    return clock()


@dataclass(frozen=True, slots=True)
class Probed:
    """Of one program. ``tables`` by the number of the action; ``known``: texts of sites, by address, for records."""

    tables: Mapping[int, Table]
    known: Mapping[int, Mapping[str, str]]
    left_out: tuple[Mapping[str, Any], ...]


def instrumented(
    script: ReadScript, channels: Sequence[Channel], m: Mutator, shown: Callable[[str], str]
) -> Probed:
    """``channels``: of the actions that record, in their order. ``shown``: a kernel's name, for people."""
    made, channel = _Instrumenting(m, shown), iter(channels)
    if any(value.name == ELAPSED for action in script.actions for value in action.values):
        for kernel in m.kernels:
            m.at_entry(kernel, begin, into=BEGUN)
    for probe in script.probes:
        for action in probe.actions:
            sites = made.places.at(probe.head, probe.where, probe.head == "after" or action.waits)
            if action.kind in RECORDING:
                made.record(action, next(channel), action.sites(sites))
            else:
                made.count(action, action.sites(sites))
    return Probed(made.tables, made.known, tuple(made.left_out))


class _Instrumenting:
    """One program (mutable: collects what is to be known of it)."""

    def __init__(self, m: Mutator, shown: Callable[[str], str]) -> None:
        self.m, self.places, self.hooks = m, Places(m, shown), Hooks()
        self.tables: dict[int, Table] = {}
        self.known: dict[int, Mapping[str, str]] = {}
        self.left_out: list[dict[str, Any]] = []
        self.spare = min(m.spare_scalars(m.kernels) // 2, MOST_IN_REGISTERS)

    def record(self, action: Action, channel: Channel, sites: Iterable[Site]) -> None:
        for site in sites:
            with self.told(action, site):
                hook, args = self.hooks.at(action, site, channel.record)
                site.call(hook, channel, site.instr.pc, *args)
                self.known[site.instr.pc] = site.texts

    def count(self, action: Action, sites: Iterable[Site]) -> None:
        keyed = list[tuple[Site, Key]]()
        for site in sites:
            with self.told(action, site):
                keyed.append((site, tuple(key_of(value, site) for _, value in action.fixed)))
        rows = {key: row for row, key in enumerate(dict.fromkeys(key for _, key in keyed))}
        length = action.layout.start(len(rows))
        if 8 * length > MOST_BYTES:
            raise Invalid(f"{action.text} needs {8 * length} bytes for {len(rows)} keys that the program has, and may "
                          f"have {MOST_BYTES}; give fewer, or room for fewer others: keys={action.slots // 4}")
        counters = Variable(u64, length, name=f"Script.table{action.number}")
        if action.is_constant and len(rows) * action.layout.words <= self.spare:
            if self.add_up(action, counters, [(site, rows[key]) for site, key in keyed]):
                self.tables[action.number] = Table(counters, tuple(rows))
            return
        for site, key in keyed:
            with self.told(action, site):
                hook, args = self.hooks.at(action, site, None)
                site.call(hook, counters[0], counters[action.layout.start(rows[key])], *args)
                self.tables[action.number] = Table(counters, tuple(rows))

    def add_up(self, action: Action, counters: Variable, keyed: Sequence[tuple[Site, int]]) -> bool:
        """In registers of each wave, and in memory once at its end; whether it is done anywhere."""
        kernels: dict[tuple[WaveVariable, int], dict[Kernel, None]] = {}
        sums: dict[int, WaveVariable] = {}
        for site, row in keyed:
            with self.told(action, site):
                numbers = (1, *(int(key_of(part.value, site)) for part in action.arguments if part.value is not None))
                for word, number in enumerate(numbers, action.layout.start(row)):
                    total = sums.setdefault(word, WaveVariable(u64, f"{counters.name}.{word}"))
                    site.call(add, total, number, into=total, **site.anywhere)
                    kernels.setdefault((total, word), {}).update(dict.fromkeys(site.kernels))
        for (total, word), which in kernels.items():
            for kernel in which:
                self.m.at_exit(kernel, flush, counters[word], total)
        self.spare -= len(sums)
        return bool(sums)

    @contextmanager
    def told(self, action: Action, site: Site) -> Iterator[None]:
        """Record an action that needs what an instruction has not, or overwrites, as left out."""
        try:
            yield
        except (HookError, EditConflict) as error:
            self.left_out.append({"action": action.text, **Omission(site.place, reason(error)).facts()})
