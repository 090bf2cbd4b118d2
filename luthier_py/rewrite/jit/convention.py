"""How a hook is called: LLVM's shader-part convention (amdgpu_cs), and which registers it assigns.

``inreg`` arguments come in s0, s1, ...; others in v0, v1, ...; integers are returned in s0, s1, ... and floats in v0,
v1, ... (LLVM, AMDGPUCallingConv.td, CC_SI_SHADER and RetCC_SI_Shader). Wide values come first, so that pairs start at
even registers; a parameter of a result's type comes before others, so that it starts where the result ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from luthier_py.base.records import dataclass
from luthier_py.isa import RegFile
from luthier_py.rewrite.jit.object import FIELD
from luthier_py.rewrite.jit.python.builder import GLOBAL, Builder, llvm
from luthier_py.rewrite.tool.hooks.hook import Parameter, Signature
from luthier_py.rewrite.tool.hooks.intrinsic import Value
from luthier_py.rewrite.tool.hooks.types import F32, I32, I64, U8, U16, U32, Kind, Scalar, Type


@dataclass(frozen=True, slots=True)
class Seat:
    """Registers of one parameter or result."""

    position: int  # in the hook's signature
    type: Type
    file: RegFile
    index: int


def seat_parameters(signature: Signature, runtime: Iterable[int]) -> list[Seat]:
    """Seats of the parameters at positions ``runtime``, in the order in which the LLVM function takes them."""
    wanted = [result.type for result in signature.results]
    chosen = [(position, signature.parameters[position]) for position in runtime]
    return _seats(sorted(chosen, key=lambda p: (p[1].lane, -p[1].type.dwords, p[1].type not in wanted)))


def seat_results(signature: Signature) -> list[Seat]:
    """Seats of the results, in the order in which the LLVM function returns them."""
    return _seats(sorted(enumerate(signature.results), key=lambda p: (p[1].lane, -p[1].type.dwords)))


def _seats(ordered: list[tuple[int, Parameter]]) -> list[Seat]:
    used = {RegFile.SGPR: 0, RegFile.VGPR: 0}
    seats = []
    for position, parameter in ordered:
        file = RegFile.VGPR if parameter.lane else RegFile.SGPR
        seats.append(Seat(position, parameter.type, file, used[file]))
        used[file] += parameter.type.dwords
    return seats


def spill_vgpr(type: Type) -> Type:
    """The integer that brings a float through SGPRs, or a double through VGPRs, and a short number in its low bits;
    other types travel as they are."""
    if isinstance(type, Scalar) and (type.kind is Kind.FLOAT or type.bits in (8, 16)):
        return I32 if type.dwords == 1 else I64
    return type


def declare_parameters(seats: list[Seat]) -> str:
    """The parameter list of the LLVM function."""
    where = {RegFile.SGPR: " inreg", RegFile.VGPR: ""}
    return ", ".join(f"{llvm(spill_vgpr(seat.type))}{where[seat.file]} %p{seat.position}" for seat in seats)


def receive(ir: Builder, seat: Seat, lane: bool) -> Value:
    """The value that came in."""
    came = Value(spill_vgpr(seat.type), f"%p{seat.position}", lane)
    return unpack_value(ir, came, seat.type)


def unpack_value(ir: Builder, came: Value, type: Type) -> Value:
    """What came as `spill_vgpr` has it."""
    if came.type == type:
        return came
    if isinstance(type, Scalar) and type.bits in (8, 16):
        short = U8 if type.bits == 8 else U16
        came = ir.emit(short, f"trunc i32 {came.text} to {llvm(short)}", came.lane)
    return Value(type, came.text, came.lane) if llvm(came.type) == llvm(type) else _bitcast(ir, came, type)


def receive_field(ir: Builder, position: int, type: Type) -> Value:
    """A constant that is written into finished code: to LLVM the address of something absolute, which may be anything,
    even null (extern_weak) and that of another one."""
    name = f"@{FIELD}{position}"
    ir.declarations.add(f"{name} = extern_weak {GLOBAL} global i8, align 1, !absolute_symbol !1")
    bits = ir.emit(I64, f"ptrtoint ptr {GLOBAL} {name} to i64", lane=False)
    if type.dwords == 1:
        bits = ir.emit(I32, f"trunc i64 {bits.text} to i32", lane=False)
    return unpack_value(ir, Value(spill_vgpr(type), bits.text, lane=False), type)


def return_type(seats: list[Seat]) -> str:
    """What the LLVM function returns; a hook without results returns something, or it would end the wave."""
    parts = [part for seat in seats for part in _return_types(seat)]
    return "i32" if not parts else parts[0] if len(parts) == 1 else "{ " + ", ".join(parts) + " }"


def _return_types(seat: Seat) -> list[str]:
    if seat.file is RegFile.VGPR:
        return ["float"] * seat.type.dwords
    return ["i32" if seat.type.dwords == 1 else "i64"]


def send(ir: Builder, seats: list[Seat], values: list[Value]) -> None:
    """Return ``values``, which are in the order of ``seats``."""
    parts = [part for seat, value in zip(seats, values, strict=True) for part in _split_into_parts(ir, seat, value)]
    type = return_type(seats)
    if len(parts) < 2:
        ir.finish(f"ret {type} {parts[0].text if parts else 'poison'}")
        return
    text = "poison"
    for i, part in enumerate(parts):
        text = ir.emit(part.type, f"insertvalue {type} {text}, {llvm(part.type)} {part.text}, {i}", part.lane).text
    ir.finish(f"ret {type} {text}")


def _split_into_parts(ir: Builder, seat: Seat, value: Value) -> list[Value]:
    value = pack_value(ir, value)
    if seat.file is RegFile.SGPR:
        return [value]
    if value.type.dwords == 1:
        return [_bitcast(ir, value, F32)]
    halves = []
    for shift in (0, 32):
        moved = ir.emit(I64, f"lshr i64 {value.text}, {shift}", value.lane)
        halves.append(_bitcast(ir, ir.emit(U32, f"trunc i64 {moved.text} to i32", value.lane), F32))
    return halves


def pack_value(ir: Builder, value: Value) -> Value:
    """A value as the integer of one dword or two in which it travels."""
    bits = I32 if value.type.dwords == 1 else I64
    if llvm(value.type).startswith("ptr"):
        value = ir.emit(bits, f"ptrtoint {llvm(value.type)} {value.text} to {llvm(bits)}", value.lane)
    if isinstance(value.type, Scalar) and value.type.bits in (8, 16):
        value = _extend_to_dword(ir, value, value.type)
    if value.type != bits and not (isinstance(value.type, Scalar) and value.type.is_integer):
        value = _bitcast(ir, value, bits)
    return value


def _extend_to_dword(ir: Builder, value: Value, type: Scalar) -> Value:
    """A short number in a dword: sign-extended if signed, else zero-extended."""
    if type.kind is Kind.FLOAT:
        value = _bitcast(ir, value, U16)
    how = "sext" if type.kind is Kind.SIGNED else "zext"
    return ir.emit(I32, f"{how} {llvm(value.type)} {value.text} to i32", value.lane)


def _bitcast(ir: Builder, value: Value, type: Type) -> Value:
    return ir.emit(type, f"bitcast {llvm(value.type)} {value.text} to {llvm(type)}", value.lane)
