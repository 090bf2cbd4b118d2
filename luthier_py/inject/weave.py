"""One inserted call, as items: wait, save, set up, the fragment, results, restore.

In: an insertion, its fragment, the facts at its place. Out: items for the clone. Invariant: after the
last item every register that the application may still read holds what it held before the first one,
except the registers that the insertion declares in ``into``.

The order is what keeps saves from clobbering each other: SCC is saved first and restored last, EXEC is
changed after everything of the application has been read, and put back before results are written. So is MODE, where
floats of the application may compute otherwise than those of hooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from luthier_py.analysis import MODE_FIELD, PLAIN_MODE, depends_on_mode
from luthier_py.errors import EditConflict
from luthier_py.inject.allocate import Pin, Placement, Pool
from luthier_py.inject.fragment import Fragment, instructions, is_general, settle
from luthier_py.inject.model import Item, Target, distance_added, made, part
from luthier_py.inject.sites import Site
from luthier_py.isa import EXEC, M0, SCC, VCC, InstructionSet, Reg, RegFile, RegSet, sgpr
from luthier_py.jit import Slot
from luthier_py.tool import Element, Insertion, Lanes, Variable, WaveVariable

_SCC, _VCC, _M0, _EXEC = sgpr(SCC), sgpr(VCC, 2), sgpr(M0), sgpr(EXEC, 2)


@dataclass(slots=True)
class Weaver:
    """Emits the items of one insertion (mutable: collects them)."""

    isa: InstructionSet
    fragment: Fragment
    insertion: Insertion
    site: Site
    homes: Mapping[WaveVariable, Reg]
    pool: Pool
    items: list[Item] = field(default_factory=list)
    saved: dict[Reg, Reg] = field(default_factory=dict)
    leaving: list[Item] = field(default_factory=list)  # branches to whatever item comes next
    first: Item | None = None  # of the fragment

    def emit(self, mnemonic: str, *operands: Reg | int) -> Item:
        return self.append(Item(made(self.isa, mnemonic, *operands)))

    def append(self, item: Item) -> Item:
        for branch in self.leaving:
            branch.jump = item
        self.leaving.clear()
        self.items.append(item)
        return item

    # -- saving and restoring ------------------------------------------------------------------

    def save(self, clobbered: RegSet) -> None:
        """Keep special registers that are live and ``clobbered``."""
        for reg in (_SCC, _VCC, _M0):
            if clobbered.overlaps(RegSet.of(reg)) and self.site.live.overlaps(RegSet.of(reg)):
                keep = self.saved[reg] = self.pool.take(RegFile.SGPR, reg.dwords)
                self.scalar(keep, reg)

    def restore(self) -> None:
        for reg, keep in self.saved.items():
            if reg != _SCC:
                self.scalar(reg, keep)
        if _SCC in self.saved:
            self.emit("s_cmp_lg_u32", self.saved[_SCC], 0)

    def set_exec(self, placement: Placement) -> None:
        """Make the hook's lanes active; the old EXEC stays in an argument that holds it, if there is one."""
        holders = (placement(slot.reg) for slot, value in self.arguments
                   if value == _EXEC and not self.fragment.written.overlaps(RegSet.of(slot.reg)))
        keep = next(holders, None)
        if keep is None and not self.site.at_end:
            keep = self.pool.take(RegFile.SGPR, 2)
            self.scalar(keep, _EXEC)
        if keep is not None:
            self.saved[_EXEC] = keep
        self.emit("s_mov_b64", _EXEC, 1 if self.insertion.hook.lanes is Lanes.ONE else -1)

    def set_mode(self) -> Reg | None:
        """Let the hook's floats compute as it was compiled for, where the application may have them otherwise."""
        if self.site.plain_floats or not any(map(depends_on_mode, self.fragment.payload.instrs)):
            return None
        keep = self.pool.take(RegFile.SGPR)
        self.emit("s_getreg_b32", keep, MODE_FIELD)
        self.emit("s_setreg_imm32_b32", MODE_FIELD, PLAIN_MODE)
        return keep

    # -- arguments and results -----------------------------------------------------------------

    @property
    def arguments(self) -> Iterator[tuple[Slot, object]]:
        return zip(self.fragment.payload.params, self.insertion.runtime_args, strict=True)

    def home(self, value: object) -> Reg | None:
        if isinstance(value, WaveVariable):
            return self.homes[value]
        return value if isinstance(value, Reg) else None

    def pins(self) -> Iterator[Pin]:
        """Arguments and results that could stay where they live."""
        targets = set(self.insertion.into)
        writes = self.fragment.payload.writes
        steady = self.insertion.hook.lanes is Lanes.ACTIVE and not writes.overlaps(RegSet.of(_EXEC))
        for slot, value in self.arguments:
            home = self.home(value)
            if home is not None and home.file is slot.reg.file and (is_general(home) or (home == _EXEC and steady)):
                yield Pin(slot.reg, home, writable=value in targets)
        for slot, value in zip(self.fragment.payload.results, self.insertion.into, strict=True):
            home = self.home(value)
            if home is not None and home.file is slot.reg.file and is_general(home):
                yield Pin(slot.reg, home, writable=True)

    def set_arguments(self, placement: Placement) -> None:
        """Values first: making addresses destroys SCC, which may be one."""
        variables = []
        for slot, value in self.arguments:
            home, reg = self.home(value), placement(slot.reg)
            if isinstance(value, (Variable, Element)):
                variables.append((reg, value))
            elif home is not None and home != reg:
                self.move(reg, self.saved.get(home, home))
        self.addresses(variables)

    def move(self, to: Reg, source: Reg) -> None:
        """``to`` := ``source``; scalars broadcast into vector registers."""
        if to.file is RegFile.SGPR:
            for offset in range(0, to.dwords, 2):
                width = min(2, to.dwords - offset)
                self.scalar(part(to, offset, width), part(source, offset, width))
            return
        for offset in range(to.dwords):
            self.emit(vector_move(to, source), part(to, offset), part(source, offset))

    def scalar(self, to: Reg, source: Reg) -> None:
        if source == _SCC:
            self.emit("s_cselect_b32", to, 1, 0)
        else:
            self.emit(scalar_move(to.dwords), to, source)

    def addresses(self, wanted: list[tuple[Reg, Variable | Element]]) -> None:
        """Addresses of tool variables, relative to here; the last of the registers holds the PC until then."""
        if not wanted:
            return
        pc = wanted[-1][0]
        base = self.emit("s_getpc_b64", pc)
        for to, value in wanted:
            if isinstance(value, Element):
                target = Target(variable=value.variable.name, offset=value.offset_bytes)
            else:
                target = Target(variable=value.name)
            for item in distance_added(self.isa, to, pc, base, target):
                self.append(item)

    def inline(self, placement: Placement) -> None:
        """The hook's code; its inner branches name items, so that `relax` may move them."""
        code = [Item(inst) for inst in instructions(self.isa, self.fragment, placement)]
        self.first = code[0] if code else None
        for item in code:
            self.append(item)
        for item, to in zip(code, self.fragment.jumps, strict=True):
            if to is not None and to < len(code):
                item.jump = code[to]
            elif to is not None:
                self.leaving.append(item)

    def set_results(self, placement: Placement) -> None:
        """Results go to their homes, none of which is overwritten while it holds another result."""
        left = {home: placement(slot.reg)
                for slot, value in zip(self.fragment.payload.results, self.insertion.into, strict=True)
                if (home := self.home(value)) is not None and placement(slot.reg) != home}
        while left:
            ready = [to for to in left if not any(_overlap(to, source) for t, source in left.items() if t != to)]
            if ready:
                self.move(ready[0], left.pop(ready[0]))
            else:  # they go round in a circle
                to, source = next(iter(left.items()))
                aside = self.pool.take(source.file, source.dwords)
                self.move(aside, source)
                left[to] = aside


