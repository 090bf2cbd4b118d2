"""Injectors that get the ways through a clone wrong: waits and wait states, order, branches, calls between functions.

Out: TABLE: by name, the subjects that it is tried on, and what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from injectors.judge import Patch, put
from luthier_py.isa import Inst, OpFlag, build
from luthier_py.isa.encoding.waitcnt import waits_for
from luthier_py.rewrite.inject import apply, clauses, lookup, sites, wait_states
from luthier_py.rewrite.inject.call import Caller
from luthier_py.rewrite.inject.items import Cause, Clone, Label, Run, Single, Slice


def without(pass_name: str) -> Patch:
    """A pass of one clone does nothing."""
    return put(apply, pass_name, lambda _: lambda isa, made, *more: made)


def passed(pass_name: str, change: Callable[[Any, Clone], Clone]) -> Patch:
    """What a pass makes is changed."""
    return put(apply, pass_name, lambda done: lambda isa, made, *more: change(isa, done(isa, made, *more)))


def settled(change: Callable[[Any, Clone], Clone]) -> Patch:
    return put(apply, "insert_wait_states", lambda settle: lambda isa, clones: [change(isa, each) for each in settle(
        isa, clones)])


def those(cause: Cause, change: Callable[[Any, Single], list[Any]]) -> Callable[[Any, Clone], Clone]:
    """What was inserted for a reason becomes something else."""
    def changed(isa: Any, made: Clone) -> Clone:
        found: list[Any] = []
        for item in made.items:
            mine = isinstance(item, Single) and item.inserted and item.edit is not None and item.edit.cause is cause
            found += change(isa, item) if mine else [item]
        return replace(made, items=tuple(found))

    return changed


def shorter(isa: Any, wait: Single) -> list[Any]:
    """One wait state less, or no wait."""
    states = wait.inst["simm16"].value if wait.inst.op.base == "S_NOP" else 0
    return [replace(wait, inst=isa.make("s_nop", states - 1))] if states else []


def behind_the_next(isa: Any, made: Clone) -> Clone:
    """Waits change places with what they stand before."""
    items = list(made.items)
    for k in range(len(items) - 1):
        item, after = items[k], items[k + 1]
        wait = isinstance(item, Single) and item.edit is not None and item.edit.cause is Cause.WAIT
        if wait and isinstance(after, Single) and after.jump is None:
            items[k], items[k + 1] = after, item
    return replace(made, items=tuple(items))


def as_nothing(isa: Any, wait: Single) -> list[Any]:
    return [replace(wait, inst=build.nothing(isa))]


def labels_behind(isa: Any, made: Clone) -> Clone:
    """What goes before a block stands before its label: branches go past it."""
    items = list(made.items)
    k = 0
    while k < len(items):
        if isinstance(items[k], Label) and items[k].address is not None:
            end = k + 1
            while end < len(items) and (isinstance(items[end], Run) or isinstance(items[end], Single) and (
                    items[end].inserted) or isinstance(items[end], Label) and items[end].address is None):
                end += 1
            items.insert(end - 1, items.pop(k)) if end > k + 1 else None
            k = end
        k += 1
    return replace(made, items=tuple(items))


def jumps(change: Callable[[Clone, Single], Label]) -> Callable[[Any, Clone], Clone]:
    """Branches of the application go elsewhere."""
    def changed(isa: Any, made: Clone) -> Clone:
        return replace(made, items=tuple(
            replace(item, jump=change(made, item)) if isinstance(item, Single) and item.origin is not None
            and item.jump is not None else item for item in made.items))

    return changed


def to_the_next_block(made: Clone, branch: Single) -> Label:
    blocks = [item for item in made.items if isinstance(item, Label) and item.address is not None]
    found = [k for k, each in enumerate(blocks) if each is branch.jump]
    return blocks[(found[0] + 1) % len(blocks)] if found else branch.jump


def to_the_first_block(made: Clone, branch: Single) -> Label:
    return next(item for item in made.items if isinstance(item, Label) and item.address is not None)


def ways_of_their_own(change: Callable[[Clone, Single], Label]) -> Callable[[Any, Clone], Clone]:
    """Where code that stands behind all other goes on."""
    return lambda isa, made: those(Cause.EDGE, lambda isa, item: [replace(item, jump=change(made, item))])(isa, made)


def exchanged(first: str, second: str) -> Patch:
    """What goes before instructions goes behind them, and so on."""
    def make(done: Any) -> Any:
        def woven(isa, made, before, after, taken):
            given = {"before": before, "after": after, "taken": taken}
            given[first], given[second] = given[second], given[first]
            return done(isa, made, given["before"], given["after"], given["taken"])

        return woven

    return put(apply, "inline_calls", make)


def reversed_calls(done: Any) -> Any:
    """What stands at one place comes in the other order: by calls, whose items are together."""
    def order(items: Any) -> list[Any]:
        groups: list[list[Any]] = []
        last = None
        for item in items:
            number = getattr(item, "edit", None) and item.edit.number
            if not groups or number is not None and number != last and last is not None:
                groups.append([])
            groups[-1].append(item)
            last = number if number is not None else last
        return [item for group in groups[::-1] for item in group]

    def woven(isa, made, *inserted):
        return done(isa, made, *({pc: order(items) for pc, items in each.items()} for each in inserted))

    return woven


def taken_falls(done: Any) -> Any:
    """What goes on the way of a branch that is taken stands on the other one."""
    def woven(isa, made, before, after, taken):
        after = {pc: [*after.get(pc, ()), *taken.get(pc, ())] for pc in after.keys() | taken.keys()}
        return done(isa, made, before, after, {})

    return woven


def dropped(cause: Cause, which: int) -> Patch:
    """One thing of a kind is left out."""
    def change(isa: Any, made: Clone) -> Clone:
        found = [k for k, item in enumerate(made.items) if isinstance(item, Single) and item.inserted
                 and item.edit is not None and item.edit.cause is cause]
        return made if which >= len(found) else replace(
            made, items=made.items[:found[which]] + made.items[found[which] + 1:])

    return settled(change)


def application(change: Callable[[Any, Slice], list[Any]], which: int = 0) -> Patch:
    """Something of the application becomes something else: in the first slice that has more than two instructions."""
    def changed(isa: Any, made: Clone) -> Clone:
        found = [k for k, item in enumerate(made.items) if isinstance(item, Slice) and item.stop - item.start > 2]
        if which >= len(found):
            return made
        k = found[which]
        return replace(made, items=(*made.items[:k], *change(isa, made.items[k]), *made.items[k + 1:]))

    return passed("inline_calls", changed)


def without_first(isa: Any, piece: Slice) -> list[Any]:
    return [replace(piece, start=piece.start + 1)]


def twice(isa: Any, piece: Slice) -> list[Any]:
    return [replace(piece, stop=piece.start + 1), piece]


def turned(isa: Any, piece: Slice) -> list[Any]:
    return [replace(piece, start=piece.start + 1, stop=piece.start + 2), replace(piece, stop=piece.start + 1),
            replace(piece, start=piece.start + 2)]


def another(isa: Any, piece: Slice) -> list[Any]:
    """Its first instruction is the one behind it."""
    return [replace(piece, start=piece.start + 1, stop=piece.start + 2), replace(piece, start=piece.start + 1)]


def groups(change: Callable[[Any, Inst], Inst]) -> Patch:
    def changed(isa: Any, made: Clone) -> Clone:
        return replace(made, items=tuple(
            replace(item, inst=change(isa, item.inst)) if isinstance(item, Single) and item.origin is not None
            and OpFlag.CLAUSE in item.inst.op.flags else item for item in made.items))

    return passed("dissolve", changed)


def group_with_waits(isa: Any, made: Clone) -> Clone:
    """Something stands in the middle of a hook's own groups of memory instructions."""
    found: list[Any] = []
    for item in made.items:
        if isinstance(item, Run):
            at = next((k for k in range(item.start, item.stop - 2) if OpFlag.CLAUSE in item.insts[k].op.flags), None)
            if at is not None:
                first, second = replace(item, stop=at + 2), replace(item, start=at + 2)
                found += [first, Single(build.nothing(isa), edit=item.edit), second]
                continue
        found.append(item)
    return replace(made, items=tuple(found))


