"""Registers of the hardware as arguments: read as the kernel itself reads them, and by the names of each target."""

from __future__ import annotations

import pytest
import synthetic
from emulated import LANES, code_object
from given import given, keep_narrow

from luthier_py.base.errors import HookError
from luthier_py.binary.loader import load
from luthier_py.isa import instruction_set, sgpr, target
from luthier_py.program.ir import lift
from luthier_py.rewrite.jit import PayloadKey
from luthier_py.rewrite.jit.compile import compile_keys
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Mutator, Place, Tool, Variable, hardware_register, u32
from luthier_py.rewrite.tool.arguments.check_parameters import arguments

OUT = Variable(u32, LANES, name="out")


def test_the_mode_is_what_the_kernel_reads() -> None:
    rows = [("s_getreg_b32", sgpr(20), 1 | 31 << 11), ("s_nop", 0)]
    found, _ = given(rows, lambda m, instrs: [
        (instrs[-1], Place.BEFORE, hardware_register(m.program.kernel("k"), "MODE"), 32),
        (instrs[-1], Place.BEFORE, sgpr(20), 32)])
    assert found[0] == found[1] and len(set(found[0])) == 1


class Where(Tool):
    def instrument(self, m: Mutator) -> None:
        kernel = m.program.kernel("k")
        m.at_entry(kernel, keep_narrow, OUT, hardware_register(kernel, "HW_ID"))


def test_it_is_proved() -> None:
    made = instrument(code_object({"k": [("s_nop", 0), ("s_endpgm", 0)]}), Where())
    texts = [made.program.isa.text(inst) for clone in made.patched.chunks for inst in _decoded(made, clone.code)]
    assert any("HW_REG_HW_ID" in text for text in texts)


def _decoded(made, code):  # type: ignore[no-untyped-def]
    at = 0
    while at < len(code):
        inst = made.program.isa.decode(code, at)
        yield inst
        at += inst.size_bytes


@pytest.mark.parametrize(("gpu", "name", "text"), [
    ("gfx90a", "HW_ID", "hwreg(HW_REG_HW_ID)"), ("gfx942", "XCC_ID", "hwreg(HW_REG_XCC_ID)"),
    ("gfx1030", "HW_ID1", "hwreg(HW_REG_HW_ID1)"), ("gfx1100", "HW_ID2", "hwreg(HW_REG_HW_ID2)"),
])
def test_each_target_has_its_names(gpu: str, name: str, text: str) -> None:
    isa = instruction_set(target(gpu))
    kernel = lift(synthetic.build({"k": [("s_endpgm", 0)]}, gpu=gpu)).kernel("k")
    hook, given_ = arguments(keep_narrow, (OUT, hardware_register(kernel, name)), {})
    (payload,) = compile_keys({PayloadKey(hook, (None,)): None}, isa).values()
    assert given_ == (OUT,) and any(text in isa.text(inst) for inst in payload.instrs)


def test_what_a_target_does_not_have() -> None:
    kernel = lift(load(code_object({"k": [("s_endpgm", 0)]}))).kernel("k")
    with pytest.raises(HookError, match="gfx90a has no hardware register XCC_ID; it has .*HW_ID"):
        hardware_register(kernel, "XCC_ID")