class Woven(NamedTuple):
    """The items of an insertion, and the first one of its fragment, if there is one."""

    items: list[Item]
    first: Item | None


def weave(
    isa: InstructionSet, insertion: Insertion, fragment: Fragment, site: Site, homes: Mapping[WaveVariable, Reg]
) -> Woven:
    """The items of one insertion at ``site``; raises OutOfRegisters, EditConflict."""
    own_exec = insertion.hook.lanes is not Lanes.ACTIVE
    weaver = Weaver(isa, fragment, insertion, site, homes, Pool(site.free, site.where))
    named = RegSet.of(*(r for v in (*insertion.runtime_args, *insertion.into) if (r := weaver.home(v)) is not None))
    if own_exec and (named.vgpr or named.agpr):
        message = f"hook {insertion.hook.name} runs with its own EXEC and cannot take vector registers"
        raise EditConflict(message, site.where())
    weaver.pool.free -= named
    for wait in site.wait:
        weaver.append(Item(wait))
    placement, weaver.pool = settle(isa, fragment, list(weaver.pins()), weaver.pool)
    makes_addresses = any(isinstance(value, (Variable, Element)) for value in insertion.runtime_args)
    weaver.save(fragment.payload.writes | (RegSet.of(_SCC) if makes_addresses else RegSet()))
    skip = weaver.emit("s_cbranch_execz", 0) if fragment.payload.needs_lane and not own_exec else None
    weaver.set_arguments(placement)
    if own_exec:
        weaver.set_exec(placement)
    mode = weaver.set_mode()
    weaver.inline(placement)
    if mode is not None:
        weaver.emit("s_setreg_b32", MODE_FIELD, mode)
    if _EXEC in weaver.saved:
        weaver.scalar(_EXEC, weaver.saved.pop(_EXEC))
    weaver.set_results(placement)
    if skip is not None:
        weaver.leaving.append(skip)
    weaver.restore()
    if weaver.leaving:
        weaver.emit("s_nop", 0)  # something to branch to
    return Woven(weaver.items, weaver.first)


def _overlap(a: Reg, b: Reg) -> bool:
    return RegSet.of(a).overlaps(RegSet.of(b))


def vector_move(to: Reg, source: Reg) -> str:
    if source.file is RegFile.AGPR:
        return "v_accvgpr_read_b32"
    return "v_accvgpr_write_b32" if to.file is RegFile.AGPR else "v_mov_b32"


def scalar_move(dwords: int) -> str:
    return "s_mov_b64" if dwords == 2 else "s_mov_b32"
