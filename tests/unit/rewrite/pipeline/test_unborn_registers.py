"""Hooks that look at registers in which the application's waves find nothing, and those of its copy something."""

from __future__ import annotations

import struct
from pathlib import Path

from assembled import assembled, left_by

from luthier_py.rewrite.pipeline import instrument

BODY = """
 s_add_u32 s8, s0, {own}
 s_load_dwordx2 s[10:11], s[0:1], 0x0
 v_mov_b32 v1, 0
 v_mov_b32 v2, 7
 s_waitcnt lgkmcnt(0)
 global_store_dword v1, v2, s[10:11]
 s_endpgm
"""


def test_they_get_anything(require_tool, tmp_path: Path) -> None:
    """As compilers make s_add_u32 s0, s0, s7 of an offset to private memory that the kernel has none of; the copy's
    waves start with ids of work-groups there."""
    for own in ("s2", "s3", "s4", "s5"):
        code = assembled(require_tool("clang-22"), tmp_path, "gfx90a", BODY.format(own=own))
        made = instrument(code, "record_reg_vals")
        assert [row.sites > 0 for row in made.patched.report] == [True]
        assert struct.unpack_from("<I", left_by(code, "gfx90a")) == (7,)
