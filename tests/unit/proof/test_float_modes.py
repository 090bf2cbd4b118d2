"""What inserted code makes of MODE: fields that are kept, set and put back, and how floats compute then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from luthier_py.isa import MODE, InstructionSet, instruction_set, target
from luthier_py.isa.semantics import find_meaning
from luthier_py.proof.code import Distinct
from luthier_py.proof.float_modes import (
    PLAIN,
    UNKNOWN_MODE,
    FloatMode,
    computes_in,
    evaluate_mode_access,
    float_modes,
    leaves_mode,
)
from luthier_py.proof.meanings import UNKNOWN
from luthier_py.proof.now import Now
from luthier_py.proof.pending import NOTHING

ISA = instruction_set(target("gfx900"))
KEEP, BACK = "s_getreg_b32 s0, hwreg(HW_REG_MODE, {})", "s_setreg_b32 hwreg(HW_REG_MODE, {}), s0"
SETS = {"0, 8": "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0",
        "8, 2": "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 3",
        "23, 1": "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 0"}


def behind(*texts: str, isa: InstructionSet = ISA) -> Now:
    now = Now(NOTHING)
    for text in texts:
        inst = isa.parse(text)
        made = evaluate_mode_access(isa.target, inst, find_meaning(inst.op), now)
        now.terms.update({MODE: UNKNOWN} | made if inst.writes.sgpr >> MODE & 1 else made)
    return now


def computes(application: FloatMode, *texts: str, wanted: int | None = PLAIN) -> bool:
    return computes_in(ISA.target, application, wanted, behind(*texts))


def test_all_fields_are_set() -> None:
    assert computes(UNKNOWN_MODE, *SETS.values())
    for left_out in SETS:
        others = [text for field, text in SETS.items() if field != left_out]
        assert not computes(UNKNOWN_MODE, *others)
        assert computes(FloatMode(PLAIN, -1), *others)
    assert computes(UNKNOWN_MODE, *SETS.values(), wanted=PLAIN | 1 << 11)  # debugging: no float looks at it


@pytest.mark.parametrize("text", [
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 1), 0",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3",
    "s_setreg_b32 hwreg(HW_REG_MODE, 23, 1), s7", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 24), 0x3f0",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0", "s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS), 0",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0x10f0",  # gfx1250 takes bits 19:12 of it, too
])
def test_what_is_set_otherwise_is_seen(text: str) -> None:
    assert computes(FloatMode(PLAIN, -1)) and not computes(FloatMode(PLAIN, -1), text)
    assert behind(text).get(MODE) != ("reg", MODE)
    assert computes(FloatMode(PLAIN, -1), wanted=None) and not computes(FloatMode(PLAIN, -1), text, wanted=None)


@pytest.mark.parametrize("bit", [0, 4, 8, 9, 23])
def test_each_bit_of_the_application_counts(bit: int) -> None:
    assert not computes(FloatMode(PLAIN, ~(1 << bit))) and not computes(FloatMode(PLAIN ^ 1 << bit, -1))


@pytest.mark.parametrize(("field", "value", "leaves"), [
    ("2, 2", "0", True), ("2, 2", "1", False), ("4, 4", "15", True), ("4, 5", "15", False),
    ("0, 24", "0x3f0", False),  # of which bits 22:10 are not known
    ("2, 2", "0x1000", False),  # other registers
    ("2, 2", "s0", False),
])
def test_a_hook_may_write_what_is_there(field: str, value: str, leaves: bool) -> None:
    isa = instruction_set(target("gfx1250"), 32)
    name = "s_setreg_b32" if value == "s0" else "s_setreg_imm32_b32"
    inst, known = isa.parse(f"{name} hwreg(HW_REG_WAVE_MODE, {field}), {value}"), FloatMode(PLAIN, 0x3FF)
    assert leaves_mode(isa.target, known, [inst], Now(NOTHING)) is leaves
    assert not leaves_mode(isa.target, UNKNOWN_MODE, [inst], Now(NOTHING))
    assert leaves_mode(isa.target, UNKNOWN_MODE, [inst], behind(SETS["0, 8"])) is (leaves and field != "4, 5")
    assert leaves_mode(isa.target, UNKNOWN_MODE, [isa.parse("v_add_f32_e32 v0, v1, v2")], Now(NOTHING))


@pytest.mark.parametrize(("texts", "comes_back"), [
    ((KEEP.format("0, 24"), *SETS.values(), BACK.format("0, 24")), True),
    ((KEEP.format("0, 32"), *SETS.values(), BACK.format("0, 32")), True),
    ((KEEP.format("0, 10"), SETS["0, 8"], SETS["8, 2"], BACK.format("0, 10")), True),
    ((KEEP.format("23, 1"), SETS["0, 8"], SETS["23, 1"], BACK.format("23, 1")), False),
    ((KEEP.format("0, 10"), *SETS.values(), BACK.format("0, 10")), False),
    ((SETS["8, 2"], KEEP.format("0, 24"), BACK.format("0, 24")), False),  # kept behind a change
    ((KEEP.format("0, 9"), SETS["8, 2"], BACK.format("0, 9")), False),    # half of a field
    ((KEEP.format("0, 24"), SETS["0, 8"], BACK.format("0, 8")), False),   # of another width
])
def test_what_is_put_back(texts: tuple[str, ...], comes_back: bool) -> None:
    assert (behind(*texts).get(MODE) == ("reg", MODE)) is comes_back


@pytest.mark.parametrize(("field", "comes_back"), [("0, 24", True), ("23, 1", True), ("8, 16", False)])
def test_what_is_put_back_chooses_no_other_banks(field: str, comes_back: bool) -> None:
    """gfx1250 takes bits 19:12 of any value for MODE; those of MODE[23:8] are its bits 27:20, FP16_OVFL among them."""
    texts = [text.replace("HW_REG_MODE", "1") for text in (KEEP.format(field), SETS["23, 1"], BACK.format(field))]
    assert (behind(*texts, isa=instruction_set(target("gfx1250"))).get(MODE) == ("reg", MODE)) is comes_back
    assert behind(*texts).get(MODE) == ("reg", MODE)


def known(starts: list[int], *texts: str) -> FloatMode:
    """What is known in a function of kernels that start in these modes, and have this code."""
    code = Distinct([ISA.parse(text) for text in texts])
    body: Any = SimpleNamespace(address=0, code=code)
    kernels: Any = [SimpleNamespace(mode=lambda target, mode=mode: mode) for mode in starts]
    return float_modes(ISA.target, [body], [[0]], {0: kernels})[0]


def test_what_is_known_all_kernels_start_with_and_no_code_writes() -> None:
    assert known([PLAIN, PLAIN]) == (PLAIN, -1)
    assert known([PLAIN, PLAIN ^ 0x10]) == (PLAIN, ~0x10)
    assert known([PLAIN], "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0") == (PLAIN, ~0x30)
    assert known([PLAIN, PLAIN ^ 1], "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0") == (PLAIN, ~0x31)
