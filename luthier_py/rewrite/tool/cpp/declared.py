"""What the C++ of a compiled unit declares: hooks, device functions and variables with their types.

In: LLVM's text of a module with debug information and annotations. Out: Unit. Invariant: types are those that C++ has,
not what they became by the calling convention; a type that hooks cannot have is refused where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from luthier_py.base.errors import HookError
from luthier_py.base.records import dataclass
from luthier_py.isa import Space
from luthier_py.rewrite.llvm_text.functions import read_header
from luthier_py.rewrite.llvm_text.modules import elements_of, fields_of, locations_of, read_variable
from luthier_py.rewrite.llvm_text.names import pointer_space, symbol_of
from luthier_py.rewrite.tool.cpp.device_ir import DeviceIr
from luthier_py.rewrite.tool.cpp.native import PlacedTable, Sender
from luthier_py.rewrite.tool.cpp.native_tables import constant_bytes, place_tables
from luthier_py.rewrite.tool.hooks.hook import Parameter, Signature
from luthier_py.rewrite.tool.hooks.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    LaneType,
    NearPointer,
    Pointer,
    Scalar,
    Struct,
    Type,
    struct_of,
)
from luthier_py.rewrite.tool.records.channel import RecordType, channel_type, lay_out_record
from luthier_py.rewrite.tool.variables import LookupTable

_BASIC = {
    ("DW_ATE_boolean", 8): BOOL, ("DW_ATE_unsigned_char", 8): U8, ("DW_ATE_signed_char", 8): I8,
    ("DW_ATE_unsigned", 16): U16, ("DW_ATE_signed", 16): I16, ("DW_ATE_unsigned", 32): U32, ("DW_ATE_signed", 32): I32,
    ("DW_ATE_unsigned", 64): U64, ("DW_ATE_signed", 64): I64, ("DW_ATE_float", 16): F16, ("DW_ATE_float", 32): F32,
    ("DW_ATE_float", 64): F64,
}  # fmt: skip
_THROUGH = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type",
            "DW_TAG_enumeration_type")  # fmt: skip
_POINTERS = "DW_TAG_pointer_type", "DW_TAG_reference_type"
_NEAR_BITS = 32
_NEAR_POINTER = "near_pointer"
_BY_NEAR = "hooks read LDS and private memory by luthier::lds<T> and luthier::scratch<T>, of numbers and structures"
_NEAR = {3: Space.LDS, 2: Space.LDS, 5: Space.SCRATCH, 1: Space.SCRATCH}  # as DWARF has them, and clang before it did
_IN_LLVM = {Space.LDS: "ptr addrspace(3)", Space.SCRATCH: "ptr addrspace(5)"}
_MARKS = "luthier.hook:", "luthier.device:"
_SENDS = "luthier.push:"


@dataclass(frozen=True, slots=True)
class Declared:
    """A function that is marked."""

    symbol: str
    name: str
    mark: str                  # hook or device
    words: tuple[str, ...]     # that the mark has in parentheses
    place: str
    signature: Signature
    takes: tuple[str, ...]
    gives: str
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Global:
    """A variable of the device."""

    symbol: str
    name: str
    type: Scalar | Struct
    length: int | None
    initial: bytes | None


@dataclass(frozen=True)
class Unit:
    """``where``: of the source, for messages."""

    ir: DeviceIr
    where: str

    @cached_property
    def marked(self) -> Mapping[str, tuple[str, str]]:
        """Mark and file:line of hooks and device functions, by symbol."""
        return {each.symbol: (each.text, f"{each.file}:{each.line}") for each in self.ir.annotations
                if each.text.startswith(_MARKS)}

    @cached_property
    def names(self) -> Mapping[str, list[str]]:
        """Symbols of marked functions by name: several where it is overloaded."""
        found: dict[str, list[str]] = {}
        for symbol in self.marked:
            found.setdefault(self._name(symbol), []).append(symbol)
        return found

    def _name(self, symbol: str) -> str:
        return str(self._subprogram(symbol).get("name", symbol))

    def function(self, symbol: str) -> Declared:
        """Raises HookError for types that no hook can have."""
        mark, place = self.marked[symbol]
        _, gives, parameters = read_header(self.ir.symbols[symbol])
        takes = tuple(type for type, _ in parameters)
        kind, _, words = mark.removeprefix("luthier.").partition(":")
        where = f"{place}: {self._name(symbol)}"
        signature, offsets = self._signature(symbol, where)
        if len(takes) != len(signature.parameters) or any(
                text == "" or text == "ptr addrspace(5)" != _in_llvm(each.type)
                for text, each in zip(takes, signature.parameters, strict=True)):
            raise HookError(f"{where}: it takes a structure; pass its members")
        wanted = [_in_llvm(each.type) for each in (*signature.parameters, *signature.results[:1])]
        if other := next((text for text, want in zip((*takes, gives), wanted, strict=False)
                          if pointer_space(text) not in (None, 0, 1) and text != want), None):
            raise HookError(f"{where}: it takes or gives a pointer to other memory than global memory ({other}); "
                            "luthier::lds<T> and luthier::scratch<T> are those that hooks can have")
        if gives == "void" and signature.results:
            raise HookError(f"{where}: its result is too large; 16 dwords at most")
        return Declared(symbol, self._name(symbol), kind, tuple(re.findall(r"\w+", words)), place, signature, takes,
                        gives, offsets)

    @cached_property
    def senders(self) -> tuple[Sender, ...]:
        """What pushes records; raises HookError for fields that cannot be sent."""
        return tuple(self._sender(each.symbol) for each in self.ir.annotations if each.text == _SENDS)

    def _sender(self, symbol: str) -> Sender:
        """Of a function that takes a channel and a record."""
        _, _, reference = self._list(self._fields(self._subprogram(symbol).get("type")).get("types"))
        type = self._resolve_type(reference).get("baseType")
        members = self._members(type) or []
        offsets = tuple(int(str(member.get("offset", 0))) // 8 for member in members)
        return Sender(symbol, self._record(type, self.where), offsets)

    def _record(self, type: object, where: str) -> RecordType:
        node = self._resolve_type(type)
        name, members = str(node.get("name", "that has no name")), self._members(type)
        inside = f"{where}: record {name}"
        if not members:
            raise HookError(f"{inside}: give a structure with members, and without a base")
        self._check_plain(node, members, inside)
        fields = [self._parameter(str(each["name"]), each["baseType"], inside) for each in members]
        try:
            return lay_out_record(name, {each.name: LaneType(each.type) if each.lane else each.type for each in fields})
        except ValueError as error:
            raise HookError(f"{where}: {error}") from error

    @cached_property
    def tables(self) -> tuple[PlacedTable, ...]:
        """Constants that marked functions need, but for small ones; and where each is in `table`."""
        return self._placed[0]

    @cached_property
    def table(self) -> LookupTable:
        """All of these; only where there are some."""
        return LookupTable(U8, self._placed[1])

    @cached_property
    def _placed(self) -> tuple[tuple[PlacedTable, ...], bytes]:
        reached = {name for symbol in self.marked for name in self.ir.collect_reachable(symbol)}
        return place_tables({name: text for name, text in self.ir.symbols.items() if name in reached})

    @cached_property
    def variables(self) -> tuple[Global, ...]:
        """Variables of types that tool variables can have, and that begin as numbers."""
        return tuple(self._variables())

    def _variables(self) -> Iterator[Global]:
        for symbol, text in self.ir.symbols.items():
            variable, numbers = read_variable(text), locations_of(text)
            found = self._fields(self._fields(numbers[0]).get("var")) if numbers else {}
            if variable is None or not (variable.external and variable.space == 1) or not found or (
                    symbol_of(variable.data)):
                continue
            node = self._fields(found.get("type"))
            while node.get("tag") in _THROUGH:
                node = self._fields(node.get("baseType"))
            counts = [self._fields(each).get("count") for each in self._list(node.get("elements"))]
            base = node.get("baseType") if node.get("tag") == "DW_TAG_array_type" else found.get("type")
            try:
                type = self._in_memory(base, symbol)
            except HookError:
                continue
            if not isinstance(type, Pointer) and type != BOOL and len(counts) <= 1:
                (data,) = constant_bytes([variable.data])
                yield Global(symbol, str(found["name"]), type, int(str(counts[0])) if counts else None,
                             data if any(data) else None)

    def _subprogram(self, symbol: str) -> dict[str, object]:
        numbers = locations_of(self.ir.symbols[symbol].partition("\n")[0])
        if not numbers:
            raise HookError(f"{self.where}: {symbol} has no debug information; compile it with -g")
        return {**self._fields(numbers[-1]), "number": numbers[-1]}

    def _signature(self, symbol: str, where: str) -> tuple[Signature, tuple[int, ...]]:
        subprogram = self._subprogram(symbol)
        types = self._list(self._fields(subprogram.get("type")).get("types"))
        names = self._names(subprogram["number"])
        parameters = tuple(self._parameter(names.get(i + 1, f"argument {i + 1}"), each, where)
                           for i, each in enumerate(types[1:]))
        if types[0] is None:
            return Signature(parameters, ()), ()
        members = self._members(types[0])
        if members is None:
            return Signature(parameters, (self._parameter("", types[0], where),)), ()
        results = tuple(self._parameter(str(member["name"]), member["baseType"], where) for member in members)
        offsets = tuple(int(str(member.get("offset", 0))) // 8 for member in members)
        return Signature(parameters, results), offsets

    def _names(self, subprogram: object) -> dict[int, str]:
        """Of parameters, by their number from 1."""
        locals = (self._fields(number) for number, text in self.ir.nodes.items() if text.startswith("!DILocalVariable"))
        return {int(str(each["arg"])): str(each["name"]) for each in locals
                if "arg" in each and "name" in each and each.get("scope") == subprogram}

    def _members(self, type: object) -> list[dict[str, object]] | None:
        """Of a structure that is no lane."""
        node = self._resolve_type(type)
        if node.get("tag") not in ("DW_TAG_structure_type", "DW_TAG_class_type") or (
                any(self._is_ours(node, name) for name in ("lane", "channel", _NEAR_POINTER))):
            return None
        return self._own_members(node)

    def _own_members(self, node: Mapping[str, object]) -> list[dict[str, object]]:
        elements = [self._fields(each) for each in self._list(node.get("elements"))]
        return [each for each in elements if each.get("tag") == "DW_TAG_member" and "DIFlagStaticMember" not in
                str(each.get("flags", ""))]  # fmt: skip

    def _parameter(self, name: str, type: object, where: str) -> Parameter:
        node = self._resolve_type(type)
        if self._is_ours(node, "lane"):
            return Parameter(name, self._type(self._argument(node), f"{where}: {name}"), lane=True)
        if self._is_ours(node, "channel"):
            return Parameter(name, channel_type(self._record(self._argument(node), f"{where}: {name}")), lane=False)
        return Parameter(name, self._type(type, f"{where}: {name or 'result'}"), lane=False)

    def _is_ours(self, node: Mapping[str, object], template: str) -> bool:
        scope = self._fields(node.get("scope"))
        return str(node.get("name", "")).startswith(f"{template}<") and scope.get("name") == "luthier"

    def _argument(self, node: Mapping[str, object]) -> object:
        """Of a template, its first."""
        (argument, *_) = self._list(node.get("templateParams"))
        return self._fields(argument).get("type")

    def _type(self, type: object, where: str) -> Type:
        return self._type_of(self._resolve_type(type), where)

    def _type_of(self, node: Mapping[str, object], where: str) -> Type:
        if node.get("tag") in _POINTERS:
            if node.get("size") == str(_NEAR_BITS):
                raise HookError(f"{where}: {_BY_NEAR}")
            return Pointer(self._element(self._in_memory(node.get("baseType"), where), where))
        if self._is_ours(node, _NEAR_POINTER):
            members = self._own_members(node)
            if not members:  # it is no such pointer
                raise HookError(f"{where}: a pointer to {node['name']} is not a device type")
            return self._near(self._resolve_type(members[0]["baseType"]), where)
        if node.get("name") == "__bf16":
            return BF16
        found = _BASIC.get((str(node.get("encoding")), int(str(node.get("size", 0)))))
        if found is None:
            name = node.get("name") or "void"
            raise HookError(f"{where}: {name} is not a device type; use numbers of 8 to 64 bits, bool, pointers "
                            "to numbers, or luthier::lane<T>")  # fmt: skip
        return found

    def _near(self, pointer: Mapping[str, object], where: str) -> NearPointer:
        element = self._element(self._in_memory(pointer.get("baseType"), where), where)
        space = _NEAR.get(int(str(pointer.get("dwarfAddressSpace", 0))))
        if space is None or isinstance(element, Pointer):
            raise HookError(f"{where}: {_BY_NEAR}")
        return NearPointer(element, space)

    def _in_memory(self, type: object, where: str) -> Type:
        """What a pointer may point to: structures, too, without pointers to others in them."""
        members = self._members(type)
        if not members:
            return self._type(type, where)
        node = self._resolve_type(type)
        name = str(node.get("name", "that has no name"))
        inside = f"{where}: struct {name}"
        self._check_plain(node, members, inside)
        try:
            found = struct_of(name, [(str(each["name"]), self._member(each, inside)) for each in members])
        except ValueError as error:
            raise HookError(f"{where}: {error}") from error
        offsets = [int(str(each.get("offset", 0))) for each in members]
        if [8 * each.offset_bytes for each in found.members] != offsets or 8 * found.size_bytes != int(
                str(node.get("size"))):
            raise HookError(f"{inside} is packed, or aligned by itself; members must lie as their types have it")
        return found

    def _member(self, member: Mapping[str, object], where: str) -> Type:
        if self._resolve_type(member["baseType"]).get("tag") in _POINTERS:
            pointed = self._resolve_type(self._resolve_type(member["baseType"]).get("baseType"))
            return Pointer(self._element(self._type_of(pointed, where), where))
        return self._in_memory(member["baseType"], f"{where}: {member['name']}")

    def _check_plain(self, node: Mapping[str, object], members: Sequence[Mapping[str, object]], inside: str) -> None:
        """No base, and no parts of numbers."""
        if any(self._fields(each).get("tag") == "DW_TAG_inheritance" for each in self._list(node.get("elements"))):
            raise HookError(f"{inside}: give a structure with members, and without a base")
        if bits := [each["name"] for each in members if "DIFlagBitField" in str(each.get("flags", ""))]:
            raise HookError(f"{inside}: {bits[0]} has a part of the bits of a number; records have whole numbers")

    def _element(self, type: Type, where: str) -> Type:
        if type == BOOL or isinstance(type, (LaneType, NearPointer)):
            raise HookError(f"{where}: a pointer to {type} is not a device type")
        return type

    def _resolve_type(self, type: object) -> dict[str, object]:
        """The type that a name means."""
        node = self._fields(type)
        while node.get("tag") in _THROUGH:
            node = self._fields(node.get("baseType"))
        return node

    def _fields(self, number: object) -> dict[str, object]:
        """Of a node; references as numbers, texts without their quotes."""
        return fields_of(self.ir.nodes.get(number, "")) if isinstance(number, int) else {}

    def _list(self, number: object) -> list[int | None]:
        """Of a tuple; None for null."""
        return elements_of(self.ir.nodes.get(number, "")) if isinstance(number, int) else []


def _in_llvm(type: Type) -> str:
    """A pointer to other memory than global memory, as LLVM writes it."""
    return _IN_LLVM[type.space] if isinstance(type, NearPointer) else ""
