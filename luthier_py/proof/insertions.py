"""What is pending where inserted code ends, and that it is paid.

In: the clones of functions that may call each other, and the graph of the originals. Out: what was inserted in each
clone, or CheckFailed. First all inserted code is executed; then it is checked that the application does not read what
that has changed, and nothing else is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.base.records import dataclass, replace
from luthier_py.isa import MODE, Inst, OpFlag, Reg, RegSet
from luthier_py.isa.model.registers import SCALARS
from luthier_py.proof.addresses import AddressFlow
from luthier_py.proof.application import CallsAt, Clone, Departure, departures
from luthier_py.proof.claim import Side
from luthier_py.proof.code import Body, bits_of, describe_registers, number, ones, whole_number, within
from luthier_py.proof.float_modes import FloatMode
from luthier_py.proof.gaps import Gaps, Outcomes
from luthier_py.proof.graph import Graph
from luthier_py.proof.initial_state import PRIVATE_BASE, Start
from luthier_py.proof.lanes import MOST
from luthier_py.proof.liveness import Live, Liveness
from luthier_py.proof.meanings import UNKNOWN, Term
from luthier_py.proof.modes import Modes, matters, solve_modes, step_modes
from luthier_py.proof.now import ANYWHERE, Begin, Now, Outcome
from luthier_py.proof.pending import NOTHING, Pending, join_pending, moves, solve_pending, step_pending
from luthier_py.proof.runs import Runner, Tool


@dataclass(frozen=True, slots=True)
class Duty:
    """What is pending where the application continues: registers that it may read, whether vector instructions do there
    what they say, and whether the wave ends there."""

    live: Live
    plain: bool
    ends: bool


class _Done(NamedTuple):
    start: int
    to: int
    """Number of the application's instruction that comes next."""
    outcome: Outcome
    sources: tuple[int | None, ...]
    """Numbers of the application's instructions behind which it runs; None where control comes in."""


