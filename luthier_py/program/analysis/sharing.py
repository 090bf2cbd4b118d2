"""Kernels that share functions.

In: kernels of a program. Out: groups of them. Invariant: no function is reached from two groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier_py.program.ir import Function, Kernel, Program


def group_sharing_kernels(program: Program, kernels: Iterable[Kernel]) -> tuple[tuple[Kernel, ...], ...]:
    """``kernels``, those together that share functions, directly or by others."""
    groups: list[tuple[list[Kernel], set[Function]]] = []
    for kernel in kernels:
        together, reached = [kernel], set(program.reachable(kernel.function))
        others = [group for group in groups if group[1] & reached]
        for group in others:
            together, reached = group[0] + together, group[1] | reached
        groups = [*(group for group in groups if group not in others), (together, reached)]
    return tuple(tuple(each) for each, _ in groups)
