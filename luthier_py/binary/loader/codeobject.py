"""A loaded code object: what it is for, what is in it, and its kernels.

In: the bytes of a code object ELF, versions 3 to 6. Out: :class:`CodeObject`. Invariant: every kernel's
descriptor lies in the file, its entry in executable memory, and its metadata has the shape that
AMDGPUUsage, "Code Object Metadata", prescribes. An object without metadata has the kernels that its descriptors'
symbols name, as ROCr loads them, and their arguments are unknown. A kernel or symbol that breaks this is left out and
named with the reason; an object that is broken as a whole is Malformed.
"""

from __future__ import annotations

from mmap import mmap
from typing import Any

from luthier_py.base.errors import Invalid, Malformed, Unsupported, did_you_mean
from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass, field
from luthier_py.binary.loader.descriptor import DESCRIPTOR_BYTES, KernelDescriptor
from luthier_py.binary.loader.elf import (
    Elf,
    Relocation,
    Section,
    SectionType,
    Segment,
    SegmentFlag,
    SegmentType,
    Symbol,
    SymbolBinding,
    SymbolType,
    check_header,
    parse_elf,
)
from luthier_py.binary.loader.limits import LIMIT, limit_bytes
from luthier_py.binary.loader.note import Metadata, Note, merge_metadata, read_notes, unpack_metadata
from luthier_py.binary.loader.symbols import read_relocations, read_symbols
from luthier_py.isa.model.target import MAX_WORKITEMS, Target, target_of_mach
from luthier_py.isa.model.target_id import Setting, TargetId

MEMORY = "<memory>"  # the name of bytes that have none
MOST_STACK_BYTES = 16384
"""Of a lane, for stacks of unknown depth, beyond what descriptors count. HIP gives 1,024 in all, or what
hipDeviceSetLimit says."""


