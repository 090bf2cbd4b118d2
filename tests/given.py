"""What hooks are given, as they see it: a kernel of some instructions, with calls that keep an argument's value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from emulated import LANES, Bench, Ran, code_object

from luthier_py.intrinsics import lane_id
from luthier_py.program.ir import Instr
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Lane, Mutator, Place, Tool, Variable, hook, ptr, u32, u64


@hook
def keep_narrow(out: ptr[u32], x: Lane[u32]) -> None:
    out[lane_id()] = x


@hook
def keep_wide(out: ptr[u64], x: Lane[u64]) -> None:
    out[lane_id()] = x


Wanted = Callable[[Mutator, Sequence[Instr]], Sequence[tuple[Instr, Place, Any, int]]]
"""Of the kernel's instructions: where to call a hook, what with, and its bits."""


def given(rows: Sequence[Any], wanted: Wanted, contents: Sequence[bytes] = (), **kernel: Any
          ) -> tuple[list[tuple[int, ...]], Ran]:
    """The values in each lane, one tuple for each call (0 where a lane was not active); and what the launch left."""
    kept: list[Variable] = []

    class Keeps(Tool):
        def instrument(self, m: Mutator) -> None:
            function = m.program.kernel("k").function
            for instr, place, value, bits in wanted(m, m.instrs(function)):
                kept.append(Variable(u32 if bits == 32 else u64, LANES, name=f"kept{len(kept)}"))
                call = m.before if place is Place.BEFORE else m.after
                call(instr, keep_narrow if bits == 32 else keep_wide, kept[-1], value)

    data = code_object({"k": [*rows, ("s_endpgm", 0)]}, **kernel)
    made = instrument(data, Keeps())
    bench = Bench(*contents, *[bytes(64)] * (3 - len(contents)))
    ran, plain = bench.run(made.data, "k.luthier"), bench.run(data, "k")
    assert ran.buffers == plain.buffers
    return [ran[variable] for variable in kept], ran  # type: ignore[misc]
