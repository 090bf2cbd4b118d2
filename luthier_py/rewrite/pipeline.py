"""Bytes to bytes: a code object and a tool in, an instrumented copy out.

Invariants: a tool that inserts nothing reproduces its input byte for byte; the original kernels are in the copy
unchanged, at their addresses, unless a standalone copy is requested, which has nothing of the original in it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from luthier_py.base.errors import CheckFailed, Location, Unsupported
from luthier_py.base.records import dataclass, field, replace
from luthier_py.binary.link import Binding, Patch, apply_bindings, find_bindings, link, link_apart
from luthier_py.binary.loader import MEMORY, CodeObject, Given, LastObject, load
from luthier_py.program.analysis import Facts, analyse
from luthier_py.program.ir import Program, lift
from luthier_py.proof import prove
from luthier_py.rewrite.claim_check import check_claim_of_tool
from luthier_py.rewrite.inject.addresses import check_addresses
from luthier_py.rewrite.inject.apply import Seen, inject
from luthier_py.rewrite.inject.resources import components
from luthier_py.rewrite.jit import compile_hooks
from luthier_py.rewrite.tool import Edits, Place, Refusal, Tool, made_tool, visit

if TYPE_CHECKING:
    from luthier_py.rewrite.inject.model import Patched

P = ParamSpec("P")
R = TypeVar("R")
Watch = Callable[[str, int, int], object]
"""Called as each stage begins: its name, how many are done, and of how many."""
STAGES = ("lift", "analyse", "visit", "jit", "inject", "link", "check")
"""In order. Times of a stage's parts ("inject.place") are in the stage's, too."""
_LAST = LastObject()


@dataclass(frozen=True, slots=True)
class Instrumented:
    """The instrumented copy, and how it came about."""

    data: bytes
    obj: CodeObject
    program: Program
    facts: Facts
    edits: Edits
    patched: Patched
    seconds: Mapping[str, float]
    """By stage, and by part of one."""
    cached: bool
    """No hook had to be compiled."""
    unread: tuple[Refusal, ...] = ()
    """What the loader left out."""
    bindings: tuple[Binding, ...] = ()
    """What a copy without the original needs to know of where that is."""

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """Kernels that the tool requested, or would have if they could be read, and that were left alone."""
        return self.edits.refused + self.patched.refused + self.unread


@dataclass(frozen=True, slots=True)
class Planned:
    """What a tool wants of a code object; nothing is made yet."""

    obj: CodeObject
    program: Program
    facts: Facts
    edits: Edits
    seconds: Mapping[str, float]


def instrument(
    code: Given, tool: Tool | type[Tool] | str | Sequence[Tool], name: str = MEMORY,
    kernels: Iterable[str] | str | None = None, keep_going: bool = False, watch: Watch | None = None,
    seen: Seen | None = None, apart: bool = False,
) -> Instrumented:
    """Instrument the chosen kernels (all of them by default), as far as the tool's options choose them too; raises
    LuthierError, and then nothing was made.

    ``code``: a code object's bytes, or its path. ``tool``: a tool; its class or name means one with defaults, a list
    means all of it together (`Several`). With ``keep_going`` kernels that cannot be served are left alone and listed in
    ``refused``. ``seen``, ``apart``: as for `carry_out`.
    """
    tool = made_tool(tool)
    planned = plan(code, tool, name, [kernels] if isinstance(kernels, str) else kernels, watch)
    if planned.edits.refused and not keep_going:
        first = planned.edits.refused[0]
        raise Unsupported(f"kernel {first.kernel} cannot be instrumented: {first.reason}", first.where)
    made = carry_out(planned, keep_going, watch, apart, seen)
    left_out = [part for part in planned.obj.left_out if part.kernel and kernels is None]
    chosen = [part for part in left_out if tool.selection.kernel(part.name)]
    return replace(made, unread=tuple(Refusal(p.name, p.error.message, Location(p.name)) for p in chosen))


@contextmanager
def suspend_garbage_collection() -> Iterator[None]:
    """Without searches for garbage in cycles: nearly all that the stages make is used until the end, and going through
    it again and again is a third of the time of a large kernel."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@suspend_garbage_collection()