def looked_up(name: str, make: Any) -> Patch:
    return put(lookup._Chain, name, make)


def link_kept(self) -> Inst:
    """The call gives its return address to another pair."""
    return self.isa.with_registers(self.inst, lambda o: self.base.index if o.name == "src0" else o.reg.index + 2)


def not_added_back(items: Any) -> Any:
    return lambda self, pointed: [item for item in items(self, pointed) if not (
        isinstance(item, Single) and item.inst.op.base == "S_ADDC_U32" and item.reference is None)]


def only_low_halves(items: Any) -> Any:
    def made(self, pointed):
        found = items(self, pointed)
        return found[:5] + found[7:]  # without the look at the upper half

    return made


def skips(change: Callable[[Any], Inst]) -> Patch:
    return put(build, "jump_if_no_lane", lambda _: lambda isa: change(isa))


def skips_too_far(taken: Any) -> Any:
    """Where no lane is active, what puts registers back is left out as well."""
    def restored(self) -> None:
        ends = [k for k, item in enumerate(self.items) if isinstance(item, Label)]
        taken(self)
        if ends and self.fragment.payload.needs_lane:
            self.items.append(self.items.pop(ends[-1]))

    return restored


TABLE: dict[str, tuple[tuple[str, ...], Patch]] = {
    # waits and wait states
    "nobody waits for arguments": (("marked", "everywhere"), put(sites, "wait_for", lambda _: lambda *given: ())),
    "one load less is waited for": (
        ("marked",),
        put(
            sites,
            "wait_for",
            lambda wait_for: (
                lambda isa, pending, ready: tuple(
                    less
                    for inst in wait_for(isa, pending, ready)
                    for less in isa.waits(
                        {counter: count + 1 for counter, count in waits_for(isa.target, inst).items()}
                    )
                )
            ),
        ),
    ),
    "no wait states": (("marked", "everywhere", "ways", "full"),
                       put(apply, "insert_wait_states", lambda _: lambda isa, clones: list(clones))),
    "one wait state less": (("marked", "everywhere", "ways"), settled(those(Cause.WAIT, shorter))),
    "waits are nothing": (("marked", "everywhere", "ways", "full"), settled(those(Cause.WAIT, as_nothing))),
    "waits come too late": (("marked", "everywhere"), settled(behind_the_next)),
    "the first wait is left out": (("marked", "everywhere", "ways"), dropped(Cause.WAIT, 0)),
    "the second wait is left out": (("marked", "everywhere", "ways"), dropped(Cause.WAIT, 1)),
    "the fifth wait is left out": (("everywhere", "ways"), dropped(Cause.WAIT, 4)),
    "nothing is pending over branches": (
        ("everywhere", "ways"),
        put(wait_states._Walk, "flow_into", lambda flow_into: lambda self, start, debts: None),
    ),
    "nothing is pending from outside": (
        ("everywhere", "ways"),
        put(wait_states, "_anything", lambda _: lambda owing, clones: wait_states.NOTHING_PENDING),
    ),
    # order, and where hooks stand
    "hooks at one place run in the other order": (("marked", "ways"), put(apply, "inline_calls", reversed_calls)),
    "before and behind are exchanged": (("marked", "ways"), exchanged("before", "after")),
    "behind and taken are exchanged": (("ways",), exchanged("after", "taken")),
    "what is for taken branches is on the other way": (("ways",), put(apply, "inline_calls", taken_falls)),
    "what is for taken branches is left out": (
        ("ways",),
        put(apply, "inline_calls", lambda done: lambda isa, made, b, a, t: done(isa, made, b, a, {})),
    ),
    "what is behind instructions is left out": (
        ("marked", "ways"),
        put(apply, "inline_calls", lambda done: lambda isa, made, b, a, t: done(isa, made, b, {}, t)),
    ),
    "branches go past what is before blocks": (("ways", "everywhere"), passed("inline_calls", labels_behind)),
    # branches
    "branches go to the next block": (("ways", "marked"), passed("inline_calls", jumps(to_the_next_block))),
    "branches go to the first block": (("ways", "marked"), passed("inline_calls", jumps(to_the_first_block))),
    "a way of its own comes to the next block": (("ways",),
                                                 passed("inline_calls", ways_of_their_own(to_the_next_block))),
    "a way of its own goes nowhere": (
        ("ways",),
        passed("inline_calls", those(Cause.EDGE, lambda isa, item: [Single(build.nothing(isa), edit=item.edit)])),
    ),
    "skips where a lane is active": (("marked",), skips(lambda isa: isa.make("s_cbranch_execnz", 0))),
    "skips where VCC is zero": (("marked",), skips(lambda isa: isa.make("s_cbranch_vccz", 0))),
    "skips where SCC is zero": (("marked",), skips(lambda isa: isa.make("s_cbranch_scc0", 0))),
    "skips always": (("marked",), skips(lambda isa: isa.make("s_branch", 0))),
    "skips what puts registers back": (("marked",), put(Caller, "restore", skips_too_far)),
    # the application's code
    "an instruction is left out": (("marked", "everywhere", "ways"), application(without_first)),
    "an instruction is there twice": (("marked", "ways"), application(twice)),
    "two instructions change places": (("marked", "ways"), application(turned)),
    "an instruction is the next one": (("marked", "ways"), application(another)),
    "two instructions change places in a later block": (("marked", "ways"), application(turned, 2)),
    # groups of memory instructions, and registers that are given back
    "groups stay": (("everywhere", "marked"), without("dissolve")),
    "groups are shorter": (
        ("everywhere", "marked"),
        groups(lambda isa,
               inst: isa.with_field(inst, "simm16", inst["simm16"].value - 1) if inst["simm16"].value else inst),
    ),
    "groups are longer": (("marked",),
                          groups(lambda isa, inst: isa.with_field(inst, "simm16", inst["simm16"].value + 1))),
    "registers are given back before the hook": (
        ("ways", "marked", "born"),
        put(clauses, "gives_back_vectors", lambda _: lambda inst, target: False),
    ),
    "something stands in a hook's group": (("marked", "born"), settled(group_with_waits)),
    # calls between functions
    "calls go to the original": (
        ("ways", "everywhere"),
        put(apply, "clone_function", lambda made: lambda program, function, name, beside,
            instead: made(program, function, name, (), instead)),
    ),
    "the last function is not looked for": (
        ("through",),
        looked_up("items", lambda items: lambda self, pointed: items(self, pointed[:-1] or pointed)),
    ),
    "the first function is not looked for": (
        ("through",),
        looked_up("items", lambda items: lambda self, pointed: items(self, pointed[1:] or pointed)),
    ),
    "upper halves of pointers are not looked at": (("through",), looked_up("items", only_low_halves)),
    "what is left of a pointer is not added back": (("through",), looked_up("items", not_added_back)),
    "the call gives its return address to others": (("through",), looked_up("call", lambda _: link_kept)),
    "the call goes through the pointer": (("through",), looked_up("call", lambda _: lambda self: self.inst)),
    "nothing is looked up": (("through",), without("look_up")),
}
