"""Offload bundles: several code objects, one for each target, in one file or section.

In: an AMD GPU code object, a HIP fat binary (``__CLANG_OFFLOAD_BUNDLE__``, or compressed, ``CCOB``), or a host ELF
that carries fat binaries in section .hip_fatbin. Out: the device code objects in it, one at a time. Invariant: every
member lies in the file, or in what one compressed bundle of it holds, and shares its memory until its bytes are
requested; what is broken costs itself only. (Clang documentation, "ClangOffloadBundler".)
"""

from __future__ import annotations

import re
import struct
from collections.abc import Generator, Iterable, Iterator
from mmap import MADV_DONTNEED, PAGESIZE, mmap

from luthier_py.base.errors import Invalid, LuthierError, Malformed
from luthier_py.base.records import dataclass, field, replace
from luthier_py.binary.loader import compressed, elf
from luthier_py.binary.loader.codeobject import MEMORY, CodeObject, read_object
from luthier_py.isa.model.target_id import TargetId, parse_target_id

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_MAGICS = (MAGIC, compressed.MAGIC)
_OVERLAP = 2  # times what there is, members may have together: what is read is bounded by the file's size
_NARROW, _WIDE = 1 << 16, 1 << 24  # bytes that are looked through at a time


@dataclass(frozen=True, slots=True)
class Member:
    """One device code object. ``triple`` is the bundle's word for its target: ``hipv4-amdgcn-amd-amdhsa--...``."""

    triple: str
    container: bytes | mmap = field(repr=False)
    start: int
    size: int

    @property
    def data(self) -> bytes:
        """A copy of its bytes, made at each call."""
        return self.container[self.start : self.start + self.size]

    def is_same(self, other: Member) -> bool:
        """Whether they are the same bytes at the same place."""
        return self.container is other.container and (self.start, self.size) == (other.start, other.size)

    @property
    def target_name(self) -> str:
        """The target ID in ``triple``; older compilers put one dash before it, newer ones two."""
        found = re.search(r"gfx.*", self.triple)
        return found[0] if found else self.triple.rpartition("--")[2]


@dataclass(frozen=True, slots=True)
class Broken:
    """A part of a file that cannot be read; the others can."""

    name: str
    error: LuthierError


def load_each(data: bytes | mmap, name: str = MEMORY) -> Iterator[CodeObject | Broken]:
    """The code object that ``data`` is, or all that a bundle or a host program carries, named by their targets.

    Raises LuthierError where there is none that can be read.
    """
    broken: LuthierError | None = None
    read = False
    before: tuple[Member, CodeObject | Broken] | None = None
    taken = 0  # bytes of members of one container
    for member in () if elf.is_code_object(data) else members(data, name):
        if isinstance(member, Broken):
            part: CodeObject | Broken = member
        elif before is not None and member.is_same(before[0]):
            part = replace(before[1], name=f"{name}, {member.target_name}")
        else:
            alike = before is not None and before[0].container is member.container
            taken = member.size + (taken if alike else 0)
            part = _load_member(member, f"{name}, {member.target_name}", taken)
            before = member, part
        if isinstance(part, Broken):
            broken = broken or part.error
        read = read or isinstance(part, CodeObject)
        yield part
    if broken is not None and not read:
        raise broken
    if not read:
        yield read_object(data, name)


def that_run_on(device: TargetId, parts: Iterable[CodeObject | Broken], name: str) -> Iterator[CodeObject]:
    """Those of ``parts`` that run on a device; Invalid where none does, with the targets that there are."""
    others: dict[str, None] = {}
    found = False
    for part in parts:
        if isinstance(part, Broken):
            continue
        if device.runs(part.target_id):
            found = True
            yield part
        else:
            others[str(part.target_id)] = None
    if not found:
        raise not_for(device, name, ", ".join(others))


def not_for(device: TargetId, name: str, there: str) -> Invalid:
    """The error, to be raised, for a file without code for ``device``; ``there``: targets that it has, in words."""
    return Invalid(f"{name} has code for {there}, and nothing that runs on {device}")


def _load_member(member: Member, name: str, taken: int) -> CodeObject | Broken:
    """``taken``: bytes of all members until here, which lie one behind the other in what a compiler wrote."""
    if taken > _OVERLAP * len(member.container):
        return Broken(name, Malformed(f"{name}: its members overlap: they have {taken} bytes of "
                                      f"{len(member.container)}, and no more are read"))  # fmt: skip
    try:
        return read_object(member.data, name)
    except LuthierError as error:
        return Broken(name, error)


def choose(parts: Iterable[Member | Broken], device: TargetId) -> Member | None:
    """The member that was made most for ``device``, the first of several; None if it runs none of them."""
    return next(iter(closest(parts, device)), None)


