"""Discovery on code that is no code: it says so, and ends."""

from __future__ import annotations

import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import build

from luthier_py.base.errors import Malformed
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import format_program, lift, verify

STARTS = (0xBF820000, 0xBF840000, 0xBE841C00, 0x8004FF04, 0x8205FF05, 0xBE9E1E04, 0xBE801D1E, 0xBF810000, 0x7E000280,
          0xBE8422C1, 0x87FE047E)  # s_branch, s_cbranch, a chain, s_swappc, s_setpc, s_endpgm, v_mov, EXEC


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 32), st.booleans())
def test_any_bytes(seed: int, plausible: bool) -> None:
    rng = random.Random(seed)
    words = [rng.choice(STARTS) + rng.choice((0, 0, rng.randrange(64))) if plausible else rng.getrandbits(32)
             for _ in range(rng.randint(1, 200))]
    code = b"".join(word.to_bytes(4, "little") for word in words)
    obj = build({"k": [code], "f": [code[::-1]]}, sizes=rng.random() < 0.5, pointers=("f",))
    began = time.process_time()
    try:
        program = lift(obj)
    except Malformed:
        return
    verify(program)
    facts = analyse(program)
    for function in program.functions:
        for instr in function.instrs:
            assert facts.live_before(instr) and facts.pending_before(instr)
    assert format_program(program)
    assert time.process_time() - began < 5
