"""What methods of the Mutator are given: the right kind, or an error that names the method for what it is.

In: what a tool gave. Out: HookError where it is of another kind.
"""

from __future__ import annotations

from luthier_py.analysis import Edge, Loop
from luthier_py.errors import HookError
from luthier_py.ir import Block, CallSite, Function, Instr, Kernel
from luthier_py.tool.author import caller
from luthier_py.tool.counting import Counted, Region, Stretch

TAKEN_BY = {
    Instr: "before and after take it", Block: "at_block takes it", Stretch: "at_stretch takes it",
    Region: "at_region takes it", Counted: "at_counted takes it", Function: "at_entry and at_exit take it",
    Edge: "at_edge takes it", CallSite: "before and after take its instr",
    Loop: "at_loop_entry, at_back_edge and at_loop_exit take it",
    Kernel: "at_entry and at_exit take it, and kernel.function is its code",
}


def expect(given: object, *wanted: type) -> None:
    """Refuse what is of another kind."""
    if not isinstance(given, wanted):
        kinds, use = " or ".join(kind.__name__ for kind in wanted), TAKEN_BY.get(type(given))
        raise HookError(f"{caller()}: this needs {kinds}, not {given!r:.60}" + (f"; {use}" if use else ""))
