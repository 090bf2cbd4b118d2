"""One clone against its original: the application's instructions are there, and control takes the same paths.

In: a function's body and its clone. Out: nothing, or CheckFailed. Invariant: each instruction of the application is in
the clone, field by field, but for displacements of branches and numbers that make addresses, which may stand for
registers that `addresses` has followed; whatever leaves one of them comes, over inserted code that `runs` has proved,
to the one that follows it in the original.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from luthier_py.base.errors import CheckFailed, Location, Malformed
from luthier_py.base.records import dataclass, field
from luthier_py.isa import Access, Inst, Operand, OperandKind, OpFlag, RegFile
from luthier_py.isa.columns import Columns, read_columns
from luthier_py.isa.encoding.scan import Array
from luthier_py.isa.properties.wave_registers import gives_back_vectors
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action
from luthier_py.proof.addresses import AddressFlow
from luthier_py.proof.claim import ClonedFunction, Side
from luthier_py.proof.code import Body, Code
from luthier_py.proof.hardware_waits import may_end_waits, waits_instead
from luthier_py.proof.payloads import is_wait


@dataclass(eq=False)
class Clone:
    """A function's clone at ``base``; ``data`` is its code (mutable: keeps what it has decoded)."""

    function: ClonedFunction
    code: Code
    base: int
    data: bytes
    known: dict[int, Inst] = field(default_factory=dict)
    columns: Columns = field(init=False)
    """Instructions that are not the original's, once `sweep` has found them."""

    @property
    def words(self) -> Array:
        """The code by dwords."""
        return np.frombuffer(self.data[:len(self.data) // 4 * 4], "<u4")

    def find_own_dwords(self) -> Array:
        """Numbers of those that are not the original's."""
        own = np.ones(len(self.data) // 4, bool)
        for each, size in zip(self.function.stretches, self.sizes, strict=True):
            own[each.clone // 4:(each.clone + size) // 4] = False
        for at in self.changed:
            start = (self.places[at] - self.base) // 4
            own[start:start + self.code.inst(at).size_bytes // 4] = True
        return np.flatnonzero(own)

    @cached_property
    def _kinds(self) -> list[int]:
        """Kinds of these by where they start, in dwords; -1 elsewhere."""
        found = np.full(len(self.data) // 4 + 1, -1, np.int64)
        found[(self.columns.pcs - self.base) // 4] = self.columns.kinds
        kinds: list[int] = found.tolist()
        return kinds

    def swept(self, pc: int) -> int | None:
        """The kind of the one at ``pc``."""
        kind = self._kinds[pc - self.base >> 2]
        return kind if kind >= 0 else None

    def decode(self, pc: int) -> Inst:
        """The clone's instruction at ``pc``; CheckFailed where that is outside of the clone, or no multiple of 4."""
        inst = self.known.get(pc)
        if inst is None:
            if not self.base <= pc < self.base + len(self.data) or pc % 4:
                raise CheckFailed(f"control comes to 0x{pc:x}, outside of the clone", Location(self.function.name))
            kind = self.swept(pc)
            inst = self.known[pc] = self._at(pc - self.base) if kind is None else self.columns.distinct.inst(kind)
        return inst

    @cached_property
    def places(self) -> list[int]:
        """Where the application's instructions stand, by their numbers."""
        stretches = self.function.stretches
        stops = np.searchsorted(self.code.at, [each.original + each.size for each in stretches])
        shifts = [self.base + each.clone - each.original for each in stretches]
        found = self.code.at + np.repeat(shifts, np.diff(stops, prepend=0))
        inside = all(0 <= each.clone <= len(self.data) - size
                     for each, size in zip(stretches, self.sizes, strict=True))
        if (np.diff(found) <= 0).any() or not inside:
            raise CheckFailed("the claim has the application's instructions in another order",
                              Location(self.function.name))
        places: list[int] = found.tolist()
        return places

    def is_application(self, pc: int) -> bool:
        """Whether an instruction starts at ``pc`` that is one of the original or replaces it, not an inserted one."""
        at = bisect_left(self.places, pc)
        return at < len(self.places) and self.places[at] == pc

    @cached_property
    def starts(self) -> list[int]:
        """Numbers of the first instructions of ``stretches``."""
        found = [self.code.find(stretch.original) for stretch in self.function.stretches]
        if None in found:
            raise CheckFailed("the claim cuts an instruction of the application", Location(self.function.name))
        return [at for at in found if at is not None]

    def instruction(self, at: int) -> tuple[Inst, int]:
        """The clone's instruction for one of the original, and where it is."""
        place = self.places[at]
        return (self.decode(place) if at in self.changed else self.code.inst(at)), place

    def end(self, at: int) -> int:
        """Address behind the clone's instruction for one of the original."""
        inst, place = self.instruction(at)
        return place + inst.size_bytes

    @cached_property
    def sizes(self) -> list[int]:
        """Sizes of ``stretches`` in the clone: one of a single instruction may have another size than in the
        original."""
        found = [each.size for each in self.function.stretches]
        for number, at in enumerate(self.starts):
            if at in self.changed and found[number] == self.code.sizes[at]:
                found[number] = self._at(self.function.stretches[number].clone).size_bytes
        return found

    def _at(self, offset: int) -> Inst:
        try:
            return self.code.isa.decode(self.data, offset)
        except Malformed as error:
            raise CheckFailed(error.message, Location(self.function.name, self.base + offset)) from None

    @cached_property
    def changed(self) -> set[int]:
        """Numbers of instructions whose bytes are not the original's."""
        new = b"".join([self.data[each.clone:each.clone + each.size].ljust(each.size, b"\0")
                        for each in self.function.stretches])
        differ = np.flatnonzero(np.frombuffer(new, "<u4") != np.frombuffer(self.code.data, "<u4"))
        return set(np.searchsorted(np.cumsum(self.code.sizes) // 4, differ, side="right").tolist())


def sweep(clones: Sequence[Clone]) -> None:
    """Find what in each is not the original's: of what is left without this, swept as if it were in one piece, those
    instructions that are. What several clones have is decoded once for all."""
    own = [clone.find_own_dwords() for clone in clones]
    pieces = [(0, clone.words[dwords].tobytes()) for clone, dwords in zip(clones, own, strict=True)]
    for clone, dwords, swept in zip(clones, own, read_columns(clones[0].code.isa, pieces), strict=True):
        first, more = swept.pcs // 4, swept.sizes // 4 - 1
        whole = np.flatnonzero(dwords[(first + more).clip(max=len(dwords) - 1)] - dwords[first] == more)
        clone.columns = Columns(swept.distinct, clone.base + 4 * dwords[first[whole]], swept.kinds[whole])


class Departure(NamedTuple):
    """Control leaves instruction ``source`` (None: comes in) of the original for ``to``; ``start`` is where the clone
    continues then."""

    source: int | None
    to: int
    start: int
    taken: bool


def departures(body: Body, clone: Clone, goes: AddressFlow) -> Iterator[Departure]:
    """All departures whose target in the clone has to be checked."""
    code = body.code
    for entry in body.entries:
        at = body.blocks[entry].start
        start = code.pcs[at] - body.address if len(body.entries) > 1 else 0
        yield Departure(None, at, clone.base + start, False)
    ends = {at - 1 for at in clone.starts} - {-1} | {len(code) - 1}
    leaving = code.find_flagged(OpFlag.TERMINATOR)
    for at in sorted(ends | set(leaving)):
        flags = code.inst(at).op.flags
        falls = not flags & OpFlag.TERMINATOR or flags & OpFlag.CONDITIONAL
        if falls and at + 1 < len(code) and code.pcs[at + 1] == code.end(at):
            yield Departure(at, at + 1, clone.end(at), False)
    for at in leaving:
        inst = code.inst(at)
        target = inst.branch_target(code.pcs[at])
        if target is not None and OpFlag.BRANCH in inst.op.flags:
            new, place = clone.instruction(at)
            goal = new.branch_target(place)
            to = code.find(target)
            if goal is None or to is None:
                raise CheckFailed("it goes elsewhere than the original", code.location(body.name, at))
            yield Departure(at, to, goal, True)
        elif OpFlag.SETS_PC in inst.op.flags:
            old, made = goes.targets.get(at, (("unknown",), ("unknown",)))
            to = code.find(old[1]) if old[0] == "to" else None
            if to is not None and body.following[body.block_of(at)]:
                if made[0] != "to":
                    raise CheckFailed("it goes elsewhere than the original", code.location(body.name, at))
                yield Departure(at, to, made[1], True)


def check_fields(body: Body, clone: Clone, goes: AddressFlow) -> None:
    """Instructions whose bytes have changed are what is to stand there, or the original's but for what is recomputed.
    """
    for at in sorted(clone.changed):
        old, new = body.code.inst(at), clone.decode(clone.places[at])
        if body.code.pcs[at] in clone.function.instead:
            right = new.raw == old.raw
        elif OpFlag.BRANCH in old.op.flags:
            right = _same_but(old, new, lambda a, b: a.kind is b.kind is OperandKind.TARGET)
        elif OpFlag.CLAUSE in old.op.flags or gives_back_vectors(old, body.code.isa.target):
            right = is_wait(new) and find_meaning(new.op) is Action.NOTHING and new.size_bytes == old.size_bytes
        elif may_end_waits(old, body.code.isa.target):
            right = waits_instead(old, new, body.code.isa.target)
        elif OpFlag.GETS_PC in old.op.flags:  # bound: it becomes part of a number
            right = at in goes.explained and new.size_bytes == old.size_bytes and old["sdst"] == new["sdst"]
        elif at in goes.targets:
            right = OpFlag.CALL in old.op.flags and _same_but(
                old, new, lambda a, b: a.name == "src0" and a.kind is b.kind)
        else:
            right = at in goes.explained and _same_but(old, new, _is_number_for)
        if not right:
            raise CheckFailed(f"it should be `{body.code.isa.text(old)}`",
                              Location(body.name, clone.places[at], body.code.isa.text(new)))


def check_hardware_waits(body: Body, clone: Clone) -> None:
    """Hardware waits for operands wherever the clone runs."""
    target = body.code.isa.target
    for at in body.code.those(may_end_waits, target):
        if may_end_waits(clone.instruction(at)[0], target):
            raise CheckFailed("hardware may not wait for operands behind it, on which inserted code relies",
                              body.code.location(body.name, at))


def _same_but(old: Inst, new: Inst, free: Callable[[Operand, Operand], bool]) -> bool:
    if old.op is not new.op:
        return False
    pairs = zip(old.operands, new.operands, strict=True)
    return all((a.kind, a.reg, a.value) == (b.kind, b.reg, b.value) or free(a, b) for a, b in pairs)


def _is_number_for(old: Operand, new: Operand) -> bool:
    """Whether a number replaces a number, or a scalar register that is read."""
    read = old.reg is not None and old.reg.file is RegFile.SGPR and old.access is Access.READ
    return new.kind is OperandKind.CONSTANT and (read or old.kind is OperandKind.CONSTANT)


def check_groups(body: Body, clone: Clone) -> None:
    """A group of memory instructions is whole, or no group any more."""
    starts = set(clone.starts)
    for at in body.code.find_flagged(OpFlag.CLAUSE):
        if at in clone.changed:
            continue
        size = (body.code.inst(at)["simm16"].value & 0x3F) + 1
        inside = range(at + 1, min(at + 1 + size, len(body.code)))
        if any(member in starts or body.code.pcs[member] in clone.function.instead for member in inside):
            raise CheckFailed("something stands in a group of memory instructions",
                              Location(body.name, clone.places[at], body.code.isa.text(body.code.inst(at))))


def find_lookup_calls(body: Body, clone: Clone, goes: AddressFlow, pointed: Collection[int]) -> list[int]:
    """Calls through addresses of unknown value; and of a known function whose address the application keeps, so that
    the register still holds it and another one what is called."""
    def is_looked_up(at: int) -> bool:
        old, new = goes.targets[at]
        if OpFlag.CALL not in body.code.inst(at).op.flags or not at:
            return False
        return old[0] != "to" or new == old and at in clone.changed and old[1] in pointed

    return [at for at in goes.targets if is_looked_up(at)]


def check_targets(body: Body, clone: Clone, goes: AddressFlow, bases: Mapping[int, int],
                  dispatched: Collection[int]) -> None:
    """Calls and jumps to functions go to their clones; ``bases``: where the clones of functions start. What becomes of
    those in ``dispatched`` is proved by running the code before them."""
    for at, (old, new) in goes.targets.items():
        if old[0] == "to" and at in dispatched:
            continue
        if old[0] == "lost" or new[0] == "lost":
            raise CheckFailed("where this goes is not the same on all ways", body.code.location(body.name, at))
        if old[0] != "to" or body.code.find(old[1]) is not None and body.following[body.block_of(at)] and (
                OpFlag.CALL not in body.code.inst(at).op.flags):
            continue
        if new != ("to", bases.get(old[1], old[1])):
            raise CheckFailed("a call goes elsewhere than the original", code_place(body, clone, at))
    for at in body.code.find_flagged(OpFlag.CALL):
        if body.code.inst(at).branch_target(body.code.pcs[at]) is not None:
            raise CheckFailed("a call that is relative to the PC cannot be moved", code_place(body, clone, at))


def code_place(body: Body, clone: Clone, at: int) -> Location:
    """The place of the clone's instruction for number ``at`` of the original, with its text, for errors."""
    inst, place = clone.instruction(at)
    return Location(body.name, place, body.code.isa.text(inst))


class CallsAt:
    """Numbers of the claimed calls of a clone, by where they stand, in the claim's order."""

    def __init__(self, body: Body, clone: Clone, first: int) -> None:
        self.by_side: dict[Side, dict[int, list[int]]] = {side: defaultdict(list) for side in Side}
        starts = set(clone.starts)
        for index, call in enumerate(clone.function.calls, first):
            at = body.code.find(call.point)
            inside = at is None or (at not in starts if call.side is Side.BEFORE else False)
            if inside or at is None or (call.side is Side.AFTER and at + 1 < len(body.code) and at + 1 not in starts):
                raise CheckFailed("the claim has a call where nothing is inserted", Location(body.name, call.point))
            self.by_side[call.side][at].append(index)

    def select_calls(self, departure: Departure) -> list[int]:
        """Calls in the order in which they are to run: those behind an instruction, then those before the next one."""
        found: list[int] = []
        if departure.source is not None:
            side = Side.TAKEN if departure.taken else Side.AFTER
            found += self.by_side[side].get(departure.source, ())
        return found + self.by_side[Side.BEFORE].get(departure.to, [])
