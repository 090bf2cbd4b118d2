"""Buffer resources, in plain integers: where an index and an offset lead, and whether that is in range.

Sources: GCN 3 ISA, 8.1.5; CDNA 3 ISA, 9.1.5 and 9.1.8; RDNA 3 ISA, 9.4 and 9.6, and RDNA 4's; Mesa's
ac_set_buf_desc_word3 for RDNA 1 and 2; hipBLASLt's SrdUpperValue125X for gfx1250.
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py.isa import Inst, OperandKind, Target
from reference.vector import field, raw
from reference.wave import M32, Wave


@dataclass
class Resource:
    """One resource of a target, as an instruction uses it; ``converts``: an instruction with a format."""

    target: Target
    words: list[int]
    converts: bool = False

    @property
    def add_tid(self) -> bool:
        return bool(not self.target.wide_resources and self.words[3] >> 23 & 1)

    @property
    def base(self) -> int:
        bits = 57 if self.target.wide_resources else 48
        return (self.words[0] | self.words[1] << 32) & ((1 << bits) - 1)

    @property
    def records(self) -> int:
        if self.target.wide_resources:
            return sum(word << 32 * i for i, word in enumerate(self.words)) >> 57 & ((1 << 45) - 1)
        return self.words[2]

    @property
    def stride(self) -> int:
        if self.target.wide_resources:
            return (self.words[3] >> 12 & 0x3FFF) * (1, 4, 8, 32)[self.words[3] >> 26 & 3]
        stride = self.words[1] >> 16 & 0x3FFF
        if self.target.generation == 12:
            stride *= (1, 4, 8, 32)[self.words[3] >> 18 & 3]
        if self.target.generation <= 9 and self.add_tid and not self.converts:
            stride |= (self.words[3] >> 15 & 15) << 14
        return stride

    @property
    def element(self) -> int:
        """Bytes that stay together; 0 if the buffer is linear."""
        if self.target.generation >= 11:
            return (0, 4, 0, 16)[self.words[1] >> 30]
        size = 2 << (self.words[3] >> 19 & 3) if self.target.generation == 8 else 4
        return size if self.words[1] >> 31 else 0

    @property
    def code(self) -> int:
        """Of the format."""
        if self.target.generation <= 9:
            return self.words[3] >> 12 & 127 if self.words[3] >> 15 & 15 else 0
        return self.words[3] >> 12 & (127 if self.target.generation == 10 else 63)

    @property
    def bound(self) -> bool:
        return self.target.wide_resources or self.code != 0 or self.add_tid

    def place(self, index: int, offset: int) -> int:
        """buffer_offset of the manuals."""
        if self.target.wide_resources or not self.element:
            return index * self.stride + offset
        group, element = 8 << (self.words[3] >> 21 & 3), self.element
        blocks = index // group * self.stride + offset // element * element
        return blocks * group + index % group * element + offset % element

    def address(self, index: int, offset: int, scalar: int) -> int:
        if self.target.generation == 12 and not self.target.wide_resources and self.element:
            return self.base + self.place(index, offset + scalar & M32)
        return self.base + scalar + self.place(index, offset)

    def inside(self, index: int, offset: int, scalar: int, size: int, indexed: bool) -> bool:
        """Of ``size`` bytes from ``offset`` on, that count as a whole."""
        if not self.bound:
            return False
        if self.target.wide_resources:
            fits = scalar + index * self.stride + offset + size <= self.records
            return fits and (not self.words[3] >> 29 & 1 or scalar + offset + size <= self.stride)
        last = offset + max(size - 4, 0)
        room = max(self.records - scalar, 0)
        if self.target.generation == 8:
            if self.add_tid and not indexed:
                return True
            if self.stride == 0 or not self.element:
                return last + index * self.stride < room
            return index < self.records
        if self.target.generation == 9:
            if self.add_tid and not indexed:
                return True
            return index < self.records if indexed and self.stride else last < self.records
        check = self.words[3] >> 28 & 3
        in_record = offset + size <= self.stride if self.target.generation > 10 else last < self.stride
        if check == 0:
            return index < self.records and in_record
        if check == 1:
            return index < self.records
        if check == 2:
            return self.records != 0
        if self.target.generation == 10:
            return (self.place(index, last) if self.element else last) < room
        if self.element and self.stride:
            return index < self.records and in_record
        return offset + size <= room


@dataclass
class LaneOperands:
    """What a lane gives a buffer instruction."""

    index: int
    offset: int
    scalar: int
    indexed: bool


def lane_operands(wave: Wave, inst: Inst, lane: int, resource: Resource) -> LaneOperands:
    vaddr = inst.find("vaddr")
    absent = vaddr is None or vaddr.kind is OperandKind.ABSENT or vaddr.reg is None
    registers = 0 if absent else wave.vector(vaddr.reg, lane)  # type: ignore[union-attr, arg-type]
    indexed, with_offset = (any(word in inst.op.record for word in (own, "BOTHEN")) for own in ("IDXEN", "OFFEN"))
    index = (registers & M32 if indexed else 0) + lane * resource.add_tid
    offset = (registers >> 32 * indexed & M32 if with_offset else 0) + field(inst, "offset") & M32
    return LaneOperands(index & M32, offset, raw(wave, inst["soffset"], lane, 32), indexed)


def resource_of(wave: Wave, inst: Inst, name: str = "srsrc", converts: bool = False) -> Resource:
    reg = inst[name].reg
    assert reg is not None and wave.target is not None
    return Resource(wave.target, [wave.scalar(reg.index + i) for i in range(4)], converts)
