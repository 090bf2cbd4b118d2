"""Whether a claim says what the tool requested: the one thing that `proof` takes from it unchecked.

In: a claim, the edits that it is about, their hooks as they were compiled, and the program. Out: nothing, or
CheckFailed. Invariant: each insertion in code that a clone has has one call of its hook, at one of its places, with
its arguments, results, lanes, mode and constants, and calls at one point are claimed in their order; other instructions
replace the application's where the tool requested that, and nowhere else; variables have their sizes; there are no
other calls, and no other kernels have clones. Nothing is shared with `inject`, which makes claims.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, count, dropwhile
from operator import attrgetter

import msgpack

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.isa import MODE, Inst, InstructionSet, OpFlag, Reg, RegFile, Space, sgpr, vgpr
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action, CrossLane
from luthier_py.program.ir import Instr, Program
from luthier_py.proof.claim import Address, Call, Claim, ClonedFunction, Kept, Payload, Side, Value
from luthier_py.proof.float_modes import PLAIN
from luthier_py.rewrite.jit import Payload as Compiled
from luthier_py.rewrite.jit import PayloadKey
from luthier_py.rewrite.jit.object import Code
from luthier_py.rewrite.tool import (
    Arg,
    Assembly,
    Edits,
    Element,
    Entry,
    Hook,
    Insertion,
    Lanes,
    Place,
    Pointer,
    Scalar,
    Type,
    Variable,
    WaveVariable,
)
from luthier_py.rewrite.tool.edits import Before
from luthier_py.rewrite.tool.hooks.hook import FloatMode, Parameter
from luthier_py.rewrite.tool.hooks.types import Struct

_PLACES = {Side.BEFORE: Place.BEFORE, Side.AFTER: Place.AFTER, Side.TAKEN: Place.TAKEN}
_INITIAL = {"private_resource": 4, **{entry.value: entry.type.dwords for entry in Entry}}
_HALVES = {1: 0, 2: 32}  # R_AMDGPU_ABS32_LO, R_AMDGPU_ABS32_HI: which bits of a number
_MASKS = {Lanes.ACTIVE: None, Lanes.ONE: 1, Lanes.ALL: -1}


def check_claim_of_tool(
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
    _check_calls(claim, _Wishes(claim, edits, payloads, program.isa), {
        each.order: (function.address, each) for function, each in asked if function.address in functions})


def _wrong(what: str, where: Location | None = None) -> CheckFailed:
    return CheckFailed(f"what was made is not what the tool asked for: {what}", where)


def _size(variable: Variable) -> int:
    return variable.type.size_bytes * (1 if variable.length is None else variable.length)


def _check_calls(claim: Claim, wishes: _Wishes, insertions: Mapping[int, tuple[int, Insertion]]) -> None:
    """``insertions``: by their number, with the addresses of their functions."""
    left = dict(insertions)
    for function in claim.functions:
        wishes.check_assigned_locations(function)
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
    there = {function.original: [range(each.original, each.original + each.size) for each in function.stretches]
             for function in claim.functions}
    for address, insertion in left.values():
        if not any(insertion.instr.pc in each for each in there[address]):
            continue  # code that no wave of the clone comes to: `proof` checks that
        raise _wrong(f"hook {insertion.hook.name} does not run", Location(None, insertion.instr.pc))


class _Wishes:
    """What calls have to be (mutable: remembers which payloads are which hooks)."""

    def __init__(
        self, claim: Claim, edits: Edits, payloads: Mapping[PayloadKey, Compiled], isa: InstructionSet
    ) -> None:
        self.isa, self.claim, self.payloads, self.kept = isa, claim, payloads, edits.wave_variables
        self.numbers = {variable: number for number, variable in enumerate(edits.wave_variables)}
        self.same: set[tuple[int, PayloadKey]] = set()

    def check_assigned_locations(self, function: ClonedFunction) -> None:
        for number, location in function.locations.items():
            if isinstance(number, str):
                if _INITIAL.get(number) != location.dwords:
                    raise _wrong(f"it keeps another {number}", Location(function.name))
            elif not 0 <= number < len(self.kept) or self.kept[number].type.dwords != location.dwords:
                raise _wrong("it keeps other values for a wave", Location(function.name))

    def faults(self, call: Call, insertion: Insertion) -> Iterator[str]:
        key = PayloadKey(insertion.hook, insertion.constants)
        compiled = self.payloads[key]
        if (call.payload, key) not in self.same:
            payload = self.claim.payloads[call.payload]
            if payload != _make_declared_payload(key, compiled) or not (
                    _is_as_made(payload, key.hook, compiled.source, self.isa) and _is_called_as_made(payload, key)):
                yield "is not as it was compiled, or is said to be something else"
            self.same.add((call.payload, key))
        if not _stands(insertion.places, call):
            yield "does not run at its place"
        given = [self.value(arg) for arg in insertion.args if not isinstance(arg, (int, float))]
        if [*call.arguments] != given:
            yield "gets other arguments"
        if [*call.into] != [self.value(to) for to in insertion.into]:
            yield "has its results go elsewhere"
        if [*call.constants] != _literals(compiled, insertion):
            yield "gets other constants"

    def value(self, wanted: Arg) -> Value | None:
        """The value as the claim has it."""
        if isinstance(wanted, Variable):
            return Address(wanted.name)
        if isinstance(wanted, Element):
            return Address(wanted.variable.name, wanted.index * wanted.variable.type.size_bytes)
        if isinstance(wanted, WaveVariable):
            return Kept(self.numbers[wanted])
        if isinstance(wanted, Entry):
            return Kept(wanted.value)
        return None if isinstance(wanted, (int, float)) else wanted


def _make_declared_payload(key: PayloadKey, compiled: Compiled) -> Payload:
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


def _is_as_made(payload: Payload, hook: Hook, source: Code | None, isa: InstructionSet) -> bool:
    """Whether code, constants and stack are what LLVM made, or an author wrote. A shader's MODE is left out, and waits
    at its end; of a function that is called also waits at its beginning, and where it would return it jumps to its end,
    where scalar results come out of the vector registers in which it gives all of them."""
    if source is None:
        return isinstance(hook.function, Assembly) and payload.code == hook.function.code and not payload.fields
    called, made = payload.stack is not None, isa.decode_all(source.code)
    body = [*dropwhile(lambda inst: OpFlag.WAIT in inst.op.flags if called else _sets_mode(inst), made)]
    begins = len(source.code) - sum(inst.size_bytes for inst in body)
    if called and body and _returns(body[-1]):
        body.pop()
    kept, end = isa.decode_all(payload.code), sum(inst.size_bytes for inst in body)
    results = [reg.index + k for reg in payload.results for k in range(reg.dwords)
               if called and reg.file is RegFile.SGPR]
    own, moves = kept[:len(kept) - len(results)], kept[len(kept) - len(results):]
    if (
        len(own) == 1
        and find_meaning(own[0].op) is Action.NOTHING
        and all(OpFlag.WAIT in inst.op.flags for inst in body)
    ):
        own = ()
    places = accumulate((inst.size_bytes for inst in own), initial=0)
    same = all(inst.raw == other.raw or called and _returns(other) and inst.branch_target(at) == end
               for inst, other, at in zip(own, body, places, strict=False))
    return (same and all(OpFlag.WAIT in inst.op.flags for inst in body[len(own):]) and len(own) <= len(body)
            and all(map(_brings, sorted(moves, key=_writes), sorted(results), count()))
            and (payload.fields, payload.frame_bytes) == (
                tuple(field.offset - begins for field in source.fields),
                _stack_bytes(source.said)[source.name] if source.said else 0))


@lru_cache(maxsize=64)
def _stack_bytes(said: bytes) -> Mapping[str, int]:
    """Of the functions of LLVM's object, as that says it; computed indexes reach all of a stack, so no instruction
    shows it."""
    (pipeline,) = msgpack.unpackb(said, strict_map_key=False)["amdpal.pipelines"]
    return {name: each[".backend_stack_size"] for name, each in pipeline[".shader_functions"].items()}


def _is_called_as_made(payload: Payload, key: PayloadKey) -> bool:
    """Whether arguments and results are where LLVM's convention has them: scalars from s0 on, lanes from v0 on; of a
    function that is called behind the four of private memory, and scalar results first in vector registers."""
    function, declared = key.hook.function, key.hook.signature
    if isinstance(function, Assembly):
        return (payload.params, payload.results) == (function.takes, function.gives)
    given = [each for each, constant in zip(declared.parameters, key.constants, strict=True) if constant is None]
    types, called = [each.type for each in declared.results], payload.stack is not None
    of_wave = sum(each.type.dwords for each in declared.results if called and not each.lane)
    return (payload.params, payload.results) == (
        _assign_registers(given, types, 4 * called, 0), _assign_registers(declared.results, (), 4 * called, of_wave))


def _assign_registers(values: Sequence[Parameter], first: Collection[Type], scalars: int,
                      vectors: int) -> tuple[Reg, ...]:
    """Registers of what is taken or given, from two numbers on: scalars, wide ones, and types that come ``first``."""
    found: dict[int, Reg] = {}
    at = {False: scalars, True: vectors}
    for place, each in sorted(enumerate(values), key=lambda row: (
            row[1].lane, -row[1].type.dwords, row[1].type not in first)):
        found[place] = (vgpr if each.lane else sgpr)(at[each.lane], each.type.dwords)
        at[each.lane] += each.type.dwords
    return tuple(found[place] for place in range(len(values)))


def _sets_mode(inst: Inst) -> bool:
    return find_meaning(inst.op) is Action.SETREG_IMM and bool(inst.writes.sgpr >> MODE & 1)


def _returns(inst: Inst) -> bool:
    return find_meaning(inst.op) is Action.SETPC


def _writes(inst: Inst) -> int:
    """All scalar registers that it writes, as a number: moves to one each are sorted by it."""
    return inst.writes.sgpr


def _brings(inst: Inst, scalar: int, vector: int) -> bool:
    """Whether a scalar register gets what the first lane of a vector register has."""
    return find_meaning(inst.op) is CrossLane.READ_FIRST and (inst["vdst" if inst.find("vdst") else "sdst"].reg,
                                                         inst["src0"].reg) == (sgpr(scalar), vgpr(vector))


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


def _literals(compiled: Compiled, insertion: Insertion) -> list[int]:
    """The dwords that constants put into the code of their hook, as its relocations say: each a half of the bits of a
    number, to which the literal in the code is added."""
    source, found = compiled.source, list[int]()
    if source is None:
        return found
    for field in source.fields:
        type, number = insertion.hook.signature.parameters[field.position].type, insertion.args[field.position]
        (added,) = struct.unpack_from("<i", source.code, field.offset)
        if not isinstance(type, Scalar) or not isinstance(number, (int, float)):
            found.append(-1)
            continue
        whole = int.from_bytes(type.pack(number), "little") + added
        found.append(whole >> _HALVES[field.kind] & 0xFFFFFFFF)
    return found


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
