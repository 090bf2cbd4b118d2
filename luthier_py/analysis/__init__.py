"""Program to :class:`Facts`: liveness that knows lanes, loads on their way, EXEC, registers. Read-only."""

from luthier_py.analysis.facts import Facts, analyse, live_notes
from luthier_py.analysis.registers import initial_registers, touched
from luthier_py.analysis.waits import Pending

__all__ = ["Facts", "Pending", "analyse", "initial_registers", "live_notes", "touched"]
