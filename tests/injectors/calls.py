"""Injectors that get a call wrong: what it saves and puts back, its lanes, its mode, its arguments and results.

Out: TABLE: by name, the subjects that it is tried on, and what is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from injectors.judge import Patch, compiled_anew, put, several
from luthier_py.isa import EXEC, SCC, VCC, Reg, RegFile, RegSet, build, sgpr
from luthier_py.rewrite.inject import allocate, call, fragment, items
from luthier_py.rewrite.inject.allocate import Placement
from luthier_py.rewrite.inject.call import Caller
from luthier_py.rewrite.inject.items import Label, part
from luthier_py.rewrite.inject.sites import Sites
from luthier_py.rewrite.jit import fragment as jit_fragment
from luthier_py.rewrite.jit.payload import Hole
from luthier_py.rewrite.tool import Lanes


def never_saves(reg: Reg) -> Patch:
    def make(save: Any) -> Any:
        def saved(self, clobbered, given) -> None:
            save(self, clobbered - RegSet.of(reg), given)

        return saved

    return put(Caller, "save", make)


def copies(change: Any) -> Patch:
    """``change`` gets the maker, and what is to be copied; it gives an instruction."""
    return put(build, "copy", lambda made: lambda isa, to, source: change(made, isa, to, source))


def of_mode(change: Any) -> Patch:
    """Fields of MODE are others where they are kept, set and put back."""
    return several(
        put(build, "keep_mode", lambda made: lambda isa, to, field: made(isa, to, change(field))),
        put(build, "set_mode", lambda made: lambda isa, field, source: made(isa, change(field), source)))


def narrow(made, isa, to, source):
    """Of two scalars the lower one."""
    wide = to.file is RegFile.SGPR and to.dwords == 2 and isinstance(source, Reg)
    return made(isa, part(to, 0), part(source, 0)) if wide else made(isa, to, source)


def upper(made, isa, to, source):
    wide = to.file is RegFile.SGPR and to.dwords == 2 and isinstance(source, Reg)
    return made(isa, part(to, 1), part(source, 1)) if wide else made(isa, to, source)


def restore_in_order(self) -> None:
    """SCC first: what comes behind does not destroy it."""
    if sgpr(SCC) in self.saved:
        self.emit(build.set_flag(self.isa, self.saved.pop(sgpr(SCC))))
    for reg, keep in self.saved.items():
        self.copy(reg, keep)


def restores_each_other(self) -> None:
    regs, keeps = list(self.saved), list(self.saved.values())[::-1]
    for reg, keep in zip(regs, keeps, strict=True):
        if reg == sgpr(SCC):
            self.emit(build.set_flag(self.isa, keep))
        else:
            self.copy(reg, part(keep, 0, min(reg.dwords, keep.dwords)) if keep.dwords >= reg.dwords else reg)


def restores_before(run: Any) -> Any:
    def ran(self, placement) -> None:
        for reg in [each for each in self.saved if each not in (sgpr(EXEC, 2), sgpr(SCC))]:
            self.copy(reg, self.saved.pop(reg))
        run(self, placement)

    return ran


def flag_before(run: Any) -> Any:
    def ran(self, placement) -> None:
        if sgpr(SCC) in self.saved:
            self.emit(build.set_flag(self.isa, self.saved.pop(sgpr(SCC))))
        run(self, placement)

    return ran


def keeps_in(keep: Reg):
    """EXEC is kept somewhere of the injector's own."""
    def make(set_exec: Any) -> Any:
        def set_(self, placement) -> None:
            self.copy(keep, sgpr(EXEC, 2))
            self.saved[sgpr(EXEC, 2)] = keep
            self.copy(sgpr(EXEC, 2), 1 if self.insertion.hook.lanes is Lanes.ONE else -1)

        return set_

    return put(Caller, "set_exec", make)


def exec_is(one: int, every: int) -> Patch:
    numbers = {1: one, -1: every}
    return copies(lambda made, isa, to, source: made(
        isa, to, numbers.get(source, source) if to == sgpr(EXEC, 2) and isinstance(source, int) else source))


def exec_in_halves(made, isa, to, source):
    if to == sgpr(EXEC, 2) and isinstance(source, int):
        return made(isa, part(to, 0), source)
    return made(isa, to, source)


