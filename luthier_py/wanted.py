"""Whether a claim says what the tool wanted: the one thing that `proof` believes of it.

In: a claim, the edits that it is about, their hooks as they were compiled, and the program. Out: nothing, or
CheckFailed. Invariant: each insertion has one call of its hook, at one of its places, with its arguments, results,
lanes, mode and constants, and calls at one point are claimed in their order; other instructions stand for the
application's where that was asked for, and nowhere else; variables have their sizes; there are no other calls, and no
other kernels have clones. Nothing is shared with `inject`, which makes claims.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter

from luthier_py.errors import CheckFailed, Location
from luthier_py.ir import Instr, Program
from luthier_py.isa import Space
from luthier_py.jit import Hole, PayloadKey
from luthier_py.jit import Payload as Compiled
from luthier_py.proof.claim import Address, Call, Claim, ClonedFunction, Kept, Payload, Side, Value
from luthier_py.proof.float_modes import PLAIN
from luthier_py.tool import (
    Arg,
    Assembly,
    Edits,
    Element,
    Entry,
    Insertion,
    Lanes,
    Place,
    Pointer,
    Scalar,
    Type,
    Variable,
    WaveVariable,
)
from luthier_py.tool.edits import Before
from luthier_py.tool.hook import FloatMode
from luthier_py.tool.types import Struct

_PLACES = {Side.BEFORE: Place.BEFORE, Side.AFTER: Place.AFTER, Side.TAKEN: Place.TAKEN}
_BORN = {"private_resource": 4, **{entry.value: entry.type.dwords for entry in Entry}}
_MASKS = {Lanes.ACTIVE: None, Lanes.ONE: 1, Lanes.ALL: -1}


def check_wanted(
    claim: Claim, edits: Edits, payloads: Mapping[PayloadKey, Compiled], program: Program, clones: Mapping[str, str],
    refused: Collection[str],
) -> None:
    """``clones``: under which names clones of kernels are launched; ``refused``: kernels that are to have none."""
    asked = [(program.function_of(insertion.instr), insertion) for insertion in edits.insertions]
    edited = {function for function, _ in asked} | {program.function_of(each.instr) for each in edits.instead}
    reached = {kernel.name: reach for kernel in program.kernels if kernel.name not in refused
               and not edited.isdisjoint(reach := program.reachable(kernel.function))}
    functions = {function.address for reach in reached.values() for function in reach}
    if claim.kernels.keys() != reached.keys() or clones != claim.kernels:
        raise _wrong("other kernels have clones, or have other ones")
    if sorted(functions) != sorted(function.original for function in claim.functions):
        raise _wrong("other functions have clones")
    if functions and claim.variables != {each.name: _size(each) for each in edits.variables}:
        raise _wrong("other variables, or of other sizes")
    if functions and claim.tables != {each.name: each.data for each in edits.tables}:
        raise _wrong("other tables")
    initial = {each.name: each.initial for each in edits.variables if each.initial is not None}
    if functions and claim.initial != initial:
        raise _wrong("variables that begin as something else")
    for function in claim.functions:
        instead = {each.instr.pc: each.inst.raw for each in edits.instead
                   if program.function_of(each.instr).address == function.original}
        if function.instead != instead:
            raise _wrong("other instructions stand for the application's", Location(function.name))
    _check_calls(claim, _Wishes(claim, edits, payloads), {
        each.order: (function.address, each) for function, each in asked if function.address in functions})


def _wrong(what: str, where: Location | None = None) -> CheckFailed:
    return CheckFailed(f"what was made is not what the tool asked for: {what}", where)


def _size(variable: Variable) -> int:
    return variable.type.size_bytes * (1 if variable.length is None else variable.length)


def _check_calls(claim: Claim, wishes: _Wishes, insertions: Mapping[int, tuple[int, Insertion]]) -> None:
    """``insertions``: by their number, with the addresses of their functions."""
    left = dict(insertions)
    for function in claim.functions:
        wishes.check_homes(function)
        last: dict[tuple[int, Side], tuple[int, int, int]] = {}
        for call in function.calls:
            where = Location(function.name, call.point)
            address, insertion = left.pop(call.insertion, (None, None))
            if insertion is None or address != function.original:
                raise _wrong("a hook runs that it did not ask for, or twice", where)
            for what in wishes.faults(call, insertion):
                raise _wrong(f"hook {insertion.hook.name} {what}", where)
            before = last.get((call.point, call.side))
            if before is not None and before > insertion.rank:
                raise _wrong(f"hook {insertion.hook.name} runs behind others that are to come later", where)
            last[call.point, call.side] = insertion.rank
    for _, insertion in left.values():
        raise _wrong(f"hook {insertion.hook.name} does not run", Location(None, insertion.instr.pc))


class _Wishes:
    """What calls have to be (mutable: remembers which payloads are which hooks)."""

    def __init__(self, claim: Claim, edits: Edits, payloads: Mapping[PayloadKey, Compiled]) -> None:
        self.claim, self.payloads, self.kept = claim, payloads, edits.wave_variables
        self.numbers = {variable: number for number, variable in enumerate(edits.wave_variables)}
        self.same: set[tuple[int, PayloadKey]] = set()

    def check_homes(self, function: ClonedFunction) -> None:
        for number, home in function.homes.items():
            if isinstance(number, str):
                if _BORN.get(number) != home.dwords:
                    raise _wrong(f"it keeps another {number}", Location(function.name))
            elif not 0 <= number < len(self.kept) or self.kept[number].type.dwords != home.dwords:
                raise _wrong("it keeps other values for a wave", Location(function.name))

    def faults(self, call: Call, insertion: Insertion) -> Iterator[str]:
        key = PayloadKey(insertion.hook, insertion.constants)
        compiled = self.payloads[key]
        if (call.payload, key) not in self.same:
            if self.claim.payloads[call.payload] != _claimed(key, compiled):
                yield "is not as it was compiled, or is said to be something else"
            self.same.add((call.payload, key))
        if not _stands(insertion.places, call):
            yield "does not run at its place"
        given = [self.value(arg) for arg in insertion.args if not isinstance(arg, (int, float))]
        if [*call.arguments] != given:
            yield "gets other arguments"
        if [*call.into] != [self.value(to) for to in insertion.into]:
            yield "has its results go elsewhere"
        if [*call.constants] != [_literal(hole, insertion) for hole in compiled.holes]:
            yield "gets other constants"

    def value(self, wanted: Arg) -> Value | None:
        """As the claim has it."""
        if isinstance(wanted, Variable):
            return Address(wanted.name)
        if isinstance(wanted, Element):
            return Address(wanted.variable.name, wanted.index * wanted.variable.type.size_bytes)
        if isinstance(wanted, WaveVariable):
            return Kept(self.numbers[wanted])
        if isinstance(wanted, Entry):
            return Kept(wanted.value)
        return None if isinstance(wanted, (int, float)) else wanted


def _claimed(key: PayloadKey, compiled: Compiled) -> Payload:
    """A hook as its author declares it: what it is given when it runs, and what is in its code."""
    declared = list(zip(key.hook.signature.parameters, key.constants, strict=True))
    given = [parameter.type for parameter, constant in declared if constant is None]
    inside = [_depth(parameter.type) for parameter, constant in declared if constant is not None]
    sizes = [inst.size_bytes for inst in compiled.instrs]
    return Payload(
        key.hook.name, b"".join(inst.raw for inst in compiled.instrs), tuple(slot.reg for slot in compiled.params),
        tuple(slot.reg for slot in compiled.results), tuple(map(_depth, given)),
        tuple(each.element.size_bytes if isinstance(each, Pointer) else 0 for each in given),
        _MASKS[key.hook.lanes], max(inside, default=0),
        tuple(sum(sizes[:hole.instr + 1]) - 4 for hole in compiled.holes), compiled.stack, compiled.frame_bytes,
        tuple(map(_memory, given)) if any(map(_memory, given)) else (), _inside(key), compiled.resource,
        PLAIN if key.hook.mode is FloatMode.OWN else None, isinstance(key.hook.function, Assembly),
    )


def _memory(type: Type) -> Space:
    """Where a pointer leads that does not lead to global memory."""
    return type.space if isinstance(type, Pointer) and type.space is not Space.GLOBAL else Space.NONE


def _inside(key: PayloadKey) -> Space:
    """The memory of such pointers that are numbers in the code."""
    found = Space.NONE
    for parameter, number in zip(key.hook.signature.parameters, key.constants, strict=True):
        found |= Space.NONE if number is None else _memory(parameter.type)
    return found


def _depth(type: Type) -> int:
    """How many times a type is a pointer, itself or in what it points to."""
    if isinstance(type, Pointer) and not _memory(type):
        return 1 + _depth(type.element)
    return max(map(_depth, (member.type for member in type.members))) if isinstance(type, Struct) else 0


def _literal(hole: Hole, insertion: Insertion) -> int:
    """The dword that a constant puts into the code of its hook: a half of its bits, with a number added to them."""
    type, number = insertion.hook.signature.parameters[hole.position].type, insertion.args[hole.position]
    if not isinstance(type, Scalar) or not isinstance(number, (int, float)):
        return -1
    whole = int.from_bytes(type.pack(number), "little") + hole.added
    return (whole >> 32 if hole.high else whole) & 0xFFFFFFFF


def _stands(places: Sequence[tuple[Instr, Place]], call: Call) -> bool:
    """Whether a call is at one of them; of many places few are looked at."""
    side = _PLACES.get(call.side)
    if not isinstance(places, Before):
        return any(instr.pc == call.point and place is side for instr, place in places)
    return side is Place.BEFORE and any(_has(piece, call.point) for piece in places.pieces if piece)


def _has(piece: Sequence[Instr], pc: int) -> bool:
    """Whether one of some ascending instructions is at ``pc``."""
    first = piece[0].pc
    if first >= pc:
        return first == pc
    at = bisect_left(piece, pc, key=attrgetter("pc"))
    return at < len(piece) and piece[at].pc == pc
