"""A half or a byte that goes into a register which the wave also reads as the low one of a pair.

LLVM 18 to 22 made wrong code of that, see emulator/vector_regions/emitter.py: bits of the pair's upper register came
into what was made of the result as a number of 64 bits."""

from __future__ import annotations

import struct

import pytest
from waves import run

from luthier_py.base.llvm import Effort, host_object
from luthier_py.emulator.vector_regions import emitter
from luthier_py.isa import MODE, instruction_set, target

ISA = instruction_set(target("gfx950"))
PAIR, LOADED, ABOVE = 0xFD89009B_89AB0018, 0x78391200, 0x0B009108
FORMS: dict[str, tuple[tuple[str, ...], int]] = {
    "pack": (("s_pack_lh_b32_b16 s30, s72, s24",), 0x89AB1200),
    **{word: (("s_and_b32 s30, s24, 0xffff0000", "s_and_b32 s31, s72, 0xffff", f"{word} s30, s30, s31"), 0x89AB1200)
       for word in ("s_or_b32", "s_xor_b32", "s_add_u32")},
    "byte": (("s_and_b32 s30, s24, 0xffffff00", "s_and_b32 s31, s72, 0xff", "s_or_b32 s30, s31, s30"), 0x89AB0000),
    "upper half": (("s_and_b32 s30, s24, 0xffff0000", "s_lshr_b32 s31, s72, 16", "s_or_b32 s30, s30, s31"), 0x89AB7839),
    "upper byte": (("s_and_b32 s30, s24, 0xffffff00", "s_lshr_b32 s31, s72, 24", "s_or_b32 s30, s30, s31"), 0x89AB0078),
    "made mask": (("s_bfm_b32 s31, 16, 0", "s_and_b32 s31, s72, s31", "s_and_b32 s30, s24, 0xffff0000",
                   "s_or_b32 s30, s30, s31"), 0x89AB1200),
    "field": (("s_bfe_u32 s31, s72, 0x80010", "s_and_b32 s30, s24, 0xffffff00", "s_or_b32 s30, s30, s31"), 0x89AB0039),
    "shifts": (("s_lshr_b32 s30, s24, 16", "s_lshl_b32 s30, s30, 16", "s_and_b32 s31, s72, 0xffff",
                "s_or_b32 s30, s30, s31"), 0x89AB1200),
}  # fmt: skip
READ_AS_PAIR = "s_not_b64 s[50:51], s[24:25]"


@pytest.mark.parametrize("form", FORMS)
def test_what_is_above_stays_out(form: str) -> None:
    """As the low register of another pair, and as a number that becomes a double."""
    lines, wanted = FORMS[form]
    code = [READ_AS_PAIR, *lines, "s_mov_b32 s31, s15", "s_mov_b64 s[40:41], s[30:31]", "v_cvt_f64_u32_e32 v[0:1], s30"]
    state = run([ISA.parse(line) for line in code], isa=ISA, exec_mask=1, vgprs={}, agprs={}, sgprs={
        24: PAIR & 0xFFFFFFFF, 25: PAIR >> 32, 72: LOADED, 15: ABOVE, MODE: 0x3C0})
    assert (state.sgpr(40), state.sgpr(41)) == (wanted, ABOVE)
    bits = int(state.vgpr(0)[0]) | int(state.vgpr(1)[0]) << 32
    assert struct.unpack("<d", bits.to_bytes(8, "little")) == (wanted,)


def test_llvm_is_still_wrong_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this fails LLVM is mended, and `opaque` can go."""
    monkeypatch.setattr(emitter.Emitter, "opaque", lambda self, word: word)
    with pytest.raises(AssertionError):
        for form in FORMS:
            test_what_is_above_stays_out(form)


@pytest.mark.parametrize("effort", Effort)
def test_code_with_what_llvm_knows_nothing_of_is_made(effort: Effort) -> None:
    made = emitter.Emitter()
    made.emit(f"ret i32 {made.opaque('%given')}")
    made.define("i32 @same(i32 %given)")
    assert host_object(made.module(), effort)
