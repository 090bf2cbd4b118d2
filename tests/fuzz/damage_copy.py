"""An instrumented copy as damage sees it: instructions of clones with their places in the file, and what can be moved.

In: a Subject. Out: a Copy; copies of it with bytes changed, or with instructions added to a clone. Invariant: what is
added to a clone is added to what is claimed of it too, as code that was inserted; so the claim itself does not betray
it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from damage_kept import kept
from damage_subjects import Subject

from luthier_py.binary.link import Chunk, Patch, link
from luthier_py.binary.loader import CodeObject, load
from luthier_py.isa import Inst, InstructionSet
from luthier_py.proof import prove
from luthier_py.proof.claim import ClonedFunction, Stretch
from luthier_py.rewrite.inject.model import Patched, SourceMap


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction of a clone. ``own``: it stands for one of the application's."""

    clone: str
    offset: int
    """From the clone's start."""
    at: int
    """In the file."""
    inst: Inst
    own: bool


@dataclass(frozen=True, slots=True)
class Damaged:
    """Bytes, and what is claimed of them."""

    data: bytes
    patched: Patched


@dataclass(frozen=True)
class Copy:
    """One subject's copy, and where things are in it."""

    subject: Subject

    @property
    def data(self) -> bytes:
        return self.subject.made.data

    @property
    def patched(self) -> Patched:
        return self.subject.made.patched

    @property
    def isa(self) -> InstructionSet:
        return self.subject.isa

    @cached_property
    def linked(self) -> CodeObject:
        return load(self.data)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Of all clones."""
        return tuple(line for function in self.patched.claim.functions for line in self._lines(function))

    @cached_property
    def inserted(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if not line.own)

    @cached_property
    def own(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.own)

    def _lines(self, function: ClonedFunction) -> list[Line]:
        symbol = self.linked.symbol(function.symbol)
        assert symbol is not None
        own = {offset for s in function.stretches for offset in range(s.clone, s.clone + s.size, 4)}
        at, offset, found = self.at(symbol.address), 0, []
        while offset < symbol.size:
            inst = self.isa.decode(self.data, at + offset)
            found.append(Line(function.symbol, offset, at + offset, inst, offset in own))
            offset += inst.size_bytes
        return found

    def at(self, address: int) -> int:
        """In the file."""
        segment = self.linked.elf.load_at(address)
        assert segment is not None
        return segment.offset + address - segment.address

    def sections(self, *which: str) -> list[range]:
        """Where sections of these names, or beginnings of names, are in the file."""
        return [range(s.offset, s.offset + s.size) for s in self.linked.sections
                if s.size and s.type != 8 and s.name.startswith(which)]

    def only_clones(self, data: bytes) -> bool:
        """Whether nothing but code of clones differs."""
        start, end = self.lines[0].at, self.lines[-1].at + self.lines[-1].inst.size_bytes
        return data[:start] == self.data[:start] and data[end:] == self.data[end:]

    def with_bytes(self, at: int, new: bytes) -> Damaged | None:
        """None where nothing would change."""
        if self.data[at : at + len(new)] == new:
            return None
        return Damaged(self.data[:at] + new + self.data[at + len(new) :], self.patched)

    def with_bit(self, at: int, bit: int) -> Damaged:
        flipped = self.with_bytes(at, bytes([self.data[at] ^ 1 << bit]))
        assert flipped is not None
        return flipped

    def with_code(self, line: Line, code: bytes) -> Damaged:
        """``code`` before a line, claimed as inserted. What goes to the line goes through the code."""
        chunks = tuple(_grown(self.isa, chunk, line.offset, code) if chunk.name == line.clone else chunk
                       for chunk in self.patched.chunks)
        maps = tuple(_moved(source, line.offset, len(code)) if source.chunk == line.clone else source
                     for source in self.patched.maps)
        functions = tuple(_claimed(function, line.offset, len(code)) if function.symbol == line.clone else function
                          for function in self.patched.claim.functions)
        claim = replace(self.patched.claim, functions=functions)
        patched = replace(self.patched, chunks=chunks, maps=maps, claim=claim)
        return Damaged(link(self.subject.made.obj, Patch(chunks, patched.kernels, patched.variables)), patched)


@cache
def copy_of(subject: Subject) -> Copy:
    return Copy(subject)


def check(subject: Subject, damaged: Damaged) -> None:
    """Raises what the proof raises."""
    with kept():
        prove(subject.made.obj.data, damaged.data, damaged.patched.claim)


def _grown(isa: InstructionSet, chunk: Chunk, offset: int, code: bytes) -> Chunk:
    by = len(code)
    after = [
        replace(f, offset=f.offset + by * (f.offset >= offset),
                base_offset=f.base_offset + by * (f.base_offset > offset),
                addend=f.addend + by * (f.target == chunk.name and f.addend > offset))
        for f in chunk.fixups
    ]
    old = chunk.code
    aimed = bytearray(old[:offset] + code + old[offset:])
    for pc, inst in _decoded(isa, old):
        target = inst.branch_target(pc)
        if target is None:
            continue
        moved = pc + by * (pc >= offset)
        distance = target + by * (target > offset) - moved - 4
        again = isa.with_field(inst, _aim(inst), distance // 4)
        aimed[moved : moved + inst.size_bytes] = again.raw
    return replace(chunk, code=bytes(aimed), fixups=tuple(after))


def _aim(inst: Inst) -> str:
    return next(operand.name for operand in inst.operands if operand.kind.name == "TARGET")


def _decoded(isa: InstructionSet, code: bytes) -> list[tuple[int, Inst]]:
    at, found = 0, []
    while at < len(code):
        inst = isa.decode(code, at)
        found.append((at, inst))
        at += inst.size_bytes
    return found


def _moved(source: SourceMap, offset: int, by: int) -> SourceMap:
    return replace(
        source,
        instructions={instr: at + by * (at >= offset) for instr, at in source.instructions.items()},
        labels={address: at + by * (at > offset) for address, at in source.labels.items()},
    )


def _claimed(function: ClonedFunction, offset: int, by: int) -> ClonedFunction:
    stretches: list[Stretch] = []
    for each in function.stretches:
        before = min(max(offset - each.clone, 0), each.size)
        if before:
            stretches.append(replace(each, size=before))
        if before < each.size:
            stretches.append(Stretch(each.original + before, each.clone + before + by, each.size - before))
    calls = tuple(replace(call, start=call.start + by * (call.start >= offset)) for call in function.calls)
    return replace(function, stretches=tuple(stretches), calls=calls)


def next_own(lines: Sequence[Line], line: Line) -> Line | None:
    """The application's next instruction behind a line of the same clone."""
    start = bisect_left(lines, (line.at,), key=lambda each: (each.at,))
    return next((each for each in lines[start:] if each.own and each.clone == line.clone), None)
