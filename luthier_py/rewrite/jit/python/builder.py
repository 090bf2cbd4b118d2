"""LLVM IR text of one function while it is being written.

In: instructions one at a time. Out: the function's blocks and the declarations that it needs. Locals are
allocas in the entry block, which LLVM turns into SSA. Invariant: every block ends in exactly one terminator.
"""

from __future__ import annotations

import struct

from luthier_py.base.records import dataclass, field
from luthier_py.isa import Space
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.hooks.intrinsic import Value
from luthier_py.rewrite.tool.hooks.types import BOOL, Kind, Pointer, Scalar, Struct, Type

PRIVATE = "addrspace(5)"  # where AMDGPU's allocas live
GLOBAL = "addrspace(1)"
MEMORY = {Space.GLOBAL: GLOBAL, Space.LDS: "addrspace(3)", Space.SCRATCH: PRIVATE}


@dataclass(slots=True, eq=False)
class IrBlock:
    """A basic block (mutable: grows until it is ``closed``)."""

    label: str
    lines: list[str] = field(default_factory=list)
    closed: bool = False


class Builder:
    """Writes one function (mutable). ``block`` is where instructions go."""

    def __init__(self) -> None:
        self.allocas: list[str] = []
        self.blocks: list[IrBlock] = []
        self.declarations: set[str] = set()
        self.natives: set[Native] = set()
        self.loads = False
        self.own_mode = True  # floats are rounded as LLVM takes for granted, in divisions of integers too
        self._count = 0
        self.block = self.start(self.new_block("start"))

    def new_block(self, hint: str) -> IrBlock:
        """A block whose label begins with ``hint`` and is no other's; `start` makes it part of the function."""
        self._count += 1
        return IrBlock(f"{hint}{self._count}")

    def start(self, block: IrBlock) -> IrBlock:
        """Go on in ``block``."""
        self.blocks.append(block)
        self.block = block
        return block

    def line(self, text: str) -> None:
        """Write an instruction without a result, LLVM's text, into the current block."""
        self.block.lines.append(text)

    def raw(self, instruction: str) -> str:
        """An instruction with a result; its name."""
        self._count += 1
        name = f"%t{self._count}"
        self.line(f"{name} = {instruction}")
        return name

    def emit(self, type: Type, instruction: str, lane: bool) -> Value:
        """An instruction that yields a ``type``; ``lane``: whether its result may differ between active lanes."""
        return Value(type, self.raw(instruction), lane)

    def jump(self, target: IrBlock) -> None:
        """End the current block with a branch to ``target``; what is written next needs `start`."""
        self._close(f"br label %{target.label}")

    def branch(self, condition: Value, yes: IrBlock, no: IrBlock) -> None:
        """End the current block: to ``yes`` where ``condition``, a bool_, holds, else to ``no``."""
        self._close(f"br i1 {condition.text}, label %{yes.label}, label %{no.label}")

    def finish(self, text: str) -> None:
        """End the current block with a terminator of LLVM's, as text."""
        self._close(text)

    def _close(self, text: str) -> None:
        self.line(text)
        self.block.closed = True

    def alloca(self, type: Type) -> str:
        """A local variable's address."""
        return self.raw_alloca(llvm(type))

    def raw_alloca(self, type: str) -> str:
        """The address of memory for one of LLVM's types."""
        self._count += 1
        self.allocas.append(f"%v{self._count} = alloca {type}, {PRIVATE}")
        return f"%v{self._count}"

    def get(self, slot: str, type: Type, lane: bool) -> Value:
        """The value of a local; ``slot`` is the address that `alloca` gave."""
        return self.emit(type, f"load {llvm(type)}, ptr {PRIVATE} {slot}", lane)

    def put(self, slot: str, value: Value) -> None:
        """Set a local; ``slot`` is the address that `alloca` gave, for the value's type."""
        self.line(f"store {llvm(value.type)} {value.text}, ptr {PRIVATE} {slot}")

    def load(self, pointer: Value, lane: bool) -> Value:
        """The element that ``pointer`` points to; ``lane``: whether it may differ between active lanes."""
        assert isinstance(pointer.type, Pointer)
        self.loads = True
        element = pointer.type.element
        where = f"{llvm(pointer.type)} {pointer.text}, align {element.align_bytes}"
        return self.emit(element, f"load {llvm(element)}, {where}", lane)

    def store(self, pointer: Value, value: Value) -> None:
        """Write ``value``, which has the type of the element, to where ``pointer`` points."""
        where = f"{llvm(pointer.type)} {pointer.text}, align {value.type.align_bytes}"
        self.line(f"store {llvm(value.type)} {value.text}, {where}")

    def call(self, function: str, result: Type, args: tuple[Value, ...], lane: bool) -> Value:
        """A call of an LLVM function with its result; it is declared by the types of ``args``."""
        types = ", ".join(llvm(value.type) for value in args)
        self.declarations.add(f"declare {llvm(result)} @{function}({types})")
        given = ", ".join(f"{llvm(value.type)} {value.text}" for value in args)
        return self.emit(result, f"call {llvm(result)} @{function}({given})", lane)

    def effect(self, function: str, args: tuple[Value, ...]) -> None:
        """A call without a result."""
        self.declarations.add(f"declare void @{function}({', '.join(llvm(value.type) for value in args)})")
        self.line(f"call void @{function}({', '.join(f'{llvm(value.type)} {value.text}' for value in args)})")

    def body(self) -> str:
        """All blocks. A plain load must not become a scalar one: their cache does not see the wave's own stores."""
        clobber = ['call void asm sideeffect "", "~{memory}"()'] if self.loads else []
        first, *others = self.blocks
        lines = [*self.allocas, *clobber, *first.lines]
        for block in others:
            lines += [f"{block.label}:", *block.lines]
        return "\n".join(lines)


def llvm(type: Type) -> str:
    """LLVM's name of a type."""
    if isinstance(type, Pointer):
        return f"ptr {MEMORY[type.space]}"
    if isinstance(type, Struct):
        return f"{{ {', '.join(llvm(member.type) for member in type.members)} }}"
    if type.kind is Kind.FLOAT:
        return {"f16": "half", "bf16": "bfloat", "f32": "float"}.get(type.name, "double")
    return f"i{type.bits}"


def mangle_type(type: Type) -> str:
    """A type in the name of an LLVM intrinsic."""
    if isinstance(type, Pointer):
        return "p" + "".join(filter(str.isdigit, MEMORY[type.space]))
    assert isinstance(type, Scalar)
    return type.name if type.kind is Kind.FLOAT else f"i{type.bits}"


def constant(type: Type, number: int | float | bool) -> Value:
    """A literal of a type that can hold it."""
    if isinstance(type, Scalar) and type.kind is Kind.FLOAT and type.bits == 16:
        letter = "H" if type.name == "f16" else "R"
        return Value(type, f"0x{letter}{int.from_bytes(type.pack(float(number)), 'little'):04X}", lane=False)
    if isinstance(type, Scalar) and type.kind is Kind.FLOAT:
        (bits,) = struct.unpack("<Q", struct.pack("<d", type(float(number))))
        return Value(type, f"0x{bits:016X}", lane=False)
    if isinstance(type, Pointer):
        return Value(type, f"inttoptr (i{32 * type.dwords} {int(number)} to {llvm(type)})", lane=False)
    if type == BOOL:
        return Value(type, "true" if number else "false", lane=False)
    return Value(type, str(int(number)), lane=False)
