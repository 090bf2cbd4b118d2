"""Large functions run in parts: the same outputs, and the same count of every instruction."""

from __future__ import annotations

import numpy as np
import pytest

from luthier_py.base.llvm import Effort
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options import sizes
from luthier_py.emulator.reading import parts
from luthier_py.emulator.reading.discover import CodeBlock
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_original
from luthier_py.isa import instruction_set, target
from luthier_py.samples import sample

ISA = instruction_set(target("gfx90a"), 64)


@pytest.mark.parametrize("large", (0, 1 << 30))
@pytest.mark.parametrize("name", ("matmul", "mandelbrot", "histogram", "function_pointers", "device_call"))
def test_small_parts(name: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    code, launch = sample(name).path.read_bytes(), launch_of(sample(name))
    found = []
    for block, part, limit in ((sizes.BLOCK, sizes.PART, sizes.LARGE), (3, 7, large)):
        monkeypatch.setattr(sizes, "BLOCK", block)
        monkeypatch.setattr(sizes, "PART", part)
        monkeypatch.setattr(sizes, "LARGE", limit)
        device = EmulatorDevice(load(code).target)
        found.append((run_original(device, code, launch).outputs, device.profile))
    (whole, first), (pieces, second) = found
    assert first is not None and second is not None
    assert first.counts == second.counts and first.lanes == second.lanes and first.active == second.active
    assert all(np.array_equal(whole[n].view(np.uint8), pieces[n].view(np.uint8)) for n in whole)


def listing(*lines: str) -> CodeBlock:
    insts, pc = [], 0
    for line in lines:
        inst = ISA.parse(line)
        insts.append((pc, inst))
        pc += inst.size_bytes
    return CodeBlock(0, pc, tuple(insts))


def test_regions_of_indexed_registers_stay_whole() -> None:
    plain = ["v_mov_b32_e32 v0, v1"] * (2 * sizes.BLOCK)
    block = listing("s_set_gpr_idx_on s0, gpr_idx(SRC0)", *plain, "s_set_gpr_idx_off", *plain)
    pieces = parts.cut([block])
    assert [len(piece.insts) for piece in pieces] == [2 * sizes.BLOCK + 2, sizes.BLOCK, sizes.BLOCK]
    assert [inst for piece in pieces for inst in piece.insts] == list(block.insts)
    assert [piece.end for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]] and pieces[-1].end == block.end
    assert parts.parts(pieces) == [pieces[:2], pieces[2:]]
    assert parts.effort(pieces[-1:]) is Effort.GENERATE and parts.effort(pieces) is Effort.FAST
