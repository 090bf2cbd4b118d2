"""Registers for a fragment at one place.

In: the fragment's registers, what is free there, and where its arguments and results live.
Out: a renaming. Invariant: two different registers of a fragment never share a place; a place is
either free or the home of a value that the fragment may overwrite (or only reads).

A fragment's registers form groups: registers that some instruction uses as one tuple stay adjacent
and aligned. A group is pinned onto the home of an argument or a result when that saves the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from luthier_py.base.errors import Location, OutOfRegisters
from luthier_py.base.records import dataclass, field
from luthier_py.isa import NO_REGS, Inst, OperandKind, Reg, RegFile, RegSet
from luthier_py.isa.encoding.dual import is_dual
from luthier_py.isa.encoding.operands import LOW_HALVES, NAMED_BY_HALVES
from luthier_py.isa.model.registers import NAMED
from luthier_py.rewrite.inject.items import SpillSlot

BANKS = 4  # of vector registers; both halves of a dual instruction read at once (RDNA3 ISA 7.6)


@dataclass(frozen=True, slots=True)
class Policy:
    """Registers that may be taken where they are free, and at what price; ``borrows``: also scalar registers that are
    not free, whose values are saved in lanes of a vector register meanwhile; ``slots``: where vector registers that
    are not free are put aside, as many as there are slots; ``waits``: what loads will still write is waited for, and
    taken too."""

    name: str
    registers: RegSet
    borrows: bool = False
    slots: tuple[SpillSlot, ...] = ()
    waits: bool = False


@dataclass(slots=True)
class Pool:
    """Free registers at one place, in order of preference. ``take`` uses them up (mutates). ``why`` says what the
    registers of a file hold that are not free. ``asked``, which pools may share: by file, the registers whose being
    free decided the answers. ``busy``: registers that may be taken where none is free, and are ``borrowed`` then."""

    free: RegSet
    where: Callable[[], Location]
    why: Callable[[RegFile], str] = lambda file: ""
    taken: RegSet = field(default_factory=RegSet)
    asked: list[int] = field(default_factory=lambda: [0] * len(RegFile))
    busy: RegSet = field(default_factory=RegSet)
    borrowed: RegSet = field(default_factory=RegSet)

    def is_free(self, reg: Reg) -> bool:
        """Whether all of ``reg`` is free and not taken yet; ``asked`` notes that the call depends on this."""
        self.asked[reg.file] |= (1 << reg.dwords) - 1 << reg.index
        return reg in self.free and not self.taken.overlaps(RegSet.of(reg))

    def take(self, file: RegFile, dwords: int = 1, align: int = 0, phase: int = 0, stop: int = NAMED) -> Reg:
        """The lowest free run of ``dwords`` registers before ``stop``; it starts ``phase`` above a multiple of
        ``align``."""
        reg = self.lowest(file, dwords, align, phase, stop)
        if reg is not None:
            return reg
        message = f"no {dwords} consecutive free {file.name}s for an inserted call{self.why(file)}"
        raise OutOfRegisters(f"{message}; use less in it, or choose another place", self.where())

    def lowest(
        self, file: RegFile, dwords: int = 1, align: int = 0, phase: int = 0, stop: int = NAMED
    ) -> Reg | None:
        """As `take`; None where there is none."""
        align = align or tuple_alignment(file, dwords)
        for among in (self.free, self.free | self.busy):
            found = _lowest((among - self.taken).mask(file) & (1 << stop) - 1, dwords, align, phase)
            if found is not None:
                reg = self.claim(Reg(file, found, dwords))
                self.asked[file] |= (1 << found + dwords) - 1
                self.borrowed |= RegSet.of(reg) & self.busy
                return reg
        return None

    def take_whole(self, dead_in_all_lanes: RegSet, file: RegFile, dwords: int = 1, align: int = 0, phase: int = 0,
                   stop: int = NAMED) -> Reg:
        """As `take`, for what is written in any lane: of those that are ``dead_in_all_lanes``, which no instruction
        reads in any; or else one is borrowed."""
        whole = Pool(self.free & dead_in_all_lanes, self.where, self.why, self.taken, self.asked)
        reg = whole.lowest(file, dwords, align, phase, stop)
        if reg is None:
            reg = self.take(file, dwords, align, phase, stop)
            self.borrowed |= RegSet.of(reg)
        return self.claim(reg)

    def claim(self, reg: Reg) -> Reg:
        """Mark ``reg`` as taken, whether it was free or not; it is returned as it is."""
        self.taken |= RegSet.of(reg)
        return reg


def _lowest(mask: int, dwords: int, align: int, phase: int) -> int | None:
    """Where the lowest run of ``dwords`` ones is that starts ``phase`` above a multiple of ``align``."""
    runs = mask
    for offset in range(1, dwords):
        runs &= mask >> offset
    while runs:
        index = (runs & -runs).bit_length() - 1
        if index % align == phase:
            return index
        runs &= runs - 1
    return None


def tuple_alignment(file: RegFile, dwords: int) -> int:
    """Alignment that suits every target: SGPR tuples as the ISA manuals demand, even VGPR tuples."""
    if dwords == 1:
        return 1
    return 2 if dwords == 2 or file is not RegFile.SGPR else 4


@dataclass(frozen=True, slots=True)
class Group:
    """Registers of a fragment that must keep their distances, and their phase: ``[low, high)`` of one file. ``stop``:
    before which its operands can name them."""

    file: RegFile
    low: int
    high: int
    align: int = 1
    stop: int = NAMED

    @property
    def dwords(self) -> int:
        """Number of registers, gaps among them included."""
        return self.high - self.low

    @property
    def phase(self) -> int:
        """How far above a multiple of ``align`` it starts, and has to start in its place."""
        return self.low % self.align


def fragment_groups(instrs: Sequence[Inst], extra: Iterable[Reg], general: RegSet) -> list[Group]:
    """Partition of the general registers that a fragment names, by tuples that overlap."""
    tuples = [o.reg for inst in instrs for o in inst.operands if o.kind is OperandKind.REGISTER and o.reg is not None]
    spans = sorted(
        {(r.file, r.index, r.dwords) for r in (*tuples, *extra) if r in general},
        key=lambda t: (t[0], t[1], -t[2]),
    )
    banks = {o.reg for inst in instrs if is_dual(inst.op) for o in inst.operands if o.reg is not None}
    halves = {reg.index for inst in instrs for reg in _find_low_half_regs(inst)}
    groups: list[Group] = []
    for file, index, dwords in spans:
        align = BANKS if file is RegFile.VGPR and Reg(file, index, dwords) in banks else tuple_alignment(file, dwords)
        stop = NAMED_BY_HALVES if file is RegFile.VGPR and index in halves else NAMED
        last = groups[-1] if groups else None
        if last is not None and last.file is file and index < last.high:
            high = max(last.high, index + dwords)
            groups[-1] = Group(file, last.low, high, max(last.align, align), min(last.stop, stop))
        else:
            groups.append(Group(file, index, index + dwords, align, stop))
    return groups


def _find_low_half_regs(inst: Inst) -> Iterator[Reg]:
    """Vector registers that an operand names of which the number has a bit less."""
    halves = {info.name for info in inst.op.operands if info.kind in LOW_HALVES}
    for operand in inst.operands if halves else ():
        if operand.name in halves and operand.reg is not None and operand.reg.file is RegFile.VGPR:
            yield operand.reg


@dataclass(frozen=True, slots=True)
class Pin:
    """A wish: put the fragment's register ``slot`` at ``location``. ``writable``: the home's old value may be
    destroyed."""

    slot: Reg
    location: Reg
    writable: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """A renaming: old (file, index) to new index; what is not in it stays where it is."""

    renamed: dict[tuple[RegFile, int], int]

    def __call__(self, reg: Reg) -> Reg:
        return Reg(reg.file, self.renamed.get((reg.file, reg.index), reg.index), reg.dwords)


def place(
    groups: Sequence[Group], used: RegSet, written: RegSet, pins: Iterable[Pin], pool: Pool,
    in_inactive_lanes: RegSet = NO_REGS,
    dead_in_all_lanes: RegSet = NO_REGS,
) -> Placement:
    """Give every group a place; ``used`` and ``written`` are the fragment's registers that are named and written;
    ``in_inactive_lanes`` those that are written in lanes that are not active, too: they go to registers that are
    ``dead_in_all_lanes``."""
    bases: dict[Group, int] = {}
    locations = RegSet()
    for pin in pins:
        group = next((g for g in groups if g.file is pin.slot.file and g.low <= pin.slot.index < g.high), None)
        if group is None or group in bases or (not pin.writable and written.overlaps(RegSet.of(pin.slot))):
            continue
        if in_inactive_lanes.overlaps(RegSet.of(pin.slot)):
            continue
        base = pin.location.index - (pin.slot.index - group.low)
        rest = _rest(group, used, pin.slot, base)
        clash = (locations | pool.taken).overlaps(RegSet.of(pin.location))
        fits = 0 <= base <= group.stop - group.dwords and base % group.align == group.phase
        if fits and not clash and all(map(pool.is_free, rest)):
            bases[group] = base
            locations |= RegSet.of(pin.location)
            for reg in rest:
                pool.claim(reg)
    for group in groups:
        if group not in bases:
            want = group.file, group.dwords, group.align, group.phase, group.stop
            whole = in_inactive_lanes.overlaps(RegSet.of(Reg(group.file, group.low, group.dwords)))
            bases[group] = (pool.take_whole(dead_in_all_lanes, *want) if whole else pool.take(*want)).index
    return Placement({
        (g.file, index): base + index - g.low for g, base in bases.items() for index in range(g.low, g.high)
    })


def _rest(group: Group, used: RegSet, slot: Reg, base: int) -> list[Reg]:
    """Places that a group needs beside the pinned slot itself."""
    own = range(slot.index, slot.index + slot.dwords)
    return [
        Reg(group.file, base + i - group.low)
        for i in range(group.low, group.high)
        if i not in own and Reg(group.file, i) in used
    ]
