"""Loads to LDS and stores from there, transposed loads, blocks of registers, direct loads.

In: a wave, an instruction and its row. Out: registers and memory after it. Sources: CDNA 3 ISA, 9.1.9; Triton's
description of transposed loads on AMD GPUs; RDNA 4 ISA, 11.5; RDNA 3.5 ISA, 12.4.
"""

from __future__ import annotations

from luthier_py.isa import M0, Inst, Reg
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.lds import LoadToLds, StoreFromLds
from luthier_py.isa.semantics.transfers import BlockTransfer, LdsBroadcast, LdsCopy
from reference.memory import Space, extended, lds_offset
from reference.vector import field
from reference.wave import M32, Wave


def load_to_lds(wave: Wave, inst: Inst, row: LoadToLds) -> None:
    found = {}
    for lane in wave.lanes():
        space = Space(wave, inst, lane)
        if row.bits < 32:
            found[lane] = extended(space.load(0, row.bits // 8), row.bits, row.signed)
            continue
        found[lane] = sum(space.load(4 * i, 4) << 32 * i for i in range(row.dwords))
    for lane, value in found.items():
        at = (wave.scalar(M0) & 0x3FFFF) + field(inst, "offset") + 4 * row.dwords * lane
        wave.lds[at : at + 4 * row.dwords] = value.to_bytes(4 * row.dwords, "little")


def store_from_lds(wave: Wave, inst: Inst, row: StoreFromLds) -> None:
    for lane in wave.lanes():
        at = (wave.scalar(M0) & 0x3FFFF) + field(inst, "offset") + 4 * lane
        Space(wave, inst, lane).store(0, 4, int.from_bytes(wave.lds[at : at + 4], "little"))


def transposed(wave: Wave, inst: Inst, row: TransposedLoad) -> None:
    """CDNA 4: every 16 lanes give a tile, row after row of 16 columns; lane i gets column i. From gfx12 on 32 give
    one tile in halves of rows that are 8 or 4 lanes apart, and lane i gets half of column i % 16."""
    target = inst["vdst"].reg
    assert target is not None
    mask, size = (1 << row.bits) - 1, 4 * row.dwords
    given = {lane: Space(wave, inst, lane).load(lds_offset(inst), size) for lane in wave.lanes()}
    tiles: dict[int, dict[tuple[int, int], int]] = {}  # (row, column) -> element
    each = 8 * size // row.bits
    for lane, source in given.items():
        for element in range(each):
            if row.whole and row.bits == 16:
                at = lane % 8 + lane // 16 * 8, lane // 8 % 2 * 8 + element
            elif row.whole:
                at = lane % 4 + lane // 8 * 4, lane // 4 % 2 * 8 + element
            else:
                first = lane % 16 * each + element
                at = first // 16, first % 16
            tiles.setdefault(0 if row.whole else lane // 16, {})[at] = source >> element * row.bits & mask
    for lane in given:
        tile = tiles[0 if row.whole else lane // 16]
        first = lane // 16 * 8 if row.whole else 0
        value = sum(tile[first + k, lane % 16] << k * row.bits for k in range(each))
        wave.set_vector(target, lane, value)


def block(wave: Wave, inst: Inst, row: BlockTransfer) -> None:
    data = (inst.find("vdata") or inst["vdst"]).reg
    assert data is not None
    chosen = [number for number in range(32) if wave.scalar(M0) >> number & 1]
    found = {}
    for lane in wave.lanes():
        space = Space(wave, inst, lane)
        for number in chosen:
            reg = Reg(data.file, data.index + number, 1)
            if row.stores:
                space.store(4 * number, 4, wave.vector(reg, lane))
            else:
                found[number, lane] = space.load(4 * number, 4)
    for (number, lane), value in found.items():
        wave.set_vector(Reg(data.file, data.index + number, 1), lane, value)


def copy(wave: Wave, inst: Inst, row: LdsCopy) -> None:
    reg = inst["vdata" if row.stores else "vdst"].reg
    assert reg is not None
    for lane in wave.lanes():
        at = wave.vector(reg, lane) + field(inst, "offset") & M32
        space = Space(wave, inst, lane)
        if row.stores:
            space.store(0, row.bytes, int.from_bytes(wave.lds[at : at + row.bytes], "little"))
        else:
            wave.lds[at : at + row.bytes] = space.load(0, row.bytes).to_bytes(row.bytes, "little")


def broadcast(wave: Wave, inst: Inst, row: LdsBroadcast) -> None:
    """RDNA 3.5 ISA, 12.4: EXEC counts by quads."""
    target, at = inst["vdst"].reg, wave.scalar(M0) % 0x10000
    types = {0: (8, False), 1: (16, False), 2: (32, False), 4: (8, True), 5: (16, True)}
    bits, signed = types[wave.scalar(M0) >> 16 & 7]
    assert target is not None
    value = extended(int.from_bytes(wave.lds[at : at + bits // 8], "little"), bits, signed)
    for quad in {lane // 4 for lane in wave.lanes()}:
        for lane in range(4 * quad, 4 * quad + 4):
            wave.set_vector(target, lane, value)
