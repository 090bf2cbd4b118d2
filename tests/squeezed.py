"""Kernels in which no register is free: all are written before a marker and read behind it.

In: how many vector registers, a mask of lanes for the marker. Out: bytes of a code object, and whether a launch left
what it has to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from operator import xor

import emulated
import pytest
import shown_kernels
from emulated import LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, stores, words

from luthier_py import Mutator
from luthier_py.binary.loader import load
from luthier_py.isa import EXEC, instruction_set, target
from luthier_py.samples import sample

SCALARS = [0, 1, *range(4, 102)]  # s[2:3] have the address of what is shown


@pytest.fixture(params=["gfx90a", "gfx942", "gfx908"])
def on(request, monkeypatch):
    """Kernels for other targets than those of `emulated`."""
    name, isa = request.param, instruction_set(target(request.param))
    monkeypatch.setattr(emulated, "ISA", isa)
    monkeypatch.setattr(shown_kernels, "ISA", isa)
    monkeypatch.setattr(emulated, "base", cache(lambda: retargeted(name)))
    return Bench(bytes(range(64)), bytes(4 * WORDS * LANES))


def retargeted(name):
    """The same object, said to be for another target."""
    data = bytearray(sample("vector_add").path.read_bytes())
    data[0x30] = target(name).elf_mach
    return load(bytes(data).replace(b"--gfx90a", f"--{name}".encode()))


def lanes(mask):
    """Rows that make EXEC so."""
    return ("s_mov_b32", S(EXEC), mask & 0xFFFFFFFF), ("s_mov_b32", S(EXEC + 1), mask >> 32 & 0xFFFFFFFF)


def crowded(vgprs, mask, middle=(("s_nop", 7),)):
    """All registers are written, with other numbers in lanes, and all are read behind a marker, SCC first. ``middle``:
    rows with the marker, which leave what they find."""
    first, *others = SCALARS
    vectors = range(1, vgprs)
    return code_object({"k": [
        *POINTERS, *(("s_mov_b32", S(i), 3 * i + 1) for i in SCALARS),
        *(("v_add_u32", V(i), 7 * i, V(0)) for i in vectors),
        ("s_cmp_eq_u32", S(2), S(2)), *lanes(mask), *middle, ("s_mov_b64", S(EXEC, 2), -1),
        ("s_cselect_b32", S(SCALARS[-1]), S(SCALARS[-1]), S(5)),
        *(("s_xor_b32", S(first), S(first), S(i)) for i in others),
        *(("v_add_u32", V(0), V(0), V(i)) for i in vectors),
        ("v_mov_b32", V(1), V(0)), ("v_mbcnt_lo_u32_b32", V(0), -1, 0), ("v_mbcnt_hi_u32_b32", V(0), -1, V(0)),
        *stores(V(1), S(first)), END]}, sgprs=102, vgprs=vgprs)


def marker(m: Mutator):
    return next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP")


def shows(ran, vgprs, change: Sequence[int] = (0,) * LANES):
    """``change``: by how much registers have become more, all together, in each lane."""
    numbers = [lane * vgprs + 7 * vgprs * (vgprs - 1) // 2 + change[lane] for lane in range(LANES)]
    lanes = [number & 0xFFFFFFFF for number in numbers]
    return list(words(ran, 0)) == lanes and set(words(ran, 1)) == {reduce(xor, (3 * i + 1 for i in SCALARS))}
