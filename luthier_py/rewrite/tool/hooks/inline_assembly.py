"""Instructions in device code, as text.

In: a text, values for its inputs and the types of its results. Out: nothing here: `rewrite/jit/python/inline_assembly`
says what it means. Invariant: on the host it is an error.
"""

from __future__ import annotations

from typing import Any

from luthier_py.base.errors import HookError

EXAMPLE = 'asm("v_bfe_u32 {0}, {1}, 4, 8", x, result=Lane[u32])'


def asm(text: str, *inputs: Any, result: Any) -> Any:
    """Instructions in LLVM's syntax, in device code: ``asm("v_bfe_u32 {0}, {1}, 4, 8", x, result=Lane[u32])``.

    ``{0}`` is the result; of several, as ``result=(Lane[u32], u64)``, the first one. Inputs have the numbers behind.
    What differs between lanes is in vector registers, other inputs are in scalar ones where the instructions take
    these. docs/device-python.md, "Assembly in hooks", says what a text may do.
    """
    raise HookError(f"asm is device code: write it in a @hook or @device function, as {EXAMPLE}")