class Insertions:
    """The proof of them (mutable: remembers what ran)."""

    def __init__(self, graph: Graph, clones: Sequence[Clone], goes: Sequence[AddressFlow], tool: Tool,
                 first_calls: Sequence[int], owned: Sequence[int], starts: Sequence[Start],
                 floats: Sequence[FloatMode]) -> None:
        """``first_calls``: numbers of the first calls of the clones; ``owned``: what an index can reach in each;
        ``starts``: what waves find that start in them; ``floats``: what is known of MODE."""
        self.graph, self.clones, self.goes, self.owned, self.starts = graph, clones, goes, owned, starts
        self.isa = graph.bodies[0].code.isa
        self.calls = [CallsAt(*each) for each in zip(graph.bodies, clones, first_calls, strict=True)]
        self.runners = [Runner(self.isa, tool, clone.decode, clone.is_application, clone.function, mode)
                        for clone, mode in zip(clones, floats, strict=True)]
        self.starts_of_calls, self.outcomes = sorted(tool.calls), Outcomes()
        self.pending = solve_pending(graph)

    def prove(self) -> list[list[tuple[int, Inst]]]:
        """What was inserted in each clone, with its address."""
        self.check_assigned_locations()
        done = [self.execute_inserted(k) for k in range(len(self.clones))]
        needed = reduce(or_, self.kept)
        for body, each in zip(self.graph.bodies, done, strict=True):
            for _, to, outcome, _ in each:
                inst = body.code.inst(to)  # behind the end of the wave no instruction reads
                read = inst.reads.bits if OpFlag.END in inst.op.flags else -1
                needed |= (outcome.changed | outcome.far) & read
        modes = solve_modes(self.graph, self.foreign)
        reads = [self.reads(k) for k in range(len(self.clones))]
        lives = list[Liveness]()
        for most in MOST:
            lives.append(Liveness(self.graph, modes, reads, self.owned, needed, self.foreign, most))
            try:
                self.settle_all(done, lives, modes)
                break
            except CheckFailed:
                if lives[-1].complete or most == MOST[-1]:
                    raise
        return [[(d.start + at, inst) for d in each for at, inst in d.outcome.ran] for each in done]

    def settle_all(self, done: Sequence[Sequence[_Done]], lives: Sequence[Liveness], modes: Sequence[Modes]) -> None:
        """Check that the application continues as it would have; of what it may still read all of ``lives`` are
        true."""
        for k, each in enumerate(done):
            duties = self.duties(k, lives, modes, {d.to for d in each})
            for start, to, outcome, sources in each:
                duty = duties[to]
                if not duty.plain:
                    duty = replace(duty, plain=all(self.plain_behind(k, source, modes) for source in sources))
                settle(self.runners[k], outcome, duty, self.kept[k], start, self.guarded[k])

    @cached_property
    def foreign(self) -> int:
        """Masks, by their first registers, that calls write on purpose: the application's code does not say of them."""
        into = RegSet.of(*(value for clone in self.clones for call in clone.function.calls for value in call.into
                           if isinstance(value, Reg))).sgpr
        return into | into >> 1

    @cached_property
    def locations(self) -> list[int]:
        """Registers and lanes that hold what the tool keeps in each function; elsewhere they are the application's."""
        return [reduce(or_, map(bits_of, clone.function.locations.values()), 0) for clone in self.clones]

    @cached_property
    def guarded(self) -> list[int]:
        """Registers that the hardware reads where code touches the tool's private memory."""
        base = self.isa.target.scratch_base
        return [base.bits if clone.function.private and base is not None else 0 for clone in self.clones]

    @cached_property
    def kept(self) -> list[int]:
        """The same, with the registers that the lanes are of."""
        vectors = [
            {whole_number(location) for location in clone.function.locations.values() if not isinstance(location, Reg)}
            for clone in self.clones
        ]
        return [locations | sum(1 << each for each in wholes) for locations,
                wholes in zip(self.locations, vectors, strict=True)]

    def check_assigned_locations(self) -> None:
        """Check that the application writes none of the tool's registers in it, and that they are the same where
        control passes from one function to another."""
        for node, successors in zip(self.graph.nodes, self.graph.successors, strict=True):
            for to in successors:
                called = self.clones[self.graph.nodes[to].function].function
                own = self.clones[node.function].function
                if (own.locations, own.private) != (called.locations, called.private):
                    raise CheckFailed("the tool keeps its own elsewhere than in the functions that it calls",
                                      Location(self.graph.bodies[node.function].name))
        for k, (body, owned, kept) in enumerate(zip(self.graph.bodies, self.owned, self.kept, strict=True)):
            lost = {kind: regs for kind, inst in enumerate(body.code.insts)
                    if (regs := inst.writes.bits & (kept & owned | self.guarded[k]))}
            same = self.sets_base(k) if lost and self.guarded[k] else ()
            at = next((at for at, kind in enumerate(body.code.kinds) if kind in lost and at not in same), None)
            if at is not None:
                what = f"the tool keeps its own in {RegSet(lost[body.code.kinds[at]])}"
                raise CheckFailed(f"{what}, which the application writes", body.code.location(body.name, at))

    def base_of(self, k: int) -> dict[int, Term]:
        """What the registers have to hold that the hardware reads there."""
        terms = dict(self.starts[k].values).get(PRIVATE_BASE, (UNKNOWN, UNKNOWN))
        return dict(zip(ones(self.guarded[k]), terms, strict=bool(self.guarded[k])))

    def sets_base(self, k: int) -> set[int]:
        """Instructions by which a kernel, where it begins, makes the registers that the hardware reads there what they
        are already; nothing leads back to them."""
        body, runner, now, found = self.graph.bodies[k], self.runners[k], Now(NOTHING), set[int]()
        entry, base = self.graph.first[k] + body.entries[0], self.base_of(k)
        if not body.kernel or len(body.entries) > 1 or self.graph.predecessors[entry] or entry in self.graph.arrives:
            return found
        for at in body.blocks[body.entries[0]]:
            inst = body.code.inst(at)
            made = runner.evaluate_results(inst, body.code.pcs[at], now, now.get)
            if made and not inst.writes.bits & self.kept[k] and made.items() >= {
                    each: base[each] for each in ones(inst.writes.bits & self.guarded[k])}.items():
                found.add(at)
            now.terms.update({each: made.get(each, UNKNOWN) for each in ones(inst.writes.bits & SCALARS)})
        return found

    def execute_inserted(self, k: int) -> list[_Done]:
        """Execute all inserted code of a clone: it continues where the original does, and calls what the claim says."""
        body, clone, runner = self.graph.bodies[k], self.clones[k], self.runners[k]
        gaps = Gaps(clone, runner, self.starts_of_calls, self.outcomes)
        todo: dict[tuple[int, Begin], list[Departure]] = {}
        begins = self.begin(k) if body.kernel else ANYWHERE
        for each in departures(body, clone, self.goes[k]):
            begin = begins if each.source is None else ANYWHERE
            if each.start != clone.places[each.to] or begin != ANYWHERE or self.calls[k].select_calls(each):
                todo.setdefault((each.start, begin), []).append(each)
        pending = self.find_pending_before(
            k, {at for some in todo.values() for each in some for at in (each.source, each.to) if at is not None}
        )
        found = []
        for (start, begin), some in todo.items():
            to = some[0].to
            ways = [self.on_way(k, each, pending) for each in some]
            outcome, calls = gaps.run(start, to, reduce(join_pending, ways), begin)
            if any(each.to != to for each in some) or start + outcome.to != clone.places[to]:
                raise runner.fail("it goes elsewhere than the original", start)
            ran, wanted = list(calls), [self.calls[k].select_calls(each) for each in some]
            if any(ran != each for each in wanted):
                other = "run in another order than" if sorted(ran) in map(sorted, wanted) else "are not those that"
                raise runner.fail(f"the hooks that run here {other} the claim says", start)
            found.append(_Done(start, to, outcome, tuple(each.source for each in some)))
        return found

    def begin(self, k: int) -> Begin:
        """The state at a kernel's entry: variables start at 0; other values of the wave are what it starts with."""
        function, start = self.clones[k].function, self.starts[k]
        values, wanted = dict(start.values), list[tuple[int, Term]]()
        for name, location in function.locations.items():
            terms = (0,) * location.dwords if isinstance(name, int) else values.get(name, ())
            if len(terms) != location.dwords:
                raise CheckFailed(f"waves do not start with {name}", Location(function.name))
            wanted += [(number(location) + half, term) for half, term in enumerate(terms)]
        wanted += self.base_of(k).items()
        return Begin(start.terms, tuple(wanted), start.free, start.arguments, bool(start.terms or wanted or start.free))

    def reads(self, k: int) -> dict[int, int]:
        """What calls read of the application, before which instructions."""
        found: dict[int, int] = {}
        each, clone = self.graph.bodies[k], self.clones[k]
        for call in clone.function.calls:
            regs = RegSet.of(*(value for value in call.arguments if isinstance(value, Reg))).bits
            at = each.code.find(call.point)
            if not regs or at is None:
                continue
            for place in _find_insertion_points(each, at, call.side):
                found[place] = found.get(place, 0) | regs
        return found

    def on_way(self, k: int, each: Departure, pending: Mapping[int, Pending]) -> Pending:
        """Loads that are on their way there: other ways to the same place may have waited for less, or for more."""
        if each.source is None or each.source not in pending or self.calls_at(k, each.source):
            return pending[each.to]
        return step_pending(self.isa, self.graph.bodies[k].code.inst(each.source), pending[each.source])

    def calls_at(self, k: int, at: int) -> bool:
        """Whether other code runs before control continues behind an instruction."""
        return bool(self.graph.bodies[k].code.inst(at).op.flags & (OpFlag.CALL | OpFlag.INDIRECT))

    def find_pending_before(self, k: int, wanted: set[int]) -> dict[int, Pending]:
        """Loads that are on their way before some instructions of a function."""
        body, first, isa = self.graph.bodies[k], self.graph.first[k], self.isa
        ordered, counting, found = sorted(wanted), body.code.those(moves), dict[int, Pending]()
        for block, span in enumerate(body.blocks):
            pending, at = self.pending[first + block], span.start
            for stop in within(ordered, span):
                for place in within(counting, range(at, stop)):
                    pending = step_pending(isa, body.code.inst(place), pending)
                found[stop], at = pending, stop
        return found

    def duties(self, k: int, lives: Sequence[Liveness], modes: Sequence[Modes], wanted: set[int]) -> dict[int, Duty]:
        """Before some instructions of a function."""
        body, first = self.graph.bodies[k], self.graph.first[k]
        found: dict[int, Duty] = {}
        ordered = sorted(wanted)
        for block, span in enumerate(body.blocks):
            here = within(ordered, span)
            if not here:
                continue
            before = reduce(_both, (live.before(first + block, here) for live in lives))
            for at, mode in self.modes_at(k, span, modes[first + block], here):
                found[at] = Duty(before[at], not (mode.relative or mode.skips),
                                 OpFlag.END in body.code.inst(at).op.flags)
        return found

    def plain_behind(self, k: int, source: int | None, modes: Sequence[Modes]) -> bool:
        """Whether vector instructions do what they say between an instruction and what comes next: on one way to a
        place they may, where on others they do not."""
        body = self.graph.bodies[k]
        if source is None or self.calls_at(k, source):
            return False
        block = body.block_of(source)
        ((_, before),) = self.modes_at(k, body.blocks[block], modes[self.graph.first[k] + block], [source])
        behind = step_modes(self.isa, body.code.inst(source), before)
        return not (behind.relative or behind.skips)

    def modes_at(self, k: int, span: range, modes: Modes, wanted: Sequence[int]) -> list[tuple[int, Modes]]:
        """Before some instructions of a block."""
        code, found, at = self.graph.bodies[k].code, [], span.start
        for stop in wanted:
            for inst in map(code.inst, range(at, stop)):
                if modes.ending or matters(inst):
                    modes = step_modes(self.isa, inst, modes)
            at = stop
            found.append((stop, modes))
        return found


