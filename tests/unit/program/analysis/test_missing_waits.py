"""Waits of compiled code: none is missing, on any target and at any level; of those left out or weaker each is told."""

from __future__ import annotations

import pytest
from compiled_samples import CompiledSamples
from defects import instructions, weaker_waits

from luthier_py.binary.loader import load
from luthier_py.isa import Counter, OpFlag
from luthier_py.isa.encoding.waitcnt import waits_for
from luthier_py.isa.properties.barriers import barrier_part
from luthier_py.program.analysis import missing_waits
from luthier_py.program.ir import lift
from luthier_py.samples import sample

TARGETS = [("gfx803", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1100", 32), ("gfx1201", 32),
           ("gfx1250", 32)]
NAMES = ("reduce", "bitonic_sort", "histogram", "matmul", "function_pointers", "scratch")
QUICK = {("gfx803", "function_pointers", 2), ("gfx1030", "reduce", 0), ("gfx1201", "bitonic_sort", 2)}
CASES = [pytest.param(name, target, wave_size, level,
                      marks=() if (target, name, level) in QUICK else pytest.mark.slow)
         for target, wave_size in TARGETS for name in NAMES for level in (0, 2)]


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory) -> CompiledSamples:
    return CompiledSamples(require_tool("clang-22"), tmp_path_factory.mktemp("waits"))


@pytest.mark.parametrize(("name", "target", "wave_size", "level"), CASES)
def test_compilers_leave_no_wait_out(name, target, wave_size, level, compiled):
    code = compiled.code(name, target, wave_size, level)
    assert missing_waits(lift(load(code))) == ()
    if level:
        weaker = [each for each in weaker_waits(code, sample(name).kernel) if not missing_waits(lift(load(each.data)))]
        assert [f"{each.what} at {each.pc:#x}" for each in weaker if matters(code, sample(name).kernel, each)] == []


def matters(code, kernel, defect):
    """Before a barrier a wait for loads from memory is nobody's: their registers have been waited for."""
    obj = load(code)
    inst, *rest = (inst for pc, inst in instructions(obj, kernel) if pc >= defect.pc)
    after = next(each for each in rest if OpFlag.WAIT not in each.op.flags)
    lds = Counter.LGKM in waits_for(obj.target, inst) if defect.counter is None else defect.counter is Counter.LGKM
    return lds or not barrier_part(after)