def closest(parts: Iterable[Member | Broken], device: TargetId) -> list[Member]:
    """Those that were made most for ``device``."""
    fitting: dict[tuple[bool, int], list[Member]] = {}
    for part in parts:
        try:
            code = parse_target_id(part.target_name) if isinstance(part, Member) else None
        except Invalid:
            continue  # a processor that is not known is not this one
        if isinstance(part, Member) and code is not None and device.runs(code):
            fitting.setdefault(device.closeness(code), []).append(part)
    return fitting[max(fitting)] if fitting else []


def unbundle(data: bytes | mmap, name: str = MEMORY) -> Iterator[Member]:
    """All AMD GPU code objects in a bundle or in a file that contains bundles, in file order; Malformed at the first
    part that is broken."""
    for part in members(data, name):
        if isinstance(part, Broken):
            raise part.error
        yield part


def members(data: bytes | mmap, name: str = MEMORY, magic: bytes = elf.MAGIC) -> Iterator[Member | Broken]:
    """The same, but what is broken has its place among the others; ``magic``: what members begin with."""
    at, budget = 0, compressed.Budget(len(data))
    while (found := _find(data, at)) is not None:
        at, opening = found
        if opening == MAGIC:
            at = yield from _members(data, at, name, magic)
        elif (head := compressed.head_at(data, at)) is not None:
            at = yield from _decompress_bundle(data, head, budget, name, magic)
        elif at == 0:
            raise compressed.unknown(name)
        else:
            at += len(opening)


def _find(data: bytes | mmap, at: int) -> tuple[int, bytes] | None:
    """Where the first magic from ``at`` on is, and which; what was looked through leaves memory."""
    width = _NARROW
    while at < len(data):
        window = data[at : at + width]
        places = [(place, magic) for magic in _MAGICS if (place := window.find(magic)) >= 0]
        if isinstance(data, mmap):
            data.madvise(MADV_DONTNEED, 0, -(-(at + 1) // PAGESIZE) * PAGESIZE)
        if places:
            place, magic = min(places)
            return at + place, magic
        at, width = at + max(width - len(MAGIC) + 1, 1), min(2 * width, _WIDE)
    return None


def _decompress_bundle(
    data: bytes | mmap, head: compressed.Head, budget: compressed.Budget, name: str, magic: bytes
) -> Generator[Member | Broken, None, int]:
    """The members of a compressed bundle; gives back where the next may begin."""
    try:
        bundle = compressed.decompress(data, head, budget, name)
        where = f"{name}, unpacked from 0x{head.at:x}"
        if not bundle.startswith(MAGIC):
            raise Malformed(f"{where}: no offload bundle is in it")
    except Malformed as error:
        yield Broken(f"{name} at 0x{head.at:x}", error)
        return head.next_at if _may_end(data, head.next_at) else head.data_at
    yield from _members(bundle, 0, where, magic)
    return head.next_at


def _may_end(data: bytes | mmap, at: int) -> bool:
    """Whether a bundle whose size no header gives may end at ``at``: padding or another bundle follows."""
    behind = data[at : at + len(MAGIC)]
    return at <= len(data) and (not behind.strip(b"\0") or behind.startswith(_MAGICS))


def _members(data: bytes | mmap, at: int, name: str, magic: bytes) -> Generator[Member | Broken, None, int]:
    """The members of the bundle at ``at``; gives back where it ends."""
    end = at + len(MAGIC)
    for entry, behind in _entries(data, at, name):
        end = max(end, behind)  # no part of a table begins another bundle
        if isinstance(entry, Broken):
            yield entry
            continue
        end = max(end, entry.start + entry.size)
        begins = data[entry.start : entry.start + min(entry.size, len(magic))]
        if "amdgcn" in entry.triple and begins == magic:
            yield entry
    return end


def _entries(data: bytes | mmap, at: int, name: str) -> Iterator[tuple[Member | Broken, int]]:
    """Each entry of the bundle at ``at``, those for the host too, with where the next one would be."""
    what = f"{name}: offload bundle at 0x{at:x}"
    try:
        cursor = at + len(MAGIC)
        (count,) = struct.unpack_from("<Q", data, cursor)
        cursor += 8
        for number in range(count):
            offset, size, triple_size = struct.unpack_from("<3Q", data, cursor)
            cursor += 24
            triple = data[cursor : cursor + triple_size].decode("ascii", "backslashreplace")
            cursor += triple_size
            if cursor > len(data):
                raise struct.error
            if at + offset + size > len(data):
                error = Malformed(f"{what}: entry {number} with 0x{size:x} bytes at 0x{offset:x} ends outside the file")
                yield Broken(f"{name}, {triple}", error), cursor
            else:
                yield Member(triple, data, at + offset, size), cursor
    except (struct.error, OverflowError):
        yield Broken(f"{name} at 0x{at:x}", Malformed(f"{what}: its table of entries is truncated")), at
