"""Code object to :class:`Program`: kernels, functions, blocks and instructions; its text form; its verifier."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.program.ir.discover import lift
    from luthier_py.program.ir.extents import Extents, find_extents
    from luthier_py.program.ir.model import (
        Block,
        CallSite,
        Ending,
        Function,
        Instr,
        Instrs,
        Kernel,
        PcBuilder,
        Program,
        by_address,
        instr_at,
    )
    from luthier_py.program.ir.text import Annotator, format_function, format_program
    from luthier_py.program.ir.verifier import is_verifying, verify

__all__ = [
    "Annotator", "Block", "CallSite", "Ending", "Extents", "Function", "Instr", "Instrs", "Kernel", "PcBuilder",
    "Program", "by_address", "find_extents", "format_function", "format_program", "instr_at",
    "is_verifying", "lift", "verify",
]
__getattr__ = make_lazy_loader(__name__, {
    "discover": "lift",
    "extents": "Extents find_extents",
    "model": "Block CallSite Ending Function Instr Instrs Kernel PcBuilder Program by_address instr_at",
    "text": "Annotator format_function format_program",
    "verifier": "is_verifying verify",
})  # fmt: skip
