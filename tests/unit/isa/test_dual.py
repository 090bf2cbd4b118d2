"""The two instructions of a dual one have the operands that they have alone."""

from __future__ import annotations

import pytest

from luthier_py.isa import Inst, InstructionSet, instruction_set, target
from luthier_py.isa.encoding.dual import halves, is_dual, operations

TARGETS = "gfx1100", "gfx1201", "gfx1250"


def named(names: list[str]) -> list[str]:
    """Without modifiers, which a dual instruction has at other places; alone, a source may be called vsrc1."""
    return [name.removeprefix("v") if name.startswith("vsrc") else name for name in names
            if not name.endswith("_modifiers") and name not in ("clamp", "omod")]


def alone(isa: InstructionSet) -> dict[str, set[tuple[str, ...]]]:
    """By operation, the operands of each of its encodings."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for op in isa.ops:
        found.setdefault(op.base, set()).add(tuple(named([each.name for each in op.operands])))
    return found


@pytest.mark.parametrize("gpu", TARGETS)
def test_each_half_has_its_operands_in_order(gpu: str) -> None:
    isa = instruction_set(target(gpu))
    single, duals = alone(isa), [op for op in isa.ops if is_dual(op)]
    assert len(duals) > 100
    for op in duals:
        for half, operation in zip(halves(Inst(op, (), None, b"", ())), operations(op.base), strict=True):
            found = tuple(named([each.name for each in half.op.operands]))
            assert found in single.get(operation, {found}), (op.base, operation)  # some are in pairs alone


@pytest.mark.parametrize("gpu", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize(("text", "x", "y"), [
    ("v_dual_fmamk_f32 v0, v1, 0x12345, v2 :: v_dual_fmamk_f32 v3, v4, 0x12345, v5", "1 imm 2", "4 imm 5"),
    ("v_dual_fmamk_f32 v0, v1, 0x12345, v2 :: v_dual_fmaak_f32 v3, v4, v5, 0x12345", "1 imm 2", "4 5 imm"),
    ("v_dual_fmaak_f32 v0, v1, v2, 0x12345 :: v_dual_fmamk_f32 v3, v4, 0x12345, v5", "1 2 imm", "4 imm 5"),
    ("v_dual_fmamk_f32 v0, v1, 0x12345, v2 :: v_dual_mul_f32 v3, v4, v5", "1 imm 2", "4 5"),
])  # fmt: skip
def test_a_shared_literal_stands_where_each_has_it(gpu: str, text: str, x: str, y: str) -> None:
    """The numbers are registers."""
    for half, expected in zip(halves(instruction_set(target(gpu)).parse(text)), (x, y), strict=True):
        found = [str(each.reg.index) if each.reg else each.name for each in half.operands[1:]]
        assert " ".join(found) == expected
