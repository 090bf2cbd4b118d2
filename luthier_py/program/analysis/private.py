"""Which functions may run where there is private memory, which compilers use for what registers have no room for.

In: a program. Out: functions. Invariant: a buffer access in any other function is one of global memory: instructions
alone do not show it, since both kinds of memory are reached through buffers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier_py.program.ir import Function, Program


@lru_cache(maxsize=1)  # programs are large
def with_private_memory(program: Program) -> frozenset[Function]:
    """Functions of kernels that have some."""
    having = (kernel for kernel in program.kernels if kernel.record.private_bytes)
    return frozenset(function for kernel in having for function in program.reachable(kernel.function))