def moved(change: Any) -> Patch:
    return put(Caller, "move_all", lambda move_all: lambda self, left: move_all(self, change(self, left)))


def one_after_the_other(self, left) -> None:
    for to, source in left.items():
        self.move(to, source)


def results_exchanged(self, placement) -> None:
    """All results get what the last one is."""
    slots = self.fragment.payload.results
    for to in self.insertion.into:
        location = self.location(to)
        if location is not None and location != sgpr(SCC) and placement(slots[-1].reg) != location:
            self.move(location, placement(slots[-1].reg))


def half_a_result(self, placement) -> None:
    for slot, to in zip(self.fragment.payload.results, self.insertion.into, strict=True):
        location = self.location(to)
        if isinstance(location, Reg) and location != sgpr(SCC) and placement(slot.reg) != location:
            self.move(part(location, 0), part(placement(slot.reg), 0))


def sited(**changes: Any) -> Patch:
    """What is known of a place is something else."""
    return put(Sites, "site", lambda site: lambda self, *given: (lambda found: replace(
        found, **{name: change(self, found) for name, change in changes.items()}))(site(self, *given)))


def placed(change: Any) -> Patch:
    return put(fragment, "place", lambda place: lambda *given: change(place(*given)))


def squeezed(placement: Placement) -> Placement:
    """Two registers of a file share the lower one's place."""
    found = dict(placement.renamed)
    for file in RegFile:
        mine = sorted(index for which, index in found if which is file)
        if len(mine) > 1:
            found[file, mine[1]] = found[file, mine[0]]
    return Placement(found)


def fields(change: Any) -> Patch:
    return put(Hole, "compute_dword", lambda filled: lambda self, hook, args: change(self, filled(self, hook, args)))


def address(change: Any) -> Patch:
    made = several(put(call, "address_of", lambda made: lambda *given: change(made, *given)))
    return made


def both_low(made, isa, edit, to, pc, base, target):
    first, second = made(isa, edit, to, pc, base, target)
    return [first, replace(second, reference=replace(second.reference, kind=first.reference.kind))]


def late_base(made, isa, edit, to, pc, base, target):
    behind = Label()
    first, second = made(isa, edit, to, pc, base, target)
    return [replace(first, reference=replace(first.reference, base=behind)), behind,
            replace(second, reference=replace(second.reference, base=behind))]


def from_the_wrong_half(made, isa, edit, to, pc, base, target):
    first, second = made(isa, edit, to, pc, base, target)
    return [first, replace(second, inst=items.add_with_carry(isa, part(to, 1), part(to, 0)))]


def high_half_first(made, isa, edit, to, pc, base, target):
    return made(isa, edit, to, pc, base, target)[::-1]


def another_variable(made, isa, edit, to, pc, base, target):
    return made(isa, edit, to, pc, base, replace(target, variable="Marked.found", offset=0))


def hooks(change: Any) -> Patch:
    """What is made of LLVM's code is something else of the same size."""
    return compiled_anew(put(jit_fragment, "payload", lambda payload: lambda hook, code, ir, isa: (
        lambda made: replace(made, instrs=change(isa, made.instrs)))(payload(hook, code, ir, isa))))


def last_wait_is_nothing(isa, instrs):
    last = max((k for k, inst in enumerate(instrs) if "WAIT" in inst.op.base), default=-1)
    return tuple(build.nothing(isa) if k == last else inst for k, inst in enumerate(instrs))


