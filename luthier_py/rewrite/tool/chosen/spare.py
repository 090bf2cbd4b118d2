"""How many scalar registers wave variables can have for nothing.

In: a kernel and its facts. Out: their number, which may be negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier_py.program.analysis import Facts
    from luthier_py.program.ir import Kernel, Program

FOR_HOOKS = 16  # scalar registers that are enough for what most hooks compute


def spare_scalars(program: Program, facts: Facts, kernel: Kernel) -> int:
    """SGPRs that the kernel could use without fewer waves per SIMD, less those that its code or its launch state
    occupies, and `FOR_HOOKS` of them."""
    target, descriptor = program.obj.target, kernel.record.descriptor
    size, vgprs, used = descriptor.wave_size, descriptor.vgpr_count(target), descriptor.sgpr_count(target)
    waves = target.waves_for(vgprs, used, wave_size=size)
    steps = range(min(used, target.sgpr_limit), target.sgpr_limit + 1)
    most = max(n for n in steps if n <= used or target.waves_for(vgprs, n, wave_size=size) == waves)
    touched = facts.touched(program.reachable(kernel.function)) | facts.initial(kernel)
    return most - (touched.sgpr & (1 << most) - 1).bit_count() - FOR_HOOKS
