"""Code object to :class:`Program`: kernels, functions, blocks and instructions; its text form; its verifier."""

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
from luthier_py.program.ir.verify import is_verifying, verify

__all__ = [
    "Annotator", "Block", "CallSite", "Ending", "Extents", "Function", "Instr", "Instrs", "Kernel", "PcBuilder",
    "Program", "by_address", "find_extents", "format_function", "format_program", "instr_at",
    "is_verifying", "lift", "verify",
]