TABLE: dict[str, tuple[tuple[str, ...], Patch]] = {
    # what is saved, and put back
    "VCC is not kept": (("marked", "results", "everywhere", "through"), never_saves(sgpr(VCC, 2))),
    "SCC is not kept": (("marked", "everywhere", "through"), never_saves(sgpr(SCC))),
    "of two scalars the lower one is copied": (("marked", "ways", "born"), copies(narrow)),
    "of two scalars the upper one is copied": (("marked", "ways"), copies(upper)),
    "SCC comes back first": (("marked", "everywhere"), put(Caller, "restore", lambda _: restore_in_order)),
    "what is kept comes back to others": (("marked", "everywhere"), put(
        Caller, "restore", lambda _: restores_each_other)),
    "what is kept comes back before the hook": (("marked", "everywhere"), put(Caller, "run", restores_before)),
    "SCC comes back before the hook": (("marked", "everywhere"), put(Caller, "run", flag_before)),
    "SCC comes back before the results": (("marked", "results"), put(Caller, "set_results", flag_before)),
    "scalars come from the next register": (("marked", "everywhere"), put(
        Caller, "restore", lambda restore: lambda self: (self.saved.update({
            reg: replace(keep, index=keep.index + keep.dwords) for reg, keep in self.saved.items()}),
            restore(self))[1])),
    "SCC is compared with one": (("marked", "everywhere"), put(
        build, "set_flag", lambda made: lambda isa, reg, number=0: made(isa, reg, 1))),
    "SCC is set by a signed comparison": (("marked", "everywhere"), put(
        build, "set_flag", lambda _: lambda isa, reg, number=0: isa.make("s_cmp_gt_i32", reg, number))),
    "SCC is set by a bit": (("marked", "everywhere"), put(
        build, "set_flag", lambda _: lambda isa, reg, number=0: isa.make("s_bitcmp1_b32", reg, 1))),
    "what is kept goes to registers that are live": (("marked", "everywhere", "through"), sited(
        free=lambda self, site: site.free | site.live.scalars & self.general)),
    "every register is free": (("marked", "ways"), sited(free=lambda self, site: self.general - site.live.vectors)),
    "live vector registers are free": (("marked", "everywhere"), sited(
        free=lambda self, site: site.free | site.live.vectors & self.general)),
    "nothing is live in other lanes": (("marked", "everywhere"), put(
        Sites, "live", lambda live: lambda self, instr, place, lanes: live(self, instr, place, Lanes.ACTIVE))),
    "what is live is what is so behind the instruction": (("marked", "everywhere"), put(
        Sites, "live", lambda live: lambda self, instr, place, lanes: self.facts.live_after(instr))),
    # lanes
    "EXEC is kept in VCC": (("marked", "ways"), keeps_in(sgpr(VCC, 2))),
    "EXEC is kept where a return address is": (("marked", "ways"), keeps_in(sgpr(30, 2))),
    "EXEC is kept in s[0:1]": (("marked", "ways", "born"), keeps_in(sgpr(0, 2))),
    "one lane is another lane": (("marked", "ways"), exec_is(2, -1)),
    "one lane is two": (("marked", "ways"), exec_is(3, -1)),
    "one lane is none": (("marked", "ways"), exec_is(0, -1)),
    "all lanes are half of them": (("marked", "full"), exec_is(1, 0x7FFFFFFF)),
    "half of EXEC is set": (("marked", "ways"), copies(exec_in_halves)),
    "EXEC comes back as all lanes": (("marked", "ways"), copies(lambda made, isa, to, source: made(
        isa, to, -1 if to == sgpr(EXEC, 2) and isinstance(source, Reg) else source))),
    "EXEC is united with what it was": (("marked", "ways"), copies(lambda made, isa, to, source: isa.make(
        "s_or_b64", to, to, source) if to == sgpr(EXEC, 2) and isinstance(source, Reg) else made(isa, to, source))),
    "EXEC is kept in lanes that are active": (("marked", "ways"), put(
        Caller, "set_exec", lambda set_exec: lambda self, placement: (self.copy(sgpr(EXEC, 2), -1), set_exec(
            self, placement))[1])),
    # modes
    "MODE is set from its fourth bit on": (("marked",), of_mode(lambda field: field | 4 << 6)),
    "sixteen bits of MODE are set": (("marked",), of_mode(lambda field: field & ~(31 << 11) | 15 << 11)),
    "another hardware register is set": (("marked",), of_mode(lambda field: field & ~63 | 2)),
    "MODE comes back rounded otherwise": (("marked",), put(
        build, "set_mode", lambda made: lambda isa, field, source: made(isa, field, source)
        if isinstance(source, int) else isa.make("s_setreg_b32", 1 | 3 << 11, source))),
    "MODE is kept behind its change": (("marked",), put(
        Caller, "set_mode", lambda set_mode: lambda self: (lambda start, keep: (
            self.items.__setitem__(slice(start, None), self.items[start:][::-1]), keep)[1])(
                len(self.items), set_mode(self)))),
    # arguments and results
    "arguments are moved one after the other": (("marked", "born"), put(
        Caller, "move_all", lambda _: one_after_the_other)),
    "arguments are not moved": (("marked", "born"), put(Caller, "move_all", lambda _: lambda self, left: None)),
    "arguments come from the next register": (("marked", "born"), moved(lambda self, left: {
        to: replace(source, index=source.index + 1) if isinstance(source, Reg) and source.index < 90 else source
        for to, source in left.items()})),
    "arguments are read where they are kept no more": (("marked", "results"), put(
        Caller, "set_arguments", lambda set_arguments: lambda self, placement: (lambda saved: (
            self.saved.clear(), set_arguments(self, placement), self.saved.update(saved)))(dict(self.saved)))),
    "what is given may be destroyed": (("marked", "results", "everywhere"), put(
        call, "Pin", lambda made: lambda slot, location, writable: made(slot, location, True))),
    "results stay where they are": (("marked", "ways", "results"), put(
        Caller, "set_results", lambda _: lambda self, placement: None)),
    "all results are the last": (("marked", "ways", "results"), put(
        Caller, "set_results", lambda _: results_exchanged)),
    "half of a result is moved": (("results", "marked"), put(Caller, "set_results", lambda _: half_a_result)),
    "a result of SCC stays": (("results",), put(Caller, "set_flag", lambda _: lambda self, placement: None)),
    "SCC gets its result twice": (("results",), put(Caller, "set_flag", lambda set_flag: lambda self, placement: (
        set_flag(self, placement), set_flag(self, placement))[1])),
    "SCC gets its result, and then what it was": (("results",), put(Caller, "restore", lambda restore: lambda self: (
        self.copy(sgpr(90), sgpr(SCC)), restore(self), self.emit(build.set_flag(self.isa, sgpr(90), 1)))[1])),
    # addresses and constants
    "both halves of an address are the lower one": (("marked", "ways"), address(both_low)),
    "addresses count from another place": (("marked", "ways"), address(late_base)),
    "the upper half is made of the lower one": (("marked", "ways"), address(from_the_wrong_half)),
    "the upper half is made first": (("marked", "ways"), address(high_half_first)),
    "all addresses are of one variable": (("marked",), address(another_variable)),
    "addresses are of the next byte": (("marked", "ways"), address(
        lambda made, isa, edit, to, pc, base, target: made(
            isa, edit, to, pc, base, replace(target, offset=target.offset + 1)))),
    "addresses are of the element before": (("marked", "ways"), address(
        lambda made, isa, edit, to, pc, base, target: made(
            isa, edit, to, pc, base, replace(target, offset=max(target.offset - 8, 0))))),
    "constants are those of the first call": (("marked",), put(call, "fill_holes", lambda filled: (
        lambda first: lambda isa, fragment, insertion, insts: first.setdefault(id(fragment), filled(
            isa, fragment, insertion, insts)))({}))),
    "a constant has another sign": (("marked",), fields(lambda hole, made: made ^ 1 << 31)),
    "the upper halves of constants are zero": (("marked",), fields(lambda hole, made: 0 if hole.high else made)),
    "constants have their bytes the other way round": (("marked",), fields(
        lambda hole, made: int.from_bytes(made.to_bytes(4, "big"), "little"))),
    # registers of a hook
    "two registers of a hook share a place": (("marked", "everywhere"), placed(squeezed)),
    "tuples start anywhere": (("marked", "ways"), put(allocate, "tuple_alignment", lambda _: lambda file, dwords: 1)),
    "registers count from one": (("marked", "everywhere"), placed(lambda placement: Placement({
        reg: index + 1 for reg, index in placement.renamed.items()}))),
    "registers are those of LLVM": (("marked", "everywhere", "through"), placed(lambda placement: Placement({}))),
    # what LLVM made
    "a hook's waits are nothing": (("marked", "born"), hooks(lambda isa, instrs: tuple(
        build.nothing(isa) if "WAIT" in inst.op.base else inst for inst in instrs))),
    "a hook's last wait is nothing": (("marked",), hooks(last_wait_is_nothing)),
    "a hook's first two instructions change places": (("marked", "ways"), hooks(
        lambda isa, instrs: (*instrs[1::-1], *instrs[2:]))),
}
