"""Random kernels in which no register is free, or as few as are asked for: all others hold something until the end.

In: a target, a seed, how many registers of each file are left alone. Out: bytes of a code object whose kernel is `k`.
Invariant: what a register holds is written before the random code, and shown in memory behind it: the sum of all goes
to the input, which nobody reads any more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from emulated import LANES
from random_kernels import (
    DATA,
    INPUT,
    INPUT_BYTES,
    OWN,
    PROBE,
    PROBES,
    SCALARS,
    SLOT_BYTES,
    TEMPORARY,
    Program,
    Row,
    kernel,
)
from synthetic import assemble

from luthier_py.binary.link import Chunk, NewKernel, Patch, link
from luthier_py.binary.loader import CodeObject, load
from luthier_py.isa import InstructionSet, Reg, RegFile, Target, agpr, instruction_set, sgpr, target, vgpr
from luthier_py.samples import sample

GROUPS = 2
ITEMS = GROUPS * LANES
VGPRS = 256
ARGUMENTS, GROUP, SUM = (sgpr(4), sgpr(5)), sgpr(6), vgpr(1)
TWICE = (*ARGUMENTS, vgpr(PROBE.index), vgpr(PROBE.index + 1))  # addresses: added and taken away again
HELD = {*ARGUMENTS, GROUP, SUM, TEMPORARY, OWN, vgpr(0), *map(vgpr, range(INPUT.index, TEMPORARY.index + 1)),
        *map(vgpr, DATA), *map(sgpr, SCALARS)}
"""What the random code has for itself: all but these are the crowd."""
MANY = {RegFile.SGPR: 16, RegFile.VGPR: 8, RegFile.AGPR: 8}
FEW = (0, 1, 2)
FREE: tuple[Mapping[RegFile, int], ...] = (
    *(dict.fromkeys(RegFile, few) for few in FEW),
    *({**MANY, RegFile.SGPR: few} for few in FEW),
    *({**MANY, RegFile.VGPR: few, RegFile.AGPR: few} for few in FEW),
)
"""Few registers of all files, few scalars alone, few vectors alone."""


def arguments() -> tuple[str, ...]:
    """Of a launch of GROUPS work-groups of LANES work-items, as the command line has them."""
    return (f"inout:u32[{ITEMS * INPUT_BYTES // 4}]=random:5:0:4294967295", f"inout:u32[{PROBES}]=zeros",
            f"out:u32[{ITEMS * SLOT_BYTES // 4}]")  # fmt: skip


def crowded(name: str, seed: int, free: Mapping[RegFile, int], accumulators: bool) -> bytes:
    """``accumulators``: whether AGPRs are part of the crowd, where there are any; else there is none of them."""
    gpu = target(name)
    program = crowded_program(instruction_set(gpu), seed, free, accumulators)
    return kernel_object(gpu, program.rows, gpu.sgpr_limit, VGPRS, VGPRS if accumulators else 0)


def crowded_program(
    isa: InstructionSet, seed: int, free: Mapping[RegFile, int], accumulators: bool, inline: bool = False
) -> Program:
    crowd = list(_crowd(isa, random.Random(seed), free, accumulators))
    return kernel(seed, inline, 12, isa, [_filled(reg) for reg in crowd], _summed(isa, crowd))


def _crowd(
    isa: InstructionSet, rng: random.Random, free: Mapping[RegFile, int], accumulators: bool
) -> Iterator[Reg]:
    files = [[sgpr(i) for i in range(isa.target.sgpr_limit)], [vgpr(i) for i in range(VGPRS)],
             [agpr(i) for i in range(VGPRS)] if accumulators else []]
    for regs in files:
        able = [reg for reg in regs if reg not in HELD]
        left = rng.sample(able, min(len(able), free[able[0].file])) if able else []
        yield from (reg for reg in able if reg not in left)


def _filled(reg: Reg) -> Row:
    if reg.file is RegFile.SGPR:
        return ("s_mov_b32", reg, 3 * reg.index + 1)
    if reg.file is RegFile.AGPR:
        return ("v_accvgpr_write_b32", reg, vgpr(DATA[reg.index % len(DATA)]))
    return ("v_add_u32", reg, 7 * reg.index, OWN)


def _summed(isa: InstructionSet, crowd: Sequence[Reg]) -> list[Row]:
    """Vector instructions alone: SCC and VCC are shown later."""
    rows: list[Row] = [("v_mov_b32", SUM, 0)]
    for reg in (*crowd, vgpr(0), OWN, GROUP, *TWICE, *TWICE):
        if reg.file is RegFile.AGPR:
            rows += [("v_accvgpr_read_b32", TEMPORARY, reg), ("v_add_u32", SUM, SUM, TEMPORARY)]
        else:
            rows.append(("v_xor_b32", SUM, reg, SUM))
    return [*rows, isa.make("global_store_dword", INPUT, SUM, "off").raw]


@cache
def _base(gpu: Target) -> CodeObject:
    data = bytearray(sample("vector_add").path.read_bytes())
    data[48] = gpu.elf_mach
    return load(bytes(data).replace(b"--gfx90a", f"--{gpu.name}".encode()))


def kernel_object(
    gpu: Target, rows: Sequence[Row], sgprs: int, vgprs: int, agprs: int = 0, scratch_bytes: int = 0
) -> bytes:
    """An object with a kernel `k` for three buffers, which has so many registers."""
    base, isa, labels = _base(gpu), instruction_set(gpu), dict[str, int]()
    for _ in range(2):  # the second time with all labels known
        code = assemble(isa, rows, 0, labels)
    like, agprs = base.kernels[0], agprs if gpu.has_agprs else 0
    total = vgprs + agprs if gpu.unified_agprs else vgprs
    descriptor = like.descriptor.replace(group_segment_fixed_size=4 * LANES, private_segment_fixed_size=scratch_bytes,
                                         enable_private_segment=int(scratch_bytes > 0))
    descriptor = descriptor.with_vgpr_count(gpu, total).with_sgpr_count(gpu, sgprs + gpu.extra_sgprs)
    if gpu.unified_agprs:
        descriptor = descriptor.with_accum_offset(vgprs)
    counts = {".sgpr_count": sgprs + gpu.extra_sgprs, ".vgpr_count": total, ".agpr_count": agprs}
    made = NewKernel("k", "k", descriptor, like.name, metadata=counts)
    return link(base, Patch((Chunk("k", code),), (made,), ()))
