"""Random kernels for the emulator: any instruction, most of them with addresses that hit something.

In: an instruction set of the generation that the emulator knows, and a random.Random. Out: the code of one wave's
kernel, whose arguments are a buffer and nothing else. It computes with random registers and ends by storing them.

Registers: v1 this lane's offset, v[2:3] and v[4:5] addresses in the buffer, s[8:11] a buffer resource and s[8:9] its
address, s12 a small offset, s[14:15] EXEC as it was; nothing but wild instructions writes these.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

from isa_words import random_word

from luthier_py.base.errors import Invalid, Malformed
from luthier_py.isa import (
    EXEC,
    M0,
    VCC,
    Inst,
    InstructionSet,
    Operand,
    OperandKind,
    OpFlag,
    OpInfo,
    RegFile,
    sgpr,
    vgpr,
)
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action

VGPRS, AGPRS, SGPRS = 64, 32, 48
BUFFER_BYTES, MIDDLE = 65536, 16384  # addresses point to its middle: offsets have signs
LDS_BYTES, SCRATCH_BYTES = 65536, 8192
LANE_BYTES = 64
MOST_OFFSET = 256  # fits in every format
TRIES = 40
WILD = 0.01
ADDRESSES = {"vaddr": (2, 4), "saddr": (8,), "sbase": (8,), "srsrc": (8,), "soffset": (12,), "addr": (1,)}
OWN = OpFlag.INDIRECT | OpFlag.CALL | OpFlag.END  # control that leaves the kernel


@cache
def known(isa: InstructionSet) -> tuple[tuple[OpInfo, ...], tuple[OpInfo, ...]]:
    """Rows that have a meaning: those that stay in the kernel, and branches."""
    rows = [op for op in isa.ops if find_meaning(op) not in (None, Action.TRAP) and not op.flags & OWN]
    branches = tuple(op for op in rows if op.flags & OpFlag.BRANCH)
    return tuple(op for op in rows if op not in branches), branches


def random_kernel(isa: InstructionSet, rng: random.Random) -> bytes:
    """Code that begins with s[4:5] = kernel arguments and v0 = work-item ids."""
    straight, branches = known(isa)
    body: list[Inst] = []
    for _ in range(rng.choice((2, 6, 12, 24))):
        wild = rng.random() < WILD
        row = rng.choice(isa.ops if wild else branches if rng.random() < 0.1 else straight)
        made = instruction(isa, rng, row, wild)
        if made is not None:
            body.append(made)
    rows = [*_start(isa, rng), *_aimed(isa, rng, body), *_end(isa)]
    return b"".join(inst.raw for inst in rows)


def instruction(isa: InstructionSet, rng: random.Random, op: OpInfo, wild: bool) -> Inst | None:
    """One of ``op`` with random operands, in registers that the kernel has unless it is wild."""
    for _ in range(TRIES):
        try:
            inst = isa.decode(random_word(rng, op))
            return inst if wild else _tamed(isa, rng, isa.with_registers(inst, _chooser(rng, isa)))
        except (Malformed, Invalid):
            continue
    return None


def _tamed(isa: InstructionSet, rng: random.Random, inst: Inst) -> Inst:
    """With fields that keep addresses aligned and inside, and the kernel known to the emulator, most of the time."""
    soffset = inst.find("soffset")
    if soffset is not None and soffset.kind is OperandKind.CONSTANT and soffset.value % 16:
        raise Invalid("addresses would not be aligned")
    for name, value in (("gds", 0), ("cbsz", 0), ("abid", 0), ("blgp", 0), ("offset", rng.randrange(0, MOST_OFFSET,
                                                                                                    16))):
        field = inst.find(name)
        if field is not None and field.value and rng.random() > WILD:
            inst = isa.with_field(inst, name, value)
    return inst


def _chooser(rng: random.Random, isa: InstructionSet) -> Callable[[Operand], int]:
    @cache  # asked more than once of each operand
    def index(operand: Operand) -> int:
        reg = operand.reg
        assert reg is not None
        written = bool(operand.access.value & 2)
        if reg.file is RegFile.SGPR:
            if reg.index >= SGPRS and reg.index in (VCC, VCC + 1, M0, EXEC, EXEC + 1) and rng.random() < 0.5:
                return reg.index
            if operand.name in ADDRESSES:
                return rng.choice(ADDRESSES[operand.name] if reg.dwords > 1 else ADDRESSES["soffset"])
            step = 1 if reg.dwords == 1 else 2 if reg.dwords == 2 else 4
            return rng.randrange(16 if written else 8, SGPRS - reg.dwords + 1, step)
        if operand.name in ("vaddr", "addr"):
            return rng.choice(ADDRESSES[operand.name]) if reg.dwords == 2 else 1
        most = AGPRS if reg.file is RegFile.AGPR else VGPRS
        first = 8 if written and reg.file is RegFile.VGPR else 0
        step = 2 if isa.target.aligned_vgprs and reg.dwords > 1 else 1
        return rng.randrange(first, most - reg.dwords + 1, step)

    return index


def _aimed(isa: InstructionSet, rng: random.Random, body: list[Inst]) -> list[Inst]:
    """The instructions with branches that go to one of them, most of them forwards."""
    starts = [0]
    for inst in body:
        starts.append(starts[-1] + inst.size_bytes)
    made = []
    for number, inst in enumerate(body):
        for operand in inst.operands:
            if operand.kind is OperandKind.TARGET:
                goal = rng.randrange(number + 1, len(starts)) if rng.random() < 0.97 else rng.randrange(len(starts))
                inst = isa.with_field(inst, operand.name, (starts[goal] - starts[number + 1]) // 4)
        made.append(inst)
    return made


def _start(isa: InstructionSet, rng: random.Random) -> list[Inst]:
    rows: list[tuple[object, ...]] = [
        ("s_load_dwordx2", sgpr(8, 2), sgpr(4, 2), 0), ("v_and_b32", vgpr(0), 1023, vgpr(0)),
        ("v_lshlrev_b32", vgpr(1), 6, vgpr(0)), ("s_waitcnt", 0), ("s_add_u32", sgpr(8), sgpr(8), MIDDLE),
        ("s_addc_u32", sgpr(9), sgpr(9), 0), ("s_mov_b32", sgpr(10), BUFFER_BYTES - MIDDLE),
        ("s_mov_b32", sgpr(11), 0x00027000), ("s_mov_b32", sgpr(12), 64), ("s_mov_b64", sgpr(14, 2), sgpr(EXEC, 2)),
        ("v_mov_b32", vgpr(4), sgpr(8)), ("v_mov_b32", vgpr(5), sgpr(9)),
        ("v_add_co_u32_e32", vgpr(2), sgpr(VCC, 2), sgpr(8), vgpr(1)), ("v_mov_b32", vgpr(3), sgpr(9)),
        ("v_addc_co_u32_e32", vgpr(3), sgpr(VCC, 2), 0, vgpr(3), sgpr(VCC, 2)), ("s_mov_b32", sgpr(M0), 0xFFFFFFFF),
    ]
    for index in rng.sample(range(16, SGPRS), 8):
        rows.append(("s_mov_b32", sgpr(index), rng.choice((rng.getrandbits(32), rng.randrange(64), 0x3F800000))))
    for index in rng.sample(range(8, VGPRS), 8):
        rows.append(("v_mul_lo_u32", vgpr(index), vgpr(0), sgpr(rng.randrange(16, SGPRS))))
    return [isa.make(*row) for row in rows]


def _end(isa: InstructionSet) -> list[Inst]:
    """Store what was computed. Part of it: the slot of a lane has LANE_BYTES."""
    rows = [isa.make("s_waitcnt", 0), isa.make("s_mov_b64", sgpr(EXEC, 2), sgpr(14, 2))]
    for number in range(LANE_BYTES // 4):
        where = {"offset": 4 * number}
        rows.append(isa.make("global_store_dword", vgpr(2, 2), vgpr(8 + 3 * number), "off", **where))
    for number in range(8):
        rows.append(isa.make("v_mov_b32", vgpr(0), sgpr(16 + 4 * number)))
        rows.append(isa.make("global_store_dword", vgpr(2, 2), vgpr(0), "off", offset=4 * number - 4096))
    return [*rows, isa.make("s_endpgm")]
