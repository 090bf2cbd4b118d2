"""Where memory instructions of the cases go: addresses, resources, offsets, and what lies there.

In: a decoded memory instruction and the part of memory that is its case's own. Out: the same instruction with an
offset, and the case's registers. Every access is aligned and inside, but for buffers: these reach past their range.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from luthier_py.isa import M0, Inst, InstructionSet
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.lds import (
    ExchangeTwo,
    FromLds,
    LaneCount,
    LoadToLds,
    LoadTwo,
    Permute,
    StoreFromLds,
    StoreTwo,
)
from luthier_py.isa.semantics.memory import Atomic, Load, Modify, ScalarAtomic, ScalarLoad, ScalarStore, Store
from luthier_py.isa.semantics.transfers import BlockTransfer, LdsBroadcast, LdsCopy
from reference.surfaces import resource_words, with_format
from reference.values import float_edges
from reference.wave import LANES, M32

ROWS = (Load, Store, Atomic, LoadTwo, StoreTwo, ExchangeTwo, FromLds, LaneCount, LoadToLds, StoreFromLds,
        TransposedLoad, ScalarLoad, ScalarStore, ScalarAtomic, FormatLoad, FormatStore,
        BlockTransfer, LdsCopy, LdsBroadcast)
REGION_BYTES = 4096
MARGIN = 512            # offsets of instructions stay below it
LDS_BYTES = 16384
SCRATCH_BYTES = 1024
ADDRESS, EXTRA = 16, 22  # scalar registers of a case, from its first: base or resource; offset


def element_bytes(row: object) -> int:
    """What must be aligned, and may be told apart between lanes."""
    if isinstance(row, Load | Store):
        return 4 * row.dwords if row.bits == 32 else row.bits // 8
    if isinstance(row, Atomic):
        return row.bits // 8
    if isinstance(row, LoadToLds) and row.bits < 32:
        return row.bits // 8
    if isinstance(row, LaneCount | StoreFromLds):
        return 4
    if isinstance(row, FormatLoad | FormatStore):
        return 16
    if isinstance(row, FromLds):
        return row.atomic.bits // 8
    if isinstance(row, ScalarAtomic):
        return row.bytes
    if isinstance(row, BlockTransfer | LdsBroadcast):
        return 128
    return row.bytes if isinstance(row, LdsCopy) else 4 * row.dwords  # type: ignore[attr-defined]


@dataclass
class Region:
    """Memory of one case: ``address`` of REGION_BYTES; in LDS the same bytes for all."""

    address: int


def family_of(inst: Inst) -> str:
    """BUFFER for typed ones, GLOBAL for those of clusters, too."""
    return inst.op.base.split("_", 1)[0].replace("TBUFFER", "BUFFER").replace("CLUSTER", "GLOBAL")


def lane_offsets(generator: random.Random, size: int, collide: bool) -> list[int]:
    """A byte offset for each lane: consecutive, backwards, equal, strided, or anywhere."""
    slots = max((REGION_BYTES - 2 * MARGIN) // size, 1)
    patterns = [lambda lane: lane, lambda lane: 63 - lane]
    if collide:
        patterns += [lambda lane: 5, lambda lane: lane // 16 * 3, lambda lane: generator.randrange(slots)]
    pattern = generator.choice(patterns)
    return [pattern(lane) % slots * size for lane in range(LANES)]


def with_offset(isa: InstructionSet, inst: Inst, row: object, generator: random.Random, below: bool = False,
                shows: bool = False) -> Inst:
    """``below``: less than 0 where the field has a sign; ``shows``: not 0."""
    family = family_of(inst)
    inst = with_format(isa, inst, row, generator, shows)
    if isinstance(row, Permute):
        pattern = generator.choice((0x8000, 0xC000, 0xE000, 0)) | generator.getrandbits(13)
        return isa.with_field(inst, "offset", pattern) if row is Permute.SWIZZLE else inst
    if isinstance(row, LoadTwo | StoreTwo | ExchangeTwo):
        first = generator.choice((0, 1))
        return isa.with_field(isa.with_field(inst, "offset0", first), "offset1", 1 - first)
    if inst.find("offset") is None:
        return inst
    if isinstance(row, FromLds):  # of 8 bytes, also to the other side
        return isa.with_field(inst, "offset", generator.choice((2, 64, 0x7FFE) if shows else (0, 2, 64, 0x7FFE)))
    step = 16 if family != "S" else 8 if isinstance(row, ScalarAtomic) else 4
    based = any(each.reg is not None for each in inst.operands if each.name in ("vaddr", "saddr", "sbase"))
    signed = based and not inst.op.base.startswith("S_BUFFER") and any(
        info.name == "offset" and info.signed > 1 for info in inst.op.operands)
    return isa.with_field(inst, "offset", -step if signed and below else generator.choice((
        *(() if shows else (0,)), step, 4 * step, 256, -step if signed else 4 * step)))


def vector_addresses(inst: Inst, row: object, region: Region, generator: random.Random) -> list[int] | None:
    """What the address operand holds in each lane."""
    family, size = family_of(inst), element_bytes(row)
    if isinstance(row, LoadTwo | StoreTwo | ExchangeTwo):
        apart = size * (1 if "ST64" in inst.op.base else 2)
        return [lane * apart for lane in range(LANES)]
    offsets = lane_offsets(generator, size, collide=not isinstance(row, LoadToLds))
    if isinstance(row, FromLds):
        return [offset + MARGIN for offset in offsets]
    if family in ("SCRATCH", "DS"):
        offset = inst["offset"].value
        before = generator.choice((0, offset)) if offset > 0 else offset  # the sum comes back from below 0
        if family == "SCRATCH":
            offsets = [offset % 256 & -min(size, 4) for offset in offsets]
        return [offset - before & M32 for offset in offsets]
    if family == "BUFFER":
        both, indexed = "BOTHEN" in inst.op.record, "IDXEN" in inst.op.record
        indices = generator.sample(range(LANES), LANES)  # stores to one place have no order that a manual says
        if both:
            return [index | 16 << 32 for index in indices]
        return indices if indexed else [offset % 1024 for offset in offsets]
    vaddr = inst["vaddr"].reg
    assert vaddr is not None
    base = region.address + MARGIN if vaddr.dwords == 2 else MARGIN
    return [base + offset for offset in offsets]


def scalar_values(isa: InstructionSet, inst: Inst, region: Region, first: int,
                  generator: random.Random) -> dict[int, int]:
    """Scalar registers that hold bases, resources and offsets, and M0."""
    offset = inst.find("offset")
    below = offset is not None and offset.value < 0  # of an address in LDS too, which M0 has to keep above 0
    values = {M0: generator.choice((64, 256) if below else (0, 64, 256))}
    extra = generator.choice((0, 16, 64))
    family = family_of(inst)
    if family == "BUFFER" or inst.op.base.startswith("S_BUFFER"):
        words = resource_words(isa, inst, find_meaning(inst.op), region.address, generator)
        values |= {first + ADDRESS + i: word for i, word in enumerate(words)}
        extra = generator.choice((0, 16, 32))
    elif family in ("GLOBAL", "S", "FLAT"):
        base = region.address + (MARGIN if family == "S" else 0)
        values |= {first + ADDRESS: base & M32, first + ADDRESS + 1: base >> 32}
    else:
        values[first + ADDRESS] = 128 if below else generator.choice((0, 128))
    row = find_meaning(inst.op)
    data = inst.find("sdata")
    if isinstance(row, ScalarAtomic) and data is not None and data.reg is not None and data.reg.index >= first:
        word = contents(row, generator, 32 * data.reg.dwords)[0]
        values |= {data.reg.index + i: word >> 32 * i & M32 for i in range(data.reg.dwords)}
    if isinstance(row, BlockTransfer):
        values[M0] = generator.getrandbits(32)
    elif isinstance(row, LdsBroadcast):
        values[M0] = generator.choice((0, 1, 2, 4, 5)) << 16 | 4 * generator.randrange(1000)
    values[first + EXTRA] = extra // getattr(find_meaning(inst.op), "unit", 1)
    return values


_OFTEN_EQUAL = {Modify.INC, Modify.DEC, Modify.WRAP, Modify.COMPARE_SWAP, Modify.CLAMPED_SUB, Modify.CONDITIONAL_SUB}


def contents(row: object, generator: random.Random, bits: int) -> list[int]:
    """A lane's data each: numbers where float atomics add, since what NaNs and overflows leave behind is free."""
    scalar = isinstance(row, ScalarAtomic)
    row = row.atomic if isinstance(row, ScalarAtomic | FromLds) else row
    if isinstance(row, Atomic) and row.kind in ("f", "p", "b"):
        return [_number(row, generator, bits) for _ in range(LANES)]
    small = isinstance(row, Atomic) and row.modify in _OFTEN_EQUAL
    if isinstance(row, Atomic) and row.modify is Modify.COMPARE_SWAP:
        close = (0, 1 << row.bits - 1, 7 << row.bits // 2, *((7 << row.bits // 2 | 6,) if not scalar else ()))
        return [sum(generator.choice(close) << place for place in range(0, bits, row.bits)) for _ in range(LANES)]
    few = (*range(6), 1 << 32, *((1 << bits) - 1 - k for k in range(2))) if bits > 32 else (*range(6), M32, M32 - 1)
    return [generator.choice(few) if small else generator.getrandbits(bits) for _ in range(LANES)]


def _number(row: Atomic, generator: random.Random, bits: int) -> int:
    if row.modify is Modify.COMPARE_SWAP:
        few = (0, 1 << row.bits - 1, *(float_edges(row.bits)[number] for number in (1, 9)))  # a denormal, a NaN
        return sum(generator.choice(few) << place for place in range(0, bits, row.bits))
    if row.modify is not Modify.ADD:
        edges = float_edges(row.bits)
        return sum(generator.choice(edges) << place for place in range(0, bits, row.bits))
    if row.kind == "p":
        return sum(generator.choice((0, 0x8000, 1, 0x3C00, 0x4100, 0xB555, 0x0400)) << place for place in (0, 16))
    if row.kind == "b":
        few = (0, 0x8000, 1, 0x3F80, 0x4049, 0xBEAA, 0x3C01, 0xB77F)
        return sum(generator.choice(few) << place for place in (0, 16))
    kind = np.float32 if row.bits == 32 else np.float64
    number = generator.choice((0.0, -0.0, 1.5, -2.25, 1e10, 1e-310, -1e-39, 1e-40, generator.gauss(0, 1)))
    return int.from_bytes(kind(number).tobytes(), "little")


def memory_of(row: object, generator: random.Random) -> bytes:
    """A region's first contents."""
    given = row
    row = row.atomic if isinstance(row, ScalarAtomic | FromLds) else row
    if not isinstance(row, Atomic):
        return generator.randbytes(REGION_BYTES)
    rounds = range(REGION_BYTES * 8 // row.bits // LANES)
    values = [value for _ in rounds for value in contents(given, generator, row.bits)]
    return b"".join(value.to_bytes(row.bits // 8, "little") for value in values)


def is_memory(inst: Inst) -> bool:
    return isinstance(find_meaning(inst.op), (*ROWS, Permute))