def plan(
    code: Given, tool: Tool, name: str = MEMORY, kernels: Iterable[str] | None = None, watch: Watch | None = None
) -> Planned:
    """The tool's edits."""
    clock = _Clock(watch=watch)
    obj = _LAST.load(code, name)
    chosen = [k for k in ((k.name for k in obj.kernels) if kernels is None else kernels) if tool.selection.kernel(k)]
    program = clock.run("lift", lift, obj, chosen)
    facts = clock.run("analyse", analyse, program)
    edits = clock.run("visit", visit, tool, program, facts)
    return Planned(obj, program, facts, edits, clock.seconds)


@suspend_garbage_collection()
def carry_out(
    planned: Planned, keep_going: bool = False, watch: Watch | None = None, apart: bool = False,
    seen: Seen | None = None,
) -> Instrumented:
    """The instrumented copy; ``keep_going`` and ``watch`` as for instrument. ``apart``: without the original in it;
    ``seen`` gets each clone behind each pass, and gives it back."""
    clock = _Clock(dict(planned.seconds), watch)
    program, edits = planned.program, planned.edits
    facts = planned.facts.with_instead(edits.standing, edits.written).with_reads(*map(edits.reads, Place))
    compiled: set[str] = set()
    payloads = clock.run("jit", compile_hooks, edits, program.isa, compiled)

    def check(patched: Patched, wanted: Edits, data: bytes) -> None:
        try:
            prove(planned.obj.data, data, patched.claim, apart)
        except CheckFailed:
            check_addresses(program.isa, payloads)
            raise
        clones = {row.name: row.clone for row in patched.report}
        check_claim_of_tool(patched.claim, wanted, payloads, program, clones, {each.kernel for each in patched.refused})

    def build_copy(wanted: Edits) -> Instrumented:
        patched = clock.run("inject", inject, program, facts, wanted, payloads, keep_going,
                            seen or (lambda _, clone: clone), clock.part)
        patch = Patch(patched.chunks, patched.kernels, patched.variables)
        data = clock.run("link", link_apart if apart else link, planned.obj, patch)
        found = find_bindings(program.isa, patched.chunks, load(data, planned.obj.name)) if apart else ()
        clock.run("check", check, patched, wanted, apply_bindings(data, found, 0))
        return Instrumented(data, planned.obj, program, facts, edits, patched, clock.seconds, not compiled,
                            bindings=found)

    try:
        return build_copy(edits)
    except CheckFailed:
        if not keep_going:
            raise
    return _instrument_by_component(program, edits, build_copy)


def _instrument_by_component(program: Program, edits: Edits, made: Callable[[Edits], Instrumented]) -> Instrumented:
    """Kernels that share functions are tried for themselves; what can be proved is put together."""
    left, refused = edits, tuple[Refusal, ...]()
    for component in components(program, program.kernels):
        inside = {instr.pc for function in component.functions for instr in function.instrs}
        own = tuple(insertion for insertion in edits.insertions if insertion.instr.pc in inside)
        instead = tuple(each for each in edits.instead if each.instr.pc in inside)
        try:
            if own or instead:
                made(replace(edits, insertions=own, instead=instead))
        except CheckFailed as error:
            refused += tuple(Refusal(k.name, error.message, error.where or Location(k.name)) for k in component.kernels)
            left = replace(left, insertions=tuple(each for each in left.insertions if each not in own),
                           instead=tuple(each for each in left.instead if each not in instead))
    done = made(left)
    return replace(done, patched=replace(done.patched, refused=done.patched.refused + refused))


@dataclass(slots=True)
class _Clock:
    """Mutable: how long each stage took, and each part of one that reports its parts."""

    seconds: dict[str, float] = field(default_factory=dict)
    watch: Watch | None = None
    _part: str = ""  # that is going on
    _since: float = 0.0

    def run(self, stage: str, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self.watch is not None:
            self.watch(stage, STAGES.index(stage), len(STAGES))
        start = time.perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            self.part("")
            self.seconds[stage] = time.perf_counter() - start

    def part(self, name: str) -> None:
        """Begin another part of inject."""
        now, before = time.perf_counter(), self._part
        if before:
            self.seconds[before] = self.seconds.get(before, 0.0) + now - self._since
        self._part, self._since = name and f"inject.{name}", now