@dataclass(frozen=True, slots=True)
class KernelArg:
    """One entry of ``.args``. ``value_kind`` and the type facts are the metadata's own words."""

    name: str
    offset: int
    size: int
    value_kind: str
    type_name: str | None
    address_space: str | None
    access: str | None
    is_const: bool

    @property
    def hidden(self) -> bool:
        """Whether the runtime fills it in, not the program."""
        return self.value_kind.startswith("hidden_")


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One kernel. ``symbol`` names its descriptor, ``entry`` is the address of its first instruction."""

    name: str
    symbol: str
    descriptor_address: int
    descriptor: KernelDescriptor
    entry: int
    metadata: Metadata = field(repr=False)
    args: tuple[KernelArg, ...] = field(repr=False)

    @property
    def shown(self) -> str:
        """Its name for people."""
        return demangle(self.name)

    @property
    def own_args(self) -> list[KernelArg]:
        """Those that the program gives."""
        return [arg for arg in self.args if not arg.hidden]

    @property
    def kernarg_bytes(self) -> int:
        """The size of its arguments, hidden ones among them; descriptors may say 0 (rocBLAS')."""
        return max([self.descriptor.kernarg_size, *(arg.offset + arg.size for arg in self.args)])

    @property
    def states_arguments(self) -> bool:
        """Whether the object says which arguments it takes: its metadata, which always has this key."""
        return ".kernarg_segment_size" in self.metadata

    @property
    def uses_dynamic_stack(self) -> bool:
        """Whether its stack's depth is unknown: it calls itself, or functions by their addresses."""
        return bool(self.descriptor.uses_dynamic_stack or self.metadata.get(".uses_dynamic_stack"))

    @property
    def private_bytes(self) -> int:
        """The private memory that each lane may touch."""
        grows = MOST_STACK_BYTES if self.uses_dynamic_stack else 0
        return self.descriptor.private_segment_fixed_size + grows

    @property
    def max_workitems(self) -> int:
        """The greatest number of work-items of a work-group."""
        return min(int(self.metadata.get(".max_flat_workgroup_size", MAX_WORKITEMS)), MAX_WORKITEMS)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A kernel or symbol that cannot be read, or a kernel without code."""

    name: str
    error: Malformed
    kernel: bool = True


@dataclass(frozen=True, slots=True)
class CodeObject:
    """An immutable code object; ``data`` is the file as it was given."""

    name: str
    data: bytes = field(repr=False)
    target: Target
    xnack: Setting
    sramecc: Setting
    version: int  # of the code object format
    segments: tuple[Segment, ...] = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)
    symbols: tuple[Symbol, ...] = field(repr=False)
    relocations: tuple[Relocation, ...] = field(repr=False)
    metadata: Metadata = field(repr=False)
    kernels: tuple[KernelRecord, ...] = field(repr=False)
    elf: Elf = field(repr=False)
    _symbols: dict[str, Symbol] = field(repr=False)
    _kernels: dict[str, KernelRecord] = field(repr=False)
    left_out: tuple[LeftOut, ...] = field(default=(), repr=False)

    def kernel(self, name: str) -> KernelRecord:
        """The kernel of a name. Malformed where it was left out; Invalid, with those that there are, where none is."""
        if name not in self._kernels:
            for left_out in self.left_out:
                if left_out.kernel and left_out.name == name:
                    raise left_out.error
            known = ", ".join(sorted(self._kernels)[:8]) or "none"
            hint = did_you_mean(name, self._kernels) or f"; it has {len(self._kernels)}: {known}"
            raise Invalid(f"{self.name}: no kernel {name}{hint}")
        return self._kernels[name]

    def symbol(self, name: str) -> Symbol | None:
        """The symbol of that name; a definition rather than a reference, a global rather than a local."""
        return self._symbols.get(name)

    @property
    def target_id(self) -> TargetId:
        """The target with the settings of xnack and sramecc that the object was compiled for."""
        return TargetId(self.target, self.sramecc, self.xnack)

    @property
    def text_ranges(self) -> tuple[range, ...]:
        """Addresses of executable bytes that come from the file."""
        return tuple(
            range(s.address, s.address + s.file_size) for s in self.segments if s.load and s.flags & SegmentFlag.EXECUTE
        )

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes of the object's memory before relocation; zeros where the file has none."""
        return read_memory(self.elf, address, size)


def read_object(data: bytes | mmap, name: str) -> CodeObject:
    """Read a code object. Malformed: it is broken. Unsupported: its version is not 3 to 6, or its GPU is unknown."""
    elf = parse_elf(take(data, name), name)
    if not any(segment.load for segment in elf.segments):
        raise Malformed(f"{name}: it has no LOAD segment, so nothing of it can be loaded; link it with lld "
                        "(ld.lld -shared)")
    target, xnack, sramecc = _read_flags(elf)
    left_out: list[LeftOut] = []
    symbols = _read_symbols(elf, left_out)
    by_name = _index(symbols)
    metadata = read_metadata(elf)
    kernels = _read_kernels(elf, by_name, metadata, left_out)
    _leave_out_empty(elf, symbols, kernels, left_out)
    return CodeObject(name, elf.data, target, xnack, sramecc, elf.abi_version + 2, elf.segments, elf.sections, symbols,
                      read_relocations(elf), metadata, tuple(kernels.values()), elf, by_name, kernels, tuple(left_out))


def take(data: bytes | mmap, name: str) -> bytes:
    """All bytes of a code object, after a look at the first ones and at their number."""
    check_header(data, name)
    if len(data) > (limit := limit_bytes(_LIMIT_BYTES)):
        raise Malformed(f"{name}: {len(data)} bytes; a code object may have {limit}, and {LIMIT} raises the limit")
    return bytes(data)


def _read_flags(elf: Elf) -> tuple[Target, Setting, Setting]:
    """Target and feature settings from e_flags (AMDGPUUsage, "ELF Header": V3 has a bit for each, V4 and later two)."""
    if not 1 <= elf.abi_version <= 4:
        raise Unsupported(f"{elf.name}: code object version {elf.abi_version + 2}; compile it as version 4, 5 or 6 "
                          "(-mcode-object-version=5)")
    target = target_of_mach(elf.flags & 0xFF)
    if target is None:
        raise Unsupported(f"{elf.name}: EF_AMDGPU_MACH 0x{elf.flags & 0xFF:x} is a processor that is not supported; "
                          "luthier_py.isa.targets() lists those that are")
    if elf.abi_version > 1:
        return target, Setting(elf.flags >> 8 & 3), Setting(elf.flags >> 10 & 3)
    xnack, sramecc = (
        Setting.ON if elf.flags & bit else Setting.OFF if supported else Setting.UNSUPPORTED
        for bit, supported in ((0x100, target.xnack), (0x200, target.sramecc))
    )
    return target, xnack, sramecc


def _read_symbols(elf: Elf, left_out: list[LeftOut]) -> tuple[Symbol, ...]:
    """Symbols of .symtab, or of .dynsym in a stripped object."""
    for kind in (SectionType.SYMTAB, SectionType.DYNSYM):
        index = elf.find(kind)
        if index is not None:
            return read_symbols(elf, index, lambda row, error: left_out.append(LeftOut(f"symbol {row}", error, False)))
    return ()


def _index(symbols: tuple[Symbol, ...]) -> dict[str, Symbol]:
    return {s.name: s for s in sorted(symbols, key=lambda s: (s.defined, s.binding != SymbolBinding.LOCAL)) if s.name}


def find_metadata(elf: Elf) -> tuple[Segment, tuple[Note, ...]] | None:
    """The NOTE segment that has the metadata note, with all its notes."""
    for segment in elf.segments:
        if segment.type == SegmentType.NOTE:
            content = elf.data[segment.offset : segment.offset + segment.file_size]
            notes = read_notes(content, f"{elf.name}: NOTE segment at 0x{segment.offset:x}")
            if any(note.is_metadata for note in notes):
                return segment, notes
    return None


def read_metadata(elf: Elf) -> Metadata:
    """The metadata; empty where the object has none. Of several objects that were linked to one there are as many
    documents, which are one here, as comgr has it."""
    found = find_metadata(elf)
    if found is None:
        return {}
    segment, notes = found
    documents = [unpack_metadata(note.content, f"{elf.name}: note at 0x{segment.offset + note.offset:x}")
                 for note in notes if note.is_metadata]
    return documents[0] if len(documents) == 1 else merge_metadata(documents, elf.name)


def read_memory(elf: Elf, address: int, size: int) -> bytes:
    """``size`` bytes of memory at ``address`` before relocation; zeros where the file has none. Malformed unless one
    LOAD segment has them all."""
    segment = elf.load_at(address)
    if segment is None or size < 0 or address + size > segment.end:
        raise Malformed(f"{elf.name}: 0x{size:x} bytes at address 0x{address:x} are outside the object's memory")
    start = segment.offset + address - segment.address
    content = elf.data[start : min(start + size, segment.offset + segment.file_size)]
    return content + bytes(size - len(content))


def _read_kernels(
    elf: Elf, symbols: dict[str, Symbol], metadata: Metadata, left_out: list[LeftOut]
) -> dict[str, KernelRecord]:
    """The kernels by name, in the order of the metadata; without any, of their descriptors' symbols."""
    kernels: dict[str, KernelRecord] = {}
    entries = _maps(metadata, "amdhsa.kernels", f"{elf.name}: metadata") if metadata else _derive_metadata(symbols)
    for index, entry in enumerate(entries):
        try:
            kernel = _read_kernel(elf, symbols, entry, index)
            if kernel.name in kernels:
                raise Malformed(f"{elf.name}: two kernels of one name in the metadata: {kernel.name}")
            kernels[kernel.name] = kernel
        except Malformed as error:
            name = entry.get(".name")
            left_out.append(LeftOut(name if isinstance(name, str) else f"kernel {index}", error))
    return kernels


def _derive_metadata(symbols: dict[str, Symbol]) -> list[Metadata]:
    """What symbols alone say of kernels (AMDGPUUsage, "Symbols": NAME.kd, an object of a descriptor's size)."""
    found = (s for s in symbols.values() if s.defined and s.type == SymbolType.OBJECT and s.size == DESCRIPTOR_BYTES)
    names = (symbol.name for symbol in sorted(found, key=lambda symbol: symbol.address))
    return [{".name": name[: -len(_SUFFIX)], ".symbol": name} for name in names if name.endswith(_SUFFIX)]


def _leave_out_empty(
    elf: Elf, symbols: tuple[Symbol, ...], kernels: dict[str, KernelRecord], left_out: list[LeftOut]
) -> None:
    """Take out kernels whose symbols have no bytes, where another function starts: compilers make them of bodies that
    cannot be reached. Without another function there, the symbol just does not say where hand-written code ends."""
    functions = [s for s in symbols if s.type == SymbolType.FUNC and s.defined]
    started = {s.address: s.name for s in functions if s.size}
    for symbol in functions:
        kernel = kernels.get(symbol.name)
        if kernel is not None and not symbol.size and kernel.entry == symbol.address in started:
            error = Malformed(f"{elf.name}: kernel {kernel.name} has no code: {started[symbol.address]} starts in "
                              "its place")
            left_out.append(LeftOut(kernel.name, error))
            del kernels[kernel.name]


def _read_kernel(elf: Elf, symbols: dict[str, Symbol], entry: Metadata, index: int) -> KernelRecord:
    what = f"{elf.name}: metadata of kernel {index}"
    name = _name(entry, ".name", what)
    what = f"{elf.name}: kernel {name}"
    symbol_name = _name(entry, ".symbol", what)
    symbol = symbols.get(symbol_name)
    if symbol is None or not symbol.defined:
        raise Malformed(f"{what}: the metadata names descriptor symbol {symbol_name}, which is not defined")
    segment = elf.load_at(symbol.address)
    if segment is None or symbol.address + DESCRIPTOR_BYTES > segment.address + segment.file_size:
        raise Malformed(f"{what}: descriptor {symbol_name} at address 0x{symbol.address:x} is outside the file")
    descriptor = KernelDescriptor(read_memory(elf, symbol.address, DESCRIPTOR_BYTES))
    code = symbol.address + descriptor.kernel_code_entry_byte_offset
    segment = elf.load_at(code)
    if segment is None or not segment.flags & SegmentFlag.EXECUTE or code % 4:
        raise Malformed(f"{what}: descriptor {symbol_name} gives entry address 0x{code:x}, where no code is")
    for key in _NUMBERS:
        if _get(entry, key, int, what, 0) < 0:
            raise Malformed(f"{what}: {key} is {entry[key]}; it cannot be negative")
    args = tuple(_read_arg(arg, f"{what}: argument {i}") for i, arg in enumerate(_maps(entry, ".args", what)))
    return KernelRecord(name, symbol_name, symbol.address, descriptor, code, entry, args)


def _read_arg(entry: Metadata, what: str) -> KernelArg:
    offset, size = _get(entry, ".offset", int, what), _get(entry, ".size", int, what)
    if offset < 0 or size < 0 or offset + size > _KERNARG_LIMIT_BYTES:
        raise Malformed(f"{what}: offset {offset} and size {size} do not fit in a kernarg segment")
    return KernelArg(
        _get(entry, ".name", str, what, ""), offset, size, _get(entry, ".value_kind", str, what),
        _get(entry, ".type_name", str, what, None), _get(entry, ".address_space", str, what, None),
        _get(entry, ".access", str, what, None), bool(entry.get(".is_const", False)),
    )


_SUFFIX = ".kd"
_KERNARG_LIMIT_BYTES = 1 << 20
_LIMIT_BYTES = 1 << 30  # of a code object; LIMIT raises it
_NUMBERS = (".max_flat_workgroup_size", ".sgpr_count", ".vgpr_count", ".agpr_count")  # that others rely on
_REQUIRED: Any = object()


def _get(entry: Metadata, key: str, type: type, what: str, default: Any = _REQUIRED) -> Any:
    value = entry.get(key, default)
    if value is _REQUIRED:
        raise Malformed(f"{what}: no {key}")
    if value is not default and not isinstance(value, type):
        raise Malformed(f"{what}: {key} is not of type {type.__name__}")
    return value


def _name(entry: Metadata, key: str, what: str) -> str:
    name = _get(entry, key, str, what)
    if not name or not name.isprintable():
        raise Malformed(f"{what}: {key} is {name!r:.80}, which is no name")
    return str(name)


def _maps(entry: Metadata, key: str, what: str) -> list[Metadata]:
    """A list of maps; empty where there is no such key."""
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Malformed(f"{what}: {key} is not a list of maps")
    return value