def _both(a: Mapping[int, Live], b: Mapping[int, Live]) -> dict[int, Live]:
    """What is in both of two sets that are each large enough."""
    return {at: Live(active & b[at].active, inactive & b[at].inactive) for at, (active, inactive) in a.items()}


def _find_insertion_points(body: Body, at: int, side: Side) -> list[int]:
    """Numbers of the instructions before which code on a side of an instruction runs."""
    if side is Side.BEFORE:
        return [at]
    block = body.block_of(at)
    if at != body.blocks[block][-1]:
        return [at + 1]
    following = body.following[block]
    if OpFlag.CONDITIONAL in body.code.inst(at).op.flags:
        following = following[:1] if side is Side.TAKEN else following[-1:]
    return [body.blocks[to].start for to in following]


def settle(runner: Runner, outcome: Outcome, duty: Duty, kept: int, start: int, guarded: int = 0) -> None:
    """Check that the application finds what it may read, the tool its values, and the hardware what is ``guarded``.
    ``kept``: where the tool's values are."""
    to = start + outcome.to
    if not duty.ends and not outcome.exec_back:
        raise runner.fail("EXEC is not restored", to)
    if outcome.changed >> MODE & 1:
        raise runner.fail("MODE is not restored", to)
    if outcome.vectors and not duty.plain:
        raise runner.fail("vector instructions stand where the application has them mean something else", to)
    active, inactive = duty.live
    if lost := kept & (active | inactive):
        raise runner.fail(f"the tool keeps its own in {RegSet(lost)}, which the application may still read", to)
    if lost := outcome.changed & (active | runner.own | guarded):
        raise runner.fail(f"{describe_registers(lost & -lost)} is live and not restored", to)
    if lost := outcome.far & (active | inactive):
        raise runner.fail(f"{RegSet(lost)} is still needed and overwritten", to)
    if outcome.pending:
        raise runner.fail(f"a load of a hook may still write {RegSet(outcome.pending)}", to)
